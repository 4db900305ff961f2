package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/monitor"
)

// TestReplay: what is told of a log, word for word.
func TestReplay(t *testing.T) {
	rows := []struct {
		name   string
		tell   func(*scribe)
		adjust func(*monitor.Policy)
		want   string
	}{
		{"a good run", func(s *scribe) {
			s.run(alone())
			s.line(1, initLine)
			s.line(2, startLine)
			s.line(50, doneLine)
			s.line(51, okLine)
			s.record(52, "agent_exit")
			s.record(53, "run_end", slog.String("outcome", "success"), slog.Int("exit_code", 0))
		}, keep, `0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase thinking until 1m1s
2.0s phase tools until 2m2s
50.0s phase thinking until 1m50s
51.0s phase draining until 56s
52.0s exit draining until 56s (the agent's process ended)
53.0s end draining until 56s (success, exit code 0)
`},
		{"the recorded thresholds, not the default ones", func(s *scribe) {
			s.run(monitor.Policy{Startup: 5 * time.Second, Idle: 7 * time.Second})
			s.line(1, initLine)
			s.line(20, okLine)
		}, keep, `0s start starting until 5s
0s phase starting until 5s
1.0s phase thinking until 8s
8.0s verdict thinking until 8s (hung, idle: idle 7.0s, 0 open tool calls, last event system/init)
20.0s phase draining until 20s
`},
		{"other thresholds: the verdict comes earlier", func(s *scribe) {
			s.run(alone())
			s.line(1, initLine)
			s.line(40, okLine)
			s.record(41, "agent_exit")
		}, func(p *monitor.Policy) { p.Idle = 30 * time.Second }, `0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase thinking until 31s
31.0s verdict thinking until 31s (hung, idle: idle 30.0s, 0 open tool calls, last event system/init)
40.0s phase draining until 45s
41.0s exit draining until 45s (the agent's process ended)
`},
		{"other thresholds: the recorded verdict is told and not repeated", func(s *scribe) {
			s.run(alone())
			s.line(1, initLine)
			s.verdict("hang_detected", &monitor.Reason{Kind: monitor.Idle, Summary: "idle 1m0s", At: monitor.Millis{Time: at(61)}})
			s.record(62, "agent_exit")
		}, func(p *monitor.Policy) { p.Idle = 0 }, `0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase thinking
1m1s recorded thinking (idle: idle 1m0s)
1m2s exit thinking (the agent's process ended)
`},
		{"held time is told after the line that ended it, and counts from where it was", func(s *scribe) {
			s.run(alone())
			s.line(1, initLine)
			s.line(5, thinkLine)
			s.line(600, thinkLine)
			s.held(605, 5, 605)
			s.line(660, okLine)
			s.record(661, "agent_exit")
		}, keep, `0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase thinking until 1m1s
5.0s held thinking until 11m5s (nobody listened for 10m0s (reader))
11m0s phase draining until 11m5s
11m1s exit draining until 11m5s (the agent's process ended)
`},
		{"several turns: each begins anew", func(s *scribe) {
			s.run(alone())
			s.line(1, startLine)
			s.line(2, okLine)
			s.record(3, "agent_exit")
			s.record(1000, "turn_start")
			s.line(1001, initLine)
		}, keep, `0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase tools until 2m1s
2.0s phase draining until 7s
3.0s exit draining until 7s (the agent's process ended)
0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase thinking until 1m1s
1.0s open thinking until 1m1s (the recording stops here, without a verdict; the next deadline is at 1m1s)
`},
		{"a turn that stops before the next begins", func(s *scribe) {
			s.run(monitor.Policy{})
			s.record(5, "turn_start")
		}, keep, `0s start starting
0s phase starting
0s open starting (the recording stops here, without a verdict)
0s start starting
0s phase starting
0s open starting (the recording stops here, without a verdict)
`},
		{"a turn that just stops", func(s *scribe) {
			s.run(monitor.Policy{})
			s.line(1, initLine)
		}, keep, `0s start starting
0s phase starting
1.0s phase thinking
1.0s open thinking (the recording stops here, without a verdict)
`},
		{"lines in pieces: each a sign of life, together one event", func(s *scribe) {
			s.run(alone())
			s.part(1, startLine[:20], false)
			s.part(50, startLine[20:40], false)
			s.part(100, startLine[40:], true)
			s.line(110, okLine[:len(okLine)-2])
			s.part(111, okLine, true)
		}, keep, `0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase thinking until 1m1s
1m40s phase tools until 3m40s
1m51s phase draining until 1m56s
1m51s open draining until 1m56s (the recording stops here, without a verdict; the next deadline is at 1m56s)
`},
		{"lingering", func(s *scribe) {
			s.run(alone())
			s.line(1, okLine)
			s.record(6, "lingering", slog.Int("pid", 1))
			s.record(7, "agent_exit")
		}, keep, `0s start starting until 1m0s
0s phase starting until 1m0s
1.0s phase draining until 6s
6.0s verdict draining until 6s (lingering)
6.0s recorded draining until 6s (lingering after the result)
7.0s exit draining until 6s (the agent's process ended)
`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if _, got := replayed(t, write(t, row.tell), row.adjust); got != row.want {
				t.Errorf("told\n%swant\n%s", got, row.want)
			}
		})
	}
}

