package process

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// self stands for the warden's own pid in a made-up table.
var self = os.Getpid()

// made is a made-up machine. Its processes die of SIGTERM unless they are
// deaf, and of SIGKILL unless they are hard; orphans come to the warden.
type made struct {
	t     *testing.T
	procs map[int]*actor
	dead  []dead
	next  int
	sent  []string // "SIGTERM 7"
	blind bool     // the tree cannot be read
}

type actor struct {
	Proc
	deaf, hard bool
	stopped    bool
	foreign    bool       // EPERM
	heirs      func() int // starts so many successors as it dies
}

func newMade(t *testing.T) *made { return &made{t: t, procs: map[int]*actor{}, next: 100_000} }

func (m *made) add(ppid int, a actor) *actor {
	m.next++
	a.PID, a.PPID, a.Start, a.State, a.threads = m.next, ppid, uint64(m.next), "S", 1
	m.procs[a.PID] = &a
	return &a
}

func (m *made) world() world {
	return world{
		tree: func() ([]Proc, error) {
			if m.blind {
				return nil, errors.New("no process table")
			}
			var rows []Proc
			for _, a := range m.procs {
				rows = append(rows, a.Proc) // in no order
			}
			return rows, nil
		},
		children: func() ([]int, error) {
			var pids []int
			for pid, a := range m.procs {
				if a.PPID == self {
					pids = append(pids, pid)
				}
			}
			return pids, nil
		},
		identify: func(pid int) Proc {
			if a := m.procs[pid]; a != nil {
				return a.Proc
			}
			return Proc{PID: pid}
		},
		command: func(pid int) string {
			if a := m.procs[pid]; a != nil {
				return a.Command
			}
			return ""
		},
		signal: func(p Proc, signals ...syscall.Signal) error {
			for _, sig := range signals {
				a := m.procs[p.PID]
				if a == nil || a.Start != p.Start {
					return unix.ESRCH
				}
				if err := m.signal(a, sig); err != nil {
					return err
				}
			}
			return nil
		},
		kill: func(pid int, sig syscall.Signal) error {
			a := m.procs[pid]
			if a == nil || a.PPID != self {
				m.t.Errorf("%d was signalled by its pid alone, and is no child", pid)
				return unix.ESRCH
			}
			return m.signal(a, sig)
		},
		reap: func() (dead, error) {
			if len(m.dead) > 0 {
				d := m.dead[0]
				m.dead = m.dead[1:]
				return d, nil
			}
			for _, a := range m.procs {
				if a.PPID == self {
					return dead{}, unix.EAGAIN
				}
			}
			return dead{}, unix.ECHILD
		},
		proof: true,
	}
}

func (m *made) signal(a *actor, sig syscall.Signal) error {
	if a.foreign {
		return unix.EPERM
	}
	m.sent = append(m.sent, unix.SignalName(sig))
	switch {
	case sig == syscall.SIGSTOP:
		a.stopped = true
	case sig == syscall.SIGTERM && !a.deaf, sig == syscall.SIGKILL && !a.hard:
		m.die(a, sig)
	}
	return nil
}

func (m *made) die(a *actor, sig syscall.Signal) {
	delete(m.procs, a.PID)
	for _, other := range m.procs {
		if other.PPID == a.PID {
			other.PPID = self
		}
	}
	if a.heirs != nil && !a.stopped {
		for range a.heirs() {
			m.add(self, actor{deaf: a.deaf, heirs: a.heirs})
		}
	}
	m.dead = append(m.dead, dead{Proc: a.Proc, status: syscall.WaitStatus(sig)})
}

func (m *made) warden() *warden {
	return &warden{world: m.world(), chld: make(chan struct{}), more: func() {}}
}

const grace = 5 * time.Second

func TestTreeEndsPolitely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		agent := m.add(self, actor{})
		m.add(m.add(agent.PID, actor{}).PID, actor{})
		w := m.warden()
		w.agent = agent.Proc
		td := w.end(NewLadder(grace), nil)
		if len(td.Ended) != 3 || len(td.Left) != 0 || !td.Proof {
			t.Fatalf("%+v", td)
		}
		if td.Took > time.Second {
			t.Errorf("took %v although everybody left at once", td.Took)
		}
		for _, e := range td.Ended {
			if want := map[bool]string{true: "agent", false: "child"}[e.PID == agent.PID]; e.Found != want || e.Signal != "SIGTERM" || e.How != "SIGTERM" {
				t.Errorf("%+v, want it found as %s and ended by SIGTERM", e, want)
			}
		}
		if slices.Contains(m.sent, "SIGKILL") {
			t.Errorf("sent %v", m.sent)
		}
	})
}

func TestDeafAreKilledAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		agent := m.add(self, actor{})
		m.add(agent.PID, actor{deaf: true})
		td := m.warden().end(NewLadder(grace), nil)
		if len(td.Ended) != 2 || !td.Proof || td.Took < grace || td.Took > grace+time.Second {
			t.Errorf("%+v", td)
		}
		if last := td.Ended[1]; last.Signal != "SIGKILL" || last.How != "SIGKILL" {
			t.Errorf("%+v", last)
		}
	})
}

func TestHurryLeavesTheGraceOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		m.add(self, actor{deaf: true})
		hurry := make(chan struct{}, 1)
		hurry <- struct{}{}
		if td := m.warden().end(NewLadder(grace), hurry); td.Took >= grace || len(td.Ended) != 1 {
			t.Errorf("%+v", td)
		}
	})
}

// Each starts two successors when it dies, so that killing one by one never
// comes to an end; stopped ones cannot.
func TestProcessesThatReplaceEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		born := 0
		heirs := func() int { born += 2; return 2 }
		for range 8 {
			m.add(self, actor{deaf: true, heirs: heirs})
		}
		td := m.warden().end(NewLadder(0), nil)
		if len(m.procs) != 0 || !td.Proof {
			t.Errorf("%d of them live, %+v", len(m.procs), td)
		}
		if born != 0 {
			t.Errorf("%d were born although all were stopped first", born)
		}
	})
}

func TestWhoCannotBeEndedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		m.add(self, actor{foreign: true, Proc: Proc{Command: "sudo"}})
		m.add(self, actor{hard: true, deaf: true, Proc: Proc{Command: "nfs"}})
		td := m.warden().end(NewLadder(grace), nil)
		if td.Proof || len(td.Left) != 2 {
			t.Fatalf("%+v", td)
		}
		if td.Took < grace+Settle {
			t.Errorf("gave up after %v", td.Took)
		}
		if e := td.Left[0]; e.Command != "sudo" || e.Why() != "operation not permitted" {
			t.Errorf("%+v: %s", e, e.Why())
		}
		if e := td.Left[1]; e.Signal != "SIGKILL" {
			t.Errorf("%+v", e)
		}
	})
}

func TestSparedAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		agent := m.add(self, actor{})
		worker := m.add(agent.PID, actor{Proc: Proc{Command: "node index.js worker-server"}})
		w := m.warden()
		w.spare = []string{"worker-server"}
		td := w.end(NewLadder(grace), nil)
		if len(td.Spared) != 1 || td.Spared[0].PID != worker.PID || len(td.Ended) != 1 || len(td.Left) != 0 {
			t.Errorf("%+v", td)
		}
		if td.Proof {
			t.Error("called proven although somebody lives")
		}
		if td.Took > time.Second {
			t.Errorf("waited %v for the spared", td.Took)
		}
	})
}

func TestWhatWasHereBeforeIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		before := m.add(self, actor{})
		m.add(m.add(before.PID, actor{}).PID, actor{})
		ours := m.add(self, actor{deaf: true})
		w := m.warden()
		w.ignore = map[procID]bool{before.id(): true}
		td := w.end(NewLadder(0), nil)
		if len(m.procs) != 3 || len(td.Ended) != 1 || td.Ended[0].PID != ours.PID {
			t.Errorf("%d live, %+v", len(m.procs), td)
		}
	})
}

// Without a process table the children are found as they come to us.
func TestTreeThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMade(t)
		m.blind = true
		agent := m.add(self, actor{})
		m.add(m.add(agent.PID, actor{deaf: true}).PID, actor{deaf: true})
		if td := m.warden().end(NewLadder(0), nil); len(m.procs) != 0 || !td.Proof {
			t.Errorf("%d live, %+v", len(m.procs), td)
		}
	})
}

// A dead entry is not alive, but a process whose leading thread has ended is.
func TestZombies(t *testing.T) {
	for _, p := range []struct {
		Proc
		gone bool
	}{
		{Proc{State: "Z", threads: 1}, true},
		{Proc{State: "Z", threads: 0}, true},
		{Proc{State: "X"}, true},
		{Proc{State: "Z", threads: 2}, false},
		{Proc{State: "S", threads: 1}, false},
		{Proc{State: "D", threads: 1}, false},
	} {
		if p.Proc.gone() != p.gone {
			t.Errorf("%+v: gone is %v", p.Proc, !p.gone)
		}
	}
}

