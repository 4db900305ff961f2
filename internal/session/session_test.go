package session

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/supervise"
)

// rig is a session around made-up turns.
type rig struct {
	prompts []string // what the person says, in order; "^C" and "^D" are keys
	turns   []supervise.Report
	config  Config

	began time.Time
	ran   []string // what was run: prompt, session, attempt, seconds since the start
	notes []string
	said  []string
}

func (r *rig) run() Report {
	r.began = time.Now()
	c := r.config
	c.Next = func() (string, error) {
		if len(r.prompts) == 0 {
			return "", io.EOF
		}
		p := r.prompts[0]
		r.prompts = r.prompts[1:]
		switch p {
		case "^C":
			return "", ErrInterrupt
		case "^D":
			return "", io.EOF
		case "^H":
			return "", ErrHangup
		case "^\\":
			return "", ErrQuit
		case "!":
			return "", fmt.Errorf("bad file")
		}
		return p, nil
	}
	c.Run = func(t Turn, goesOn GoesOn) supervise.Report {
		r.ran = append(r.ran, fmt.Sprintf("%s/%s/%d at %.0f", t.Prompt, t.Resume, t.Restart, time.Since(r.began).Seconds()))
		report := supervise.Report{Outcome: supervise.Success, Result: true, SessionID: "s1"}
		if len(r.turns) > 0 {
			report, r.turns = r.turns[0], r.turns[1:]
		}
		note, message := goesOn(&report)
		r.notes = append(r.notes, strings.TrimSpace(note+" "+message))
		return report
	}
	c.Say = func(s string) { r.said = append(r.said, s) }
	c.Restarted = func(Turn, *supervise.Report, time.Duration) {}
	return Run(c)
}

func hang(open ...string) supervise.Report {
	reason := &monitor.Reason{Kind: monitor.Idle}
	for _, tool := range open {
		reason.OpenCalls = append(reason.OpenCalls, monitor.Call{Tool: tool})
	}
	return supervise.Report{Outcome: supervise.Hang, ExitCode: 2, Message: "idle", Reason: reason, SessionID: "s1", Named: true, Counts: supervise.Counts{Lines: 5}}
}

func mute() supervise.Report {
	h := hang()
	h.SessionID, h.Named, h.Counts = "", false, supervise.Counts{}
	return h
}

func ended(o supervise.Outcome, code int) supervise.Report {
	return supervise.Report{Outcome: o, ExitCode: code, SessionID: "s1", Named: true, Counts: supervise.Counts{Lines: 5}}
}

func told(r supervise.Report, sig syscall.Signal) supervise.Report {
	r.Told = sig
	return r
}

func left(r supervise.Report) supervise.Report {
	r.Teardown.Left = []process.Ended{{}}
	return r
}

func acted(r supervise.Report) supervise.Report {
	r.Counts.Acted = 1
	return r
}

