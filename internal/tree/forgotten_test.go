package tree

import (
	"testing"
)

// A daemon that a finished tool has left behind does nothing for the agent: it
// must not excuse one that hangs. What belongs to the agent must count.
func TestForgotten(t *testing.T) {
	// A daemon of its own session that works, spawns, writes and is spoken to,
	// below parent.
	daemon := func(parent int, of ...func(*Row)) []Row {
		return []Row{theAgent(), row(200, parent, 200, append(of, cpu(4*sec), waited(sec), disk(1<<20), sockets(Socket{Inode: 7, Peer: "1.2.3.4:80", Received: 9000}))...),
			row(201, 200, 200, age(2*sec), cpu(sec/2))}
	}
	before := func(parent int) *Snapshot {
		return snap(0, theAgent(), row(200, parent, 200, cpu(sec), disk(0), sockets(Socket{Inode: 7, Peer: "1.2.3.4:80"})), row(199, 200, 200))
	}
	for _, tt := range []struct {
		name  string
		above int
		calls []Call
		of    []func(*Row)
		gone  bool
	}{
		{"an orphan, with nothing open", 1, nil, nil, true},
		{"an orphan that is older than the open call", 1, []Call{shell("a", "x", 10*sec)}, []func(*Row){age(20 * sec)}, true},
		{"an orphan of a call that is open", 1, []Call{shell("a", "x", 30*sec)}, []func(*Row){age(20 * sec)}, false},
		{"a tool below the agent, whoever announced it", 100, nil, []func(*Row){age(20 * sec)}, false},
		{"an orphan that is known to be the background work", 1, []Call{{ID: "b", Tool: "shell", Behind: true, PID: 200}}, nil, false},
		{"any orphan, where the background work is not known", 1, []Call{{ID: "b", Tool: "shell", Behind: true}}, nil, false},
		{"an orphan beside background work that is known", 1, []Call{{ID: "b", Tool: "shell", Behind: true, PID: 100}}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := second(before(tt.above), snap(5, daemon(tt.above, tt.of...)...), tt.calls...)
			if got := a.Forgotten > 0; got != tt.gone {
				t.Fatalf("%d forgotten", a.Forgotten)
			}
			quiet := a.CPU == 0 && a.Disk == 0 && a.OneWay == 0 && a.Born == 0 && a.Ended == 0
			if quiet != tt.gone {
				t.Errorf("CPU %s, %d bytes of disk, %d received, %d born, %d ended", a.CPU, a.Disk, a.OneWay, a.Born, a.Ended)
			}
		})
	}
}

// The cgroup counts the daemon with the agent: its share is taken off again.
func TestForgottenInACgroup(t *testing.T) {
	was := snap(0, theAgent(cpu(sec)), row(200, 1, 200, cpu(sec)))
	now := snap(5, theAgent(cpu(2*sec)), row(200, 1, 200, cpu(4*sec)))
	was.CPU, now.CPU = 2*sec, 6*sec
	equal(t, "CPU", second(was, now).CPU, Span(sec))
}

// The agent's own share is told apart, and the start of who runs a call is no
// birth.
func TestOwnShare(t *testing.T) {
	calls := []Call{shell("a", "make all", 3*sec)}
	was := snap(0, theAgent(cpu(0)))
	now := snap(5, theAgent(cpu(3*sec)), row(200, 100, 200, age(2*sec), cpu(sec), sh("make all")), row(201, 200, 200, age(sec)))
	a := second(was, now, calls...)
	equal(t, "OwnCPU", a.OwnCPU, Span(3*sec))
	equal(t, "CPU", a.CPU, Span(4*sec))
	equal(t, "Born", a.Born, 1)
	equal(t, "the runner", a.Runners[0].PID, 200)
}
