package process

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// partArg makes the test binary play a part instead of testing. It is an
	// argument, so that a part can have an empty environment.
	partArg = "__part"

	// saysEnv names a FIFO that becomes a part's stdout.
	saysEnv = "PROCESS_TEST_SAYS"

	// partLife is how long a part lives at most, whatever the test forgets.
	partLife = 60 * time.Second

	// prompt is how soon all must be gone after a sudden death.
	prompt = 2 * time.Second
)

// parts are what the test binary can play, by name. None returns before its
// part is over. Each says its name and pid on stdout once it is ready.
var parts = map[string]func(args []string){}

// used are the parts that some test has asked for.
var used = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

func TestMain(m *testing.M) {
	if IsGuard(os.Args) {
		os.Exit(GuardMain(os.Args))
	}
	if len(os.Args) > 2 && os.Args[1] == partArg {
		play(os.Args[2], os.Args[3:])
	}
	for fd := 3; fd < 256; fd++ {
		unix.CloseOnExec(fd) // of whoever runs the tests; no business of the agent's
	}
	_ = becomeReaper() // whoever is left comes to us, and is found
	code := m.Run()
	if stray := strays(); len(stray) > 0 {
		fmt.Println("left by the tests:", List(stray))
		code = 1
	}
	if picked := flag.Lookup("test.run").Value.String() + flag.Lookup("test.list").Value.String(); code == 0 && picked == "" {
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if !used.names[name] && !slices.Contains([]string{"orphaner", "adoptee", "still"}, name) { // other parts start these
				fmt.Println("part is not used any more:", name)
				code = 1
			}
		}
	}
	removePublic()
	os.Exit(code)
}

func play(name string, args []string) {
	time.AfterFunc(partLife, func() { os.Exit(99) })
	if path := os.Getenv(saysEnv); path != "" {
		_ = os.Unsetenv(saysEnv)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		os.Stdout = f // children get it as theirs
	}
	parts[name](args)
	os.Exit(0)
}

// command is the arguments that make this binary play a part.
func command(t *testing.T, words ...string) []string {
	t.Helper()
	for _, word := range words {
		for _, name := range strings.FieldsFunc(word, func(r rune) bool { return r == ':' || r == ',' }) {
			if parts[name] != nil {
				used.Lock()
				used.names[name] = true
				used.Unlock()
			}
		}
	}
	if parts[words[0]] == nil {
		t.Fatalf("no part %q", words[0])
	}
	return append([]string{partArg}, words...)
}

// spec is how a part is started.
func spec(t *testing.T, words ...string) Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Path: self, Args: command(t, words...), Env: append(os.Environ(), quick), ID: "test"}
}

// said is what the parts say, line by line. It is at its end when all of them
// are gone, because each holds the other end.
type said struct {
	t     *testing.T
	f     interface{ SetReadDeadline(time.Time) error }
	lines *bufio.Reader
}

func newSaid(t *testing.T, f interface {
	io.Reader
	SetReadDeadline(time.Time) error
}) *said {
	return &said{t, f, bufio.NewReader(f)}
}

func (s *said) hear() string {
	s.t.Helper()
	_ = s.f.SetReadDeadline(time.Now().Add(partLife))
	line, err := s.lines.ReadString('\n')
	if err != nil {
		s.t.Fatalf("the parts said nothing more: %v after %q", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// numbers are the next line's, without its words.
func (s *said) numbers() []int {
	s.t.Helper()
	var all []int
	for _, f := range strings.Fields(s.hear()) {
		if n, err := strconv.Atoi(f); err == nil {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		s.t.Fatal("a line without numbers")
	}
	return all
}

// ready waits until so many parts have said that they are, and is their pids.
func (s *said) ready(n int) (pids []int) {
	s.t.Helper()
	for range n {
		pids = append(pids, s.numbers()[0])
	}
	return pids
}

// silent fails unless everybody has let go of the other end by then.
func (s *said) silent(by time.Time) {
	s.t.Helper()
	_ = s.f.SetReadDeadline(by)
	for {
		if _, err := s.lines.ReadString('\n'); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			s.t.Errorf("somebody of the tree lives: %v; below us are: %s", err, List(strays()))
			return
		}
	}
}

// soon is when what has been ended must be gone.
func soon() time.Time { return time.Now().Add(prompt) }

// started is an agent under test and what it says.
type started struct {
	*Agent
	*said
}

// launch starts a part as the agent; at the end of the test nobody is left.
func launch(t *testing.T, words ...string) *started {
	t.Helper()
	return launchSpec(t, spec(t, words...))
}

func launchSpec(t *testing.T, s Spec) *started {
	t.Helper()
	a, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	return adopt(t, a)
}

// adopt looks after an agent that was started.
func adopt(t *testing.T, a *Agent) *started {
	t.Helper()
	ours[a.GuardPID()] = true
	t.Cleanup(func() {
		if !t.Failed() {
			a.Close()
		}
		delete(ours, a.GuardPID())
		for _, f := range []io.Closer{a.Stdin, a.Stdout, a.Stderr} {
			_ = f.Close()
		}
		nobody(t)
	})
	return &started{a, newSaid(t, a.Stdout)}
}

// over ends the tree and waits until the guard has left.
func (s *started) over(l Ladder) Teardown {
	s.t.Helper()
	td := s.End(l, nil)
	s.Close()
	if len(td.Left) > 0 {
		s.t.Errorf("left: %+v", td.Left)
	}
	return td
}

// ours are children of this process that a test has started itself and ends
// itself. Tests of this package run one after the other.
var ours = map[int]bool{}

// strays are the living below us that no test knows of. The dead are reaped.
func strays() (alive []Proc) {
	pids, err := children()
	if err != nil {
		return nil
	}
	for _, pid := range pids {
		if ours[pid] {
			continue
		}
		if p := identify(pid); !p.gone() {
			p.Command = fmt.Sprintf("%s (%s)", realWorld(Proc{}).command(pid), p.State)
			alive = append(alive, p)
		} else {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
	return alive
}

// nobody fails if somebody is left, and ends them.
func nobody(t *testing.T) {
	t.Helper()
	if stray := strays(); len(stray) > 0 {
		t.Errorf("left alive: %s", List(stray))
	}
	for stray := strays(); len(stray) > 0; stray = strays() {
		for _, p := range stray { // our own children, not reaped: nobody else can have their pids
			_ = unix.Kill(p.PID, unix.SIGKILL)
			_, _ = syscall.Wait4(p.PID, nil, 0, nil)
		}
	}
}

// player is a process that a test has started beside the agent.
type player struct {
	*said
	cmd *exec.Cmd
	in  io.WriteCloser
}

// perform starts a command and ends it with the test.
func perform(t *testing.T, c *exec.Cmd) *player {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ours[c.Process.Pid] = true
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		delete(ours, c.Process.Pid)
	})
	return &player{newSaid(t, out.(*os.File)), c, in}
}

func alive(pid int) bool {
	p := identify(pid)
	return p.Start != 0 && !p.gone()
}

// public is a copy of this binary that every user can run.
var public struct{ dir, path string }

func removePublic() {
	if public.dir != "" {
		_ = os.RemoveAll(public.dir)
	}
}
