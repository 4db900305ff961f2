package supervise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"

	"cursor-wrap/internal/process"
)

// TestOutcome has a row for every line of the table of outcomes, and for every
// two of them that can come together.
func TestOutcome(t *testing.T) {
	survivor := []process.Ended{{Proc: process.Proc{PID: 99, Command: "mcp-server"}, Found: "group", Signal: "SIGKILL"}}
	rows := []struct {
		name    string
		tune    func(*rig)
		play    func(*rig)
		outcome Outcome
		code    int
		message string // part of it
		adds    string // the subtype of the synthetic result; "" if nothing may be added
	}{
		{"a result is success", nil, func(r *rig) {
			r.emit(initLine, userLine, okLine)
			r.leave(0)
		}, Success, 0, "", ""},
		{"a result is success whatever the exit status", nil, func(r *rig) {
			r.emit(initLine, okLine)
			r.leave(7)
		}, Success, 0, "", ""},
		{"a result is success although the process lingers (H3)", nil, func(r *rig) {
			r.emit(initLine, okLine)
		}, Success, 0, "", ""},
		{"a result without an end of line is a result", nil, func(r *rig) {
			r.emit(initLine, strings.TrimSuffix(okLine, "\n"))
			r.leave(0)
		}, Success, 0, "", ""},
		{"an error result is an error", nil, func(r *rig) {
			r.emit(initLine, badLine)
			r.leave(0)
		}, Failed, 1, "result is an error", ""},
		{"of two results the last one stands", nil, func(r *rig) {
			r.emit(initLine, badLine, okLine)
			r.leave(0)
		}, Success, 0, "", ""},
		{"no result is an error, exit status 0 or not", nil, func(r *rig) {
			r.emit(initLine)
			r.leave(0)
		}, Failed, 1, "without a result (exit 0)", "no_result"},
		{"an agent that a signal ended says which", nil, func(r *rig) {
			r.out.end()
			r.agent.exit(process.Exit{Code: -1, Signal: syscall.SIGSEGV})
		}, Failed, 1, "killed by SIGSEGV", "no_result"},
		{"an agent that cannot be started", func(r *rig) {
			r.cfg.Launch = func(context.Context) (Child, error) { return Child{}, errors.New("start x: permission denied") }
		}, nil, Failed, 1, "permission denied", "exec_error"},
		{"a hang", nil, func(r *rig) { r.emit(initLine) }, Hang, 2, "idle 1m0s", "hang"},
		{"no line at all is a hang at start-up", nil, func(r *rig) {}, Hang, 2, "not one line", "hang"},
		{"the run's time is up", func(r *rig) { r.cfg.Policy.Max = 30 * time.Second }, func(r *rig) {
			r.emit(initLine)
		}, Overtime, 124, "whole time", "duration"},
		{"SIGTERM", nil, func(r *rig) {
			r.emit(initLine)
			r.after(time.Second)
			r.stop <- syscall.SIGTERM
		}, Stopped, 143, "SIGTERM", ""},
		{"SIGINT", nil, func(r *rig) { r.stop <- syscall.SIGINT }, Stopped, 130, "SIGINT", ""},
		{"somebody survives a success", func(r *rig) { r.agent.left = survivor }, func(r *rig) {
			r.emit(okLine)
			r.leave(0)
		}, Survivors, 3, "99 mcp-server", ""},
		{"an error result with survivors stays an error", func(r *rig) { r.agent.left = survivor }, func(r *rig) {
			r.emit(badLine)
			r.leave(0)
		}, Failed, 1, "", ""},
		{"a hang with survivors stays a hang", func(r *rig) { r.agent.left = survivor }, func(r *rig) {}, Hang, 2, "", "hang"},
		{"a result wins over a verdict that was given already", func(r *rig) {
			r.agent.onEnd = func(process.Ladder, <-chan struct{}) { r.emit(okLine) }
		}, func(r *rig) { r.emit(initLine) }, Success, 0, "", ""},
		{"an error result wins over a verdict too", func(r *rig) {
			r.agent.onEnd = func(process.Ladder, <-chan struct{}) { r.emit(badLine) }
		}, func(r *rig) { r.emit(initLine) }, Failed, 1, "", ""},
		{"a result wins over the end of the run's time", func(r *rig) {
			r.cfg.Policy.Max = 30 * time.Second
			r.agent.onEnd = func(process.Ladder, <-chan struct{}) { r.emit(okLine) }
		}, func(r *rig) { r.emit(initLine) }, Success, 0, "", ""},
		{"a result wins over a signal", func(r *rig) {
			r.agent.onEnd = func(process.Ladder, <-chan struct{}) { r.emit(okLine) }
		}, func(r *rig) { r.stop <- syscall.SIGTERM }, Success, 0, "", ""},
		{"an error result is only the answer to a signal", func(r *rig) {
			r.agent.onEnd = func(process.Ladder, <-chan struct{}) { r.emit(badLine) }
		}, func(r *rig) { r.stop <- syscall.SIGTERM }, Stopped, 143, "", ""},
		{"an error result before a signal is the agent's word", nil, func(r *rig) {
			r.emit(badLine)
			r.after(time.Second)
			r.stop <- syscall.SIGTERM
		}, Failed, 1, "", ""},
		{"a signal after a verdict does not change it", func(r *rig) { r.agent.onEnd = r.agent.deaf }, func(r *rig) {
			r.after(61 * time.Second)
			r.stop <- syscall.SIGTERM
		}, Hang, 2, "", "hang"},
		{"the reader of stdout has left", nil, func(r *rig) {
			r.sink.fail(fmt.Errorf("write |1: %w", syscall.EPIPE))
			r.emit(initLine)
		}, Stopped, 141, "reader of stdout", ""},
		{"a result that nobody could read is none", nil, func(r *rig) {
			r.sink.fail(syscall.EPIPE)
			r.emit(okLine)
			r.leave(0)
		}, Stopped, 141, "reader of stdout", ""},
		{"stdout fails otherwise", nil, func(r *rig) {
			r.sink.fail(syscall.ENOSPC)
			r.emit(initLine)
		}, Failed, 1, "no space left", ""},
		{"stdout breaks under our own lines", nil, func(r *rig) {
			r.emit(initLine)
			r.after(time.Second)
			r.sink.fail(syscall.EPIPE)
			r.leave(0)
		}, Stopped, 141, "", ""},
		{"silent: nothing is added to the stream", func(r *rig) { r.cfg.Silent = true }, func(r *rig) {}, Hang, 2, "", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			newTurn(t, row.tune, row.play, func(r *rig) {
				r.outcome(row.outcome, row.code)
				if !strings.Contains(r.report.Message, row.message) {
					t.Errorf("message %q, want %q in it", r.report.Message, row.message)
				}
				if row.outcome == Success && r.report.Message != "" {
					t.Errorf("a success with a message: %q", r.report.Message)
				}
				added, own := strings.CutPrefix(r.sink.text(), string(r.log.raw))
				if !own && row.code != 141 && row.code != 1 {
					t.Errorf("the agent's bytes did not come through:\n%q\n%q", r.sink.text(), r.log.raw)
				}
				if row.adds == "" && own && added != "" {
					t.Errorf("added: %s", added)
				}
				if row.adds != "" && (strings.Count(added, `"type":"result"`) != 1 || !strings.Contains(added, `"subtype":"`+row.adds+`"`)) {
					t.Errorf("added %q, want one result of subtype %s", added, row.adds)
				}
			})
		})
	}
}

