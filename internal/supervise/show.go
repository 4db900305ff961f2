package supervise

import (
	"time"

	"cursor-wrap/internal/monitor"
)

const (
	// showEvery is the shortest time between two looks that a person gets.
	showEvery = 100 * time.Millisecond
	// showTime is how often the time alone is news.
	showTime = time.Second
)

// show shows where the turn stands, if it is time.
func (t *turn) show() {
	if t.Show == nil {
		return
	}
	now := t.Now()
	least := showTime
	if t.stale {
		least = showEvery
	}
	if t.ladder || now.Sub(t.shown) < least {
		return
	}
	t.shown, t.stale = now, false
	t.Show(t.mon.Progress(t.moment(now)))
}

// showDue is when there is something to show; zero while there is not.
func (t *turn) showDue() time.Time {
	switch {
	case t.Show == nil || t.ladder:
		return time.Time{}
	case t.stale:
		return t.shown.Add(showEvery)
	case t.mon.Phase() == monitor.Draining:
		return time.Time{}
	}
	return t.shown.Add(showTime)
}
