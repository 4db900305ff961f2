package tree

import (
	"math"
	"testing"
	"time"
)

func TestCPU(t *testing.T) {
	leaf := func(s *Snapshot, d time.Duration) *Snapshot { s.CPU = d; return s }
	reaped := func(s *Snapshot, d time.Duration) *Snapshot { s.Reaped = d; return s }
	for _, tt := range []struct {
		name     string
		was, now *Snapshot
		want     Span
	}{
		{"an idle tree has used nothing",
			snap(0, theAgent(cpu(9*sec))), snap(5, theAgent(cpu(9*sec))), 0},
		{"the kernel's own count is the truth",
			leaf(snap(0, theAgent()), 10*sec), leaf(snap(5, theAgent(cpu(1*sec))), 12*sec), Span(2 * sec)},
		{"a count that falls is another cgroup's",
			leaf(snap(0, theAgent()), 10*sec), leaf(snap(5, theAgent(cpu(1*sec))), 2*sec), Span(1 * sec)},
		{"a count that falls tells nothing where the rows do not either",
			leaf(snap(0, theAgent(cpu(-1))), 10*sec), leaf(snap(5, theAgent(cpu(-1))), 2*sec), Unknown},
		{"a count that is new has nothing to be compared with",
			snap(0, theAgent()), leaf(snap(5, theAgent(cpu(1*sec))), 12*sec), Span(1 * sec)},
		{"a thousand short compilers show in nothing but make's Waited",
			snap(0, theAgent(), row(200, 100, 200, waited(10*sec))),
			snap(5, theAgent(), row(200, 100, 200, waited(14*sec))), Span(4 * sec)},
		{"a child that is reaped hands up what it had: no work",
			snap(0, theAgent(), row(200, 100, 200, cpu(7*sec), waited(3*sec))),
			snap(5, theAgent(waited(10*sec))), 0},
		{"of a child that is reaped only what it had used since counts",
			snap(0, theAgent(), row(200, 100, 200, cpu(7*sec))),
			snap(5, theAgent(waited(8*sec))), Span(1 * sec)},
		{"a parent that dies moves the time of its dead up",
			snap(0, theAgent(), row(200, 100, 200, waited(20*sec)), row(300, 200, 200, cpu(5*sec))),
			snap(5, theAgent(waited(20*sec)), row(300, 1, 200, cpu(6*sec))), Span(1 * sec)},
		{"an orphan's time is with the guard that reaped it",
			reaped(snap(0, theAgent(), row(300, 1, 200, cpu(5*sec))), 1*sec),
			reaped(snap(5, theAgent()), 7*sec), Span(1 * sec)},
		{"what the guard reaped before it told is no work",
			snap(0, theAgent()), reaped(snap(5, theAgent()), 7*sec), 0},
		{"a child that nobody waits for takes its time along, and hides nobody's work",
			snap(0, theAgent(), row(200, 100, 200, cpu(7*sec))),
			snap(5, theAgent(cpu(2*sec))), Span(2 * sec)},
		{"a newborn counts whole, with its dead children",
			snap(0, theAgent()),
			snap(5, theAgent(), row(200, 100, 200, age(5*sec+tick), cpu(1*sec), waited(1*sec))), Span(2 * sec)},
		{"a process that was overlooked has a past that does not count",
			snap(0, theAgent()),
			snap(5, theAgent(), row(200, 100, 200, age(5*sec+2*tick), cpu(99*sec), waited(99*sec))), 0},
		{"nor has one of unknown age a past that counts",
			snap(0, theAgent()), snap(5, theAgent(), row(200, 100, 200, age(-1), cpu(99*sec))), 0},
		{"a pid that is used again is another process",
			snap(0, theAgent(), row(200, 100, 200, cpu(7*sec))),
			snap(5, theAgent(waited(7*sec)), row(200, 100, 200, start(9999), age(2*sec), cpu(1*sec))), Span(1 * sec)},
		{"a pid that is used again by one that used more",
			snap(0, theAgent(), row(200, 100, 200, cpu(7*sec))),
			snap(5, theAgent(waited(7*sec)), row(200, 100, 200, start(9999), age(time.Hour), cpu(8*sec))), 0},
		{"one that cannot be read any more is neither dead nor back to zero",
			snap(0, theAgent(), row(200, 100, 200, cpu(7*sec), waited(7*sec))),
			snap(5, theAgent(cpu(1*sec)), row(200, 100, 200, cpu(-1), waited(-1))), Span(1 * sec)},
		{"one that could not be read before counts from here on",
			snap(0, theAgent(), row(200, 100, 200, cpu(-1), waited(-1))),
			snap(5, theAgent(cpu(1*sec)), row(200, 100, 200, cpu(7*sec), waited(7*sec))), Span(1 * sec)},
		{"what an unreadable child had is not known, so it is no work of its parent's",
			snap(0, theAgent(), row(200, 100, 200, cpu(-1))),
			snap(5, theAgent(cpu(1*sec), waited(99*sec))), Span(1 * sec)},
		{"a zombie keeps its time until it is reaped",
			snap(0, theAgent(), row(200, 100, 200, cpu(7*sec))),
			snap(5, theAgent(), row(200, 100, 200, inState('Z'), cpu(8*sec))), Span(1 * sec)},
		{"nothing could be read",
			snap(0, theAgent(cpu(-1))), snap(5, theAgent(cpu(-1))), Unknown},
		{"nothing could be read but by the cgroup",
			leaf(snap(0, theAgent(cpu(-1))), 1*sec), leaf(snap(5, theAgent(cpu(-1))), 2*sec), Span(1 * sec)},
		{"whole milliseconds, as they come back from a log",
			snap(0, theAgent()), snap(5, theAgent(cpu(1999*time.Microsecond))), Span(1 * ms)},
	} {
		t.Run(tt.name, func(t *testing.T) { equal(t, "CPU", second(tt.was, tt.now, everybody...).CPU, tt.want) })
	}
}

