package process

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// short is a ladder for who does not listen anyway; none leaves out the polite
// step.
var (
	short = Ladder{
		{Signals: []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, Wait: 100 * time.Millisecond},
		{Signals: []syscall.Signal{syscall.SIGKILL}, Wait: 5 * time.Second},
	}
	none = short[1:]
)

// ended is what was done to whom, sorted: "agent SIGTERM".
func ended(list []Ended) string {
	var all []string
	for _, e := range list {
		all = append(all, e.Found+" "+e.Signal)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// ends checks a teardown that nobody has survived.
func (s *started) ends(td Teardown, want string) {
	s.t.Helper()
	if got := ended(td.Ended); got != want || td.Proof != realWorld(Proc{}).proof || td.By != "guard" {
		s.t.Errorf("ended %q by %s, proof %t, want %q", got, td.By, td.Proof, want)
	}
	for _, e := range td.Ended {
		if alive(e.PID) || e.Start == 0 || e.Command == "" || e.How != e.Signal {
			s.t.Errorf("%+v, alive: %t", e, alive(e.PID))
		}
	}
	s.silent(soon())
}

// A run that ended by itself gets no signal.
func TestHealthyExit(t *testing.T) {
	a := launch(t, "exit", "0")
	<-a.Exited()
	td := a.over(NewLadder(partLife))
	a.ends(td, "")
	if td.Took > prompt {
		t.Errorf("took %s", td.Took)
	}
}

func TestPoliteTree(t *testing.T) {
	a := launch(t, "parent", "wait", "setsid:wait")
	a.ready(3)
	td := a.over(NewLadder(partLife))
	a.ends(td, "agent SIGTERM, child SIGTERM, child SIGTERM")
	if td.Exit.Signal != syscall.SIGTERM {
		t.Errorf("exit %s", td.Exit)
	}
	if td.Took > prompt {
		t.Errorf("took %s although everybody left at once", td.Took)
	}
}

func TestDeafTree(t *testing.T) {
	a := launch(t, "deaf")
	a.ready(1)
	td := a.over(short)
	a.ends(td, "agent SIGKILL")
	if td.Took < short[0].Wait || td.Exit.Signal != syscall.SIGKILL {
		t.Errorf("took %s, exit %s", td.Took, td.Exit)
	}
}

// The leader acts on the first signal, its child does not.
func TestChildOutlivesLeader(t *testing.T) {
	a := launch(t, "parent", "deaf")
	a.ready(2)
	a.ends(a.over(short), "agent SIGTERM, child SIGKILL")
}

// The exit is learned although somebody holds stdout, and that somebody ended.
func TestHolderOfStdout(t *testing.T) {
	for part, signal := range map[string]string{"wait": "SIGTERM", "deaf": "SIGKILL"} {
		t.Run(part, func(t *testing.T) {
			a := launch(t, "parent", part)
			child := a.ready(2)[0]
			if child == a.PID() {
				child = 0
			}
			_ = a.Stdin.Close()
			<-a.Exited()
			td := a.over(short)
			if len(td.Ended) != 1 || td.Ended[0].Signal != signal || child != 0 && td.Ended[0].PID != child {
				t.Errorf("%+v, want the child alone ended by %s", td.Ended, signal)
			}
			if td.Exit.String() != "exit 0" {
				t.Errorf("exit %s", td.Exit)
			}
			a.silent(soon())
		})
	}
}

func TestHurry(t *testing.T) {
	a := launch(t, "asked")
	a.ready(1)
	hurry := make(chan struct{})
	done := make(chan Teardown)
	go func() { done <- a.End(NewLadder(time.Hour), hurry) }()
	if got := a.hear(); !strings.HasPrefix(got, "term ") {
		t.Fatalf("it said %q", got)
	}
	hurry <- struct{}{} // the polite step waits
	td := <-done
	a.ends(td, "agent SIGKILL")
	if td.Took > partLife/2 {
		t.Errorf("took %s", td.Took)
	}
}

// stranger starts a process that is none of the agent's, in our own group.
func stranger(t *testing.T, words ...string) Proc {
	t.Helper()
	if len(words) == 0 {
		words = []string{"bystander"}
	}
	s := spec(t, words...)
	c := exec.Command(s.Path, s.Args...)
	c.Env = s.Env
	p := perform(t, c)
	if n := p.numbers(); n[0] != c.Process.Pid {
		t.Fatalf("it says %v, pid %d", n, c.Process.Pid)
	}
	return identify(c.Process.Pid)
}

// A bystander of the same name and arguments, in our own process group, lives.
func TestBystandersLive(t *testing.T) {
	for name, l := range map[string]Ladder{"politely": short, "at once": none} {
		t.Run(name, func(t *testing.T) {
			bystander := stranger(t, "wait")
			a := launch(t, "wait")
			a.ready(1)
			a.over(l)
			if !alive(bystander.PID) {
				t.Error("a stranger was killed")
			}
		})
	}
}

// A row of the table is out of date: its pid is a stranger's by now.
func TestReusedPID(t *testing.T) {
	bystander := stranger(t)
	wrong := bystander
	wrong.Start++
	w := warden{world: realWorld(Proc{}), chld: make(chan struct{}), more: func() {}}
	w.world.tree = func() ([]Proc, error) { return []Proc{wrong}, nil }
	w.world.children = func() ([]int, error) { return nil, nil }
	w.world.reap = func() (dead, error) { return dead{}, unix.EAGAIN }
	td := w.end(Ladder{
		{Signals: []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, Wait: 10 * time.Millisecond},
		{Wait: 50 * time.Millisecond},
	}, nil)
	if !alive(bystander.PID) {
		t.Error("a stranger was killed")
	}
	if len(td.Left) != 1 || td.Left[0].id() != wrong.id() {
		t.Errorf("left %+v, want the made-up row alone", td.Left)
	}
}

// TestSignalChecksStart is the same at the lowest level.
func TestSignalChecksStart(t *testing.T) {
	bystander := stranger(t)
	wrong := bystander
	wrong.Start++
	if err := signalProc(wrong, syscall.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("signal: %v, want ESRCH", err)
	}
	if err := signalProc(bystander, 0); err != nil {
		t.Errorf("signal 0: %v", err)
	}
	if !alive(bystander.PID) {
		t.Error("a stranger was killed")
	}
}
