package tree

import "time"

// Watch compares one snapshot with the one before, silence by silence. The zero
// value is ready. Its memory: the last snapshot, which process runs which call,
// and since when each has used no CPU.
type Watch struct {
	at    time.Time        // of the last snapshot, a blind one too
	last  *table           // the last one that saw anything
	still map[ID]time.Time // since when each process has used no CPU
	cpu   ledger
	disk  ledger
	links map[string]*link // by call
	apart map[ID]bool      // who was forgotten at the last look
}

// Next takes the next snapshot and says what happened since the last one. Open
// calls and background work are linked to the processes that run them. It keeps
// the snapshot until the next one: nobody may change it from here on.
//
// After a blind snapshot the next one is compared with the last that saw, so
// that what happened meanwhile is told late rather than never.
func (w *Watch) Next(cur *Snapshot, calls []Call) Activity {
	span := w.advance(cur.At)
	w.drop(calls)
	if cur.Blind != "" {
		return blind(span, cur.Blind, calls)
	}
	c := newChange(w.last, index(cur, w.last))
	w.last = c.now
	w.rest(c)

	owners := w.link(c.now, calls)
	c.were, c.apart = w.apart, w.forget(c.now, calls, owners)
	c.runs = map[ID]bool{}
	for _, known := range w.links {
		c.runs[known.id] = true
	}
	a := Activity{Span: span, Full: cur.Full}
	c.count(&a)
	a.CPU, a.Disk = c.cpu(&w.cpu), c.disk(&w.disk)
	a.OwnCPU = c.ownSession()
	a.Received, a.Sent, a.OneWay = c.network()
	v := view{change: c, still: w.still, calls: calls, links: w.links, owners: owners}
	v.show(&a)
	return a
}

// Reset forgets everything but which process runs which call: a new silence
// begins.
func (w *Watch) Reset() { *w = Watch{links: w.links, apart: w.apart} }

// advance is the time since the last snapshot.
func (w *Watch) advance(at time.Time) Span {
	var d time.Duration
	if !w.at.IsZero() {
		d = at.Sub(w.at)
	}
	w.at = at
	return span(max(0, d))
}

// rest notes who has used CPU since the last look. One that cannot be read may
// have.
func (w *Watch) rest(c *change) {
	still := make(map[ID]time.Time, len(c.now.rows))
	for _, r := range c.now.rows {
		still[r.ID] = c.now.snap.At
		before := c.before(r)
		if since, ok := w.still[r.ID]; ok && before != nil && r.CPU >= 0 && r.CPU == before.CPU {
			still[r.ID] = since
		}
	}
	w.still = still
}

// blind is all that can be said when nothing was seen.
func blind(span Span, why string, calls []Call) Activity {
	a := Activity{Span: span, Blind: why, CPU: Unknown, Disk: Unknown, Received: Unknown, Sent: Unknown, OneWay: Unknown}
	for _, c := range calls {
		a.Runners = append(a.Runners, Runner{Call: c.ID, Fate: Unseen})
	}
	return a
}

// span is a duration as it will come back from a log, in whole milliseconds;
// a negative one is unknown.
func span(d time.Duration) Span {
	if d < 0 {
		return Unknown
	}
	return Span(d.Truncate(time.Millisecond))
}
