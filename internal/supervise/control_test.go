package supervise

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
)

// pausable is a rig whose tree notes how it was paused.
func pausable(r *rig) *[]string {
	var notes []string
	r.cfg.Control = NewControl() // its channels belong into the bubble
	launch := r.cfg.Launch
	r.cfg.Launch = func(ctx context.Context) (Child, error) {
		c, err := launch(ctx)
		c.Pause = func() error { notes = append(notes, "paused"); return nil }
		c.Resume = func() error { notes = append(notes, "resumed"); return nil }
		return c, err
	}
	return &notes
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Error(err)
	}
}

func (r *rig) view() View {
	r.t.Helper()
	v, err := r.cfg.Control.View(context.Background())
	r.must(err)
	return v
}

// TestAPauseCountsForNoDeadline: ten hours of it leave the silence where it was.
func TestAPauseCountsForNoDeadline(t *testing.T) {
	var notes *[]string
	newTurn(t, func(r *rig) { notes = pausable(r); r.cfg.Policy.Max = time.Hour }, func(r *rig) {
		ctl := r.cfg.Control
		r.emit(initLine)
		r.after(30 * time.Second)
		r.must(ctl.Pause(context.Background(), 7))
		if err := ctl.Pause(context.Background(), 7); !errors.Is(err, process.ErrPaused) {
			t.Errorf("a second pause: %v", err)
		}
		r.after(10 * time.Hour)
		v := r.view()
		if v.Paused.Sub(r.began) != 30*time.Second || v.PausedBy != 7 || v.Progress.Silence != monitor.Span(30*time.Second) {
			t.Errorf("paused since %s by %d, silent for %s", v.Paused.Sub(r.began), v.PausedBy, v.Progress.Silence)
		}
		r.must(ctl.Unpause(context.Background(), 7))
		if err := ctl.Unpause(context.Background(), 7); err == nil {
			t.Error("it could be unpaused twice")
		}
		if v := r.view(); !v.Paused.IsZero() || v.Progress.Silence != monitor.Span(30*time.Second) {
			t.Errorf("after the pause: %v, silent for %s", v.Paused, v.Progress.Silence)
		}
	}, func(r *rig) {
		r.outcome(Hang, 2)
		r.took(10*time.Hour + 30*time.Second + secondLook)
		if got := r.report.Silence; got < time.Minute || got > time.Minute+time.Second {
			t.Errorf("the longest silence was %s, want a minute", got)
		}
		if !slices.Equal(*notes, []string{"paused", "resumed"}) {
			t.Error(*notes)
		}
		for _, msg := range []string{"paused", "held", "unpaused"} {
			if n := len(r.log.all(msg)); n != 1 {
				t.Errorf("%d %s records", n, msg)
			}
		}
	})
}

// TestWhoIsPausedCanBeEnded: by a signal, and by its own exit.
func TestWhoIsPausedCanBeEnded(t *testing.T) {
	ends := map[string]struct {
		end     func(*rig)
		outcome Outcome
		code    int
	}{
		"a signal": {func(r *rig) { r.stop <- syscall.SIGTERM }, Stopped, 143},
		"its exit": {func(r *rig) { r.leave(1) }, Failed, 1},
	}
	for name, e := range ends {
		t.Run(name, func(t *testing.T) {
			newTurn(t, func(r *rig) { pausable(r) }, func(r *rig) {
				r.emit(initLine)
				r.after(10 * time.Second)
				r.must(r.cfg.Control.Pause(context.Background(), 0))
				r.after(time.Hour)
				e.end(r)
				if e.outcome == Stopped {
					r.leave(0)
				}
			}, func(r *rig) {
				r.outcome(e.outcome, e.code)
				if len(r.log.all("held")) != 1 {
					t.Error("the pause is not told as held time, so a replay would find a hang in it")
				}
			})
		})
	}
}

// TestAPauseThatFailsIsNone: the deadline stands.
func TestAPauseThatFailsIsNone(t *testing.T) {
	newTurn(t, func(r *rig) {
		pausable(r)
		launch := r.cfg.Launch
		r.cfg.Launch = func(ctx context.Context) (Child, error) {
			c, err := launch(ctx)
			c.Pause = func() error { return errors.New("it does not stop") }
			return c, err
		}
	}, func(r *rig) {
		r.emit(initLine)
		r.after(10 * time.Second)
		if err := r.cfg.Control.Pause(context.Background(), 0); err == nil || !strings.Contains(err.Error(), "does not stop") {
			t.Error(err)
		}
		if v := r.view(); !v.Paused.IsZero() {
			t.Error("it says that it is paused")
		}
	}, func(r *rig) {
		r.outcome(Hang, 2)
		r.took(60*time.Second + secondLook)
	})
}

// TestNobodyAnswersForATurnThatIsOver: whoever asks too late is told so.
func TestNobodyAnswersForATurnThatIsOver(t *testing.T) {
	newTurn(t, func(r *rig) { pausable(r) }, func(r *rig) {
		r.emit(initLine, okLine)
		r.leave(0)
	}, func(r *rig) {
		r.outcome(Success, 0)
		if _, err := r.cfg.Control.View(context.Background()); !errors.Is(err, ErrOver) {
			t.Error(err)
		}
	})
}

// TestAPauseUnderWay: nobody can undo it halfway, and one that comes too late
// does not outlive the turn.
func TestAPauseUnderWay(t *testing.T) {
	for _, ends := range []bool{false, true} {
		var notes *[]string
		newTurn(t, func(r *rig) {
			notes = pausable(r)
			launch := r.cfg.Launch
			r.cfg.Launch = func(ctx context.Context) (Child, error) {
				c, err := launch(ctx)
				pause := c.Pause
				c.Pause = func() error { time.Sleep(time.Second); return pause() }
				return c, err
			}
		}, func(r *rig) {
			r.emit(initLine)
			r.after(10 * time.Second)
			paused := make(chan error)
			go func() { paused <- r.cfg.Control.Pause(context.Background(), 0) }()
			r.after(10*time.Second + 500*time.Millisecond)
			if err := r.cfg.Control.Unpause(context.Background(), 0); err == nil {
				t.Error("it was let go on before it was frozen")
			}
			if ends {
				r.leave(1)
			}
			if err := <-paused; (err != nil) != ends {
				t.Errorf("ending %v: %v", ends, err)
			}
			if ends && !slices.Equal(*notes, []string{"paused", "resumed"}) {
				t.Errorf("a pause that came too late: %v", *notes)
			}
			if !ends {
				r.must(r.cfg.Control.Unpause(context.Background(), 0))
				r.emit(okLine)
				r.leave(0)
			}
		}, func(r *rig) {
			if !ends && !slices.Equal(*notes, []string{"paused", "resumed"}) {
				t.Error(*notes)
			}
			for _, rec := range r.log.all("paused") {
				if ends {
					t.Errorf("it is told as paused: %+v", rec)
				}
			}
		})
	}
}