func TestSession(t *testing.T) {
	say := func(s ...string) []string { return s }
	ok := supervise.Report{Outcome: supervise.Success, Result: true, SessionID: "s1", Named: true, Counts: supervise.Counts{Lines: 5}}
	bad := supervise.Report{Outcome: supervise.Failed, ExitCode: 1, Result: true, SessionID: "s1"}
	ctrlC := ended(supervise.Stopped, 130)
	keyed := func(sig syscall.Signal) bool { return sig == syscall.SIGINT }
	safe := Restarts{Most: 3, Prompt: "go on"}
	for _, row := range []struct {
		name    string
		config  Config
		prompts []string
		turns   []supervise.Report
		ran     []string
		notes   []string // of the turns
		code    int
		turned  int
	}{
		{"one prompt alone is one turn", Config{First: "a"}, say("b"), nil, say("a// 0"), nil, 0, 1},
		{"the first prompt may be asked for", Config{Talks: true}, say("a"), nil, say("a//0 at 0"), nil, 0, 1},
		{"from the second turn on the session is resumed", Config{First: "a", Talks: true}, say("b", "c"), nil,
			say("a//0 at 0", "b/s1/0 at 0", "c/s1/0 at 0"), nil, 0, 3},
		{"from the first on, if that was asked for", Config{First: "a", Resume: "s0", Talks: true}, say("b"), nil,
			say("a/s0/0 at 0", "b/s1/0 at 0"), nil, 0, 2},
		{"blank prompts are none", Config{Talks: true}, say("", "  ", "a"), nil, say("a//0 at 0"), nil, 0, 1},
		{"nothing at all is a success", Config{Talks: true}, nil, nil, nil, nil, 0, 0},
		{"a hang asks again", Config{First: "a", Talks: true}, say("b"), []supervise.Report{hang(), ok},
			say("a//0 at 0", "b/s1/0 at 0"), say("hang_detected idle", ""), 0, 2},
		{"the last turn's hang is the end's", Config{First: "a", Talks: true}, nil, []supervise.Report{hang()},
			say("a//0 at 0"), nil, 2, 1},
		{"an error result asks again", Config{First: "a", Talks: true}, say("b"), []supervise.Report{bad, ok},
			say("a//0 at 0", "b/s1/0 at 0"), nil, 0, 2},
		{"an end without a result is the session's", Config{First: "a", Talks: true}, say("b"), []supervise.Report{ended(supervise.Failed, 1)},
			say("a//0 at 0"), nil, 1, 1},
		{"survivors are", Config{First: "a", Talks: true}, say("b"), []supervise.Report{ended(supervise.Survivors, 3)},
			say("a//0 at 0"), nil, 3, 1},
		{"Ctrl-C ends the turn alone", Config{First: "a", Talks: true, Interrupts: keyed}, say("b"), []supervise.Report{ctrlC, ok},
			say("a//0 at 0", "b/s1/0 at 0"), nil, 0, 2},
		{"who interrupts a turn and leaves has not failed", Config{First: "a", Talks: true, Interrupts: keyed}, say("^D"), []supervise.Report{ctrlC},
			say("a//0 at 0"), nil, 0, 1},
		{"SIGTERM behind a result ends all", Config{First: "a", Talks: true, Interrupts: keyed}, say("b"), []supervise.Report{told(ok, syscall.SIGTERM)},
			say("a//0 at 0"), nil, 143, 1},
		{"Ctrl-C behind a result ends nothing", Config{First: "a", Talks: true, Interrupts: keyed}, say("b"), []supervise.Report{told(ok, syscall.SIGINT)},
			say("a//0 at 0", "b/s1/0 at 0"), nil, 0, 2},
		{"Ctrl-C in a hang's last moments gives up", Config{First: "a", Talks: true, Interrupts: keyed, Restarts: safe}, say("b"),
			[]supervise.Report{told(hang(), syscall.SIGINT), ok}, say("a//0 at 0", "b/s1/0 at 0"), nil, 0, 2},
		{"one prompt's result stands, whoever was told to stop", Config{First: "a"}, nil, []supervise.Report{told(ok, syscall.SIGTERM)},
			say("a//0 at 0"), nil, 0, 1},
		{"the quit key at the prompt ends it", Config{Talks: true}, say("^\\", "a"), nil, nil, nil, 131, 0},
		{"SIGTERM ends all", Config{First: "a", Talks: true, Interrupts: keyed}, say("b"), []supervise.Report{ended(supervise.Stopped, 143)},
			say("a//0 at 0"), nil, 143, 1},
		{"Ctrl-C at the prompt asks again", Config{Talks: true}, say("^C", "a"), nil, say("a//0 at 0"), nil, 0, 1},
		{"a hang-up at the prompt ends it", Config{Talks: true}, say("^H", "a"), nil, nil, nil, 129, 0},
		{"a prompt that cannot be read is a failure", Config{Talks: true}, say("!", "a"), nil, nil, nil, 1, 0},

		{"a hang is tried again, and again", Config{First: "a", Restarts: safe}, nil, []supervise.Report{hang(), hang(), ok},
			say("a//0 at 0", "go on/s1/1 at 1", "go on/s1/2 at 6"),
			say("restart idle; attempt 1 of 3 follows in 1s", "restart idle; attempt 2 of 3 follows in 5s", ""), 0, 1},
		{"but not for ever", Config{First: "a", Restarts: safe}, nil, []supervise.Report{hang(), hang(), hang(), hang(), ok},
			say("a//0 at 0", "go on/s1/1 at 1", "go on/s1/2 at 6", "go on/s1/3 at 31"), nil, 2, 1},
		{"who never spoke begins anew", Config{First: "a", Restarts: safe}, nil, []supervise.Report{mute(), ok},
			say("a//0 at 0", "a//1 at 1"), nil, 0, 1},
		{"who spoke without a name cannot go on", Config{First: "a", Restarts: safe}, nil,
			[]supervise.Report{{Outcome: supervise.Hang, ExitCode: 2, Counts: supervise.Counts{Lines: 1}}}, say("a//0 at 0"), nil, 2, 1},
		{"who resumed and only muttered is asked the same again", Config{First: "a", Resume: "s0", Restarts: safe}, nil,
			[]supervise.Report{{Outcome: supervise.Hang, ExitCode: 2, SessionID: "s0", Counts: supervise.Counts{Lines: 1}}, ok}, say("a/s0/0 at 0", "a/s0/1 at 1"), nil, 0, 1},
		{"nobody starts beside somebody who is left", Config{First: "a", Restarts: safe}, nil,
			[]supervise.Report{left(hang()), ok}, say("a//0 at 0"), nil, 2, 1},
		{"who was told to stop does not try again", Config{First: "a", Restarts: safe}, nil,
			[]supervise.Report{told(hang(), syscall.SIGTERM), ok}, say("a//0 at 0"), nil, 2, 1},
		{"nor goes on talking", Config{First: "a", Talks: true, Interrupts: keyed}, say("b"),
			[]supervise.Report{told(ok, syscall.SIGTERM)}, say("a//0 at 0"), nil, 143, 1},
		{"a command under way is not run twice", Config{First: "a", Restarts: safe}, nil, []supervise.Report{hang("read", "shell")},
			say("a//0 at 0"), nil, 2, 1},
		{"a file may be read twice", Config{First: "a", Restarts: safe}, nil, []supervise.Report{hang("read"), ok},
			say("a//0 at 0", "go on/s1/1 at 1"), nil, 0, 1},
		{"unless that was asked for", Config{First: "a", Restarts: Restarts{Most: 1, Prompt: "go on", Unsafe: true}}, nil,
			[]supervise.Report{hang("shell"), ok}, say("a//0 at 0", "go on/s1/1 at 1"), nil, 0, 1},
		{"what has acted is not repeated by default", Config{First: "a", Restarts: Restarts{Most: 3, Untouched: true}}, nil,
			[]supervise.Report{acted(hang()), ok}, say("a//0 at 0"), nil, 2, 1},
		{"what only failed is not tried again", Config{First: "a", Restarts: safe}, nil, []supervise.Report{ended(supervise.Failed, 1), ok},
			say("a//0 at 0"), nil, 1, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rig{config: row.config, prompts: row.prompts, turns: row.turns}
				got := r.run()
				want := slices.Clone(row.ran)
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], "// 0", "//0 at 0")
				}
				if !slices.Equal(r.ran, want) {
					t.Errorf("ran %q, want %q", r.ran, want)
				}
				if row.notes != nil && !slices.Equal(r.notes, row.notes) {
					t.Errorf("the stream has %q, want %q", r.notes, row.notes)
				}
				if got.ExitCode != row.code || got.Turns != row.turned {
					t.Errorf("exit code %d after %d turns, want %d after %d (%s)", got.ExitCode, got.Turns, row.code, row.turned, got.Message)
				}
			})
		})
	}
}

