package supervise

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// wood is a made-up tree: the agent and one tool shell.
type wood struct {
	mu    sync.Mutex
	works time.Time // until then the agent uses a whole core
	state byte      // of the agent
	looks []look
	wait  chan struct{} // what a look waits for
}

type look struct {
	at            time.Time
	full, explain bool
}

// shows makes the rig's agent one whose tree can be looked at.
func (w *wood) shows(r *rig) {
	w.state = 'S'
	r.cfg.Policy.Confirm = true
	r.sample = func(at time.Time, full, explain bool) tree.Snapshot {
		if w.wait != nil {
			<-w.wait
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.looks = append(w.looks, look{at, full, explain})
		agent := tree.Row{
			ID: tree.ID{PID: 4711, Start: 1}, PPID: 1, PGID: 4711, Session: 4711, State: w.state, Threads: 1,
			Age: at.Sub(r.began), Name: "node", Argv: []string{"node", "index.js"},
		}
		if !w.works.IsZero() {
			agent.CPU = earlier(at, w.works).Sub(r.began)
		}
		if explain {
			agent.Wait = &tree.Wait{Call: "epoll_wait", FD: tree.Unknown}
		}
		return tree.Snapshot{At: at, Root: 1, Agent: agent.ID, Rows: []tree.Row{agent}, CPU: tree.Unknown, Reaped: tree.Unknown, Sockets: true, Full: full}
	}
}

// stalls is shows with looks that wait.
func (w *wood) stalls(r *rig) {
	w.wait = make(chan struct{})
	w.shows(r)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (r *rig) spoke(part string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.said, func(s string) bool { return strings.Contains(s, part) })
}

// A quiet tree is ended at the deadline, by samples that were taken before it.
func TestQuietTreeIsEndedInTime(t *testing.T) {
	w := &wood{}
	newTurn(t, w.shows, func(r *rig) { r.emit(initLine) }, func(r *rig) {
		r.outcome(Hang, 2)
		r.took(time.Minute)
		e := r.report.Reason.(*monitor.Reason).Evidence
		if e == nil || e.Finding != monitor.Confirmed || e.Samples < 7 || len(e.Tree.Procs) != 1 {
			t.Fatalf("evidence %+v", e)
		}
		if n := len(r.log.all("sample")); n != len(w.looks) || n != 12 {
			t.Errorf("%d sample records of %d looks, want 12", n, len(w.looks))
		}
		for i, l := range w.looks {
			if late := i == len(w.looks)-1; l.full != late || l.explain != late {
				t.Errorf("look %d at %s: %+v", i, l.at.Sub(r.began), l)
			}
		}
		if !r.spoke("4711 node index.js") || !r.spoke("waits for events") {
			t.Errorf("not explained: %q", r.said)
		}
	})
}

// While lines come nobody looks.
func TestNobodyLooksWhileLinesCome(t *testing.T) {
	w := &wood{}
	newTurn(t, w.shows, func(r *rig) {
		for range 300 {
			r.emit(thinkLine)
			time.Sleep(time.Second)
		}
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) {
		r.outcome(Success, 0)
		if len(w.looks) > 0 {
			t.Errorf("%d looks", len(w.looks))
		}
	})
}

// Work that is alive is waited for, and said to be; when it speaks again the
// suspicion is over.
func TestBusyTreeIsWaitedFor(t *testing.T) {
	w := &wood{}
	newTurn(t, w.shows, func(r *rig) {
		w.works = r.began.Add(time.Hour)
		r.emit(initLine)
		r.after(5 * time.Minute)
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) {
		r.outcome(Success, 0)
		for _, msg := range []string{"suspected", "suspicion_lifted"} {
			if n := len(r.log.all(msg)); n != 1 {
				t.Errorf("%d %s records, want 1", n, msg)
			}
		}
		if !r.spoke("past its deadline, but waited for") || !r.spoke("4711 node index.js uses 100 % of a core") {
			t.Errorf("said %q", r.said)
		}
	})
}

// Busy without end is not progress.
func TestBusyTreeIsNotWaitedForForEver(t *testing.T) {
	w := &wood{}
	newTurn(t, w.shows, func(r *rig) {
		w.works = r.began.Add(24 * time.Hour)
		r.emit(initLine)
	}, func(r *rig) {
		r.outcome(Hang, 2)
		r.took(11 * time.Minute)
		if !strings.Contains(r.report.Message, "busy without progress: 4711 node index.js uses 100 % of a core and has no child") {
			t.Errorf("message %q", r.report.Message)
		}
	})
}

// A stop is no hang: somebody stopped the agent, and may let it go on.
func TestStoppedAgentIsWaitedFor(t *testing.T) {
	w := &wood{}
	newTurn(t, w.shows, func(r *rig) {
		w.mu.Lock()
		w.state = 'T'
		w.mu.Unlock()
		r.emit(initLine)
		r.after(3 * time.Minute)
		w.mu.Lock()
		w.state = 'S'
		w.mu.Unlock()
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) {
		r.outcome(Success, 0)
		if !r.spoke("4711 node index.js is stopped") {
			t.Errorf("said %q", r.said)
		}
	})
}

// Whoever looks can be held up by what it looks at; the turn is not.
func TestLookThatNeverComesBack(t *testing.T) {
	w := &wood{}
	newTurn(t, w.stalls, func(r *rig) { r.emit(initLine) }, func(r *rig) {
		close(w.wait)
		r.outcome(Hang, 2)
		r.took(65 * time.Second)
		if f := r.report.Reason.(*monitor.Reason).Evidence.Finding; f != monitor.Unverified {
			t.Errorf("finding %q", f)
		}
	})
}

// A mistake of ours in a look is told in the verdict, and the run goes its way.
func TestLookThatPanics(t *testing.T) {
	w := &wood{}
	newTurn(t, func(r *rig) {
		w.shows(r)
		r.sample = func(time.Time, bool, bool) tree.Snapshot { panic("oh") }
	}, func(r *rig) { r.emit(initLine) }, func(r *rig) {
		r.outcome(Hang, 2)
		if !strings.Contains(r.report.Message, "the tree cannot be seen: internal error: oh") {
			t.Errorf("message %q", r.report.Message)
		}
	})
}

// A line that comes while somebody looks begins another silence.
func TestLineWhileSomebodyLooks(t *testing.T) {
	w := &wood{}
	newTurn(t, w.stalls, func(r *rig) {
		r.emit(initLine)
		r.after(58 * time.Second)
		r.emit(thinkLine)
		r.after(59 * time.Second)
		close(w.wait)
	}, func(r *rig) {
		r.outcome(Hang, 2)
		r.took(118 * time.Second)
	})
}

// Past the deadline of an open call lines go on coming, and each look is away
// for longer than they are apart: its word counts all the same.
func TestLinesDuringEveryLook(t *testing.T) {
	w := &wood{}
	newTurn(t, func(r *rig) {
		w.shows(r)
		look := r.sample
		r.sample = func(at time.Time, full, explain bool) tree.Snapshot {
			time.Sleep(50 * time.Millisecond)
			return look(at, full, explain)
		}
	}, func(r *rig) {
		w.works = r.began.Add(time.Hour)
		r.emit(initLine, startLine) // past it after two minutes
		for range 20_000 {
			r.after(time.Since(r.began) + 10*time.Millisecond)
			r.emit(thinkLine)
		}
		r.emit(doneLine, okLine)
		r.leave(0)
	}, func(r *rig) {
		time.Sleep(time.Second) // the last look comes back to nobody
		r.outcome(Success, 0)
		if !r.spoke("busy: 4711 node index.js uses 100 % of a core") {
			t.Errorf("said %q", r.said)
		}
	})
}

// Who was stopped past its deadline and goes on has to find its feet.
func TestStopIsForgiven(t *testing.T) {
	w := &wood{}
	state := func(s byte) {
		w.mu.Lock()
		w.state = s
		w.mu.Unlock()
	}
	newTurn(t, w.shows, func(r *rig) {
		r.emit(initLine)
		r.after(20 * time.Second)
		state('T')
		r.after(3 * time.Minute)
		state('S')
		r.after(3*time.Minute + 20*time.Second)
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) {
		r.outcome(Success, 0)
		if held := r.log.all("held"); len(held) != 1 || held[0].fields()["by"] != "the agent was stopped" {
			t.Errorf("held %+v", held)
		}
	})
}

// The machine slept for a night just before a deadline: our clock stood still,
// and the agent that wakes up without its connections has all of its time.
func TestMachineSlept(t *testing.T) {
	w := &wood{}
	var slept atomic.Int64
	newTurn(t, func(r *rig) {
		w.shows(r)
		r.cfg.Slept = func() time.Duration { return time.Duration(slept.Load()) }
	}, func(r *rig) {
		r.emit(initLine)
		r.after(59 * time.Second)
		slept.Store(int64(8 * time.Hour))
	}, func(r *rig) {
		r.outcome(Hang, 2)
		if r.report.Took < 110*time.Second {
			t.Errorf("ended after %s", r.report.Took)
		}
		held := r.log.all("held")
		if len(held) != 1 || held[0].fields()["by"] != "the machine was suspended for 8h0m0s" {
			t.Errorf("held %+v", held)
		}
	})
}
