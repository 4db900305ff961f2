package monitor

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/tree"
)

// Phase is what the agent is doing, as far as the stream tells.
type Phase string

// The phases; which deadline each has stands beside Policy.
const (
	Starting     Phase = "starting"     // no line yet (H4)
	Thinking     Phase = "thinking"     // no call open, nothing in the background
	Tools        Phase = "tools"        // calls open
	Background   Phase = "background"   // no call open, background work not yet notified (H1, H2)
	Reconnecting Phase = "reconnecting" // only connection/* and retry/* since the last progress (H11)
	Draining     Phase = "draining"     // result seen, process still there (H3)
)

// Kind is the kind of failure that a verdict names.
type Kind string

// The kinds of failure. None is the kind of a draining phase that is over: the
// result stands, only the process is in the way.
const (
	None      Kind = ""
	Startup   Kind = "startup"
	Idle      Kind = "idle"
	Tool      Kind = "tool"
	Work      Kind = "background"
	Reconnect Kind = "reconnect"
	Duration  Kind = "duration"
)

func (p Phase) kind() Kind {
	switch p {
	case Starting:
		return Startup
	case Tools:
		return Tool
	case Background:
		return Work
	case Reconnecting:
		return Reconnect
	case Draining:
		return None
	}
	return Idle
}

// State is what a verdict comes to.
type State string

// The states. A passed deadline is a suspicion; the tree's word makes a hang
// of it, or puts it off.
const (
	Fine      State = "fine"      // no deadline has passed
	Suspected State = "suspected" // one has, and the tree is not quiet, or was not looked at long enough
	Lingering State = "lingering" // the result is there, the process should have left
	Hung      State = "hung"      // end it: it hangs
	Overdue   State = "overdue"   // end it: the run's own time is up
)

// Verdict is what Judge says.
type Verdict struct {
	State  State
	Phase  Phase
	Reason *Reason // set for Suspected, Hung and Overdue
}

// Judge gives the verdict at the given moment. It changes nothing.
func (m *Monitor) Judge(at time.Time) Verdict {
	j := m.judge(at)
	v := Verdict{State: j.state, Phase: m.Phase()}
	if j.state != Fine && j.state != Lingering {
		v.Reason = m.reason(at, &j)
	}
	return v
}

// Progress is what a Reason would say at the given moment, whether anything is
// wrong or not: what is open, how long it is silent, when that will be too long.
func (m *Monitor) Progress(at time.Time) *Reason {
	kind, deadline := m.first()
	j := judgement{state: Fine, kind: kind, deadline: deadline}
	if m.policy.Confirm && kind != None && kind != Duration && len(m.tree.samples) > 0 {
		j.finding = m.finding(at, kind, deadline)
	}
	r := m.reason(at, &j)
	if past := !deadline.IsZero() && !at.Before(deadline); past && kind != None && kind != Duration {
		r.Until = Millis{deadline.Add(m.policy.Busy)}
	}
	return r
}

// judgement is a verdict before it is put into words.
type judgement struct {
	state    State
	kind     Kind
	deadline time.Time
	finding  Finding
}

func (m *Monitor) judge(at time.Time) judgement {
	kind, deadline := m.first()
	j := judgement{state: Fine, kind: kind, deadline: deadline}
	if deadline.IsZero() || at.Before(deadline) {
		return j
	}
	switch kind {
	case None:
		j.state = Lingering
		return j
	case Duration:
		j.state = Overdue // whatever the tree does
		return j
	}
	j.state, j.finding = Hung, m.finding(at, kind, deadline)
	if !m.decided(at, deadline, j.finding) {
		j.state = Suspected
		if limit := after(m.start, m.policy.Max); !limit.IsZero() && !at.Before(limit) {
			j.state, j.kind, j.deadline, j.finding = Overdue, Duration, limit, Waiting
		}
	}
	return j
}

// Reason is why a run was ended: one type and one JSON form, for the log, the
// stream and the reports. Times are Unix milliseconds, spans milliseconds.
type Reason struct {
	Kind       Kind   `json:"kind"`
	Phase      Phase  `json:"phase"`
	Summary    string `json:"summary"`
	At         Millis `json:"at"`
	Deadline   Millis `json:"deadline"`
	Limit      Span   `json:"limit_ms"`           // the threshold that was passed; of a call, its wait with the grace
	Silence    Span   `json:"silence_ms"`         // since the last line, while we listened
	NoProgress Span   `json:"no_progress_ms"`     // since the last line that was no reconnection attempt
	Elapsed    Span   `json:"elapsed_ms"`         // since the start of the turn, while we listened
	LastEvent  string `json:"last_event"`         // its type/subtype
	Attempts   int    `json:"reconnect_attempts"` // since the last progress
	Witness    string `json:"witness"`            // what the verdict rests on: "stream", or "stream and tree"
	OpenCalls  []Call `json:"open_calls"`         // in the order of their start
	Background []Call `json:"background"`         // the oldest first

	// Until is when a run past its deadline is ended whatever its tree does; set
	// by Progress alone.
	Until    Millis    `json:"until,omitzero"`
	Evidence *Evidence `json:"evidence,omitempty"` // of the tree; absent where it was not asked
}