// TestReplayIsTheLiveVerdict: lines, and holds that are told late, by chance; a
// monitor that hears of them as they come says what the replay says.
func TestReplayIsTheLiveVerdict(t *testing.T) {
	lines := []string{initLine, thinkLine, thinkLine, startLine, startLine, doneLine, retryLine, "no json", okLine}
	policy := monitor.Policy{
		Startup: 40 * time.Second, Idle: 60 * time.Second, ToolGrace: time.Second, Tool: 70 * time.Second,
		Background: 90 * time.Second, Reconnect: 80 * time.Second, ExitGrace: 5 * time.Second, Max: 600 * time.Second,
	}
	verdicts := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		live := monitor.New(policy, at(0))
		var want monitor.Verdict
		log := write(t, func(s *scribe) {
			s.run(policy)
			now := 0.0
			for range 30 {
				now += float64(rnd.IntN(45_000)) / 1000
				if rnd.IntN(4) == 0 {
					to := now
					now += float64(1+rnd.IntN(120_000)) / 1000
					if next := live.Next(at(now)); !next.IsZero() && !next.After(at(to)) {
						now = to // it was over before
					} else {
						live.Held(at(to), at(now))
						s.held(now, to, now)
					}
				}
				if next := live.Next(at(now)); !next.IsZero() && !next.After(at(now)) {
					want = live.Judge(next)
					if want.Reason != nil {
						s.verdict("hang_detected", want.Reason)
					}
					return
				}
				line := lines[rnd.IntN(len(lines))]
				ev := events.Parse([]byte(line))
				live.Observe(at(now), &ev)
				s.line(now, line)
			}
		})
		all, text := replayed(t, log, keep)
		got := of(all, "verdict")
		if want.State == "" {
			if len(got) > 0 {
				t.Errorf("seed %d: a verdict of its own:\n%s", seed, text)
			}
			continue
		}
		if want.Reason == nil {
			continue // lingering: nothing comes after it that would bring the time up
		}
		verdicts++
		if len(got) != 1 {
			t.Errorf("seed %d: %d verdicts:\n%s", seed, len(got), text)
			continue
		}
		x, _ := json.Marshal(got[0].Reason)
		y, _ := json.Marshal(of(all, "recorded")[0].Reason)
		z, _ := json.Marshal(want.Reason)
		if !bytes.Equal(x, z) || !bytes.Equal(y, z) {
			t.Errorf("seed %d:\nreplay   %s\nrecorded %s\nlive     %s", seed, x, y, z)
		}
	}
	if verdicts < 50 {
		t.Errorf("only %d verdicts: the test says little", verdicts)
	}
}

// TestTornLines: they are told, and what stands around them counts.
func TestTornLines(t *testing.T) {
	log := write(t, func(s *scribe) {
		s.run(alone())
		s.line(1, initLine)
		s.line(2, startLine)
		s.line(3, okLine)
	})
	lines := bytes.SplitAfter(log, []byte("\n"))
	log = append(bytes.Join(lines[:3], nil), "garbage\n"...)
	log = append(append(log, lines[3][:len(lines[3])/2]...), '\n')
	log = append(append(log, lines[4]...), `{"time":"2026-`...)
	all, text := replayed(t, log, keep)
	torn := of(all, "torn")
	if len(torn) != 3 || torn[0].Text != "log line 4: not a record" || torn[1].Text != "log line 5: torn raw_event record" {
		t.Errorf("torn: %+v", torn)
	}
	if strings.Contains(text, "tools") || !strings.Contains(text, "3.0s phase draining") {
		t.Errorf("told\n%s", text)
	}
}

