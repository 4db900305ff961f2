package monitor

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/tree"
)

// asking is testPolicy with the tree as the second witness.
var asking = with(func(p *Policy) {
	p.Confirm, p.Tick, p.Window, p.Busy = true, 5*time.Second, 15*time.Second, 600*time.Second
})

// behaviour is what a tree does from one moment to another, in seconds since
// the start of the turn.
type behaviour func(from, to float64, a *tree.Activity)

// quiet is a tree of two that does nothing.
func quiet(from, to float64) tree.Activity {
	return tree.Activity{Span: Span((to - from) * float64(time.Second)), Alive: 2, Full: true}
}

// between is what a behaviour does within its own time: works a share of a
// core, for example.
func between(begin, end, share float64) behaviour {
	return func(from, to float64, a *tree.Activity) {
		if d := min(end, to) - max(begin, from); d > 0 {
			a.CPU += Span(share * d * float64(time.Second))
		}
	}
}

// every does something at each multiple of a period.
func every(period float64, do func(*tree.Activity)) behaviour {
	return func(from, to float64, a *tree.Activity) {
		for range int(math.Floor(to/period) - math.Floor(from/period)) {
			do(a)
		}
	}
}

func during(begin, end float64, b behaviour) behaviour {
	return func(from, to float64, a *tree.Activity) {
		if from < end && to > begin {
			b(max(from, begin), min(to, end), a)
		}
	}
}

// live runs the monitor as its owner does: facts at their time, samples when
// they are due, a judgement whenever there may be something new. It returns
// what ended the turn, and all that was suspected before.
func live(p Policy, facts []fact, behave ...behaviour) (v Verdict, when float64, doubts []Finding) {
	m := New(p, epoch)
	now, sampled, last := 0.0, 0.0, time.Time{}
	seconds := func(t time.Time) float64 { return t.Sub(epoch).Seconds() }
	for range 100_000 {
		if v = m.Judge(at(now)); v.State != Fine && v.State != Suspected {
			return v, now, doubts
		}
		if v.State == Suspected {
			if f := v.Reason.Evidence.Finding; len(doubts) == 0 || doubts[len(doubts)-1] != f {
				doubts = append(doubts, f)
			}
		}
		due, next := m.Sample(), m.Next(at(now))
		when = math.Inf(1)
		for _, t := range []time.Time{due, next} {
			if !t.IsZero() {
				when = min(when, max(seconds(t), now))
			}
		}
		if len(facts) > 0 && facts[0].at <= when {
			now = facts[0].at
			facts[0].tell(m, at(now))
			facts = facts[1:]
			continue
		}
		if math.IsInf(when, 1) {
			return v, when, doubts
		}
		now = when
		if !due.IsZero() && seconds(due) <= now {
			if m.Samples() == 0 {
				sampled = now
			}
			a := quiet(sampled, now)
			for _, b := range behave {
				b(sampled, now, &a)
			}
			m.Sampled(at(now), &a)
			sampled, last = now, at(now)
		}
	}
	panic("no end at " + last.String())
}