func TestBelonging(t *testing.T) {
	row := func(pid, ppid, pgid int) Proc { return Proc{PID: pid, PPID: ppid, PGID: pgid, Start: uint64(pid)} }
	const root = 10
	agent := row(20, root, 20)
	seen := map[procID]bool{}
	pick := func(all ...Proc) (pids []int) {
		slices.Reverse(all) // the order of a table is nobody's promise
		for _, p := range belonging(all, root, agent, seen) {
			pids = append(pids, p.PID)
		}
		slices.Sort(pids)
		return pids
	}
	check := func(name string, got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	stranger, tool, daemon := row(99, 1, 99), row(30, 20, 30), row(40, 30, 40)
	check("by descent", pick(row(root, 1, root), agent, tool, daemon, stranger), 20, 30, 40)
	check("an orphan that was seen before", pick(row(root, 1, root), agent, row(40, 1, 40), row(41, 40, 41), stranger), 20, 40, 41)
	check("an orphan in the agent's group that was not", pick(row(root, 1, root), row(50, 1, 20), stranger), 50)
	check("a pid that was seen, and is another process now", pick(row(root, 1, root), Proc{PID: 40, PPID: 1, PGID: 40, Start: 7}, stranger))
}

func TestControlLineIsReadBack(t *testing.T) {
	for _, o := range []order{
		{Op: "hurry"},
		{Op: "end", Ladder: NewLadder(1500 * time.Millisecond)},
		{Op: "end", Ladder: Ladder{{Wait: Settle}}},
	} {
		var back order
		if err := back.decode(o.encode(), nil); err != nil || back.Op != o.Op || !slices.EqualFunc(back.Ladder, o.Ladder, func(a, b Step) bool {
			return a.Wait == b.Wait && slices.Equal(a.Signals, b.Signals)
		}) {
			t.Errorf("%+v became %+v (%v)", o, back, err)
		}
	}
	begin := order{Op: "start", Start: starting{
		Argv: []string{"/a b", "", "-x\ny"}, Leaf: "/leaf", Spare: []string{"one", "t wo"}, Limits: Limits{Procs: 3, Memory: 1 << 40}, Terminal: true,
	}}
	r := bufio.NewReader(bytes.NewReader(append(begin.encode(), "hurry\n"...)))
	for _, want := range []order{begin, {Op: "hurry"}} { // one does not read into the next
		b, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var back order
		if err := back.decode(b, r); err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%+v became %+v (%v)", want, back, err)
		}
	}
	for _, n := range []news{
		{What: "started", Agent: Proc{PID: 7, Start: 8, PPID: 9, PGID: 7, Session: 7, UID: -1}},
		{What: "started", Agent: Proc{PID: 7}, Cgroup: "function not implemented"},
		{What: "failed", Error: "no such file", Errno: 2},
		{What: "exit", Exit: &Exit{Code: -1, Signal: 9, User: 1, System: 2, MaxRSS: 3}},
		{What: "torn", Teardown: &Teardown{Took: 5, Proof: true, By: "guard"}},
		{What: "torn", Teardown: &Teardown{Took: 5, By: "guard", Left: []Ended{{Proc: Proc{PID: 3, Command: "a\nb"}, Error: "x"}}}},
	} {
		var back news
		line := n.encode()
		if slices.Index(line, '\n') != len(line)-1 {
			t.Errorf("%+v is not one line: %q", n, line)
		}
		if err := back.decode(line, nil); err != nil || !slices.Equal(back.encode(), line) {
			t.Errorf("%+v became %+v (%v)", n, back, err)
		}
	}
	for _, bad := range []string{"", "\n", "exit\n\n", "start 1\n", "torn x\n", "started 1 2 3 4 5 6\n", "{"} {
		var n news
		if err := n.decode([]byte(bad), nil); err == nil && n.What != "exit" {
			t.Errorf("%q was taken for %+v", bad, n)
		}
	}
	for _, bad := range []string{
		"start 0 0 0 0\n", "start 2 0 0 0 2\n", "start -1 0 0 0 2\n", "start pty 0 0 0 2\n", "start 0 0 0 0 2 7\n",
		"start 0 0 0 -1 2\n", "start 0 0 0 0 -1\n", "start 0 0 0 1 2\n", "start 0 0 0 0 3\n",
	} {
		var o order
		if err := o.decode([]byte(bad), strings.NewReader("\x00a")); err == nil {
			t.Errorf("%q was taken for %+v", bad, o)
		}
	}
}
