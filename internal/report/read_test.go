package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
)

// story reads a log that was written by tell.
func story(t *testing.T, m *Mask, tell func(*scribe)) *Story {
	t.Helper()
	s, err := Read(bytes.NewReader(write(t, tell)), m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// told is every item of a story in a line of its own, with times in seconds.
func (s *Story) told() string {
	var b strings.Builder
	for i := range s.Items {
		it := &s.Items[i]
		fmt.Fprintf(&b, "%s %g-%g %s", it.Lane, it.Start.Sub(epoch).Seconds(), it.End.Sub(epoch).Seconds(), it.Title)
		if it.Status != "" {
			fmt.Fprintf(&b, " %s", it.Status)
		}
		if it.Exit != nil {
			fmt.Fprintf(&b, " %d", *it.Exit)
		}
		if it.Detail != "" {
			fmt.Fprintf(&b, " (%s)", it.Detail)
		}
		fmt.Fprintf(&b, " [%d %d]\n", it.First, it.Last)
	}
	return b.String()
}

func assistantLine(text, more string) string {
	b, _ := json.Marshal(text)
	return `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":` + string(b) + `}]},"session_id":"s1"` + more + `}`
}

func callLine(id, command string, declared int) string {
	return fmt.Sprintf(`{"type":"tool_call","subtype":"started","call_id":%q,"tool_call":{"shellToolCall":{"args":{"command":%q,"timeout":%d}}}}`, id, command, declared)
}

func endLine(id, result string) string {
	return fmt.Sprintf(`{"type":"tool_call","subtype":"completed","call_id":%q,"tool_call":{"shellToolCall":{"args":{"command":"x"},"result":%s}}}`, id, result)
}

func (s *scribe) end(seconds float64, outcome string, code int, message string, attrs ...slog.Attr) {
	s.record(seconds, "run_end", append([]slog.Attr{slog.String("outcome", outcome), slog.Int("exit_code", code), slog.String("message", message)}, attrs...)...)
}

func TestItems(t *testing.T) {
	for _, row := range []struct {
		name string
		tell func(*scribe)
		want string
	}{
		{"pieces and their repetition are one item", func(s *scribe) {
			s.line(1, assistantLine("I will ", `,"timestamp_ms":1`))
			s.line(2, assistantLine("list the files.", `,"timestamp_ms":2`))
			s.line(3, assistantLine("I will list the files.", `,"timestamp_ms":3,"model_call_id":"m"`))
			s.line(3.1, assistantLine("I will list the files.", ""))
		}, "assistant 1-3.1 I will list the files. [0 3]\n"},
		{"what is said in a row is one item", func(s *scribe) {
			s.line(1, assistantLine("One.", ""))
			s.line(2, assistantLine("Two.", ""))
		}, "assistant 1-2 One. … (One.\n\nTwo.) [0 1]\n"},
		{"thinking is joined, and apart from speech", func(s *scribe) {
			s.line(1, thinkLine)
			s.line(2, thinkLine)
			s.line(3, `{"type":"thinking","subtype":"completed"}`)
			s.line(3, thinkLine)
			s.line(4, assistantLine("Yes.", ""))
		}, "thinking 1-3 xx [0 2]\nthinking 3-3 x [3 3]\nassistant 4-4 Yes. [4 4]\n"},
		{"calls side by side, one of which fails", func(s *scribe) {
			s.line(1, callLine("a", "make", 9000))
			s.line(2, callLine("b", "go vet", 9000))
			s.line(3, endLine("a", `{"success":{"exitCode":0}}`))
			s.line(4, endLine("b", `{"failure":{"exitCode":2}}`))
		}, "tool 1-3 make ok 0 (exit 0) [0 2]\ntool 2-4 go vet failed 2 (exit 2) [1 3]\n"},
		{"a call that never ends", func(s *scribe) {
			s.line(1, callLine("a", "make", 9000))
			s.record(4, "teardown", slog.Int("took_ms", 1000), slog.String("exit", "exit 143"))
		}, "tool 1-4 make open [0 -1]\nteardown 3-4 0 processes ended ok (the agent: exit 143) [-1 -1]\n"},
		{"a second start, and an end without one", func(s *scribe) {
			s.line(1, callLine("a", "make", 9000))
			s.line(2, callLine("a", "make again", 9000))
			s.line(3, endLine("a", `{"success":{}}`))
			s.line(3, endLine("q", `{"rejected":{"reason":"no"}}`))
		}, "tool 1-2 make open (it was started a second time) [0 -1]\ntool 2-3 make again ok [1 2]\ntool 3-3 x failed (its start is not in the log, rejected: no) [3 3]\n"},
		{"work in the background until it is notified", func(s *scribe) {
			s.line(1, callLine("a", "make", 9000))
			s.line(2, endLine("a", `{"success":{"shellId":"7"},"isBackground":true}`))
			s.line(3, callLine("b", "serve", 9000))
			s.line(4, endLine("b", `{"success":{"shellId":"8"},"isBackground":true}`))
			s.line(5, `{"type":"system","subtype":"task_notification","task_id":"7","status":"error"}`)
			s.line(6, okLine)
		}, "tool 1-2 make background [0 1]\nbackground 2-5 make failed [1 4]\ntool 3-4 serve background [2 3]\nbackground 4-6 serve open [3 -1]\n"},
		{"a pause, of which the held time is not told again", func(s *scribe) {
			s.line(0.1, thinkLine)
			s.record(1, "paused", slog.Int("by", 1000))
			s.record(30, "unpaused", slog.Int("by", 0))
			s.record(30, "held", slog.Int64("from", at(1).UnixMilli()), slog.Int64("to", at(30).UnixMilli()), slog.String("by", "paused by uid 1000"))
			s.line(31, thinkLine)
		}, "thinking 0.1-31 xx [0 1]\npaused 1-30 paused by uid 1000 (let go on by uid 0) [-1 -1]\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := story(t, nil, func(s *scribe) {
				p := monitor.Default()
				s.run(p)
				row.tell(s)
			})
			got := s.told()
			if got != row.want {
				t.Errorf("got\n%swant\n%s", got, row.want)
			}
			for _, i := range s.Items {
				if i.End.Before(i.Start.Time) {
					t.Errorf("%s ends before it begins", i.Title)
				}
			}
		})
	}
}