// A reaped child that one look missed comes back in its parent's Waited at the
// next. All that it ever did must not pass for work.
func TestAReapMayFallBetweenTwoRows(t *testing.T) {
	var w Watch
	w.Next(snap(0, theAgent(), row(200, 100, 200, cpu(60*sec), disk(1e9))), nil)
	a := w.Next(snap(5, theAgent()), nil)
	equal(t, "CPU at once", a.CPU, 0)
	a = w.Next(snap(10, theAgent(waited(61*sec), disk(1e9+4096))), nil)
	equal(t, "CPU one look later", a.CPU, Span(1*sec))
	a = w.Next(snap(15, theAgent(waited(63*sec), disk(1e9+8192))), nil)
	equal(t, "CPU two looks later", a.CPU, Span(2*sec))
	equal(t, "disk two looks later", a.Disk, 4096)
}

func TestDisk(t *testing.T) {
	for _, tt := range []struct {
		name     string
		was, now *Snapshot
		want     int64
	}{
		{"what survivors and newborns did",
			snap(0, theAgent(disk(10))),
			snap(5, theAgent(disk(15)), row(200, 100, 200, age(sec), disk(3))), 8},
		{"what was overlooked has a past",
			snap(0, theAgent()), snap(5, theAgent(), row(200, 100, 200, disk(1<<20))), 0},
		{"a reaped child's past is credited to its parent: no work",
			snap(0, theAgent(), row(200, 100, 200, disk(1<<20))), snap(5, theAgent(disk(1<<20))), 0},
		{"of a reaped child only what it did since",
			snap(0, theAgent(), row(200, 100, 200, disk(1<<20))), snap(5, theAgent(disk(1<<20+5))), 5},
		{"a child that nobody waits for hides nobody else's bytes",
			snap(0, theAgent(), row(200, 100, 200, disk(1<<20)), row(300, 100, 300)),
			snap(5, theAgent(disk(7)), row(300, 100, 300, disk(5))), 5},
		{"a grandchild's past may be with any of its ancestors",
			snap(0, theAgent(), row(200, 100, 200), row(300, 200, 200, disk(-1))),
			snap(5, theAgent(), row(200, 100, 200, disk(1<<20))), 0},
		{"known of one is known",
			snap(0, theAgent(disk(1)), row(200, 100, 200, disk(-1))),
			snap(5, theAgent(disk(2)), row(200, 100, 200, disk(-1))), 1},
		{"known of nobody",
			snap(0, theAgent(disk(-1))), snap(5, theAgent(disk(-1))), Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) { equal(t, "Disk", second(tt.was, tt.now).Disk, tt.want) })
	}
}