// A reader that has the result may leave; what the agent still says after it is
// nobody's loss. The comment of verdict promises this.
func TestDeliveredResultWinsOverReaderWhoLeft(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine, okLine)
		r.after(time.Second)
		r.sink.fail(syscall.EPIPE)
		r.emit(thinkLine)
		r.leave(0)
	}, func(r *rig) { r.outcome(Success, 0) })
}

func TestExitCode(t *testing.T) {
	for o, want := range map[Outcome]int{Success: 0, Failed: 1, Hang: 2, Survivors: 3, Usage: 64, Overtime: 124, Stopped: 143} {
		if got := ExitCode(o, syscall.SIGTERM); got != want {
			t.Errorf("%s: %d, want %d", o, got, want)
		}
	}
}

// TestReport: what the caller is told beside the outcome.
func TestReport(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine, userLine, startLine, doneLine, doneLine, "no json\n", okLine)
		_, _ = r.stderr.Write([]byte("warning\n"))
		r.after(3 * time.Second)
		r.leave(0)
	}, func(r *rig) {
		want := Counts{Lines: 7, Bytes: int64(len(r.log.raw)), Calls: 1, Unmatched: 1, Acted: 1, Stderr: 8}
		if r.report.Counts != want {
			t.Errorf("counts %+v, want %+v", r.report.Counts, want)
		}
		if !r.report.Result || !r.report.Started || r.report.SessionID != "s1" || r.report.Reason != nil {
			t.Errorf("report %+v", r.report)
		}
		r.took(3 * time.Second)
		if n := len(r.log.all("unmatched_completion")); n != 1 {
			t.Errorf("%d unmatched_completion records", n)
		}
		if r.stdin.got.String() != "do it" {
			t.Errorf("prompt %q", r.stdin.got.String())
		}
		if !r.out.isClosed() || !r.stderr.isClosed() {
			t.Error("our ends of the pipes are still open")
		}
	})
}

// TestUnreadPrompt: an agent that never reads its stdin does not hold the turn.
func TestUnreadPrompt(t *testing.T) {
	newTurn(t, func(r *rig) { r.stdin.stuck = true }, func(r *rig) {
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) { r.outcome(Success, 0) })
}

// TestWhatComesAfterTheEndOfTimeIsNotHeard: a replay goes by the moment at which
// the time was up, and so do we.
func TestWhatComesAfterTheEndOfTimeIsNotHeard(t *testing.T) {
	for _, row := range []struct {
		after time.Duration
		open  int
	}{{-time.Millisecond, 0}, {0, 0}, {time.Millisecond, 1}, {20 * time.Millisecond, 1}} {
		newTurn(t, func(r *rig) { r.cfg.Policy.Max = 4 * time.Second }, func(r *rig) {
			r.emit(initLine, startLine)
			r.after(4*time.Second + row.after)
			r.emit(doneLine)
		}, func(r *rig) {
			r.outcome(Overtime, 124)
			reason, ok := r.report.Reason.(*monitor.Reason)
			if !ok || len(reason.OpenCalls) != row.open {
				t.Errorf("completed %s after the end: %+v", row.after, r.report.Reason)
			}
		})
	}
}
