package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// agent is one run: what was asked, what was said so far, and which calls are open.
type agent struct {
	opts    options
	session string
	request string
	prompt  string
	cwd     string
	born    time.Time
	death   time.Time // when the life limit strikes

	// floor is held by whoever acts: the script, or the reaction to a signal. Waiting steps give it
	// away (see away), so that a signal is answered in the middle of a sleep but never of a line.
	floor  sync.Mutex
	stdout *os.File
	stderr *os.File
	mirror bool

	said     strings.Builder // all assistant text, which is the result
	calls    map[string]*call
	step     int  // counts model steps, for model_call_id
	stepOver bool // all calls of the step have completed: what comes next belongs to another one

	lastPid  int // of the process spawned last
	children sync.WaitGroup

	signals   chan os.Signal
	reactions reactions
	ended     chan int
}

func newAgent(opts options, stdout, stderr *os.File) *agent {
	a := &agent{
		opts:    opts,
		session: os.Getenv("FAKEAGENT_SESSION"),
		request: newUUID(),
		cwd:     opts.workspace,
		born:    time.Now(),
		stdout:  stdout,
		stderr:  stderr,
		calls:   make(map[string]*call),
		signals: make(chan os.Signal, 16),
		ended:   make(chan int, 1),
	}
	if a.session == "" {
		a.session = opts.resume
	}
	if a.session == "" {
		a.session = newUUID()
	}
	if a.cwd == "" {
		a.cwd, _ = os.Getwd() // without one the init line shows an empty cwd, which harms nobody
	}
	return a
}

// exitRequest ends the run with this code.
type exitRequest int

func (e exitRequest) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// end reports the exit code; the first one counts.
func (a *agent) end(code int) {
	select {
	case a.ended <- code:
	default:
	}
}

// play runs the steps in order. The caller holds the floor.
func (a *agent) play(steps []step) error {
	for _, s := range steps {
		if err := s.act(a); err != nil {
			if _, exiting := err.(exitRequest); exiting {
				return err
			}
			return fmt.Errorf("%s: %w", s.where, err)
		}
	}
	return nil
}

// away gives the floor to others while wait runs.
func (a *agent) away(wait func()) {
	a.floor.Unlock()
	wait()
	a.floor.Lock()
}

func (a *agent) sleep(d time.Duration) { a.away(func() { time.Sleep(d) }) }

// write puts b on stdout in one piece, and on stderr too while the mirror is on.
func (a *agent) write(b []byte) error {
	if _, err := a.stdout.Write(b); err != nil {
		return err
	}
	if a.mirror {
		_, err := a.stderr.Write(b)
		return err
	}
	return nil
}

// Write lets the agent stand where an io.Writer is wanted.
func (a *agent) Write(b []byte) (int, error) { return len(b), a.write(b) }

var _ io.Writer = (*agent)(nil)

// emit writes one event as a line.
func (a *agent) emit(event object) error { return a.write(append(encode(event), '\n')) }

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, by its documentation
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func nowMs() int64 { return time.Now().UnixMilli() }
