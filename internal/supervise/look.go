package supervise

import (
	"fmt"
	"log/slog"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// sampleDue is when the tree is to be looked at next; zero while it is not, or
// while somebody looks.
func (t *turn) sampleDue() time.Time {
	if t.child.Sample == nil || t.looking || t.ladder || t.gone || !t.paused.IsZero() {
		return time.Time{}
	}
	due := t.mon.Sample()
	if !t.askDue.IsZero() && (due.IsZero() || t.askDue.Before(due)) {
		due = t.askDue
	}
	return due
}

// look has the tree looked at by somebody who may wait: to read about a process
// in uninterruptible sleep can take as long as that. Whoever has not come back
// by a tick after the deadline is not waited for.
func (t *turn) look(now time.Time) {
	t.looking, t.silent = true, t.mon.Silence()
	deadline := t.mon.Deadline()
	late := !deadline.IsZero() && !now.Before(deadline)
	explain := late || !t.askDue.IsZero()
	t.askDue = time.Time{}
	go func() {
		defer func() {
			if r := recover(); r != nil { // what only helps to judge must not end the run
				t.looks <- tree.Snapshot{At: now, Blind: fmt.Sprint("internal error: ", r)}
			}
		}()
		t.looks <- t.child.Sample(now, late, explain)
	}()
}

// onLook tells the monitor what the tree did.
func (t *turn) onLook(snap *tree.Snapshot) {
	t.looking, t.stale = false, true
	if t.ladder || t.gone {
		return
	}
	if !t.paused.IsZero() {
		t.watch.Reset() // who is frozen shows nothing
		return
	}
	if t.mon.Samples() == 0 {
		t.watch.Reset()
	}
	a := t.watch.Next(snap, t.calls(snap.At))
	t.asks(&a)
	if t.mon.Silence() != t.silent {
		t.watch.Reset() // a line came meanwhile: another silence
		return
	}
	t.stops(snap.At, &a)
	t.mon.Sampled(snap.At, &a)
	kept := a
	kept.Procs = nil // who waits for what stands in the verdict
	t.Log.Record(snap.At, slog.LevelDebug, "sample", attrs(&kept)...)
	t.judge(snap.At)
}

// stops forgives the time in which the agent was stopped, once it goes on: a
// stop is no hang, and who goes on has to find its feet. A person cannot put a
// verdict off by it for longer than by work.
func (t *turn) stops(at time.Time, a *tree.Activity) {
	switch {
	case len(a.Stopped) > 0 && t.stopped.IsZero():
		t.stopped = at
	case len(a.Stopped) == 0 && !t.stopped.IsZero():
		from := t.stopped
		t.stopped = time.Time{}
		if t.rested += at.Sub(from); t.rested <= t.Policy.Busy {
			t.hold(from, at, "the agent was stopped")
		}
	}
}

const (
	// askGrace is how long after a word on the agent's terminal somebody is
	// taken to wait for the answer to it.
	askGrace = 300 * time.Millisecond
	// askAgain is how often is looked at somebody who waits.
	askAgain = time.Second
)

// asks tells who is blocked reading the terminal.
func (t *turn) asks(a *tree.Activity) {
	if t.Asks == nil {
		return
	}
	if len(a.Asking) > 0 {
		t.askDue = t.Now().Add(askAgain)
	}
	var who string
	for i := range a.Asking {
		who += a.Asking[i].String() + "\n"
	}
	if who == t.asking {
		return
	}
	t.asking = who
	for i := range a.Asking {
		t.Log.Record(t.Now(), slog.LevelInfo, "asking", slog.Int("pid", a.Asking[i].PID), slog.String("command", a.Asking[i].Command))
	}
	t.Asks(a.Asking)
}

// judge asks for the verdict at the given moment and acts on it.
func (t *turn) judge(at time.Time) {
	v := t.mon.Judge(at)
	t.doubted(at, &v)
	if v.State == monitor.Hung || v.State == monitor.Overdue {
		if !t.lookAgain(at) {
			return
		}
		v = t.mon.Judge(t.judged)
	}
	t.act(&v)
}

// act does what a verdict says.
func (t *turn) act(v *monitor.Verdict) {
	t.judged = time.Time{}
	now := t.Now()
	switch v.State {
	case monitor.Lingering:
		t.Log.Record(now, slog.LevelInfo, "lingering", slog.Int("pid", t.child.PID()))
		t.end(nil)
	case monitor.Hung:
		t.Log.Record(now, slog.LevelError, "hang_detected", attrs(v.Reason)...)
		t.Say("hang detected, ending the agent: " + v.Reason.Summary)
		t.explain(v.Reason)
		t.end(&cause{outcome: Hang, subtype: "hang", message: v.Reason.Summary, reason: v.Reason})
	case monitor.Overdue:
		t.Log.Record(now, slog.LevelError, "duration_exceeded", attrs(v.Reason)...)
		t.Say("ending the agent: " + v.Reason.Summary)
		t.end(&cause{outcome: Overtime, subtype: "duration", message: v.Reason.Summary, reason: v.Reason})
	}
}

// doubted tells of a deadline that has passed without a verdict, once for each
// reason, and of its end.
func (t *turn) doubted(at time.Time, v *monitor.Verdict) {
	finding := monitor.Waiting
	if v.State == monitor.Suspected {
		finding = v.Reason.Evidence.Finding
	}
	switch {
	case finding == t.doubt:
	case finding != monitor.Waiting:
		t.Log.Record(at, slog.LevelWarn, "suspected", attrs(v.Reason)...)
		if t.doubts++; t.doubts > mostDoubts {
			break
		}
		t.Say(fmt.Sprintf("past its deadline, but waited for, at most %s: %s",
			monitor.Span(v.Reason.Deadline.Add(t.Policy.Busy).Sub(at)), v.Reason.Summary))
	case v.State == monitor.Fine:
		t.Log.Record(at, slog.LevelInfo, "suspicion_lifted", slog.String("finding", string(t.doubt)))
	}
	t.doubt = finding
}

// calls are the open ones. A process ages while the machine sleeps, a call by our
// clock does not.
func (t *turn) calls(at time.Time) []tree.Call {
	calls := t.mon.Calls(at)
	for i := range calls {
		calls[i].Age += tree.Span(t.slept - t.sleptBefore)
	}
	return calls
}

// mostDoubts is how many suspicions of a turn are told to a person.
const mostDoubts = 5

// mostTold is how many processes of a verdict are shown to a person; the log
// has them all.
const mostTold = 8

// explain says what the processes of a hung agent wait for.
func (t *turn) explain(r *monitor.Reason) {
	if r.Evidence == nil || r.Evidence.Tree == nil {
		return
	}
	procs := r.Evidence.Tree.Procs
	for i := range procs {
		if i == mostTold && len(procs) > mostTold+1 {
			t.Say(fmt.Sprintf("  and %d more processes", len(procs)-i))
			return
		}
		t.Say("  " + procs[i].Story())
	}
}
