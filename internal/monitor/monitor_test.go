package monitor

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"cursor-wrap/internal/events"
)

var epoch = time.Date(2026, 1, 28, 12, 0, 0, 0, time.UTC)

// at is a moment of a test, in seconds since the start of the turn.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// testPolicy has a threshold of its own for every phase, so that a verdict
// names the rule that it came from.
var testPolicy = Policy{
	Startup: 10 * time.Second, Idle: 60 * time.Second, ToolGrace: 30 * time.Second, Tool: 600 * time.Second,
	Background: 1800 * time.Second, Reconnect: 300 * time.Second, ExitGrace: 5 * time.Second,
}

// fact is something that a test tells the monitor.
type fact struct {
	at   float64
	tell func(*Monitor, time.Time)
}

func event(seconds float64, ev events.Event) fact {
	return fact{seconds, func(m *Monitor, at time.Time) { m.Observe(at, &ev) }}
}

func thinking(s float64) fact {
	return event(s, events.Event{Kind: events.Thinking, Type: "thinking", Subtype: "delta"})
}
func text(s float64) fact    { return event(s, events.Event{Kind: events.Text}) }
func unknown(s float64) fact { return event(s, events.Event{Kind: events.Unknown, Type: "news"}) }
func partial(s float64) fact { return event(s, events.Event{Kind: events.Partial}) }
func retry(s float64) fact {
	return event(s, events.Event{Kind: events.Retry, Type: "retry", Subtype: "starting"})
}
func lost(s float64) fact {
	return event(s, events.Event{Kind: events.Connection, Type: "connection", Subtype: "reconnecting"})
}
func result(s float64) fact {
	return event(s, events.Event{Kind: events.Result, Type: "result", Subtype: "success", Ended: &events.Ended{}})
}
func start(s float64, id, tool string, declared float64) fact {
	return event(s, events.Event{Kind: events.ToolStarted, Type: "tool_call", Subtype: "started", Call: &events.Call{
		ID: id, Tool: tool, Argument: "x", Declared: time.Duration(declared * float64(time.Second)),
	}})
}
func done(s float64, id, tool string) fact {
	return event(s, events.Event{Kind: events.ToolCompleted, Type: "tool_call", Subtype: "completed", Call: &events.Call{ID: id, Tool: tool}})
}
func backgrounded(s float64, id, tool, task string) fact {
	return event(s, events.Event{Kind: events.ToolCompleted, Type: "tool_call", Subtype: "completed", Call: &events.Call{
		ID: id, Tool: tool, Background: true, TaskID: task, PID: 4711,
	}})
}
func notify(s float64, task, status string) fact {
	return event(s, events.Event{Kind: events.TaskNotification, Type: "system", Subtype: "task_notification", Task: &events.Task{ID: task, Status: status}})
}
func aborted(s float64) fact {
	return event(s, events.Event{Kind: events.BackgroundTimeout, Type: "system", Subtype: "background_shell_timeout"})
}
func held(from, to float64) fact {
	return fact{from, func(m *Monitor, _ time.Time) { m.Held(at(from), at(to)) }}
}

func run(p Policy, facts ...fact) *Monitor {
	m := New(p, epoch)
	for _, f := range facts {
		f.tell(m, at(f.at))
	}
	return m
}

func with(change func(*Policy)) Policy {
	p := testPolicy
	change(&p)
	return p
}