// A silence is the time in which nothing came although somebody listened.
func TestSilences(t *testing.T) {
	p := monitor.Default()
	p.Idle = 9 * time.Second // of which three are worth telling
	s := story(t, nil, func(s *scribe) {
		s.run(p)
		s.line(1, thinkLine)
		s.line(3.5, thinkLine)
		s.held(20, 10, 20)
		s.line(40, thinkLine)
		s.line(42, callLine("a", "make", 600_000))
		s.line(46.5, doneLine)
		s.line(46.6, endLine("a", `{"success":{}}`))
		s.line(50.6, thinkLine)
	})
	var got []string
	for _, i := range s.Items {
		if i.Lane == Silence || i.Lane == Held {
			got = append(got, fmt.Sprintf("%s %g-%g %s", i.Lane, i.Start.Sub(epoch).Seconds(), i.End.Sub(epoch).Seconds(), i.Title))
		}
	}
	want := []string{"silence 3.5-10 silent for 6.5s", "held 10-20 nobody listened: reader", "silence 20-40 silent for 20.0s", "silence 46.6-50.6 silent for 4.0s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDeadlinesAsTheyMove(t *testing.T) {
	p := monitor.Policy{Startup: 10 * time.Second, Idle: 20 * time.Second, ToolGrace: 5 * time.Second, Tool: time.Minute, ExitGrace: 3 * time.Second}
	s := story(t, nil, func(s *scribe) {
		s.run(p)
		for i := range 100 {
			s.line(1+float64(i)/100, thinkLine) // the last at 1.99
		}
		s.line(2, callLine("q", "quick", 7000))
		s.line(2.01, endLine("q", `{"success":{}}`))
		s.line(10, callLine("a", "make", 7000))
		s.line(11, endLine("a", `{"success":{}}`))
		s.line(12, okLine)
		s.record(12.5, "agent_exit")
	})
	var got []string
	for _, d := range s.Deadlines {
		until := "never"
		if !d.Until.IsZero() {
			until = fmt.Sprint(d.Until.Sub(epoch).Seconds())
		}
		got = append(got, fmt.Sprintf("%g %s %s", d.At.Sub(epoch).Seconds(), d.Phase, until))
	}
	for _, want := range []string{"0 starting 10", "1 thinking 21", "1.99 thinking 21.99", "2 tools 14", "2.01 thinking 22.01", "10 tools 22", "11 thinking 31", "12 draining 15", "12.5 draining never"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	if len(got) > 12 {
		t.Errorf("%d deadlines of a stream: %q", len(got), got)
	}
}

func hangReason(seconds float64) *monitor.Reason {
	return &monitor.Reason{Kind: monitor.Tool, Phase: monitor.Tools, At: monitor.Millis{Time: at(seconds)}, Witness: "stream",
		Summary: `1 open tool call past the deadline: shell "make" for 40.0s; 7 make waits`, OpenCalls: []monitor.Call{}, Background: []monitor.Call{}}
}

func TestOutcomes(t *testing.T) {
	ended := func(code string) []slog.Attr { return []slog.Attr{slog.String("exit", code)} }
	for _, row := range []struct {
		name     string
		tell     func(*scribe)
		run      string
		turns    string
		sentence string
	}{
		{"a result", func(s *scribe) {
			s.line(1, okLine)
			s.record(2, "teardown", ended("exit 0")...)
			s.end(2, "success", 0, "")
		}, "success", "success", "gave its result after 2.0s"},
		{"a hang", func(s *scribe) {
			s.line(1, callLine("a", "make", 9000))
			s.verdict("hang_detected", hangReason(40))
			s.record(41, "teardown", ended("exit 143")...)
			s.end(41, "hang", 2, "1 open tool call")
		}, "hang", "hang", `hung and was ended after 41.0s: 1 open tool call past the deadline: shell "make" for 40.0s; 7 make waits.`},
		{"nothing was started", func(s *scribe) {
			s.record(1, "spawn_failed", slog.String("error", "no such file"))
			s.end(1, "error", 1, "no such file")
		}, "error", "error", "The agent could not be started: no such file."},
		{"no result", func(s *scribe) {
			s.line(1, thinkLine)
			s.record(1, "stderr", slog.String("text", "Error: quota"))
			s.record(2, "teardown", ended("exit 7")...)
			s.end(2, "error", 1, "the agent ended without a result (exit 7)")
		}, "error", "error", "without a result (exit 7); the last that it said on stderr: Error: quota."},
		{"a signal", func(s *scribe) {
			s.line(1, callLine("a", "make", 9000))
			s.record(3, "signal", slog.String("signal", "SIGTERM"), slog.Int("count", 1))
			s.record(4, "teardown", ended("exit 143")...)
			s.end(4, "signal", 143, "stopped by SIGTERM")
		}, "signal", "signal", `ended after 4.0s from outside: stopped by SIGTERM, while shell "make" was open for 3.0s.`},
		{"somebody asked for its end", func(s *scribe) {
			s.record(1, "killed", slog.Int("by", 1000), slog.Bool("now", true))
			s.record(2, "teardown", ended("exit 143")...)
		}, "killed", "signal", "stops after 2.0s without an end"},
		{"the wrapper was killed", func(s *scribe) {
			s.line(1, callLine("a", "make", 9000))
			s.record(8, "phase", slog.String("to", "tools"))
		}, "killed", "killed", `stops after 8.0s without an end: the wrapper was killed, or the run still goes on, while shell "make" was open for`},
		{"a conversation, with an attempt at a prompt that hung", func(s *scribe) {
			s.line(1, okLine)
			s.record(2, "teardown", ended("exit 0")...)
			s.record(3, "turn_start")
			s.verdict("hang_detected", hangReason(40))
			s.record(41, "teardown", ended("exit 143")...)
			s.record(41, "restart", slog.Int("attempt", 1), slog.Int("most", 3), slog.String("after", "idle"))
			s.record(43, "turn_start")
			s.line(44, okLine)
			s.record(45, "teardown", ended("exit 0")...)
			s.end(45, "success", 0, "", slog.Int("restarts", 1))
		}, "success", "success hang success", "(1 restart)."},
		{"a result that is an error", func(s *scribe) {
			s.line(1, `{"type":"result","subtype":"error","is_error":true,"result":"no quota"}`)
			s.record(2, "teardown", ended("exit 1")...)
			s.end(2, "error", 1, "the agent's result is an error")
		}, "error", "error", "the agent's result is an error: no quota."},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := story(t, nil, func(s *scribe) { s.run(monitor.Default()); row.tell(s) })
			var turns []string
			for _, turn := range s.Turns {
				turns = append(turns, turn.Outcome)
			}
			if got := strings.Join(turns, " "); s.Run.Outcome != row.run || got != row.turns {
				t.Errorf("the run %s, the turns %s; want %s and %s", s.Run.Outcome, got, row.run, row.turns)
			}
			if !strings.Contains(s.Run.Sentence, row.sentence) {
				t.Errorf("%q has no %q", s.Run.Sentence, row.sentence)
			}
		})
	}
}

