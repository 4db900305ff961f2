package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/tree"
)

// Control is how others look at a turn under way, and pause it. The turn's
// owner answers between two of its own steps; nobody else ever touches its
// state. A Control is of one turn.
type Control struct {
	asked chan func(*turn)
	over  chan struct{} // closed when nobody answers any more
}

// NewControl makes the Control of a turn that is about to begin.
func NewControl() *Control {
	return &Control{asked: make(chan func(*turn)), over: make(chan struct{})}
}

// ErrOver says that the turn has ended.
var ErrOver = errors.New("the turn is over")

// View is a turn under way as it stands.
type View struct {
	At       time.Time       // of the turn's own clock
	Progress *monitor.Reason // what is open, how long it is silent, when that will be too long
	Ending   bool            // the tree is being torn down
	Paused   time.Time       // since when it is; zero while it is not
	PausedBy int             // the uid of who asked for it
	Held     time.Time       // since when the reader of our stdout, or the log's disk, holds us up; zero while nobody does
	Calls    []tree.Call     // the open ones and the background work, for finding who runs them
	Counts   Counts
}

// View looks. It waits for the owner as long as ctx allows.
func (c *Control) View(ctx context.Context) (v View, err error) {
	err = c.ask(ctx, func(t *turn) {
		now := t.Now()
		at := t.moment(now)
		v = View{
			At: now, Progress: t.mon.Progress(at), Ending: t.ladder, Paused: t.paused, PausedBy: t.pausedBy,
			Held: t.pump.heldSince(now), Calls: t.calls(at), Counts: t.report.Counts,
		}
	})
	return v, err
}

// Pause freezes the tree for the user with that id. Until Unpause nothing is
// judged, and the time counts for no deadline.
func (c *Control) Pause(ctx context.Context, by int) error {
	var child Child
	err := c.change(ctx, func(t *turn) error {
		switch {
		case t.ladder:
			return process.ErrEnding
		case t.child.Pause == nil:
			return errors.New("its agent cannot be paused now")
		case t.pausing || !t.paused.IsZero():
			return process.ErrPaused
		}
		t.pausing, t.paused, t.pausedBy, child = true, t.Now(), by, t.child
		return nil
	})
	if err != nil {
		return err
	}
	failed := child.Pause() // here, because it can take a second
	err = c.change(context.WithoutCancel(ctx), func(t *turn) error {
		t.pausing = false
		switch {
		case failed != nil:
			t.goOn(t.Now())
			return failed
		case t.paused.IsZero(): // it has ended meanwhile
			return process.ErrEnding
		}
		t.Log.Record(t.paused, slog.LevelWarn, "paused", slog.Int("by", by))
		t.Say(fmt.Sprintf("paused by uid %d", by))
		return nil
	})
	if err != nil && failed == nil {
		_ = child.Resume() // nobody knows of this pause
	}
	return err
}

// Unpause lets the tree go on.
func (c *Control) Unpause(ctx context.Context, by int) error {
	var child Child
	err := c.change(ctx, func(t *turn) error {
		switch {
		case t.pausing:
			return errors.New("it is only being paused, or let go on")
		case t.paused.IsZero():
			return errors.New("it is not paused")
		}
		t.pausing, child = true, t.child
		return nil
	})
	if err != nil {
		return err
	}
	failed := child.Resume()
	return c.change(context.WithoutCancel(ctx), func(t *turn) error {
		t.pausing = false
		if failed != nil || t.paused.IsZero() {
			return failed
		}
		now := t.Now()
		t.goOn(now)
		t.Log.Record(now, slog.LevelInfo, "unpaused", slog.Int("by", by))
		t.Say(fmt.Sprintf("goes on, by uid %d", by))
		return nil
	})
}

// change has the owner do something that may be refused.
func (c *Control) change(ctx context.Context, do func(*turn) error) error {
	var refused error
	if err := c.ask(ctx, func(t *turn) { refused = do(t) }); err != nil {
		return err
	}
	return refused
}

// ask has the owner do something, and waits until it is done.
func (c *Control) ask(ctx context.Context, do func(*turn)) error {
	done := make(chan struct{})
	request := func(t *turn) {
		defer close(done)
		do(t)
	}
	select {
	case c.asked <- request:
		<-done
		return nil
	case <-c.over:
		return ErrOver
	case <-ctx.Done():
		return fmt.Errorf("the owner of the turn does not answer: %w", ctx.Err())
	}
}

// moment is the present, or when it was paused: time stands still since then.
func (t *turn) moment(now time.Time) time.Time {
	if !t.paused.IsZero() {
		return t.paused
	}
	return now
}

// goOn ends a pause, if there is one: nobody's time has run meanwhile.
func (t *turn) goOn(now time.Time) {
	from := t.paused
	if from.IsZero() {
		return
	}
	t.paused = time.Time{}
	t.hold(from, now, fmt.Sprintf("paused by uid %d", t.pausedBy))
}