func TestSockets(t *testing.T) {
	s := func(inode uint64, received, sent int64) Socket {
		return Socket{Inode: inode, Peer: "1.2.3.4:443", Received: received, Sent: sent}
	}
	hidden := func(s *Snapshot) *Snapshot { s.Sockets = false; return s }
	for _, tt := range []struct {
		name                   string
		was, now               *Snapshot
		received, sent, oneWay int64
	}{
		{"a keep-alive is answered in kind",
			snap(0, theAgent(sockets(s(1, 100, 200)))), snap(5, theAgent(sockets(s(1, 139, 239)))), 39, 39, 0},
		{"a stream of tokens is not",
			snap(0, theAgent(sockets(s(1, 100, 200)))), snap(5, theAgent(sockets(s(1, 5100, 230)))), 5000, 30, 4970},
		{"what leaves on one connection answers nothing on another",
			snap(0, theAgent(sockets(s(1, 0, 0), s(2, 0, 0)))), snap(5, theAgent(sockets(s(1, 50, 0), s(2, 0, 50)))), 50, 50, 50},
		{"a new connection counts whole",
			snap(0, theAgent()), snap(5, theAgent(sockets(s(1, 30, 20)))), 30, 20, 10},
		{"a connection that was inherited counts once",
			snap(0, theAgent(sockets(s(1, 0, 0))), row(200, 100, 200, sockets(s(1, 0, 0)))),
			snap(5, theAgent(sockets(s(1, 30, 20))), row(200, 100, 200, sockets(s(1, 30, 20)))), 30, 20, 10},
		{"a connection of a newborn counts whole",
			snap(0, theAgent()), snap(5, theAgent(), row(200, 100, 200, age(sec), sockets(s(1, 30, 20)))), 30, 20, 10},
		{"one of a process that was overlooked has a past",
			snap(0, theAgent()), snap(5, theAgent(), row(200, 100, 200, sockets(s(1, 30, 20)))), 0, 0, 0},
		{"a closed connection takes nothing back",
			snap(0, theAgent(sockets(s(1, 100, 200)))), snap(5, theAgent()), 0, 0, 0},
		{"an inode is given out again",
			snap(0, theAgent(sockets(s(1, 100, 200)))),
			snap(5, theAgent(sockets(Socket{Inode: 1, Peer: "5.6.7.8:443", Received: 110, Sent: 10}))), 110, 10, 100},
		{"nothing could be looked up now",
			snap(0, theAgent()), hidden(snap(5, theAgent())), Unknown, Unknown, Unknown},
		{"nothing could be looked up before",
			hidden(snap(0, theAgent())), snap(5, theAgent(sockets(s(1, 30, 20)))), Unknown, Unknown, Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := second(tt.was, tt.now)
			equal(t, "Received", a.Received, tt.received)
			equal(t, "Sent", a.Sent, tt.sent)
			equal(t, "OneWay", a.OneWay, tt.oneWay)
		})
	}
}

func TestCount(t *testing.T) {
	of := func(agent ID, s *Snapshot) *Snapshot { s.Agent = agent; return s }
	type counts struct{ alive, tools, born, ended, runnable int }
	for _, tt := range []struct {
		name     string
		was, now *Snapshot
		want     counts
	}{
		{"the agent's own processes come and go unseen",
			snap(0, theAgent(), row(101, 100, 100)), snap(5, theAgent(), row(102, 100, 100)), counts{alive: 2}},
		{"tools do not",
			snap(0, theAgent(), row(200, 100, 200)), snap(5, theAgent(), row(300, 100, 300, age(sec)), row(301, 300, 300, age(-1))),
			counts{alive: 3, tools: 2, born: 2, ended: 1}},
		{"a pid that is used again is a death and a birth",
			snap(0, theAgent(), row(200, 100, 200)), snap(5, theAgent(), row(200, 100, 200, start(9999), age(sec))),
			counts{alive: 2, tools: 1, born: 1, ended: 1}},
		{"who was only overlooked was not born",
			snap(0, theAgent()), snap(5, theAgent(), row(200, 100, 200)), counts{alive: 2, tools: 1}},
		{"a zombie is no life, and reaping it no death",
			snap(0, theAgent(), row(200, 100, 200), row(300, 100, 300, inState('Z'))),
			snap(5, theAgent(), row(200, 100, 200, inState('Z'))), counts{alive: 1, ended: 1}},
		{"a zombie of which a thread is alive is alive",
			snap(0, theAgent()), snap(5, theAgent(), row(200, 100, 200, age(sec), inState('Z'), threads(2))),
			counts{alive: 2, tools: 1, born: 1}},
		{"who only leaves the agent's session was not born",
			snap(0, theAgent(), row(200, 100, 100)), snap(5, theAgent(), row(200, 100, 200)), counts{alive: 2, tools: 1}},
		{"who runs is runnable, who waits for a disk is not",
			snap(0), snap(5, theAgent(inState('R')), row(101, 100, 100, inState('D')), row(102, 100, 100, inState('Z'))),
			counts{alive: 2, runnable: 1}},
		{"the guard is no member",
			snap(0), snap(5, theAgent(), row(1, 0, 0)), counts{alive: 1}},
		{"the agent is gone: its pid names its session",
			snap(0), snap(5, row(101, 1, 100), row(200, 101, 200, age(sec))), counts{alive: 2, tools: 1, born: 1}},
		{"the agent is gone: its session was another's",
			snap(0, row(100, 1, 50), row(101, 1, 50)), snap(5, row(101, 1, 50)), counts{alive: 1}},
		{"another agent, gone at once: its pid names its session, not the other's",
			snap(0, row(100, 1, 50)), of(ID{300, 3000}, snap(5, row(301, 1, 300))), counts{alive: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := second(tt.was, tt.now)
			equal(t, "counts", counts{a.Alive, a.Tools, a.Born, a.Ended, a.Runnable}, tt.want)
		})
	}
}