func TestWhatIsNoLog(t *testing.T) {
	for name, log := range map[string]string{
		"empty": "", "text": "hello\nyou\n", "JSON": `{"a":1}` + "\n",
		"another log": `{"time":"2026-01-28T12:00:00.000Z","level":"INFO","msg":"listening","ts":1}` + "\n",
	} {
		if _, err := Read(strings.NewReader(log), nil); !errors.Is(err, ErrNoLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTornAndIncompleteLogs(t *testing.T) {
	log := write(t, func(s *scribe) {
		s.run(monitor.Default())
		s.line(1, callLine("a", "make", 9000))
		s.record(2, "log_gap", slog.Int("records", 12), slog.Int("raw_records", 3), slog.String("cause", "disk full"))
		s.line(3, endLine("a", `{"success":{}}`))
	})
	s, err := Read(bytes.NewReader(log[:len(log)-40]), nil)
	if err != nil || s.Torn != 1 || s.Lost != 12 {
		t.Fatalf("%v, torn %d, lost %d", err, s.Torn, s.Lost)
	}
	if i := s.Items[0]; i.Status != "open" || i.Title != "make" {
		t.Errorf("%+v", i)
	}
	s = story(t, nil, func(s *scribe) { // its beginning is lost
		s.line(1, thinkLine)
		s.line(2, okLine)
	})
	if len(s.Turns) != 1 || s.Turns[0].Outcome != "success" || s.Run.Outcome != killed {
		t.Errorf("%+v", s.Turns)
	}
}

// A line in pieces is one event, and what is kept of it is bounded.
func TestPieces(t *testing.T) {
	long := assistantLine(strings.Repeat("word ", 10_000), "")
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		s.part(1, long[:30_000], false)
		s.part(2, long[30_000:], true)
		s.line(3, long)
	})
	if len(s.Events) != 2 || s.Events[0].Name != "assistant" || s.Events[0].Size != len(long) || len(s.Events[0].Raw) != rawMost {
		t.Errorf("%d events, %s of %d bytes, %d kept", len(s.Events), s.Events[0].Name, s.Events[0].Size, len(s.Events[0].Raw))
	}
	if i := s.Items[len(s.Items)-1]; i.Lane != Assistant || len(i.Detail) > textMost+8 {
		t.Errorf("%s, %d bytes of detail", i.Lane, len(i.Detail))
	}
}

// What the log was not told to keep is said to be missing.
func TestALogWithoutLines(t *testing.T) {
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		s.record(1, "phase", slog.String("from", "starting"), slog.String("to", "thinking"), slog.Int64("deadline", at(61).UnixMilli()))
		s.record(2, "result", slog.Bool("is_error", false))
		s.record(3, "teardown", slog.String("exit", "exit 0"))
		s.end(3, "success", 0, "", slog.Group("counts", slog.Int("lines", 9), slog.Int("calls", 2)))
	})
	if !slices.ContainsFunc(s.Marks, func(m Mark) bool { return m.What == "no_raw_events" }) {
		t.Errorf("not told: %+v", s.Marks)
	}
	if s.Run.Lines != 9 || s.Run.Calls != 2 || s.Turns[0].Outcome != "success" {
		t.Errorf("%+v, %+v", s.Run, s.Turns)
	}
	if !slices.ContainsFunc(s.Deadlines, func(d Deadline) bool { return d.Phase == monitor.Thinking && d.Until.Equal(at(61)) }) {
		t.Errorf("deadlines %+v", s.Deadlines)
	}
}

