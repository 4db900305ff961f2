// Package monitor judges from the event stream whether the agent hangs.
//
// It is a state machine without a clock, a file or a goroutine: the caller
// tells it what happened and when, asks for its verdict, and asks when it
// would be worth asking again. The same facts give the same verdict however
// often it was asked in between, so a recorded log can be replayed through it.
//
// Every time that goes in must come from one clock that never runs backwards;
// the monitor only compares and subtracts.
package monitor

import (
	"cmp"
	"slices"
	"time"

	"cursor-wrap/internal/events"
)

// Monitor watches one turn of one agent process.
type Monitor struct {
	policy Policy

	start     time.Time    // of the turn
	lastEvent time.Time    // any line, or bytes of one
	lastReal  time.Time    // a line that is more than a reconnection attempt
	result    time.Time    // the first result line; zero before it
	last      events.Event // no more of it than its name
	attempts  int          // reconnection lines since lastReal
	lines     bool

	open       map[string]*openCall
	background map[string]*task
	over       map[string]bool // notified before it was reported as backgrounded
	undeclared map[string]bool // tools already noted as declaring no wait
	opened     int             // calls so far, to keep them in the order of their start

	heldFrom, heldTo time.Time // the last time in which nobody was reading

	tree witness // what the tree did in this silence
}

type openCall struct {
	events.Call
	seq   int
	start time.Time // moved by held time
	told  time.Time // not moved
}

type task struct {
	events.Call
	since time.Time // moved by held time
	told  time.Time // not moved
}

// New returns a monitor for a turn that began at start.
func New(p Policy, start time.Time) *Monitor {
	return &Monitor{
		policy:     p,
		start:      start,
		lastEvent:  start,
		lastReal:   start,
		open:       map[string]*openCall{},
		background: map[string]*task{},
		over:       map[string]bool{},
		undeclared: map[string]bool{},
	}
}

// Note is something about an event that an operator would want to read once.
type Note uint8

// The notes.
const (
	Nothing    Note = iota
	Undeclared      // the first call of its tool that declared no wait
	Replaced        // a second start for a call that was still open
	Unmatched       // a completion without a start
)

// Observe tells that ev was received at the given moment. It copies what it
// keeps.
func (m *Monitor) Observe(at time.Time, ev *events.Event) Note {
	at = m.listening(at)
	if deadline := m.Deadline(); deadline.IsZero() || at.Before(deadline) {
		m.tree.forget() // past a deadline that a line does not move, the tree's word goes on
	}
	m.lines = true
	m.lastEvent = at
	if ev.Kind == events.Partial {
		return Nothing // a sign of life; what it will be is not known yet
	}
	m.last.Kind, m.last.Type, m.last.Subtype = ev.Kind, ev.Type, ev.Subtype
	if !ev.Progress() {
		m.attempts++
		return Nothing
	}
	m.lastReal, m.attempts = at, 0
	if ev.Ended != nil && m.result.IsZero() {
		m.result = at
	}
	switch ev.Kind {
	case events.ToolStarted:
		return m.started(at, ev.Call)
	case events.ToolCompleted:
		return m.completed(at, ev.Call)
	case events.TaskNotification:
		m.notified(ev.Task)
	case events.BackgroundTimeout:
		clear(m.background)
	}
	return Nothing
}

func (m *Monitor) started(at time.Time, c *events.Call) Note {
	note := Nothing
	if c.Declared == 0 && !m.undeclared[c.Tool] {
		m.undeclared[c.Tool] = true
		note = Undeclared
	}
	if _, ok := m.open[c.ID]; ok {
		note = Replaced
	}
	m.opened++
	m.open[c.ID] = &openCall{Call: *c, seq: m.opened, start: at, told: earliest(at, m.heldFrom, m.heldTo)}
	return note
}

// completed closes a call. One that came back while its work goes on leaves
// that work behind, until a notification ends it (H1, H2).
func (m *Monitor) completed(at time.Time, c *events.Call) Note {
	began, ok := m.open[c.ID]
	delete(m.open, c.ID)
	if c.Background && !m.over[c.TaskID] {
		t := &task{Call: *c, since: at, told: at}
		if ok && t.Argument == "" {
			t.Argument = began.Argument
		}
		m.background[cmp.Or(c.TaskID, c.ID)] = t
	}
	if !ok {
		return Unmatched
	}
	return Nothing
}

func (m *Monitor) notified(t *events.Task) {
	if !t.Over() {
		return
	}
	if _, ok := m.background[t.ID]; ok {
		delete(m.background, t.ID)
		return
	}
	m.over[t.ID] = true
}