// In the first snapshot nothing can be said to have happened.
func TestFirst(t *testing.T) {
	var w Watch
	s := snap(0, theAgent(cpu(9*sec), disk(9), age(0), sockets(peer(0))), row(200, 100, 200, age(0), cpu(9*sec)))
	s.Rows[0].Sockets = []Socket{{Inode: 1, Received: 99, Sent: 9}}
	a := w.Next(s, nil)
	for what, got := range map[string]int64{
		"span": int64(a.Span), "born": int64(a.Born), "ended": int64(a.Ended), "cpu": int64(a.CPU),
		"disk": a.Disk, "received": a.Received, "sent": a.Sent, "one way": a.OneWay, "busy": int64(len(a.Busiest)),
	} {
		equal(t, what, got, 0)
	}
}

func TestBusiest(t *testing.T) {
	for _, tt := range []struct {
		name     string
		was, now *Snapshot
		want     map[int]float64
	}{
		{"the three that used the most",
			snap(0, theAgent(), row(101, 100, 100), row(102, 100, 100), row(103, 100, 100)),
			snap(5, theAgent(cpu(500*ms)), row(101, 100, 100, cpu(5*sec)), row(102, 100, 100, cpu(1*sec)), row(103, 100, 100, cpu(499*ms))),
			map[int]float64{100: 10, 101: 100, 102: 20}},
		{"nobody under one per cent, and nobody's past",
			snap(0, theAgent(cpu(99*sec)), row(101, 100, 100)),
			snap(5, theAgent(cpu(99*sec)), row(101, 100, 100, cpu(49*ms)), row(102, 100, 100, cpu(99*sec)), row(103, 100, 100, age(sec), cpu(50*ms))),
			map[int]float64{103: 1}},
		{"rounded to a tenth",
			snap(0, theAgent()), snap(5, theAgent(cpu(619*ms))), map[int]float64{100: 12.4}},
		{"make is named for its thousand compilers",
			snap(0, theAgent(), row(200, 100, 200, cpu(sec), waited(10*sec))),
			snap(5, theAgent(), row(200, 100, 200, cpu(1100*ms), waited(14*sec))), map[int]float64{200: 82}},
		{"not for what one of them had used before",
			snap(0, theAgent(), row(200, 100, 200), row(300, 200, 200, cpu(60*sec)), row(400, 300, 200, cpu(60*sec))),
			snap(5, theAgent(), row(200, 100, 200, waited(121*sec))), map[int]float64{200: 20}},
		{"a shell in between has it, not those above",
			snap(0, theAgent(), row(200, 100, 200), row(300, 200, 200), row(400, 300, 200, cpu(60*sec))),
			snap(5, theAgent(), row(200, 100, 200, waited(2*sec)), row(300, 200, 200, waited(61*sec))), map[int]float64{200: 40, 300: 20}},
		{"who works itself is named for that",
			snap(0, theAgent()), snap(5, theAgent(cpu(3*sec), waited(1*sec))), map[int]float64{100: 60}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := second(tt.was, tt.now)
			last := math.Inf(1)
			for _, p := range a.Busiest {
				equal(t, p.String(), p.Percent, tt.want[p.PID])
				if p.Percent > last {
					t.Errorf("%s stands after who used less", p.String())
				}
				last = p.Percent
			}
			equal(t, "how many", len(a.Busiest), len(tt.want))
		})
	}
}