// Nobody has to know every record: what sounds like trouble is a mark.
func TestMarks(t *testing.T) {
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		s.log.Record(at(1), slog.LevelWarn, "odd_thing", slog.String("error", "so it is"))
		s.record(2, "fine_thing")
		s.record(3, "signal", slog.String("signal", "SIGINT"), slog.Int("count", 2))
	})
	checkMarks(t, s, "WARN odd thing: so it is", "INFO told to stop by SIGINT, again")
}

func checkMarks(t *testing.T, s *Story, want ...string) {
	t.Helper()
	var got []string
	for _, m := range s.Marks {
		got = append(got, m.Level+" "+m.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Who paused or ended it is a number, and may not be known.
func TestMarksOfControl(t *testing.T) {
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		s.record(1, "paused", slog.Int("by", 0))
		s.record(2, "unpaused", slog.Int("by", 1000))
		s.record(3, "paused")
		s.record(4, "unpaused")
		s.record(5, "killed", slog.Int("by", 0), slog.Bool("now", false))
		s.record(6, "killed", slog.Int("by", 0), slog.Bool("now", true))
	})
	checkMarks(t, s, "INFO paused by uid 0", "INFO let go on by uid 1000", "INFO paused", "INFO let go on", "INFO told to end by uid 0", "INFO told to end by uid 0, at once")
}

// A shell's call can say how long it may take; of others nobody expects it.
func TestUndeclared(t *testing.T) {
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		for _, tool := range []string{"read", "shell", ""} {
			s.log.Record(at(1), slog.LevelWarn, "undeclared_timeout", slog.String("tool", tool), slog.String("argument", "x"))
		}
	})
	checkMarks(t, s, `WARN shell "x" declared no wait; the tool timeout counts for it`)
}

// The exit code of a call that went to the background is not that of its work.
func TestBackgroundHasNoExit(t *testing.T) {
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		s.line(1, callLine("a", "make", 9000))
		s.line(2, endLine("a", `{"success":{"shellId":"7","exitCode":0},"isBackground":true}`))
		s.line(3, callLine("b", "make", 9000))
		s.line(4, endLine("b", `{"success":{"exitCode":0}}`))
	})
	var got []string
	for i := range s.Items {
		if s.Items[i].Lane == Tool {
			got = append(got, fated(&s.Items[i]))
		}
	}
	if want := []string{"background", "ok, exit 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStderrIsItsEnd(t *testing.T) {
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		for i := range 1000 {
			s.log.Record(at(1), slog.LevelInfo, "stderr", slog.String("text", fmt.Sprint("line ", i)))
		}
		s.log.Flush()
	})
	if len(s.Stderr) != stderrKept || s.Stderr[stderrKept-1].Text != "line 999" || s.Stderr[0].Text != "line 800" {
		t.Errorf("%d lines, from %+v", len(s.Stderr), s.Stderr[0])
	}
}
