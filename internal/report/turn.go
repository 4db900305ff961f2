package report

import (
	"strings"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/format"
	"cursor-wrap/internal/monitor"
)

// turn is what is known of the present turn: its open items, by their index in
// the story, and what it has come to so far.
type turn struct {
	r     *reader
	index int
	mon   *monitor.Monitor
	line  time.Time // when the last one came
	last  time.Time // when anything was told of it
	over  time.Time // when no deadline counted any more; zero before
	done  bool      // its tree is gone

	open       map[string]int // calls
	limit      time.Duration  // the longest that one of the open calls may take
	background map[string]int
	notified   map[string]bool // before it was told of
	talk       *talk
	main       format.Speech
	children   map[string]*format.Speech // by the call of the subagent

	kept    Deadline // the last deadline of the story
	pending Deadline // the newest one, which may not be in the story

	outcome, message string // of what ended it; the first counts
	result           *bool  // whether it is an error
	left             int    // processes
	exit             string // of the agent
}

const (
	// mostOpen is how many open calls the monitor is told of: it looks at each
	// of them with each line.
	mostOpen = 256
	// mostVoices is how many subagents are listened to.
	mostVoices = 256
	// deadlineEvery is the time between two deadlines that a stream moves.
	deadlineEvery = 500 * time.Millisecond
)

func newTurn(r *reader, at time.Time, index int) *turn {
	t := &turn{
		r: r, index: index, mon: monitor.New(r.policy, at), line: at, last: at,
		open: map[string]int{}, background: map[string]int{}, notified: map[string]bool{}, children: map[string]*format.Speech{},
	}
	t.moved(at)
	return t
}

// heard takes a line, or a piece of one, for what it says about time.
func (t *turn) heard(at time.Time, ev *events.Event) {
	t.quiet(at)
	t.line = at
	t.seen(at)
	if !t.over.IsZero() {
		return
	}
	if len(t.open) >= mostOpen && ev.Kind == events.ToolStarted {
		ev = &events.Event{Kind: events.Unknown, Type: ev.Type, Subtype: ev.Subtype}
	}
	t.mon.Observe(at, ev)
	t.moved(at)
}

func (t *turn) seen(at time.Time) {
	if at.After(t.last) {
		t.last = at
	}
}

// quiet notes a silence that ends now, if it was one.
func (t *turn) quiet(at time.Time) {
	least := t.patience()
	if at.Sub(t.line) <= least {
		return
	}
	t.r.silences = append(t.r.silences, Item{Lane: Silence, Start: monitor.Millis{Time: t.line}, End: monitor.Millis{Time: at},
		Declared: monitor.Span(least), Detail: "in phase " + string(t.mon.Phase()), Turn: t.index, First: -1, Last: -1})
}

// patience is the length from which the absence of lines is worth telling.
func (t *turn) patience() time.Duration {
	const most, least = 5 * time.Second, 50 * time.Millisecond
	var limit time.Duration
	switch p := &t.r.policy; t.mon.Phase() {
	case monitor.Starting:
		limit = p.Startup
	case monitor.Thinking:
		limit = p.Idle
	case monitor.Tools:
		limit = t.limit
	case monitor.Background:
		limit = p.Background
	case monitor.Reconnecting:
		limit = p.Reconnect
	case monitor.Draining:
		limit = p.ExitGrace
	}
	if limit <= 0 {
		return most
	}
	return max(min(most, limit/3), least)
}

// moved notes a deadline that is another than before.
func (t *turn) moved(at time.Time) {
	d := Deadline{At: monitor.Millis{Time: at}, Until: monitor.Millis{Time: t.mon.Deadline()}, Phase: t.mon.Phase()}
	p := &t.pending
	if !p.At.IsZero() && d.Phase == p.Phase && d.Until.Equal(p.Until.Time) {
		return
	}
	if d.Phase != p.Phase || at.Sub(p.At.Time) >= deadlineEvery || p.At.Sub(t.kept.At.Time) >= deadlineEvery {
		t.flush()
	}
	t.pending = d
}