func TestWitness(t *testing.T) {
	ping := func(a *tree.Activity) { a.Received += 39; a.Sent += 39 }
	token := func(bytes int64) func(*tree.Activity) {
		return func(a *tree.Activity) { a.Received += bytes; a.OneWay += bytes }
	}
	child := func(a *tree.Activity) { a.Born++; a.Ended++ }
	unreadable := func(_, _ float64, a *tree.Activity) {
		a.CPU, a.Disk, a.Received, a.Sent, a.OneWay = tree.Unknown, tree.Unknown, tree.Unknown, tree.Unknown, tree.Unknown
	}
	blind := func(_, _ float64, a *tree.Activity) { *a = tree.Activity{Span: a.Span, Blind: "no /proc"} }
	stopped := func(_, _ float64, a *tree.Activity) {
		a.Stopped = []tree.Proc{{ID: tree.ID{PID: 7}, Command: "node", State: "stopped"}}
	}
	own := func(_, _ float64, a *tree.Activity) { a.OwnCPU = a.CPU }
	run := func(fate tree.Fate) behaviour {
		return func(_, _ float64, a *tree.Activity) { a.Runners = []tree.Runner{{Call: "a", Fate: fate}} }
	}
	asks := func(_, _ float64, a *tree.Activity) { a.Asking = []tree.Proc{{Command: "git"}} }
	idle := []fact{thinking(10)}                  // the deadline is at 70
	shell := []fact{start(10, "a", "shell", 100)} // at 140
	for _, row := range []struct {
		name    string
		policy  Policy
		facts   []fact
		tree    []behaviour
		by      float64 // the verdict comes at this moment, or within a tick of it
		finding Finding
	}{
		{"a quiet tree is ended at the deadline", asking, idle, nil, 70, Confirmed},
		{"a quiet tool is", asking, shell, nil, 140, Confirmed},
		{"a quiet start is", asking, nil, nil, 10, Confirmed},
		{"quiet background work is", asking, []fact{backgrounded(10, "b", "shell", "7")}, nil, 1810, Confirmed},
		{"who only reconnects is, whatever it sends", asking, []fact{thinking(1), lost(100), retry(200)},
			[]behaviour{every(4, token(5000))}, 301, Confirmed},
		{"a silence shorter than the window is long enough", with(func(p *Policy) { *p = asking; p.Idle = 2 * time.Second }),
			idle, nil, 12, Confirmed},
		{"and shorter than a tick", with(func(p *Policy) { *p = asking; p.Idle = 100 * time.Millisecond }), idle, nil, 10.1, Confirmed},

		{"garbage collections of an idle Node are no work", asking, idle,
			[]behaviour{between(12, 13, 0.345), between(20, 21, 0.345), between(31, 32, 0.345), between(44, 45, 0.345)}, 70, Confirmed},
		{"nor one in the last second", asking, idle, []behaviour{between(69, 70, 0.345)}, 70, Confirmed},
		{"nor the worst that was measured", asking, idle, []behaviour{between(0, 1e6, 0.026), between(60, 61, 0.3)}, 70, Confirmed},
		{"pings of HTTP/2 are none", asking, idle, []behaviour{every(1, ping)}, 70, Confirmed},
		{"comments that keep a stream of events open are none", asking, idle, []behaviour{every(15, token(50))}, 70, Confirmed},
		{"a few lines in a log of its own are none", asking, idle,
			[]behaviour{every(4, func(a *tree.Activity) { a.Disk += 1024 })}, 70, Confirmed},

		{"who works all the time is busy, up to the grace (H17)", asking, idle, []behaviour{between(0, 1e6, 0.97)}, 670, Busy},
		{"a tool that works is (H9)", asking, shell, []behaviour{between(0, 1e6, 0.9)}, 740, Busy},
		{"a tenth of a core on a loaded machine is work", asking, shell, []behaviour{between(0, 1e6, 0.1)}, 740, Busy},
		{"so is getting less of one than is wanted, all the time", asking, shell,
			[]behaviour{between(0, 1e6, 0.03), func(_, _ float64, a *tree.Activity) { a.Runnable = 1 }}, 740, Busy},
		{"a timer that is met in every look is not", asking, idle,
			[]behaviour{between(0, 1e6, 0.02), func(_, _ float64, a *tree.Activity) { a.Runnable = 1 }}, 70, Confirmed},
		{"a token a second is", asking, idle, []behaviour{every(1, token(100))}, 670, Busy},
		{"also a very small one", asking, idle, []behaviour{every(1, token(14))}, 670, Busy},
		{"comments every five seconds are none", asking, idle, []behaviour{every(5, token(42))}, 70, Confirmed},
		{"a report to somebody is none", asking, idle, []behaviour{every(14, func(a *tree.Activity) { a.Sent += 2000 })}, 70, Confirmed},
		{"an upload is", asking, idle, []behaviour{every(1, func(a *tree.Activity) { a.Sent += 50_000 })}, 670, Busy},
		{"a download is", asking, shell, []behaviour{every(1, token(100_000))}, 740, Busy},
		{"children that come and go are", asking, shell, []behaviour{every(2, child)}, 740, Busy},
		{"storage is", asking, shell, []behaviour{every(1, func(a *tree.Activity) { a.Disk += 8 << 20 })}, 740, Busy},

		{"work that ends with an event is no hang", asking, []fact{start(10, "a", "shell", 100), done(400, "a", "shell"), result(401)},
			[]behaviour{between(0, 400, 1)}, 406, Waiting},
		{"work at the end of a long silence is seen", asking, []fact{start(10, "a", "mcp", 0)}, []behaviour{between(585, 1e6, 1)}, 1210, Busy},
		{"a tool that worked and then hung is ended at its deadline", asking, shell, []behaviour{between(10, 100, 1)}, 140, Confirmed},
		{"and a window after its work, if that is later", asking, shell, []behaviour{between(10, 200, 1)}, 215, Confirmed},
		{"nor is an agent that worked early in its silence given another", asking, idle, []behaviour{between(10, 50, 1)}, 70, Confirmed},

		{"what the agent computes is not the work of a tool that runs by itself", asking, shell,
			[]behaviour{between(0, 1e6, 0.9), own, run(tree.Alive)}, 140, Confirmed},
		{"unless the tool is gone", asking, shell, []behaviour{between(0, 1e6, 0.9), own, run(tree.Gone)}, 740, Busy},
		{"nor when there is no tool", asking, idle, []behaviour{between(0, 1e6, 0.9), own}, 670, Busy},
		{"who asks needs no more evidence", asking, shell, []behaviour{between(10, 138, 1), asks}, 140, Confirmed},

		{"a stopped agent is no hang, up to the grace", asking, idle, []behaviour{stopped}, 670, Stopped},
		{"continued in time it is judged as before", asking, idle, []behaviour{during(0, 100, stopped)}, 101, Confirmed},

		{"what cannot be read leaves it to the stream", asking, idle, []behaviour{unreadable}, 70, Unverified},
		{"who cannot be seen does", asking, idle, []behaviour{blind}, 70, Unverified},
		{"births speak also where nothing else can be read", asking, shell, []behaviour{unreadable, every(2, child)}, 740, Busy},
		{"and off, the stream alone decides", testPolicy, idle, []behaviour{between(0, 1e6, 1)}, 70, Unasked},

		{"lines that move no deadline do not unmake the evidence", asking,
			[]fact{start(10, "a", "shell", 100), thinking(100), thinking(138), thinking(143), thinking(146)}, nil, 155, Confirmed},
		{"the run's own time is up, whatever the tree does", with(func(p *Policy) { *p = asking; p.Max = 100 * time.Second }),
			idle, []behaviour{between(0, 1e6, 1)}, 100, Waiting},
		{"held time moves the deadline and the grace", asking, []fact{thinking(10), held(20, 520)},
			[]behaviour{between(0, 1e6, 1)}, 1170, Busy},
	} {
		t.Run(row.name, func(t *testing.T) {
			v, when, doubts := live(row.policy, row.facts, row.tree...)
			if late := when - row.by; late < 0 || late > row.policy.Tick.Seconds() {
				t.Errorf("ended at %.1f s, want %.1f to a tick later; %s, doubts %q", when, row.by, v.State, doubts)
			}
			if v.Reason == nil {
				if row.finding != Waiting {
					t.Errorf("%s, want %s", v.State, row.finding)
				}
				return
			}
			finding := Unasked
			if v.Reason.Evidence != nil {
				finding = v.Reason.Evidence.Finding
			}
			if finding != row.finding {
				t.Errorf("%s (%q), want %q: %s", v.State, finding, row.finding, v.Reason.Summary)
			}
		})
	}
}