// Each row is named after what it protects from. After the facts the monitor
// is in the phase, and its deadline is at that second: a moment before it the
// verdict is Fine, at it the state and kind are the row's.
func TestPhasesAndDeadlines(t *testing.T) {
	const never = -1
	for _, row := range []struct {
		name     string
		policy   Policy
		facts    []fact
		phase    Phase
		deadline float64
		state    State
		kind     Kind
	}{
		{"H4 no output at all ends by the startup deadline, not by the idle one", testPolicy,
			nil, Starting, 10, Hung, Startup},
		{"any first line ends the startup phase, also one that is not JSON", testPolicy,
			[]fact{text(3)}, Thinking, 63, Hung, Idle},
		{"half a line is a sign of life too", testPolicy,
			[]fact{partial(3)}, Thinking, 63, Hung, Idle},
		{"H15 silence after a tool result is the true idle hang", testPolicy,
			[]fact{thinking(1), start(2, "a", "shell", 30), done(4, "a", "shell")}, Thinking, 64, Hung, Idle},
		{"an unknown kind of event is a sign of life", testPolicy,
			[]fact{thinking(1), unknown(50)}, Thinking, 110, Hung, Idle},
		{"H12 every line moves the idle deadline", testPolicy,
			[]fact{thinking(1), thinking(59), thinking(118)}, Thinking, 178, Hung, Idle},

		{"a call has its declared wait and the grace", testPolicy,
			[]fact{start(2, "a", "shell", 120)}, Tools, 152, Hung, Tool},
		{"H8 a call that declares nothing has the tool timeout", testPolicy,
			[]fact{start(2, "a", "mcp", 0)}, Tools, 602, Hung, Tool},
		{"timeout 0 is undeclared and not a deadline of 0 ms", testPolicy,
			[]fact{start(2, "a", "shell", 0)}, Tools, 602, Hung, Tool},
		{"an await has the wait that it blocks for", testPolicy,
			[]fact{start(2, "a", "await", 60)}, Tools, 92, Hung, Tool},
		{"parallel calls are past the deadline only together", testPolicy,
			[]fact{start(2, "a", "shell", 10), start(2, "b", "shell", 120)}, Tools, 152, Hung, Tool},
		{"the slower of two parallel calls keeps its own deadline when the other ends", testPolicy,
			[]fact{start(2, "a", "shell", 10), start(2, "b", "shell", 120), done(5, "a", "shell")}, Tools, 152, Hung, Tool},
		{"the faster one falls back to its own deadline when the slower ends", testPolicy,
			[]fact{start(2, "a", "shell", 10), start(2, "b", "shell", 120), done(5, "b", "shell")}, Tools, 42, Hung, Tool},
		{"a declared wait of days is believed", testPolicy,
			[]fact{start(2, "a", "shell", 172800)}, Tools, 172832, Hung, Tool},
		{"H14 the silence of a foreground subagent is tool time", testPolicy,
			[]fact{start(2, "a", "task", 0)}, Tools, 602, Hung, Tool},
		{"a second start for an open id replaces the first", testPolicy,
			[]fact{start(2, "Grep_0", "grep", 10), start(100, "Grep_0", "grep", 10)}, Tools, 140, Hung, Tool},
		{"a completion without a start closes nothing", testPolicy,
			[]fact{start(2, "a", "shell", 10), done(3, "web", "webSearch")}, Tools, 42, Hung, Tool},
		{"a rejected call that completes at once leaves nothing open", testPolicy,
			[]fact{start(2, "a", "shell", 10), done(2, "a", "shell")}, Thinking, 62, Hung, Idle},

		{"H1 a background shell's silence is not an idle hang", testPolicy,
			[]fact{start(2, "a", "shell", 0), backgrounded(4, "a", "shell", "233697")}, Background, 1804, Hung, Work},
		{"H2 the notification ends the background work and a new turn follows", testPolicy,
			[]fact{start(2, "a", "shell", 0), backgrounded(4, "a", "shell", "233697"), notify(30, "233697", "success")}, Thinking, 90, Hung, Idle},
		{"background work that failed is over too", testPolicy,
			[]fact{backgrounded(4, "a", "shell", "1"), notify(30, "1", "error")}, Thinking, 90, Hung, Idle},
		{"a progress notification ends nothing", testPolicy,
			[]fact{backgrounded(4, "a", "shell", "1"), notify(30, "1", "task_progress")}, Background, 1830, Hung, Work},
		{"a notification that overtakes its completion counts", testPolicy,
			[]fact{start(2, "a", "shell", 0), notify(3, "1", "success"), backgrounded(4, "a", "shell", "1")}, Thinking, 64, Hung, Idle},
		{"one of two background shells is left", testPolicy,
			[]fact{backgrounded(4, "a", "shell", "1"), backgrounded(5, "b", "shell", "2"), notify(6, "1", "success")}, Background, 1806, Hung, Work},
		{"background_shell_timeout ends all background work", testPolicy,
			[]fact{backgrounded(4, "a", "shell", "1"), backgrounded(5, "b", "shell", "2"), aborted(6)}, Thinking, 66, Hung, Idle},
		{"H14 a background subagent waits like a shell", testPolicy,
			[]fact{start(2, "a", "task", 0), backgrounded(4, "a", "task", "agent-7")}, Background, 1804, Hung, Work},
		{"a call beside background work is judged as a call", testPolicy,
			[]fact{backgrounded(4, "a", "shell", "1"), start(5, "b", "shell", 10)}, Tools, 45, Hung, Tool},

		{"H11 retries alone do not move the deadline", testPolicy,
			[]fact{thinking(1), lost(30), retry(40), retry(200), lost(299)}, Reconnecting, 301, Hung, Reconnect},
		{"H11 retries from the very start count from the start", testPolicy,
			[]fact{lost(5), retry(100)}, Reconnecting, 300, Hung, Reconnect},
		{"progress ends a reconnection", testPolicy,
			[]fact{thinking(1), lost(30), retry(40), thinking(50)}, Thinking, 110, Hung, Idle},
		{"retries beside background work do not keep it alive", testPolicy,
			[]fact{backgrounded(4, "a", "shell", "1"), retry(100), retry(300)}, Reconnecting, 304, Hung, Reconnect},
		{"retries do not touch an open call", testPolicy,
			[]fact{start(2, "a", "shell", 120), retry(100), retry(151)}, Tools, 152, Hung, Tool},

		{"H3 after the result only the exit is waited for", testPolicy,
			[]fact{thinking(1), result(20)}, Draining, 25, Lingering, None},
		{"events behind the result do not put the exit off", testPolicy,
			[]fact{thinking(1), result(20), thinking(24), result(24.5)}, Draining, 25, Lingering, None},
		{"a result too long to be held is a result", testPolicy,
			[]fact{event(20, events.Event{Kind: events.Oversize, Type: "result", Ended: &events.Ended{}})}, Draining, 25, Lingering, None},
		{"a result with calls open still is the result", testPolicy,
			[]fact{start(2, "a", "shell", 10), result(20)}, Draining, 25, Lingering, None},

		{"the duration ends any phase", with(func(p *Policy) { p.Max = 100 * time.Second }),
			[]fact{start(2, "a", "shell", 1000)}, Tools, 100, Overdue, Duration},
		{"a hang before the duration is named as the hang", with(func(p *Policy) { p.Max = 100 * time.Second }),
			[]fact{thinking(20)}, Thinking, 80, Hung, Idle},
		{"the duration does not touch a result", with(func(p *Policy) { p.Max = 22 * time.Second }),
			[]fact{thinking(1), result(20)}, Draining, 25, Lingering, None},

		{"0 switches the idle deadline off", with(func(p *Policy) { p.Idle = 0 }),
			[]fact{thinking(1)}, Thinking, never, Fine, None},
		{"0 switches the tool timeout off, also beside a call with a deadline", with(func(p *Policy) { p.Tool = 0 }),
			[]fact{start(2, "a", "mcp", 0), start(2, "b", "shell", 1)}, Tools, never, Fine, None},
		{"0 switches the others off", Policy{},
			nil, Starting, never, Fine, None},

		{"held time moves the idle deadline", testPolicy,
			[]fact{thinking(10), held(20, 620)}, Thinking, 670, Hung, Idle},
		{"held time moves an open call's deadline by what lies behind its start", testPolicy,
			[]fact{held(0, 5), start(7, "a", "shell", 10), held(10, 110)}, Tools, 147, Hung, Tool},
		{"held time moves the startup deadline", testPolicy,
			[]fact{held(5, 65)}, Starting, 70, Hung, Startup},
		{"held time moves the duration", with(func(p *Policy) { p.Max = 50 * time.Second }),
			[]fact{thinking(1), held(10, 110), thinking(111)}, Thinking, 150, Overdue, Duration},
		{"held time moves the exit of a process that could not write", testPolicy,
			[]fact{result(20), held(21, 31)}, Draining, 35, Lingering, None},
		{"a line that was received as the hold began counts from its end", testPolicy,
			[]fact{thinking(10), held(20, 80), thinking(20)}, Thinking, 140, Hung, Idle},
		{"a hold that is told piece by piece is one hold", testPolicy,
			[]fact{thinking(10), held(20, 50), held(50, 80), thinking(20)}, Thinking, 140, Hung, Idle},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := run(row.policy, row.facts...)
			if got := m.Phase(); got != row.phase {
				t.Errorf("phase %s, want %s", got, row.phase)
			}
			if row.deadline == never {
				if !m.Next(epoch).IsZero() {
					t.Errorf("next is %v, want never", m.Next(epoch).Sub(epoch))
				}
				if v := m.Judge(at(1e6)); v.State != Fine {
					t.Errorf("after eleven days: %+v, want fine", v)
				}
				return
			}
			deadline := at(row.deadline)
			if got := m.Next(epoch); !got.Equal(deadline) {
				t.Errorf("next is %v, want %v", got.Sub(epoch), deadline.Sub(epoch))
			}
			if v := m.Judge(deadline.Add(-time.Millisecond)); v.State != Fine || v.Reason != nil {
				t.Errorf("a moment before the deadline: %+v, want fine", v)
			}
			v := m.Judge(deadline)
			if v.State != row.state || v.Phase != row.phase {
				t.Errorf("at the deadline: %s in %s, want %s in %s", v.State, v.Phase, row.state, row.phase)
			}
			if (v.Reason != nil) != (row.kind != None) || v.Reason != nil && v.Reason.Kind != row.kind {
				t.Errorf("reason %+v, want kind %q", v.Reason, row.kind)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	m := New(testPolicy, epoch)
	observe := func(kind events.Kind, c events.Call) Note {
		return m.Observe(at(1), &events.Event{Kind: kind, Call: &c})
	}
	for i, step := range []struct {
		kind events.Kind
		call events.Call
		want Note
	}{
		{events.ToolStarted, events.Call{ID: "a", Tool: "mcp"}, Undeclared},
		{events.ToolStarted, events.Call{ID: "b", Tool: "mcp"}, Nothing}, // once a tool is enough
		{events.ToolStarted, events.Call{ID: "c", Tool: "task"}, Undeclared},
		{events.ToolStarted, events.Call{ID: "d", Tool: "shell", Declared: time.Second}, Nothing},
		{events.ToolStarted, events.Call{ID: "d", Tool: "shell", Declared: time.Second}, Replaced},
		{events.ToolCompleted, events.Call{ID: "d", Tool: "shell"}, Nothing},
		{events.ToolCompleted, events.Call{ID: "d", Tool: "shell"}, Unmatched},
	} {
		if got := observe(step.kind, step.call); got != step.want {
			t.Errorf("step %d: note %d, want %d", i, got, step.want)
		}
	}
}

func TestReason(t *testing.T) {
	m := run(testPolicy,
		thinking(1),
		backgrounded(2, "bg", "shell", "233697"),
		start(3, "call-1\nfc_1", "shell", 10),
		start(4, "call-2", "mcp", 0),
		retry(500),
	)
	v := m.Judge(at(604))
	if v.State != Hung {
		t.Fatalf("verdict %+v", v)
	}
	b, err := json.Marshal(v.Reason)
	if err != nil {
		t.Fatal(err)
	}
	ms := func(s float64) int64 { return at(s).UnixMilli() }
	want := fmt.Sprintf(`{"kind":"tool","phase":"tools",`+
		`"summary":"2 open tool calls past the deadline: shell \"x\" for 10m1s (declared 10.0s); mcp \"x\" for 10m0s",`+
		`"at":%d,"deadline":%d,"limit_ms":600000,"silence_ms":104000,"no_progress_ms":600000,"elapsed_ms":604000,`+
		`"last_event":"retry/starting","reconnect_attempts":1,"witness":"stream","open_calls":[`+
		`{"id":"call-1\nfc_1","tool":"shell","argument":"x","elapsed_ms":601000,"declared_ms":10000,"deadline":%d},`+
		`{"id":"call-2","tool":"mcp","argument":"x","elapsed_ms":600000,"declared_ms":0,"deadline":%d}],`+
		`"background":[{"id":"bg","tool":"shell","task_id":"233697","pid":4711,"elapsed_ms":602000,"declared_ms":0}]}`,
		ms(604), ms(604), ms(43), ms(604))
	if string(b) != want {
		t.Errorf("reason\n%s\nwant\n%s", b, want)
	}
	var back Reason
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&back, v.Reason) {
		t.Errorf("read back\n%+v\nwant\n%+v", back, *v.Reason)
	}
}

func TestPolicyIsReadBack(t *testing.T) {
	b, err := json.Marshal(testPolicy)
	if err != nil {
		t.Fatal(err)
	}
	var back Policy
	if err := json.Unmarshal(b, &back); err != nil || back != testPolicy {
		t.Errorf("%s became %+v (%v)", b, back, err)
	}
}

// random is a stream of facts such as an agent could emit: calls that come and
// go in any order, background work, retries, holds.
func random(r *rand.Rand) []fact {
	var facts []fact
	now, next := 0.0, 0
	var open []string
	for range 5 + r.IntN(60) {
		now += float64(r.IntN(20_000)) / 1000
		switch r.IntN(12) {
		case 0, 1, 2:
			id := fmt.Sprint("c", next)
			next++
			open = append(open, id)
			facts = append(facts, start(now, id, "shell", float64(r.IntN(100))))
		case 3, 4:
			if len(open) > 0 {
				i := r.IntN(len(open))
				facts = append(facts, done(now, open[i], "shell"))
				open = append(open[:i], open[i+1:]...)
			}
		case 5:
			if len(open) > 0 {
				facts = append(facts, backgrounded(now, open[0], "shell", "t"+open[0]))
				open = open[1:]
			}
		case 6:
			facts = append(facts, notify(now, fmt.Sprint("tc", r.IntN(next+1)), "success"))
		case 7:
			facts = append(facts, retry(now))
		case 8:
			to := now + float64(r.IntN(100_000))/1000
			facts = append(facts, held(now, to))
			now = to
		case 9:
			facts = append(facts, unknown(now))
		default:
			facts = append(facts, thinking(now))
		}
	}
	return facts
}

func last(facts []fact) time.Time {
	if len(facts) == 0 {
		return epoch
	}
	return at(facts[len(facts)-1].at)
}

// same compares all that a caller can learn of two monitors.
func same(t *testing.T, a, b *Monitor, now time.Time) {
	t.Helper()
	if a.Phase() != b.Phase() || !a.Next(epoch).Equal(b.Next(epoch)) {
		t.Fatalf("phase %s until %v, and %s until %v", a.Phase(), a.Next(epoch).Sub(epoch), b.Phase(), b.Next(epoch).Sub(epoch))
	}
	for _, d := range []time.Duration{0, time.Second, time.Minute, time.Hour, 100 * time.Hour} {
		if x, y := a.Judge(now.Add(d)), b.Judge(now.Add(d)); !reflect.DeepEqual(x, y) {
			t.Fatalf("verdict %+v, and %+v", x, y)
		}
	}
}

func TestJudgingChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		facts := random(r)
		asked := New(testPolicy, epoch)
		for _, f := range facts {
			asked.Judge(at(f.at).Add(time.Duration(r.IntN(1000)) * time.Second))
			f.tell(asked, at(f.at))
			asked.Next(epoch)
			asked.Judge(at(f.at).Add(time.Hour))
		}
		same(t, asked, run(testPolicy, facts...), last(facts))
	}
}

func TestOrderOfCompletionsDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var starts, ends []fact
		for i := range 2 + r.IntN(6) {
			id := fmt.Sprint(i)
			starts = append(starts, start(float64(i), id, "shell", float64(r.IntN(50))))
			switch r.IntN(3) {
			case 0:
				ends = append(ends, done(20, id, "shell"))
			case 1:
				ends = append(ends, backgrounded(20, id, "shell", "t"+id), notify(20, "t"+id, "success"))
			}
		}
		inOrder := run(testPolicy, append(starts, ends...)...)
		shuffled := append([]fact(nil), ends...)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		other := run(testPolicy, append(starts, shuffled...)...)
		if inOrder.Phase() != other.Phase() || !inOrder.Next(epoch).Equal(other.Next(epoch)) {
			t.Fatalf("phase %s until %v, and %s until %v", inOrder.Phase(), inOrder.Next(epoch), other.Phase(), other.Next(epoch))
		}
	}
}

func TestUnknownEventsOpenAndCloseNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		facts := random(r)
		m := run(testPolicy, facts...)
		calls, tasks := m.calls(), m.tasks()
		for _, kind := range []events.Kind{events.Text, events.Unknown, events.System, events.Interaction, events.Oversize, events.Partial, events.Assistant} {
			m.Observe(last(facts), &events.Event{Kind: kind, Type: "tool_call", Subtype: "finished"})
		}
		if !reflect.DeepEqual(calls, m.calls()) || !reflect.DeepEqual(tasks, m.tasks()) {
			t.Fatalf("open calls %v became %v, tasks %v became %v", calls, m.calls(), tasks, m.tasks())
		}
	}
}

func TestNoEventMovesTheDeadlineOfAnOpenCall(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		m := run(testPolicy, start(0, "mine", "shell", float64(r.IntN(100))))
		want := m.callDeadline(m.open["mine"])
		for _, f := range random(r) {
			if f.tell(m, at(f.at)); m.heldTo.After(epoch) {
				break // held time is no event, and does move it
			}
			if got := m.callDeadline(m.open["mine"]); !got.Equal(want) {
				t.Fatalf("the deadline moved from %v to %v", want.Sub(epoch), got.Sub(epoch))
			}
		}
	}
}

func TestHeldAndItsLineMayBeToldInEitherOrder(t *testing.T) {
	for _, line := range []fact{thinking(20), retry(20), start(20, "a", "shell", 10), result(20)} {
		before := run(testPolicy, thinking(10), line, held(20, 80))
		after := run(testPolicy, thinking(10), held(20, 80), line)
		if before.Phase() != after.Phase() || !before.Next(epoch).Equal(after.Next(epoch)) {
			t.Errorf("told first: %s until %v; told last: %s until %v",
				before.Phase(), before.Next(epoch).Sub(epoch), after.Phase(), after.Next(epoch).Sub(epoch))
		}
	}
}