// Held tells that between the two moments nobody was reading the stream: the
// reader of our stdout, the disk or the machine stood still. Silence counts
// only while somebody listens, so every deadline moves away by that time.
// Spans are told in order and must not overlap.
func (m *Monitor) Held(from, to time.Time) {
	if !to.After(from) {
		return
	}
	if !from.Equal(m.heldTo) { // a hold that is told piece by piece is one hold
		m.heldFrom = from
	}
	m.heldTo = to
	for _, t := range []*time.Time{&m.start, &m.lastEvent, &m.lastReal, &m.result} {
		move(t, from, to)
	}
	for _, c := range m.open {
		move(&c.start, from, to)
		c.told = earliest(c.told, from, to)
	}
	for _, t := range m.background {
		move(&t.since, from, to)
	}
}

// earliest is when a call may have begun that was read in a hold or just after
// it: as early as the hold. Its process may be that old.
func earliest(told, from, to time.Time) time.Time {
	const just = 100 * time.Millisecond
	if told.Before(from) || told.After(to.Add(just)) {
		return told
	}
	return from
}

// move adds to t what of the span lies behind it.
func move(t *time.Time, from, to time.Time) {
	if t.IsZero() || !t.Before(to) {
		return
	}
	if t.After(from) {
		from = *t
	}
	*t = t.Add(to.Sub(from))
}

// listening is at, or the end of the held span that at lies in: a line that
// was received just before the hold is told after it.
func (m *Monitor) listening(at time.Time) time.Time {
	if at.Before(m.heldTo) && !at.Before(m.heldFrom) {
		return m.heldTo
	}
	return at
}

// Expires is when the run's own time is up; zero where it has no limit.
func (m *Monitor) Expires() time.Time { return after(m.start, m.policy.Max) }

// Silent is how long nothing has come, as far as somebody listened.
func (m *Monitor) Silent(at time.Time) time.Duration {
	return max(0, m.listening(at).Sub(m.lastEvent))
}

// Phase is what the agent is doing, as far as the stream tells.
func (m *Monitor) Phase() Phase {
	switch {
	case !m.result.IsZero():
		return Draining
	case !m.lines:
		return Starting
	case len(m.open) > 0:
		return Tools
	case m.attempts > 0:
		return Reconnecting
	case len(m.background) > 0:
		return Background
	}
	return Thinking
}

// Deadline is when the present phase has lasted too long; zero when it never
// has. It does not know of Policy.Max.
func (m *Monitor) Deadline() time.Time {
	switch m.Phase() {
	case Starting:
		return after(m.start, m.policy.Startup)
	case Tools:
		return m.toolsDeadline()
	case Reconnecting:
		return after(m.lastReal, m.policy.Reconnect)
	case Background:
		return after(m.lastEvent, m.policy.Background)
	case Draining:
		return m.result.Add(m.policy.ExitGrace)
	}
	return after(m.lastEvent, m.policy.Idle)
}

// toolsDeadline is the last of the open calls' own deadlines: parallel calls
// are past it only together.
func (m *Monitor) toolsDeadline() time.Time {
	var last time.Time
	for _, c := range m.open {
		d := m.callDeadline(c)
		if d.IsZero() {
			return d
		}
		if d.After(last) {
			last = d
		}
	}
	return last
}

// callDeadline depends on nothing but the call's own start and declaration, so
// that no later event can move it.
func (m *Monitor) callDeadline(c *openCall) time.Time {
	if c.Declared > 0 {
		return c.start.Add(c.Declared + m.policy.ToolGrace)
	}
	return after(c.start, m.policy.Tool)
}

// after is t + d, or never where the threshold is off.
func after(t time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return t.Add(d)
}

// Next is the first moment, from at on, at which Judge can say something new
// although nothing happens; zero when only a fact can change its mind. Where a
// verdict is due already, it is the deadline that has passed.
func (m *Monitor) Next(at time.Time) time.Time {
	_, deadline := m.first()
	switch j := m.judge(at); {
	case j.state == Fine:
		return deadline
	case j.state != Suspected:
		return j.deadline
	}
	var next time.Time
	for _, t := range []time.Time{deadline.Add(m.policy.Tick), deadline.Add(m.enough() + 2*m.policy.Tick), m.another(), deadline.Add(m.policy.Busy), after(m.start, m.policy.Max)} {
		if t.After(at) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// first is the deadline that comes first, and the kind of failure it stands for.
func (m *Monitor) first() (Kind, time.Time) {
	phase, deadline := m.Phase(), m.Deadline()
	kind := phase.kind()
	if limit := after(m.start, m.policy.Max); phase != Draining && !limit.IsZero() {
		if deadline.IsZero() || limit.Before(deadline) {
			return Duration, limit
		}
	}
	return kind, deadline
}

// calls are the open calls in the order of their start.
func (m *Monitor) calls() []*openCall {
	calls := make([]*openCall, 0, len(m.open))
	for _, c := range m.open {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b *openCall) int { return cmp.Compare(a.seq, b.seq) })
	return calls
}

// tasks is the background work, the oldest first.
func (m *Monitor) tasks() []*task {
	tasks := make([]*task, 0, len(m.background))
	for _, t := range m.background {
		tasks = append(tasks, t)
	}
	slices.SortFunc(tasks, func(a, b *task) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.TaskID, b.TaskID))
	})
	return tasks
}