// A verdict that rests on nobody being there is not given before a whole pass
// over the process table has agreed.
func TestNobodyThereTakesAFullPass(t *testing.T) {
	m := New(asking, epoch)
	for s := 5.0; s < 10; s++ {
		a := quiet(s-1, s)
		m.Sampled(at(s), &a)
	}
	a := quiet(9, 10)
	a.Full = false
	m.Sampled(at(10), &a)
	if v := m.Judge(at(10)); v.State != Suspected {
		t.Fatalf("%s without a full pass", v.State)
	}
	a.Full = true
	m.Sampled(at(11), &a)
	if v := m.Judge(at(11)); v.State != Hung {
		t.Fatalf("%s after a full pass", v.State)
	}
}

// One sample is no evidence: what happened lies between two.
func TestOneSampleIsNone(t *testing.T) {
	m := New(asking, epoch)
	a := tree.Activity{Full: true}
	m.Sampled(at(10), &a)
	if v := m.Judge(at(10)); v.State != Suspected {
		t.Errorf("%s on a single sample", v.State)
	}
}

// Whoever looks may be held up by what it looks at; nobody waits for it.
func TestALookThatNeverComesBack(t *testing.T) {
	m := New(asking, epoch)
	if v := m.Judge(at(14.9)); v.State != Suspected || !m.Next(at(14.9)).Equal(at(15)) {
		t.Errorf("%s, next %v", v.State, m.Next(at(14.9)))
	}
	if v := m.Judge(at(15)); v.State != Hung || v.Reason.Evidence.Finding != Unverified {
		t.Errorf("%+v", v)
	}
}

// Nor does it unmake the work that was seen before it set out.
func TestALateLookAtWhoWorks(t *testing.T) {
	m := New(asking, epoch)
	for s := 1.0; s < 10; s++ {
		a := quiet(s-1, s)
		a.CPU = Span(time.Second)
		m.Sampled(at(s), &a)
	}
	if v := m.Judge(at(15)); v.State != Suspected || v.Reason.Evidence.Finding != Busy {
		t.Errorf("%s, %+v", v.State, v.Reason.Evidence)
	}
	if v := m.Judge(at(610)); v.State != Hung {
		t.Errorf("%s after the grace", v.State)
	}
}

