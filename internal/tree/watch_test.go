package tree

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// What the log keeps is what the monitor saw.
func TestActivitySurvivesJSON(t *testing.T) {
	full := 0
	for seed := range uint64(100) {
		m := newModel(rand.New(rand.NewPCG(seed, 3)))
		var w Watch
		for range 10 {
			for range m.IntN(60) {
				m.step()
			}
			m.now += time.Duration(m.IntN(1e6)) // no whole milliseconds
			s := m.look(true, seed%2 == 0)
			m.dress(s)
			s.Sockets = m.IntN(4) > 0
			if m.IntN(9) == 0 {
				s.Blind = "too many processes"
			}
			a := w.Next(s, m.calls())
			b, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			var back Activity
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(a, back) {
				t.Fatalf("seed %d: %s\n%+v\n%+v", seed, b, a, back)
			}
			if len(a.Busiest) > 0 && len(a.Stopped) > 0 && len(a.Asking) > 0 && len(a.Procs) > 0 && a.Runners[0].Waits != "" {
				full++
			}
		}
	}
	if full == 0 {
		t.Error("no activity had anything in it")
	}
}

func TestOrderOfTheTree(t *testing.T) {
	looked := wait(Wait{})
	for _, tt := range []struct {
		name string
		rows []Row
		want string
	}{
		{"parents before children, siblings by pid",
			[]Row{theAgent(looked), row(90, 200, 200), row(300, 100, 300), row(200, 100, 200), row(95, 90, 90)}, "100 200 90 95 300"},
		{"who has lost its parent stands at the top",
			[]Row{row(300, 299, 300, looked), row(301, 300, 300), theAgent()}, "100 300 301"},
		{"who is its own parent stands at the top", []Row{row(300, 300, 300, looked), theAgent()}, "100 300"},
		{"a circle begins somewhere",
			[]Row{row(302, 301, 300, looked), row(300, 302, 300), row(301, 300, 300), row(303, 301, 300)}, "300 301 302 303"},
		{"a process that was read twice is there once, as it was later",
			[]Row{theAgent(looked), row(200, 100, 200, cpu(1)), row(200, 300, 200, cpu(2)), row(300, 100, 300)}, "100 300 200"},
		{"of a pid that was used twice, the younger is the parent",
			[]Row{theAgent(looked), row(200, 100, 200), row(200, 300, 200, start(9999)), row(300, 100, 300), row(201, 200, 200)}, "100 200 300 200 201"},
	} {
		for range 20 {
			var w Watch
			var got []string
			for _, p := range w.Next(snap(0, tt.rows...), nil).Procs {
				got = append(got, fmt.Sprint(p.PID))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
				break
			}
		}
	}
}

