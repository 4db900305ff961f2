package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// order is what the front tells the guard.
type order struct {
	Op     string   // start, end, hurry
	Start  starting // of start
	Ladder Ladder   // of end
}

// starting is what is to be started. The environment is the guard's own.
type starting struct {
	Argv     []string // with the path first
	Leaf     string   // its path; empty without one
	Spare    []string
	Limits   Limits
	Terminal bool // its stderr is to be its controlling terminal
}

// news is what the guard tells the front.
type news struct {
	What     string    `json:"what"` // started, failed, exit, adopted, limit, torn
	Agent    Proc      `json:"agent,omitzero"`
	Cgroup   string    `json:"cgroup,omitempty"` // why the agent was not born in its leaf; empty if it was
	Error    string    `json:"error,omitempty"`
	Errno    int       `json:"errno,omitempty"`
	Exit     *Exit     `json:"exit,omitempty"`
	Adopted  *Ended    `json:"adopted,omitempty"`
	Limit    *Exceeded `json:"limit,omitempty"`
	Teardown *Teardown `json:"teardown,omitempty"`
}

// A message is a line of words, or a JSON object where words do not do. The
// words are for what every run says: encoding/json takes longer to learn the
// types than a short run to do the rest.

func (o *order) encode() []byte {
	if o.Op == "start" {
		return o.Start.encode()
	}
	b := append([]byte(nil), o.Op...)
	for _, step := range o.Ladder {
		b = fmt.Appendf(b, " %d", step.Wait)
		for _, sig := range step.Signals {
			b = fmt.Appendf(b, ",%d", sig)
		}
	}
	return append(b, '\n')
}

// encode writes the numbers as words, and behind the line the strings, which
// may hold anything but NUL.
func (s *starting) encode() []byte {
	text := strings.Join(slices.Concat([]string{s.Leaf}, s.Spare, s.Argv), "\x00")
	terminal := 0
	if s.Terminal {
		terminal = 1
	}
	return fmt.Appendf(nil, "start %d %d %d %d %d\n%s", terminal, s.Limits.Procs, s.Limits.Memory, len(s.Spare), len(text), text)
}

func (s *starting) decode(line []byte, rest io.Reader) error {
	var terminal, spared, size int
	_, err := fmt.Sscanf(string(line), "start %d %d %d %d %d\n", &terminal, &s.Limits.Procs, &s.Limits.Memory, &spared, &size)
	if err != nil || terminal>>1 != 0 || spared < 0 || size < 0 {
		return errMessage
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(rest, text); err != nil {
		return err
	}
	parts := strings.Split(string(text), "\x00")
	if len(parts) < 2+spared {
		return errMessage
	}
	s.Terminal = terminal == 1
	s.Leaf, s.Spare, s.Argv = parts[0], parts[1:1+spared], parts[1+spared:]
	return nil
}

func (o *order) decode(line []byte, rest io.Reader) error {
	if bytes.HasPrefix(line, []byte("start ")) {
		o.Op = "start"
		return o.Start.decode(line, rest)
	}
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return errMessage
	}
	*o = order{Op: words[0]}
	for _, word := range words[1:] {
		var step Step
		for i, number := range strings.Split(word, ",") {
			n, err := strconv.ParseInt(number, 10, 64)
			switch {
			case err != nil:
				return errMessage
			case i == 0:
				step.Wait = time.Duration(n)
			default:
				step.Signals = append(step.Signals, syscall.Signal(n))
			}
		}
		o.Ladder = append(o.Ladder, step)
	}
	return nil
}

var errMessage = errors.New("not a message")