// A tree that was only looked at for a moment before its deadline, because lines
// came until then, is looked at for longer.
func TestShortEvidence(t *testing.T) {
	v, when, doubts := live(asking, []fact{start(10, "a", "shell", 100), thinking(139)}, between(0, 139, 1), between(146, 1e6, 1))
	if v.State != Hung || v.Reason.Evidence.Finding != Busy || when < 740 {
		t.Errorf("%s at %.0f s after %q: %s", v.State, when, doubts, v.Reason.Summary)
	}
}

// While lines come nobody looks.
func TestSamplesAreTakenInSilence(t *testing.T) {
	m := New(asking, epoch)
	for s := 1.0; s < 100; s++ {
		thinking(s).tell(m, at(s))
		if got := m.Sample(); !got.Equal(at(s + 5)) {
			t.Fatalf("after the line at %v s a sample at %v", s, got.Sub(epoch))
		}
	}
	for _, want := range []float64{104, 109, 114} {
		if got := m.Sample(); !got.Equal(at(want)) {
			t.Fatalf("a sample at %v, want %v s", got.Sub(epoch), want)
		}
		a := quiet(want-5, want)
		m.Sampled(at(want), &a)
	}
	result(115).tell(m, at(115))
	if got := m.Sample(); !got.IsZero() {
		t.Errorf("a sample after the result, at %v", got)
	}
}

func TestTelling(t *testing.T) {
	proc := func(pid int, command, waits string) tree.Proc {
		return tree.Proc{ID: tree.ID{PID: pid, Start: 1}, Command: command, Waits: waits, State: "asleep"}
	}
	run := func(a tree.Activity, facts ...fact) *Reason {
		m := New(asking, epoch)
		for _, f := range facts {
			f.tell(m, at(f.at))
		}
		for s := 100.0; s <= 140; s += 5 {
			a.Span = Span(5 * time.Second)
			m.Sampled(at(s), &a)
		}
		v := m.Judge(at(2000))
		if v.State != Hung {
			t.Fatalf("%s", v.State)
		}
		return v.Reason
	}
	shell := start(10, "a", "shell", 90)
	runner := func(fate tree.Fate, waits string) []tree.Runner {
		return []tree.Runner{{Call: "a", Fate: fate, ID: tree.ID{PID: 812}, Command: "git fetch", Waits: waits}}
	}
	for _, row := range []struct {
		name string
		a    tree.Activity
		want string
	}{
		{"who asks", tree.Activity{Full: true, Asking: []tree.Proc{proc(815, "git fetch", "")}, Runners: runner(tree.Alive, "")}, "815 git fetch reads the terminal"},
		{"who is stopped", tree.Activity{Full: true, Stopped: []tree.Proc{proc(7, "node", "stopped by SIGSTOP")}}, "7 node is stopped by SIGSTOP"},
		{"who spins, alone (H9)", tree.Activity{Full: true, CPU: Span(5 * time.Second),
			Busiest: []tree.Proc{{ID: tree.ID{PID: 9}, Command: "bash -c x", Percent: 99.6}}, Procs: []tree.Proc{proc(9, "bash", "")}},
			"busy without progress: 9 bash -c x uses 100 % of a core and has no child"},
		{"that the completion was lost", tree.Activity{Full: true, Runners: runner(tree.Gone, "")}, `the process of shell "x" is gone, its completion was lost`},
		{"that nobody runs it", tree.Activity{Full: true, Runners: runner(tree.None, "")}, `no process runs shell "x"`},
		{"what its process waits for", tree.Activity{Full: true, Runners: runner(tree.Alive, "waits for child 813 ssh")}, "812 git fetch waits for child 813 ssh"},
		{"that all is quiet", tree.Activity{Full: true}, "the tree is quiet: 0.0 % of a core over 30.0s, 0 bytes received"},
		{"that nobody can be seen", tree.Activity{Blind: "no /proc"}, "the tree cannot be seen: no /proc"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := run(row.a, shell)
			if _, fact, _ := strings.Cut(r.Summary, "; "); !strings.HasPrefix(fact, row.want) {
				t.Errorf("%q, want %q at its end", r.Summary, row.want)
			}
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var back Reason
			if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(&back, r) {
				t.Errorf("read back as %+v (%v), want %+v", back, err, *r)
			}
		})
	}
}