// Call is an open call or a piece of background work in a Reason.
type Call struct {
	ID       string `json:"id"`
	Tool     string `json:"tool"`
	Argument string `json:"argument,omitempty"`
	TaskID   string `json:"task_id,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Elapsed  Span   `json:"elapsed_ms"`
	Declared Span   `json:"declared_ms"`       // 0: it declared none
	Deadline Millis `json:"deadline,omitzero"` // its own; absent where it has none

	Process *tree.Runner `json:"process,omitempty"` // who runs it; absent where the tree was not asked
}

// Millis is a moment that is written as Unix milliseconds.
type Millis struct{ time.Time }

// MarshalJSON writes Unix milliseconds, and 0 for no moment.
func (t Millis) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("0"), nil
	}
	return json.Marshal(t.UnixMilli())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Millis) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return err
	}
	*t = Millis{}
	if ms != 0 {
		t.Time = time.UnixMilli(ms).UTC()
	}
	return nil
}

// Span is a duration that is written in milliseconds.
type Span = tree.Span

func (m *Monitor) reason(at time.Time, j *judgement) *Reason {
	r := &Reason{
		Kind:       j.kind,
		Phase:      m.Phase(),
		At:         Millis{at},
		Deadline:   Millis{j.deadline},
		Limit:      m.limit(j.kind, j.deadline),
		Silence:    Span(at.Sub(m.lastEvent)),
		NoProgress: Span(at.Sub(m.lastReal)),
		Elapsed:    Span(at.Sub(m.start)),
		LastEvent:  tree.Shown(m.lastName()),
		Attempts:   m.attempts,
		Witness:    "stream",
		OpenCalls:  []Call{},
		Background: []Call{},
	}
	for _, c := range m.calls() {
		r.OpenCalls = append(r.OpenCalls, Call{
			ID: c.ID, Tool: tree.Shown(c.Tool), Argument: c.Argument,
			Elapsed: Span(at.Sub(c.start)), Declared: Span(c.Declared), Deadline: Millis{m.callDeadline(c)},
			Process: m.tree.runner(c.ID),
		})
	}
	for _, t := range m.tasks() {
		r.Background = append(r.Background, Call{
			ID: t.ID, Tool: tree.Shown(t.Tool), Argument: t.Argument, TaskID: t.TaskID, PID: t.PID,
			Elapsed: Span(at.Sub(t.since)), Process: m.tree.runner(t.ID),
		})
	}
	if m.policy.Confirm {
		r.Evidence = m.evidence(j)
		if j.finding != Unverified && j.kind != Duration {
			r.Witness = "stream and tree"
		}
	}
	r.Summary = r.summary()
	if fact := r.telling(j.state); fact != "" {
		r.Summary += "; " + fact
	}
	return r
}

// lastName is the name of the last whole line, or empty before it.
func (m *Monitor) lastName() string {
	if m.lastEvent.Equal(m.start) && m.last == (events.Event{}) {
		return ""
	}
	return m.last.Name()
}

func (m *Monitor) limit(kind Kind, deadline time.Time) Span {
	switch kind {
	case Startup:
		return Span(m.policy.Startup)
	case Work:
		return Span(m.policy.Background)
	case Reconnect:
		return Span(m.policy.Reconnect)
	case Duration:
		return Span(m.policy.Max)
	case Tool:
		for _, c := range m.open {
			if d := m.callDeadline(c); d.Equal(deadline) {
				return Span(d.Sub(c.start))
			}
		}
	}
	return Span(m.policy.Idle)
}

func (r *Reason) summary() string {
	switch r.Kind {
	case Startup:
		return fmt.Sprintf("not one line in the %s since the start", r.Elapsed)
	case Tool:
		return plural(len(r.OpenCalls), "open tool call") + " past the deadline: " + list(r.OpenCalls)
	case Work:
		return fmt.Sprintf("silent for %s while background work is unfinished: %s", r.Silence, list(r.Background))
	case Reconnect:
		return fmt.Sprintf("no progress for %s, only %s", r.NoProgress, plural(r.Attempts, "reconnection event"))
	case Duration:
		return fmt.Sprintf("the run took its whole time of %s, in phase %s", r.Limit, r.Phase)
	}
	return fmt.Sprintf("idle %s, 0 open tool calls, last event %s", r.Silence, r.LastEvent)
}

func list(calls []Call) string {
	var b strings.Builder
	for i, c := range calls {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(calls)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %q for %s", c.Tool, c.Argument, c.Elapsed)
		if c.Declared > 0 {
			fmt.Fprintf(&b, " (declared %s)", c.Declared)
		}
	}
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