// flush puts the newest deadline into the story.
func (t *turn) flush() {
	if !t.pending.At.IsZero() && t.pending != t.kept {
		t.kept = t.pending
		t.r.story.Deadlines = append(t.r.story.Deadlines, t.kept)
	}
}

// ends notes that from now on no deadline counts.
func (t *turn) ends(at time.Time) {
	if !t.over.IsZero() {
		return
	}
	if at.Before(t.line) {
		at = t.line
	}
	t.quiet(at)
	t.over = at
	t.flush()
	t.pending = Deadline{At: monitor.Millis{Time: at}, Phase: t.mon.Phase()}
	t.flush()
}

func (t *turn) hold(from, to time.Time) {
	t.mon.Held(from, to)
	if t.over.IsZero() {
		t.moved(to)
	}
}

// verdict takes the decision that ends the turn.
func (t *turn) verdict(at time.Time, msg string, reason *monitor.Reason) {
	t.seen(at)
	outcome := "hang"
	if msg == "duration_exceeded" {
		outcome = "duration"
	}
	t.cause(outcome, reason.Summary)
	t.ends(at)
}

func (t *turn) cause(outcome, message string) {
	if t.outcome == "" {
		t.outcome, t.message = outcome, message
	}
}

// decision takes what else tells why a turn ended.
func (t *turn) decision(at time.Time, msg string, f fields) {
	if !t.done {
		t.seen(at)
	}
	switch msg {
	case "signal":
		t.cause("signal", "stopped by "+f.str("signal"))
	case "killed":
		t.cause("signal", "told to end"+who(f))
	case "limit_exceeded":
		t.cause("error", f.str("summary"))
	case "spawn_failed":
		t.cause("error", f.str("error"))
	case "stdout_failed":
		why := f.str("error")
		if strings.Contains(why, "broken pipe") {
			t.cause("signal", "the reader of stdout has left")
		} else {
			t.cause("error", "write stdout: "+why)
		}
	case "result":
		if t.result == nil {
			failed := f.str("is_error") == "true"
			t.result = &failed
		}
		return
	case "agent_exit", "lingering":
	default:
		return
	}
	t.ends(at)
}

func (t *turn) torn(at time.Time, td *Teardown) {
	t.seen(at)
	t.ends(at)
	t.done, t.left, t.exit = true, len(td.Left), td.Exit
}

// finish ends the turn with all that is open in it.
func (t *turn) finish() {
	t.hush()
	end := monitor.Millis{Time: t.last}
	if t.over.IsZero() {
		t.quiet(t.last)
		t.flush()
	}
	for _, list := range []map[string]int{t.open, t.background} {
		for _, i := range list {
			if item := &t.r.story.Items[i]; end.After(item.Start.Time) {
				item.End = end
			}
		}
	}
	turn := &t.r.story.Turns[t.index]
	turn.End = end
	turn.Outcome, turn.Message = t.verdictOf()
}

// verdictOf is how the turn came out, and why.
func (t *turn) verdictOf() (outcome, message string) {
	switch {
	case t.result != nil && *t.result && t.outcome == "signal": // its answer to our asking it to stop
	case t.result != nil && *t.result:
		return "error", "the agent's result is an error"
	case t.result != nil && t.left > 0:
		return "survivors", "the result is there, but " + plural(t.left, "process") + " could not be ended"
	case t.result != nil:
		return "success", ""
	}
	switch {
	case t.outcome != "":
		return t.outcome, t.message
	case t.done:
		return "error", "the agent ended without a result (" + t.exit + ")"
	}
	return killed, noEnd
}

// killed is the outcome of what has no end.
const (
	killed = "killed"
	noEnd  = "the log has no end: the wrapper was killed, or the run still goes on"
)