func TestSpan(t *testing.T) {
	var w Watch
	var got []Span
	for _, at := range []float64{3, 8.0015, 8, 20} {
		got = append(got, w.Next(snap(at, theAgent()), nil).Span)
	}
	if want := []Span{0, Span(5001 * ms), 0, Span(12 * sec)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestStill(t *testing.T) {
	var w Watch
	still := func(at float64, used time.Duration, start uint64) Span {
		r := theAgent(cpu(used), wait(Wait{}), func(r *Row) { r.Start = start })
		return w.Next(snap(at, r), nil).Procs[0].Still
	}
	for _, tt := range []struct {
		name  string
		at    float64
		used  time.Duration
		start uint64
		want  Span
	}{
		{"nothing is known at first sight", 0, sec, 1, 0},
		{"unchanged", 5, sec, 1, Span(5 * sec)},
		{"unchanged again", 10.5, sec, 1, Span(10500 * ms)},
		{"a little work", 15, sec + 10*ms, 1, 0},
		{"and none", 20, sec + 10*ms, 1, Span(5 * sec)},
		{"unreadable: it may have worked", 25, -1, 1, 0},
		{"unreadable still", 27, -1, 1, 0},
		{"readable again: it may have worked", 30, sec + 10*ms, 1, 0},
		{"unchanged since", 35, sec + 10*ms, 1, Span(5 * sec)},
		{"another process of that pid", 40, sec + 10*ms, 2, 0},
		{"the first one is forgotten", 45, sec + 10*ms, 1, 0},
	} {
		equal(t, tt.name, still(tt.at, tt.used, tt.start), tt.want)
	}
}

func TestBlind(t *testing.T) {
	var w Watch
	calls := []Call{shell("a", "sleep 40", 9*sec)}
	w.Next(snap(0, theAgent(), row(200, 100, 200, age(9*sec), argv("sleep", "40"))), calls)
	a := w.Next(&Snapshot{At: seconds(5), Blind: "permission denied"}, calls)
	want := Activity{
		Span: Span(5 * sec), Blind: "permission denied", CPU: Unknown, Disk: Unknown,
		Received: Unknown, Sent: Unknown, OneWay: Unknown, Runners: []Runner{{Call: "a", Fate: Unseen}},
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("%+v, want %+v", a, want)
	}
	a = w.Next(snap(10, theAgent(cpu(2*sec)), row(200, 100, 200, argv("sleep", "40"))), calls)
	equal(t, "span since the blind one", a.Span, Span(5*sec))
	equal(t, "what happened meanwhile is told late", a.CPU, Span(2*sec))
	equal(t, "but at its true rate", a.Busiest[0].Percent, 20)
	equal(t, "nobody is born because we could not see", a.Born, 0)
	equal(t, "the link holds", a.Runners[0].Fate, Alive)
}

func TestReset(t *testing.T) {
	var w Watch
	calls := []Call{shell("a", "sleep 40", 9*sec)}
	w.Next(snap(0, theAgent(), row(200, 100, 200, age(9*sec), argv("sleep", "40"))), calls)
	w.Reset()
	// What it runs has changed, but not that it runs it.
	s := snap(60, theAgent(cpu(2*sec)), row(200, 100, 200, argv("exec'd"), wait(Wait{})))
	a := w.Next(s, calls)
	equal(t, "span", a.Span, 0)
	equal(t, "CPU", a.CPU, 0)
	equal(t, "still", a.Procs[1].Still, 0)
	equal(t, "runner", a.Runners[0].PID, 200)
}

func TestStopped(t *testing.T) {
	stop := inState('T')
	for _, tt := range []struct {
		name  string
		rows  []Row
		calls []Call
		want  []int
	}{
		{"the agent, by whatever stopped it", []Row{theAgent(inState('t')), row(101, 100, 100), row(102, 100, 100)}, nil, []int{100}},
		{"the agent behind its launchers", []Row{theAgent(), row(101, 100, 100), row(102, 101, 100, stop), row(200, 101, 200)}, nil, []int{102}},
		{"a forgotten server of the agent's holds up nobody", []Row{theAgent(), row(101, 100, 100, stop), row(102, 100, 100)}, nil, nil},
		{"a forgotten tool holds up nobody", []Row{theAgent(), row(200, 100, 200, stop)}, nil, nil},
		{"a tool older than the open calls is a forgotten one",
			[]Row{theAgent(), row(200, 100, 200, stop)}, []Call{shell("a", "x", sec)}, nil},
		{"a tool that was started since",
			[]Row{theAgent(), row(200, 100, 200, stop, age(2*sec))}, []Call{shell("a", "x", sec), shell("b", "y", 2*sec)}, []int{200}},
		{"who runs a call, however old, and who is below it",
			[]Row{theAgent(), row(200, 100, 200, stop), row(201, 200, 200, stop), row(300, 100, 300, stop)},
			[]Call{{ID: "a", Tool: "shell", PID: 200, Age: Span(sec)}}, []int{200, 201}},
	} {
		var w Watch
		var got []int
		for _, p := range w.Next(snap(0, tt.rows...), tt.calls).Stopped {
			got = append(got, p.PID)
			if p.Waits == "" {
				t.Errorf("%s: %s waits for nothing", tt.name, p.String())
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestHidden(t *testing.T) {
	s := snap(0, theAgent(disk(-1)), row(200, 100, 200, cpu(-1), disk(-1)), row(300, 100, 300, inState('Z'), disk(-1), cpu(-1)))
	s.Sockets = false
	var w Watch
	got := strings.Join(w.Next(s, nil).Hidden, "; ")
	equal(t, "hidden", got, "cpu time of 1 process; i/o of 2 processes; sockets")
}

func TestProcs(t *testing.T) {
	var w Watch
	equal(t, "not looked into", len(w.Next(snap(0, theAgent()), nil).Procs), 0)

	rows := []Row{theAgent(wait(Wait{Call: "epoll_wait"}))}
	for i := range 300 {
		rows = append(rows, row(1000+i, 100, 100))
	}
	equal(t, "a tree of 301", len(w.Next(snap(5, rows...), nil).Procs), maxProcs)

	many := sockets()
	for i := range 12 {
		s := Socket{Inode: uint64(i), Peer: fmt.Sprint(i), Quiet: time.Duration(20-i)*sec + 1}
		if i == 11 {
			s.Quiet = -1
		}
		many = func(before func(*Row)) func(*Row) {
			return func(r *Row) { before(r); r.Sockets = append(r.Sockets, s) }
		}(many)
	}
	a := w.Next(snap(10, theAgent(cpu(sec), disk(-1), many, wait(Wait{Call: "running"}), argv("node", "a\nb")),
		row(200, 100, 200, age(sec), sh("make all"), func(r *Row) { r.Memory = 4096 }),
		row(201, 200, 200, age(-1), cpu(-1), inState('D'), name("cc1"))), []Call{shell("a", "make all", sec)})
	p := a.Procs
	equal(t, "how many connections", len(p[0].Sockets), maxPeers)
	equal(t, "the liveliest connection", p[0].Sockets[0], Peer{Peer: "10", Quiet: Span(10 * sec)})
	equal(t, "waits", p[0].Waits, "runs")
	equal(t, "percent", p[0].Percent, 20)
	p[0].Sockets = nil
	if want := (Proc{ID: ID{200, 2000}, PPID: 100, Command: "/bin/bash -c make all", State: "asleep", Age: Span(sec), Memory: 4096, Call: "a"}); !reflect.DeepEqual(p[1], want) {
		t.Errorf("%+v, want %+v", p[1], want)
	}
	if want := (Proc{ID: ID{201, 2010}, PPID: 200, Command: "[cc1]", State: "uninterruptible", Age: Unknown, Percent: Unknown, CPU: Unknown, Call: "a"}); !reflect.DeepEqual(p[2], want) {
		t.Errorf("%+v, want %+v", p[2], want)
	}
}

// Nobody repaints a terminal through his command line.
func TestCommand(t *testing.T) {
	for _, tt := range []struct{ argv, want string }{
		{"a\x1b[2Jb\n\x7f\u0085\u202ec\xff", "a?[2Jb????c?"},
		{"größer …", "größer …"},
		{strings.Repeat("x", 200), strings.Repeat("x", 200)},
		{strings.Repeat("x", 201), strings.Repeat("x", 197) + "…"},
		{strings.Repeat("é", 150), strings.Repeat("é", 98) + "…"},
		{"x" + strings.Repeat("é", 150), "x" + strings.Repeat("é", 98) + "…"},
	} {
		r := row(5, 1, 1, argv(tt.argv))
		got := command(&r)
		equal(t, "command", got, tt.want)
		if len(got) > 200 || !utf8.ValidString(got) {
			t.Errorf("%q: %d bytes", got, len(got))
		}
	}
	p := Proc{ID: ID{24857, 1}, Command: "node index.js"}
	equal(t, "a name", p.String(), "24857 node index.js")
	p.Command = strings.Repeat("x", 70)
	equal(t, "a long name", p.String(), "24857 "+strings.Repeat("x", 57)+"…")
}
