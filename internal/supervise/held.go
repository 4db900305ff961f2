package supervise

import (
	"log/slog"
	"time"
)

// arm sets the timer to the next moment at which there is something to decide,
// and to the next tick at the latest.
func (t *turn) arm(now time.Time) {
	t.armed, t.due = now, now.Add(t.Tick)
	next := t.mon.Next(now)
	for _, due := range []time.Time{t.sampleDue(), t.showDue()} {
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	switch {
	case t.ladder, !t.paused.IsZero():
		next = time.Time{} // it has its own clock, and in a pause there is none
	case t.gone || t.eof && t.result == nil:
		next = t.endDue
	}
	if !next.IsZero() && next.Before(t.due) {
		t.due = next
	}
	if t.due.Before(t.rest) {
		t.due = t.rest
	}
	t.timer.Reset(max(t.due.Sub(now), time.Millisecond))
}

// woke notices that the machine stood still: we were stopped, or starved,
// asleep or at work. No deadline counts the time since we were last known to
// live. What was received before it is told before it, and what the pump has
// received but not handed over counts from its end.
func (t *turn) woke() {
	t.suspended()
	now := t.Now()
	from := t.awake
	late := now.Sub(t.due) > lateFloor || t.armed.Sub(t.awake) > lateFloor
	t.awake = now
	if !late {
		return
	}
	for len(t.pump.batches) > 0 {
		b, ok := <-t.pump.batches
		if !ok {
			break
		}
		t.batch(b, true)
	}
	if since := t.pump.busy.Load(); since != 0 && since < from.UnixMilli() {
		from = time.UnixMilli(since).UTC()
	}
	t.hold(from, now, "late wake-up")
}

// suspended notices that the machine slept. Our clock stood still meanwhile, but
// the silence before says nothing about an agent that finds its connections
// gone: it counts anew.
func (t *turn) suspended() {
	if t.Slept == nil {
		return
	}
	total := t.Slept()
	if slept := total - t.slept; slept >= lateFloor {
		t.slept = total
		t.hold(t.seen, t.Now(), "the machine was suspended for "+slept.Round(time.Second).String())
	}
}

// hold tells the monitor of a time in which nobody read the stream.
func (t *turn) hold(from, to time.Time, by string) {
	if from.Before(t.held) {
		from = t.held
	}
	if !to.After(from) {
		return
	}
	t.held = to
	t.mon.Held(from, to)
	if !t.endDue.IsZero() {
		t.endDue = t.endDue.Add(to.Sub(from))
	}
	t.Log.Record(to, slog.LevelWarn, "held",
		slog.Int64("from", from.UnixMilli()), slog.Int64("to", to.UnixMilli()), slog.String("by", by))
}

// pumpHeld tells of the time in which the disk or the reader of stdout has held
// the pump up so far.
func (t *turn) pumpHeld(now time.Time) {
	if from := t.pump.heldSince(now); !from.IsZero() {
		t.hold(from, now, "reader of stdout or log disk")
	}
}

// heldSince is since when the disk or the reader of stdout has held the pump up;
// zero while it is not, or for no time to speak of.
func (p *pump) heldSince(now time.Time) time.Time {
	if p == nil { // nobody reads yet
		return time.Time{}
	}
	if since := p.busy.Load(); since != 0 {
		if from := time.UnixMilli(since).UTC(); now.Sub(from) >= held {
			return from
		}
	}
	return time.Time{}
}

// lookAgain reports whether a verdict may be acted on: all that was received up
// to the moment in which a deadline was first seen to have passed has been told
// to the monitor. An agent that writes without end puts nothing off.
func (t *turn) lookAgain(now time.Time) bool {
	switch {
	case t.judged.IsZero():
		t.judged, t.rest = now, t.Now().Add(secondLook)
		return false
	case t.seen.After(t.judged), t.read(): // in the same millisecond more may come
		return true
	}
	t.rest = t.Now().Add(held)
	return false
}

// read reports whether nothing is on its way from the agent to the monitor.
func (t *turn) read() bool {
	if t.pump.busy.Load() != 0 || len(t.pump.batches) > 0 {
		return false
	}
	if t.eof {
		return true
	}
	n, err := t.child.Stdout.Buffered()
	return err != nil || n == 0
}
