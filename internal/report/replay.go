// Package report makes something to read out of a session log. It starts
// nothing and changes nothing.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// Moment is one thing that a replay came by.
type Moment struct {
	At       monitor.Millis  `json:"at,omitzero"`        // unset for what is torn
	Elapsed  monitor.Span    `json:"elapsed_ms"`         // since the start of the turn
	What     string          `json:"what"`               // start, phase, held, suspected, exit, verdict, recorded, end
	Phase    monitor.Phase   `json:"phase,omitempty"`    // of the agent, from then on
	Deadline *monitor.Millis `json:"deadline,omitempty"` // of that phase
	Text     string          `json:"text,omitempty"`     // for a person
	Reason   *monitor.Reason `json:"reason,omitempty"`   // of a verdict
}

// Replay feeds a recorded session log to the monitor and tells what it says,
// moment by moment. The thresholds are the recorded ones after adjust. It
// returns an error if the log holds no run or cannot be read; torn records are
// told and passed over.
func Replay(log io.Reader, adjust func(*monitor.Policy), tell func(Moment)) error {
	facts, policy, err := read(log, tell)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(facts, func(f fact) bool { return f.what == turnStart }) {
		return errors.New("no turn in it: is it a session log, kept at level debug?")
	}
	adjust(&policy)
	// The log has decisions a little after what they are about; what counts is
	// the time of the fact.
	slices.SortStableFunc(facts, func(a, b fact) int { return a.at.Compare(b.at) })
	p := &replay{policy: policy, tell: tell}
	for i := range facts {
		p.take(&facts[i])
	}
	p.finish()
	return nil
}

// nobody is the doubt of a monitor that has none.
const nobody = monitor.Finding("none")

// The facts that a replay goes by.
const (
	turnStart = "start"
	line      = "line"
	held      = "held"
	sampled   = "sample"
	exited    = "exit"
	recorded  = "recorded"
	torn      = "torn"
	ended     = "end"
)

type fact struct {
	at     time.Time
	what   string
	event  events.Event    // of line
	to     time.Time       // of held
	text   string          // of held, exited, ended
	reason *monitor.Reason // of recorded
	tree   tree.Activity   // of sampled
}

// read turns records into facts, and lines in pieces into whole ones.
func read(log io.Reader, tell func(Moment)) ([]fact, monitor.Policy, error) {
	policy := monitor.Default()
	var facts []fact
	var lines pieces
	for rec, err := range journal.Read(log) {
		if err != nil {
			var bad *journal.TornError
			if !errors.As(err, &bad) {
				return nil, policy, err
			}
			tell(Moment{What: torn, Text: err.Error()})
			continue
		}
		switch {
		case rec.IsRaw():
			ev, _, _, _ := lines.take(&rec)
			facts = append(facts, fact{at: rec.Recv, what: line, event: ev})
		case rec.Msg == "run_start":
			var f struct{ Policy *monitor.Policy }
			f.Policy = &policy
			if err := json.Unmarshal(rec.Fields, &f); err != nil {
				return nil, policy, fmt.Errorf("run_start: %w", err)
			}
		default:
			if f, ok := decision(&rec); ok {
				facts = append(facts, f)
			}
		}
	}
	return facts, policy, nil
}

// decision is the fact in a decision record, if a replay goes by it.
func decision(rec *journal.Record) (fact, bool) {
	f := fact{at: rec.At}
	var fields struct {
		From, To          monitor.Millis
		By, Exit, Outcome string
		Message           string
		ExitCode          int `json:"exit_code"`
	}
	if json.Unmarshal(rec.Fields, &fields) != nil {
		return f, false
	}
	switch rec.Msg {
	case "turn_start":
		f.what = turnStart
	case "held":
		f.what, f.at, f.to, f.text = held, fields.From.Time, fields.To.Time, fields.By
	case "sample":
		f.what = sampled
		if json.Unmarshal(rec.Fields, &f.tree) != nil {
			return f, false
		}
	case "agent_exit":
		f.what = exited
	case "hang_detected", "duration_exceeded":
		f.what, f.reason = recorded, new(monitor.Reason)
		if json.Unmarshal(rec.Fields, f.reason) != nil {
			return f, false
		}
	case "lingering":
		f.what, f.text = recorded, "lingering after the result"
	case "run_end":
		f.what = ended
		f.text = fmt.Sprintf("%s, exit code %d", fields.Outcome, fields.ExitCode)
	default:
		return f, false
	}
	return f, true
}

