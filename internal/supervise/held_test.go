package supervise

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestHeldByReader: ten minutes in which the reader of stdout does not read are
// no silence of the agent's, and every millisecond of them is told once.
func TestHeldByReader(t *testing.T) {
	rows := []struct {
		name   string
		before []string // lines before the one that blocks
		line   string
		policy time.Duration // what remains after the hold
	}{
		{"thinking", []string{initLine}, thinkLine, 60 * time.Second},
		{"starting: the first line itself blocks", nil, initLine, 60 * time.Second},
		{"a call that is open", []string{initLine}, startLine, 120 * time.Second},
		{"draining", []string{initLine}, okLine, 5 * time.Second},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			const blocked = 10*time.Minute + 7*time.Millisecond
			newTurn(t, nil, func(r *rig) {
				r.emit(row.before...)
				r.after(3 * time.Second)
				release := r.sink.block()
				r.emit(row.line)
				r.after(3*time.Second + blocked)
				release()
			}, func(r *rig) {
				if sum, ok := r.log.held(); sum != blocked || !ok {
					t.Errorf("held records tell of %s (in order: %t), want %s", sum, ok, blocked)
				}
				want := 3*time.Second + blocked + row.policy
				if r.report.Outcome == Hang { // a verdict is looked at twice
					want += secondLook
				}
				if got := r.agent.asked.Sub(r.began); got != want {
					t.Errorf("ended after %s, want %s", got, want)
				}
			})
		})
	}
}

// TestHeldTwice: three long holds with short silences between them; only the
// silences count, and only the last one.
func TestHeldTwice(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		for i := range 3 {
			r.after(time.Duration(i) * 10 * time.Minute)
			release := r.sink.block()
			r.emit(thinkLine)
			r.emit(thinkLine)
			r.after(time.Duration(i)*10*time.Minute + 9*time.Minute + 30*time.Second)
			release()
		}
	}, func(r *rig) {
		r.outcome(Hang, 2)
		if sum, ok := r.log.held(); sum != 3*(9*time.Minute+30*time.Second) || !ok {
			t.Errorf("held %s, in order: %t", sum, ok)
		}
		r.took(30*time.Minute + 30*time.Second)
	})
}

// TestHeldByDisk: the log's disk stalls before anything is forwarded.
func TestHeldByDisk(t *testing.T) {
	newTurn(t, func(r *rig) {
		var once atomic.Bool
		r.log.committing = func() {
			if once.CompareAndSwap(false, true) {
				time.Sleep(10 * time.Minute)
			}
		}
	}, func(r *rig) { r.emit(initLine) }, func(r *rig) {
		if sum, ok := r.log.held(); sum != 10*time.Minute || !ok {
			t.Errorf("held %s, in order: %t", sum, ok)
		}
		all := r.log.all("held")
		if by := all[len(all)-1].fields()["by"]; by != "log disk" && by != "reader of stdout or log disk" {
			t.Errorf("held by %q", by)
		}
		r.took(11 * time.Minute)
	})
}

// TestShortWritesAreNotHeld: the normal work on a batch is no news.
func TestShortWritesAreNotHeld(t *testing.T) {
	newTurn(t, func(r *rig) {
		r.log.committing = func() { time.Sleep(held - time.Millisecond) }
	}, func(r *rig) { r.emit(initLine) }, func(r *rig) {
		if n := len(r.log.all("held")); n != 0 {
			t.Errorf("%d held records", n)
		}
	})
}

// jumping is a clock that can leap, as it does for a process that was stopped:
// its timers fire late, and between two of its steps an hour lies.
type jumping struct {
	now  func() time.Time
	leap atomic.Int64
}

func (j *jumping) Now() time.Time { return j.now().Add(time.Duration(j.leap.Load())) }

// TestStoodStill: wherever in the wait for the deadline the machine stands still
// for an hour, the agent has the rest of its time afterwards.
func TestStoodStill(t *testing.T) {
	for _, at := range []time.Duration{7 * time.Second, 31 * time.Second, 57 * time.Second, 59900 * time.Millisecond} {
		t.Run(at.String(), func(t *testing.T) {
			var clock *jumping
			newTurn(t, func(r *rig) {
				clock = &jumping{now: r.cfg.Now}
				r.cfg.Now = clock.Now
			}, func(r *rig) {
				r.emit(initLine)
				r.after(at)
				clock.leap.Store(int64(time.Hour))
			}, func(r *rig) {
				r.outcome(Hang, 2)
				// Asleep for a whole tick at most before the leap: that much
				// may be given to the agent, and nothing be taken from it.
				if got := r.agent.asked.Sub(r.began); got < time.Minute || got > time.Minute+r.cfg.Tick+secondLook {
					t.Errorf("ended after %s of our own time, want a minute and at most a tick more", got)
				}
			})
		})
	}
}

// TestStarvedOwner: the owner itself was kept (a rename on a dead disk) while
// the agent wrote. What it wrote meanwhile is read before anything is judged.
func TestStarvedOwner(t *testing.T) {
	newTurn(t, func(r *rig) {
		r.log.session = func(string) { time.Sleep(10 * time.Minute) }
	}, func(r *rig) {
		r.emit(initLine)
		r.after(5 * time.Minute)
		r.emit(thinkLine)
		r.after(10*time.Minute + 30*time.Second)
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) {
		r.outcome(Success, 0)
		if _, ok := r.log.held(); !ok {
			t.Error("held records overlap")
		}
	})
}

// TestFrozen: we were stopped while we slept towards the deadline, and woke
// long after it. The agent, who may have been stopped with us, gets the time
// that remained when we were last awake.
func TestFrozen(t *testing.T) {
	newTurn(t, func(r *rig) {
		var frozen bool
		r.out.asked = func() { // by the owner, at 55 s, the last tick before the deadline
			if time.Since(r.began) >= 55*time.Second && !frozen {
				frozen = true
				time.Sleep(time.Hour)
			}
		}
	}, func(r *rig) {
		r.emit(initLine)
		r.after(time.Hour + 55*time.Second + 4*time.Second)
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) { r.outcome(Success, 0) })
}

// TestReadBeforeVerdict: what lies in the pipe at the deadline is a sign of
// life, whoever has not come to read it yet.
func TestReadBeforeVerdict(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine)
		r.after(59 * time.Second)
		r.out.hide(true)
		r.emit(thinkLine)
		r.after(62*time.Second + 500*time.Microsecond) // while the owner sleeps
		r.out.hide(false)
		r.after(90 * time.Second)
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) { r.outcome(Success, 0) })
}

// TestReadButNotYetTold: the pump has the bytes out of the pipe already and was
// not scheduled since, as happens on a machine with more work than cores.
func TestReadButNotYetTold(t *testing.T) {
	newTurn(t, func(r *rig) {
		r.out.slow = func() time.Duration {
			if time.Since(r.began) < 59*time.Second {
				return 0
			}
			return 20 * time.Millisecond
		}
	}, func(r *rig) {
		r.emit(initLine)
		r.after(60*time.Second - 10*time.Millisecond)
		r.emit(thinkLine)
		r.after(61 * time.Second)
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) { r.outcome(Success, 0) })
}