// Whoever is told to stop does not wait for a prompt, nor for the time before
// another attempt.
func TestStop(t *testing.T) {
	for _, row := range []struct {
		name   string
		config Config
		turns  []supervise.Report
	}{
		{"at the prompt", Config{Talks: true}, nil},
		{"before another attempt", Config{First: "a", Restarts: Restarts{Most: 1}}, []supervise.Report{hang()}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan syscall.Signal, 1)
				row.config.Stop = stop
				typed := make(chan struct{})
				row.config.Next = func() (string, error) { <-typed; return "", io.EOF }
				row.config.Run = func(Turn, GoesOn) supervise.Report { return row.turns[0] }
				row.config.Restarted = func(Turn, *supervise.Report, time.Duration) {}
				began := time.Now()
				time.AfterFunc(100*time.Millisecond, func() { stop <- syscall.SIGTERM })
				got := Run(row.config)
				if got.ExitCode != 143 || time.Since(began) != 100*time.Millisecond {
					t.Errorf("exit code %d after %s", got.ExitCode, time.Since(began))
				}
				close(typed)
			})
		})
	}
}

// A second Ctrl-C may come when its turn is over: it was not meant for the
// session.
func TestALateInterruptionIsDropped(t *testing.T) {
	stop := make(chan syscall.Signal, 1)
	prompts := []string{"b"}
	var said []string
	turns := 0
	got := Run(Config{
		First: "a", Talks: true, Stop: stop, Say: func(s string) { said = append(said, s) },
		Interrupts: func(sig syscall.Signal) bool { return sig == syscall.SIGINT },
		Run: func(Turn, GoesOn) supervise.Report {
			if turns++; turns > 1 {
				return supervise.Report{Outcome: supervise.Success, Result: true}
			}
			stop <- syscall.SIGINT
			return told(ended(supervise.Stopped, 130), syscall.SIGINT)
		},
		Next: func() (string, error) {
			if len(prompts) == 0 {
				return "", io.EOF
			}
			defer func() { prompts = nil }()
			return prompts[0], nil
		},
	})
	if got.ExitCode != 0 || turns != 2 || !slices.Equal(said, []string{"interrupted"}) {
		t.Errorf("exit code %d after %d turns; said %q", got.ExitCode, turns, said)
	}
}