// replay is the monitor of the present turn and what was told of it.
type replay struct {
	policy monitor.Policy
	tell   func(Moment)
	mon    *monitor.Monitor
	start  time.Time
	last   time.Time
	phase  monitor.Phase
	doubt  monitor.Finding // what the tree said last to a deadline that has passed
	over   bool            // the monitor has given its verdict, or the agent has left
}

func (p *replay) take(f *fact) {
	if f.what == turnStart {
		p.finish()
		*p = replay{policy: p.policy, tell: p.tell, mon: monitor.New(p.policy, f.at), start: f.at, last: f.at, doubt: nobody}
		p.say(f.at, turnStart, "")
		p.transition(f.at)
		return
	}
	if p.mon == nil {
		return
	}
	before := f.at
	if f.what == sampled || f.what == line {
		before = before.Add(-time.Millisecond) // what comes at the deadline is heard before it is judged
	}
	p.advance(before)
	p.last = f.at
	switch f.what {
	case line:
		p.mon.Observe(f.at, &f.event)
		p.transition(f.at)
	case sampled:
		p.mon.Sampled(f.at, &f.tree)
		p.judge(f.at)
	case held:
		p.mon.Held(f.at, f.to)
		p.say(f.at, held, fmt.Sprintf("nobody listened for %s (%s)", monitor.Span(f.to.Sub(f.at)), f.text))
	case exited:
		p.say(f.at, exited, "the agent's process ended")
		p.over = true
	case recorded:
		m := p.moment(f.at, recorded, f.text)
		if m.Reason = f.reason; f.reason != nil {
			m.Text = string(f.reason.Kind) + ": " + f.reason.Summary
		}
		p.tell(m)
	case ended:
		p.say(f.at, ended, f.text)
	}
}

// advance lets the time pass up to the given moment, from one moment to the
// next at which the monitor may have something to say.
func (p *replay) advance(to time.Time) {
	for at := p.last; !p.over; {
		next := p.mon.Next(at)
		if next.IsZero() || next.After(to) {
			return
		}
		p.judge(next)
		at = next
	}
}

// judge tells the first verdict, and on the way to it what puts it off.
func (p *replay) judge(at time.Time) {
	v := p.mon.Judge(at)
	if p.over || v.State == monitor.Fine {
		p.doubt = nobody
		return
	}
	what, text := "verdict", string(v.State)
	if p.over = v.State != monitor.Suspected; !p.over {
		if what = "suspected"; v.Reason.Evidence.Finding == p.doubt {
			return
		}
		p.doubt = v.Reason.Evidence.Finding
		if text = string(p.doubt); p.doubt == monitor.Waiting {
			text = "the tree was not looked at then"
		}
	}
	m := p.moment(at, what, text)
	if m.Reason = v.Reason; v.Reason != nil {
		m.Text += ", " + string(v.Reason.Kind) + ": " + v.Reason.Summary
	}
	p.tell(m)
}

func (p *replay) transition(at time.Time) {
	phase := p.mon.Phase()
	if phase == p.phase {
		return
	}
	p.phase = phase
	p.say(at, "phase", "")
}

// finish tells what would have come, had the recording gone on.
func (p *replay) finish() {
	if p.mon == nil || p.over {
		return
	}
	text := "the recording stops here, without a verdict"
	if next := p.mon.Next(p.last); !next.IsZero() {
		text += fmt.Sprintf("; the next deadline is at %s", monitor.Span(next.Sub(p.start)))
	}
	p.say(p.last, "open", text)
}

func (p *replay) say(at time.Time, what, text string) { p.tell(p.moment(at, what, text)) }

func (p *replay) moment(at time.Time, what, text string) Moment {
	m := Moment{At: monitor.Millis{Time: at}, Elapsed: monitor.Span(at.Sub(p.start)), What: what, Phase: p.mon.Phase(), Text: text}
	if d := p.mon.Deadline(); !d.IsZero() {
		m.Deadline = &monitor.Millis{Time: d}
	}
	return m
}
