package supervise

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cursor-wrap/internal/format"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/tree"
)

// Lines as the agent writes them.
const (
	initLine  = `{"type":"system","subtype":"init","session_id":"s1","model":"m"}` + "\n"
	userLine  = `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"do it"}]},"session_id":"s1"}` + "\n"
	thinkLine = `{"type":"thinking","subtype":"delta","text":"x"}` + "\n"
	startLine = `{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"make","timeout":90000}}}}` + "\n"
	doneLine  = `{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"make"},"result":{"success":{"exitCode":0}}}}}` + "\n"
	okLine    = `{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1"}` + "\n"
	badLine   = `{"type":"result","subtype":"error","is_error":true,"result":"no","session_id":"s1"}` + "\n"
)

// rig is a turn with everything around it made up.
type rig struct {
	t      *testing.T
	log    *book
	sink   *sink
	out    *wire // the agent's stdout
	stderr *wire
	stdin  *stdin
	agent  *scripted
	stop   chan syscall.Signal
	cfg    Config
	report Report
	began  time.Time
	sample func(at time.Time, full, explain bool) tree.Snapshot

	mu   sync.Mutex
	said []string
	copy bytes.Buffer // of the agent's stderr
}

// newTurn runs play beside a turn, in a bubble, and then check.
func newTurn(t *testing.T, tune func(*rig), play func(*rig), check func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if tune != nil {
			tune(r)
		}
		played := make(chan struct{})
		go func() {
			defer close(played)
			if play != nil {
				play(r)
			}
		}()
		r.run()
		if r.log.early != "" {
			t.Error("forwarded before it was in the log:", r.log.early)
		}
		check(r)
		<-played
	})
}

func newRig(t *testing.T) *rig {
	r := &rig{
		t: t, log: &book{}, out: newWire(), stderr: newWire(), stdin: newStdin(),
		stop: make(chan syscall.Signal, 8), began: time.Now(),
	}
	r.sink = &sink{book: r.log}
	r.agent = newScripted(r)
	alone := monitor.Default()
	alone.Confirm = false // who has a tree to show says so
	r.cfg = Config{
		Launch: func(context.Context) (Child, error) {
			return Child{Agent: r.agent, Stdin: r.stdin, Stdout: r.out, Stderr: r.stderr, Sample: r.sample}, nil
		},
		Prompt: []byte("do it"), Policy: alone, Tick: 5 * time.Second, KillGrace: 5 * time.Second,
		Log: r.log, Out: format.NewStream(r.sink), Stderr: r, Say: r.say, Stop: r.stop, Now: NewClock(),
	}
	return r
}

func (r *rig) run() { r.report = Run(r.cfg) }

func (r *rig) say(msg string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, msg)
}

// Write takes the agent's stderr.
func (r *rig) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copy.Write(b)
}

// emit is the agent writing to stdout.
func (r *rig) emit(lines ...string) { _, _ = r.out.Write([]byte(strings.Join(lines, ""))) }

// after waits so long, since the start of the turn.
func (r *rig) after(d time.Duration) { time.Sleep(time.Until(r.began.Add(d))) }

// leave ends the agent as agents end: the pipes first.
func (r *rig) leave(code int) {
	r.out.end()
	r.stderr.end()
	r.agent.exit(process.Exit{Code: code})
}

func (r *rig) outcome(want Outcome, code int) {
	r.t.Helper()
	if r.report.Outcome != want || r.report.ExitCode != code {
		r.t.Errorf("outcome %q, exit code %d, want %q, %d (%s)", r.report.Outcome, r.report.ExitCode, want, code, r.report.Message)
	}
}

func (r *rig) took(want time.Duration) {
	r.t.Helper()
	if got := r.report.Took; got < want || got > want+50*time.Millisecond {
		r.t.Errorf("the turn took %s, want %s", got, want)
	}
}

// scripted is an agent whose end is written down.
type scripted struct {
	rig    *rig
	exited chan struct{}
	limit  chan process.Exceeded

	mu      sync.Mutex
	gone    bool
	status  process.Exit
	left    []process.Ended
	asked   time.Time // when End was called
	calls   int
	ladder  process.Ladder
	hurried int
	// onEnd plays the ladder; nil is an agent that leaves at the first signal.
	onEnd func(l process.Ladder, hurry <-chan struct{})
}

func newScripted(r *rig) *scripted {
	return &scripted{rig: r, exited: make(chan struct{}), limit: make(chan process.Exceeded, 1)}
}

func (a *scripted) PID() int                { return 4711 }
func (a *scripted) Exited() <-chan struct{} { return a.exited }
func (a *scripted) Close()                  {}

func (a *scripted) Limit() <-chan process.Exceeded { return a.limit }

func (a *scripted) exit(status process.Exit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.gone {
		a.gone, a.status = true, status
		close(a.exited)
	}
}

func (a *scripted) End(l process.Ladder, hurry <-chan struct{}) process.Teardown {
	began := time.Now()
	a.mu.Lock()
	a.asked, a.ladder = began, l
	a.calls++
	a.mu.Unlock()
	if a.onEnd != nil {
		a.onEnd(l, hurry)
	}
	a.exit(process.Exit{Code: -1, Signal: syscall.SIGTERM})
	a.mu.Lock()
	defer a.mu.Unlock()
	return process.Teardown{Exit: a.status, Took: time.Since(began), By: "guard", Left: a.left}
}

// deaf is an agent that only SIGKILL ends, with a note of how it was hurried.
func (a *scripted) deaf(l process.Ladder, hurry <-chan struct{}) {
	for _, step := range l[:len(l)-1] {
		select {
		case <-time.After(step.Wait):
		case <-hurry:
			a.mu.Lock()
			a.hurried++
			a.mu.Unlock()
		}
	}
	a.exit(process.Exit{Code: -1, Signal: syscall.SIGKILL})
}

// stdin takes the prompt.
type stdin struct {
	mu     sync.Mutex
	got    bytes.Buffer
	closed chan struct{}
	stuck  bool // nobody reads it: a write waits for Close
}

func newStdin() *stdin { return &stdin{closed: make(chan struct{})} }

func (s *stdin) Write(b []byte) (int, error) {
	if s.stuck {
		<-s.closed
		return 0, os.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(b)
}

func (s *stdin) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return os.ErrClosed
	default:
		close(s.closed)
		return nil
	}
}
