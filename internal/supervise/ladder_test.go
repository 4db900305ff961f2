package supervise

import (
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/process"
)

// TestLadderStarts: when the end of the tree is begun, and for which agents it
// is not needed any more.
func TestLadderStarts(t *testing.T) {
	rows := []struct {
		name string
		play func(*rig)
		want time.Duration // after the start of the turn
	}{
		{"exit and end of stream: at once", func(r *rig) {
			r.emit(initLine)
			r.after(2 * time.Second)
			r.leave(0)
		}, 2 * time.Second},
		{"exit, the stream held open, no result: after drainGrace", func(r *rig) {
			r.emit(initLine)
			r.after(2 * time.Second)
			r.agent.exit(process.Exit{})
		}, 2*time.Second + drainGrace},
		{"a launcher's child writes the result after the launcher has gone: at the result", func(r *rig) {
			r.emit(initLine)
			r.after(2 * time.Second)
			r.agent.exit(process.Exit{})
			r.after(2400 * time.Millisecond)
			r.emit(okLine)
		}, 2400 * time.Millisecond},
		{"exit with a result, the stream held open: at once", func(r *rig) {
			r.emit(okLine)
			r.after(2 * time.Second)
			r.agent.exit(process.Exit{})
		}, 2 * time.Second},
		{"lingering after the result: after exit-grace", func(r *rig) {
			r.after(time.Second)
			r.emit(okLine)
		}, 6 * time.Second},
		{"another result does not lengthen the grace", func(r *rig) {
			r.after(time.Second)
			r.emit(okLine)
			r.after(4 * time.Second)
			r.emit(okLine)
		}, 6 * time.Second},
		{"a hang: at the deadline", func(r *rig) {
			r.after(time.Second)
			r.emit(initLine)
		}, 61*time.Second + secondLook},
		{"a tool: at its own deadline and not before", func(r *rig) {
			r.after(time.Second)
			r.emit(startLine)
		}, 121*time.Second + secondLook},
		{"a signal: at once", func(r *rig) {
			r.after(7 * time.Second)
			r.stop <- syscall.SIGINT
		}, 7 * time.Second},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			newTurn(t, nil, row.play, func(r *rig) {
				if got := r.agent.asked.Sub(r.began); got < row.want || got > row.want+2*time.Millisecond {
					t.Errorf("ended after %s, want %s", got, row.want)
				}
				if r.agent.calls != 1 {
					t.Errorf("End was called %d times", r.agent.calls)
				}
				if got := r.agent.ladder[0].Wait; got != r.cfg.KillGrace {
					t.Errorf("grace %s, want %s", got, r.cfg.KillGrace)
				}
			})
		})
	}
}

// An agent that closed its stdout cannot say a result any more; it gets the
// time to leave that it would have after one.
func TestMuteAgentIsEnded(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine)
		r.after(2 * time.Second)
		r.out.end()
	}, func(r *rig) {
		r.outcome(Failed, 1)
		r.took(7 * time.Second)
		if n := len(r.log.all("stdout_ended")); n != 1 {
			t.Errorf("%d stdout_ended records", n)
		}
	})
}

func TestMuteAgentMayLeave(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine)
		r.out.end()
		r.after(3 * time.Second)
		r.agent.exit(process.Exit{Code: 4})
	}, func(r *rig) {
		r.outcome(Failed, 1)
		r.took(3 * time.Second)
		if r.report.Teardown.Exit.Code != 4 {
			t.Errorf("exit %s", r.report.Teardown.Exit)
		}
	})
}

func TestLingeringWithItsStdoutClosed(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.after(time.Second)
		r.emit(okLine)
		r.out.end()
	}, func(r *rig) {
		r.outcome(Success, 0)
		r.took(6 * time.Second)
	})
}

// While the ladder is at work the owner has nothing to do but wait.
func TestQuietTeardown(t *testing.T) {
	newTurn(t, func(r *rig) {
		r.agent.onEnd = r.agent.deaf
		r.cfg.KillGrace = 10 * time.Second
	}, func(r *rig) {
		r.emit(initLine, okLine)
		r.after(time.Second)
		r.agent.exit(process.Exit{})
	}, func(r *rig) {
		r.took(11 * time.Second)
		if n := len(r.log.all("held")); n != 0 {
			t.Errorf("%d held records of a teardown", n)
		}
	})
}

