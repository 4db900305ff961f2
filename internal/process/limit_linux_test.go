package process

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func (s *started) exceeds() Exceeded {
	s.t.Helper()
	select {
	case x := <-s.Limit():
		return x
	case <-time.After(partLife):
		s.t.Fatal("no limit was reached")
		return Exceeded{}
	}
}

func TestLimits(t *testing.T) {
	crowd := spec(t, "parent", "wait", "setsid:wait", "daemon:wait")
	crowd.Limits.Procs = 3
	fat := spec(t, "parent", "setsid:fat,300")
	fat.Limits.Memory = 200 << 20
	modest := spec(t, "parent", "wait")
	modest.Limits = Limits{Procs: 2, Memory: 1 << 33}
	m, c, f := launchSpec(t, modest), launchSpec(t, crowd), launchSpec(t, fat)
	c.ready(4)
	f.ready(2)
	m.ready(2)

	x := c.exceeds()
	if x.Kind != "limit" || x.What != "procs" || x.Limit != 3 || x.By == "sampling" && x.Measured != 4 || !strings.Contains(x.Summary, "processes") {
		t.Errorf("%+v", x)
	}
	x = f.exceeds()
	if x.Kind != "limit" || x.What != "memory" || x.Limit != 200<<20 || x.By == "sampling" && (x.Measured < 300<<20 || x.Measured > 2<<30) {
		t.Errorf("%+v", x)
	}
	if !alive(c.PID()) || !alive(f.PID()) {
		t.Error("the guard has ended an agent by itself; that is the front's decision")
	}
	select {
	case x := <-m.Limit(): // it was counted before the others
		t.Errorf("two of two processes are too many: %+v", x)
	default:
	}
	for _, a := range []*started{m, f, c} {
		td := a.over(NewLadder(partLife))
		a.silent(soon())
		if !td.Proof {
			t.Errorf("%+v", td)
		}
	}
}

// The spared live, alone: they are named, they are out of the leaf, and what
// they hang on is ended.
func TestSpared(t *testing.T) {
	for _, c := range containments(t) {
		for how, ladder := range map[string]Ladder{"asked": NewLadder(partLife), "killed": none} {
			t.Run(string(c)+" "+how, func(t *testing.T) {
				s := spec(t, "parent", "setsid:wait,worker-server", "daemon:wait,worker-server", "wait", "daemon:wait")
				s.Containment, s.Spare = c, []string{"no such one", "wait worker-server"}
				a := launchSpec(t, s)
				a.ready(5)
				began := time.Now()
				td := a.over(ladder)
				if took := time.Since(began); took > prompt {
					t.Errorf("waited %s for the spared", took)
				}
				if len(td.Ended) != 3 || len(td.Spared) != 2 || td.Proof {
					t.Errorf("%+v, want two spared, three ended and no proof", td)
				}
				for _, e := range td.Spared {
					if !alive(e.PID) || e.Signal != "" || !strings.HasSuffix(e.Command, "worker-server") {
						t.Errorf("%+v, alive: %t", e, alive(e.PID))
						continue
					}
					if got := cgroupOf(t, e.PID); inLeaf(got) {
						t.Errorf("%d is still in %s", e.PID, got)
					}
					if err := signalProc(e.Proc, unix.SIGKILL); err != nil {
						t.Error(err)
					}
				}
				a.silent(soon())
				if a.leaf != nil && exists(a.leaf.path) {
					t.Errorf("%s is there", a.leaf.path)
				}
				until(t, soon(), "the spared are gone", func() bool { return len(strays()) == 0 })
			})
		}
	}
}

// The front spares them, too.
func TestSparedByTheFront(t *testing.T) { sparedByTheFront(t, "daemon:wait,worker-server") }

// They hang on the agent, which dies with its guard while the front looks.
func TestSparedOnTheMove(t *testing.T) {
	for range 40 {
		sparedByTheFront(t, "setsid:wait,worker-server")
	}
}

func sparedByTheFront(t *testing.T, worker string) {
	t.Helper()
	s := spec(t, "parent", worker, "setsid:deaf")
	s.Spare = []string{"worker-server"}
	a := launchSpec(t, s)
	a.ready(3)
	if err := unix.Kill(a.GuardPID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	td := a.over(none)
	if td.By != "front" || len(td.Spared) != 1 || !alive(td.Spared[0].PID) {
		t.Fatalf("%+v", td)
	}
	if a.leaf != nil && exists(a.leaf.path) {
		t.Errorf("%s is there", a.leaf.path)
	}
	if err := signalProc(td.Spared[0].Proc, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	a.silent(soon())
	until(t, soon(), "the spared are gone", func() bool { return len(strays()) == 0 })
}