func (n *news) encode() []byte {
	switch {
	case n.What == "started" && n.Cgroup == "":
		p := n.Agent
		return fmt.Appendf(nil, "started %d %d %d %d %d\n", p.PID, p.Start, p.PPID, p.PGID, p.Session)
	case n.What == "exit":
		e := n.Exit
		return fmt.Appendf(nil, "exit %d %d %d %d %d\n", e.Code, int(e.Signal), int64(e.User), int64(e.System), e.MaxRSS)
	case n.What == "torn" && n.Teardown.nobody():
		return fmt.Appendf(nil, "torn %d %d\n", int64(n.Teardown.Took), len(n.Teardown.Cgroup))
	}
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // our own types always encode
	}
	return append(b, '\n')
}

// nobody reports whether the tree was empty when its end began, which the
// kernel has confirmed.
func (t *Teardown) nobody() bool {
	return t.Proof && len(t.Ended)+len(t.Left)+len(t.Spared) == 0
}

func (n *news) decode(line []byte, _ io.Reader) error {
	if bytes.HasPrefix(line, []byte("{")) {
		return json.Unmarshal(line, n)
	}
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return errMessage
	}
	numbers := make([]int64, 5)
	for i, word := range words[1:] {
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil || i == len(numbers) {
			return errMessage
		}
		numbers[i] = v
	}
	*n = news{What: words[0]}
	switch n.What {
	case "started":
		n.Agent = Proc{
			PID: int(numbers[0]), Start: uint64(numbers[1]), PPID: int(numbers[2]),
			PGID: int(numbers[3]), Session: int(numbers[4]), UID: -1,
		}
	case "exit":
		n.Exit = &Exit{
			Code: int(numbers[0]), Signal: syscall.Signal(numbers[1]),
			User: time.Duration(numbers[2]), System: time.Duration(numbers[3]), MaxRSS: numbers[4],
		}
	case "torn":
		n.Teardown = &Teardown{
			Took: time.Duration(numbers[0]), Proof: true, By: "guard",
			Ended: []Ended{}, Left: []Ended{}, Spared: []Ended{},
		}
		if numbers[1] > 0 {
			n.Teardown.Cgroup = "populated 0" // or it would be no proof
		}
	default:
		return errMessage
	}
	return nil
}

// line is one end of the control socket.
type line struct {
	f  *os.File
	in *bufio.Reader

	mu     sync.Mutex
	outbox []byte
	idle   chan struct{} // closed when the outbox is empty; nil when it is
}

func newLine(f *os.File) *line { return &line{f: f, in: bufio.NewReader(f)} }

// outboxMost bounds, in bytes, what waits for a front that stands still. Beyond
// it only what there is one of is kept: the tales of orphans are left out.
const outboxMost = 1 << 20

// send tells the other side, and waits until it has room for it. A side that
// has gone is no error of ours: the end of the line tells of it.
func (l *line) send(m interface{ encode() []byte }) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.f.Write(m.encode())
}

// post is send for one who must not wait, because a tree depends on it: the
// front may be stopped, for hours.
func (l *line) post(n *news) {
	b := n.encode()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.What == "adopted" && len(l.outbox) > outboxMost {
		return
	}
	l.outbox = append(l.outbox, b...)
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.deliver(l.idle)
	}
}

// deliver writes the outbox until it is empty, or nobody reads it any more.
func (l *line) deliver(idle chan struct{}) {
	defer close(idle)
	for {
		l.mu.Lock()
		b := l.outbox
		if l.outbox = nil; len(b) == 0 {
			l.idle = nil
		}
		l.mu.Unlock()
		if len(b) == 0 {
			return
		}
		_, _ = l.f.Write(b)
	}
}

// flush waits until all that was posted is delivered, but no longer than d.
func (l *line) flush(d time.Duration) {
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(d):
	}
}

// receive waits for the next message; io.EOF when the other side is gone.
func (l *line) receive(m interface {
	decode(line []byte, rest io.Reader) error
}) error {
	b, err := l.in.ReadBytes('\n')
	if err != nil {
		return io.EOF
	}
	return m.decode(b, l.in)
}

// socketpair is two connected ends, both closed on exec.
func socketpair() (a, b *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		if err := syscall.SetNonblock(fd, true); err != nil {
			return nil, nil, err
		}
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}