func TestOneSignalIsPolite(t *testing.T) {
	newTurn(t, func(r *rig) { r.agent.onEnd = r.agent.deaf }, func(r *rig) {
		r.stop <- syscall.SIGTERM
	}, func(r *rig) {
		r.outcome(Stopped, 143)
		r.took(5 * time.Second)
		if r.agent.hurried != 0 {
			t.Error("hurried")
		}
	})
}

func TestSecondSignalHurries(t *testing.T) {
	newTurn(t, func(r *rig) { r.agent.onEnd = r.agent.deaf }, func(r *rig) {
		r.stop <- syscall.SIGINT
		r.after(time.Second)
		r.stop <- syscall.SIGTERM
	}, func(r *rig) {
		r.outcome(Stopped, 130) // the first one names the outcome
		r.took(time.Second)
		if r.agent.hurried != 1 {
			t.Errorf("hurried %d times", r.agent.hurried)
		}
		sig := r.log.all("signal")
		if len(sig) != 2 || sig[0].fields()["signal"] != "SIGINT" || sig[1].fields()["count"] != 2.0 {
			t.Errorf("signal records: %v", sig)
		}
	})
}

// A reader who does not read holds a run for ever, but not one that was told to
// stop: then it has a second after everything else is done.
func TestSignalWhileNobodyReads(t *testing.T) {
	var release func()
	newTurn(t, func(r *rig) { release = r.sink.block() }, func(r *rig) {
		r.emit(initLine)
		r.after(2 * time.Hour)
		r.stop <- syscall.SIGTERM
	}, func(r *rig) {
		r.outcome(Stopped, 143)
		r.took(2*time.Hour + abandonAfter)
		if r.out.isClosed() {
			t.Error("the pump's source was closed under it")
		}
		r.sink.quit = true // the end of the process takes the pump with it
		release()
	})
}

// The agent has left long ago, and only its reader is waited for.
func TestSignalAfterEverythingElse(t *testing.T) {
	var release func()
	newTurn(t, func(r *rig) { release = r.sink.block() }, func(r *rig) {
		r.emit(initLine)
		r.leave(0)
		r.after(10 * time.Second)
		r.stop <- syscall.SIGTERM
	}, func(r *rig) {
		r.outcome(Stopped, 143)
		r.took(10*time.Second + abandonAfter)
		r.sink.quit = true
		release()
	})
}

func TestSignalWhileNobodyReadsAndThenReads(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		release := r.sink.block()
		r.emit(initLine, userLine)
		r.after(time.Minute)
		r.stop <- syscall.SIGTERM
		r.after(time.Minute + abandonAfter/2)
		release()
	}, func(r *rig) {
		r.outcome(Stopped, 143)
		if r.sink.text() != initLine+userLine {
			t.Errorf("got %q", r.sink.text())
		}
	})
}

// Without a signal everything that the agent wrote waits for its reader.
func TestExitWhileNobodyReads(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		release := r.sink.block()
		r.emit(initLine)
		r.emit(okLine)
		r.leave(0)
		r.after(10 * time.Minute)
		release()
	}, func(r *rig) {
		r.outcome(Success, 0)
		r.took(10 * time.Minute)
		if n := len(r.log.all("held")); n > 1000 {
			t.Errorf("%d held records", n)
		}
	})
}

// The second that a launcher's child has to say its result counts only while we
// listen to it.
func TestDrainGraceCountsOnlyWhileWeListen(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		release := r.sink.block()
		r.emit(initLine)
		r.after(time.Second)
		r.agent.exit(process.Exit{})
		r.after(5 * time.Second)
		release()
		r.after(5*time.Second + drainGrace/2)
		if r.agent.calls == 0 {
			r.emit(okLine)
		}
	}, func(r *rig) { r.outcome(Success, 0) })
}