// The end of a line in pieces was lost: what comes after it is not glued to it.
func TestTornPieces(t *testing.T) {
	log := write(t, func(s *scribe) {
		s.run(alone())
		s.part(1, thinkLine[:10], false)
		s.part(2, thinkLine[10:], true)
		s.line(3, initLine)
		s.part(4, okLine[:10], false)
		s.part(5, okLine[10:], true)
	})
	lines := bytes.SplitAfter(log, []byte("\n"))
	log = bytes.Join(append(lines[:3:3], lines[4:]...), nil) // without the end of the first
	if _, text := replayed(t, log, keep); !strings.Contains(text, "phase draining") {
		t.Errorf("the result was not seen:\n%s", text)
	}
}

// A result too long to be held ends the turn in a replay, too.
func TestOversizeResult(t *testing.T) {
	log := write(t, func(s *scribe) {
		s.run(alone())
		s.part(1, `{"type":"result","subtype":"success","is_error":false,"result":"`, false)
		for range 17 {
			s.part(1, strings.Repeat("x", 1<<20), false)
		}
		s.part(2, `"}`, true)
	})
	if _, text := replayed(t, log, keep); !strings.Contains(text, "2.0s phase draining") {
		t.Errorf("told\n%s", text)
	}
}

func TestNoRunInIt(t *testing.T) {
	for name, log := range map[string][]byte{
		"empty":     nil,
		"no turn":   write(t, func(s *scribe) { s.record(0, "run_start"); s.line(1, initLine) }),
		"something": []byte("not\na log\n"),
	} {
		if err := Replay(bytes.NewReader(log), keep, func(Moment) {}); err == nil || !strings.Contains(err.Error(), "no turn") {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := write(t, func(s *scribe) { s.record(0, "run_start", slog.String("policy", "x")); s.record(0, "turn_start") })
	if err := Replay(bytes.NewReader(bad), keep, func(Moment) {}); err == nil || !strings.Contains(err.Error(), "run_start") {
		t.Errorf("a policy that is none: %v", err)
	}
	broken := errors.New("broken")
	if err := Replay(iotest.ErrReader(broken), keep, func(Moment) {}); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// TestMomentJSON: the shape that --json prints.
func TestMomentJSON(t *testing.T) {
	log := write(t, func(s *scribe) {
		s.run(alone())
		s.line(1.5, initLine)
		s.line(70, okLine)
	})
	all, _ := replayed(t, log, keep)
	var got strings.Builder
	for _, m := range all {
		if err := json.NewEncoder(&got).Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	const want = `{"at":1769601600000,"elapsed_ms":0,"what":"start","phase":"starting","deadline":1769601660000}
{"at":1769601600000,"elapsed_ms":0,"what":"phase","phase":"starting","deadline":1769601660000}
{"at":1769601601500,"elapsed_ms":1500,"what":"phase","phase":"thinking","deadline":1769601661500}
{"at":1769601661500,"elapsed_ms":61500,"what":"verdict","phase":"thinking","deadline":1769601661500,"text":"hung, idle: idle 1m0s, 0 open tool calls, last event system/init","reason":{"kind":"idle","phase":"thinking","summary":"idle 1m0s, 0 open tool calls, last event system/init","at":1769601661500,"deadline":1769601661500,"limit_ms":60000,"silence_ms":60000,"no_progress_ms":60000,"elapsed_ms":61500,"last_event":"system/init","reconnect_attempts":0,"witness":"stream","open_calls":[],"background":[]}}
{"at":1769601670000,"elapsed_ms":70000,"what":"phase","phase":"draining","deadline":1769601675000}
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

// alone are thresholds under which the stream alone decides.
func alone() monitor.Policy {
	p := monitor.Default()
	p.Confirm = false
	return p
}
