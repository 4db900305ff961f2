package process

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Proc is a row of the process table. PID and Start together name a process.
type Proc struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // ticks since boot on Linux, microseconds since 1970 on macOS; 0 unknown
	PGID    int    `json:"pgid"`
	Session int    `json:"session"`
	State   string `json:"state"` // the letter of proc_pid_stat(5)
	Command string `json:"command"`
}

// String names the process for a person.
func (p Proc) String() string { return fmt.Sprintf("%d %s", p.PID, p.Command) }

// SignalName is the name of a signal, such as SIGTERM.
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }

// dead reports whether only the entry in the table is left.
func (p Proc) dead() bool { return p.State == "Z" || p.State == "X" }

func (p Proc) id() [2]uint64 { return [2]uint64{uint64(p.PID), p.Start} }

// Step is one rung of the ladder: signals to everybody who is alive, and how
// long they have. It is left as soon as nobody is.
type Step struct {
	Signals []syscall.Signal
	Wait    time.Duration
}

// Ladder is how a tree is ended, from the polite to the certain.
type Ladder []Step

// Settle is how long the kernel has to end what was killed; what is left then
// sits in uninterruptible sleep or belongs to somebody else.
const Settle = 10 * time.Second

// NewLadder asks with SIGTERM, and SIGCONT so that the stopped can act on it,
// and kills after grace.
func NewLadder(grace time.Duration) Ladder {
	return Ladder{
		{Signals: []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, Wait: grace},
		{Signals: []syscall.Signal{syscall.SIGKILL}, Wait: Settle},
	}
}

// Teardown is what the end of a tree came to.
type Teardown struct {
	Exit  Exit
	Took  time.Duration
	Ended []Ended // the processes that were signalled and are gone
	Left  []Ended // and those that are not
}

// Ended is one process of a teardown.
type Ended struct {
	Proc
	Found  string `json:"found"`           // how it came into the list: "agent" or "group"
	Signal string `json:"signal"`          // the last one that it was sent
	Error  string `json:"error,omitempty"` // why it could not be signalled
}

// End ends whoever is left of the agent's process group and reaps the agent.
// A value on hurry leaves the present wait and goes on to the next step, as
// far as the last. It blocks until the ladder is through; call it once.
func (a *Agent) End(l Ladder, hurry <-chan struct{}) Teardown {
	began := time.Now()
	t := &teardown{agent: a, known: map[[2]uint64]*Ended{}}
	for i, step := range l {
		if i == 0 && t.emptied() {
			break
		}
		alive := t.look()
		if len(alive) == 0 {
			break
		}
		t.signal(alive, step.Signals)
		if i == len(l)-1 {
			hurry = nil
		}
		t.wait(step.Wait, hurry)
	}
	return t.report(time.Since(began))
}

type teardown struct {
	agent *Agent
	known map[[2]uint64]*Ended
	alive map[[2]uint64]bool // at the last look
	blind bool               // there is no process table to look at
}

// emptied is the cheap way out of a healthy run: the agent has left, and its
// group with it. Reaping comes first, because a zombie keeps a group in being;
// from then on the group's id is not ours to signal. Signal 0 harms nobody.
func (t *teardown) emptied() bool {
	a := t.agent
	if !a.hasExited() || a.leader.Start == 0 {
		return false
	}
	a.wait()
	return errors.Is(unix.Kill(-a.leader.PID, 0), unix.ESRCH)
}

// look lists the living members of the group and remembers them all.
func (t *teardown) look() []*Ended {
	members, err := t.agent.table(t.agent.leader.PID)
	if err != nil {
		t.blind, members = true, t.agentOnly()
	}
	t.alive = map[[2]uint64]bool{}
	var alive []*Ended
	for _, p := range members {
		// A session is never left by its members, so another one means that
		// the group's id went to a stranger after the agent was reaped.
		if p.dead() || p.Session != 0 && p.Session != t.agent.leader.PID {
			continue
		}
		e, ok := t.known[p.id()]
		if !ok {
			e = &Ended{Proc: p, Found: "group"}
			if p.PID == t.agent.leader.PID {
				e.Found = "agent"
			}
			t.known[p.id()] = e
		}
		e.State = p.State
		t.alive[p.id()] = true
		alive = append(alive, e)
	}
	return alive
}

// agentOnly is the list where no process table can be read: the agent, as long
// as it has not exited. What else its group holds is reached by the group's
// id, which cannot be reused while the agent is a zombie.
func (t *teardown) agentOnly() []Proc {
	if t.agent.hasExited() {
		return nil
	}
	return []Proc{t.agent.leader}
}

// signal reaches the group by its id while the agent is not reaped, which no
// fork can outrun, and the members one by one after that.
func (t *teardown) signal(alive []*Ended, signals []syscall.Signal) {
	for _, sig := range signals {
		if !t.agent.reaped {
			_ = unix.Kill(-t.agent.leader.PID, sig) // who could not be reached is found by the next look
		}
		for _, e := range alive {
			e.Error = ""
			if t.agent.reaped {
				if err := signal(e.Proc, sig); err != nil && !errors.Is(err, unix.ESRCH) {
					e.Error = err.Error()
				}
			}
			if sig != syscall.SIGCONT {
				e.Signal = unix.SignalName(sig)
			}
		}
	}
}

// wait looks until nobody is alive, at growing intervals, because the table
// gives no notice and a look costs a walk over it.
func (t *teardown) wait(d time.Duration, hurry <-chan struct{}) {
	const first, slowest = time.Millisecond, 50 * time.Millisecond
	over := time.NewTimer(d)
	defer over.Stop()
	exited := t.agent.exited
	for pause := first; ; pause = min(2*pause, slowest) {
		select {
		case <-exited:
			exited = nil
			pause = first
		case <-time.After(pause):
		case <-hurry:
			return
		case <-over.C:
			return
		}
		if len(t.look()) == 0 && t.agent.hasExited() {
			return
		}
	}
}

// report reaps the agent if it is dead and sorts the known into gone and left.
func (t *teardown) report(took time.Duration) Teardown {
	t.look()
	td := Teardown{Took: took, Exit: Exit{Code: -1}}
	if t.agent.hasExited() {
		if t.blind && !t.agent.reaped {
			_ = unix.Kill(-t.agent.leader.PID, syscall.SIGKILL) // whoever may be left unseen
		}
		td.Exit = t.agent.wait()
	}
	for id, e := range t.known {
		if t.alive[id] {
			td.Left = append(td.Left, *e)
		} else {
			td.Ended = append(td.Ended, *e)
		}
	}
	byPID := func(a, b Ended) int { return cmp.Compare(a.PID, b.PID) }
	slices.SortFunc(td.Ended, byPID)
	slices.SortFunc(td.Left, byPID)
	return td
}
