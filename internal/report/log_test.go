package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
)

var epoch = time.Date(2026, 1, 28, 12, 0, 0, 0, time.UTC)

// at is a moment of a test, in seconds since the start of the log.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond))
}

const (
	initLine  = `{"type":"system","subtype":"init","session_id":"s1"}`
	thinkLine = `{"type":"thinking","subtype":"delta","text":"x"}`
	startLine = `{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"make","timeout":90000}}}}`
	doneLine  = `{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"make"},"result":{"success":{}}}}}`
	retryLine = `{"type":"retry","subtype":"starting"}`
	okLine    = `{"type":"result","subtype":"success","is_error":false,"session_id":"s1"}`
)

// scribe writes a session log through the real journal.
type scribe struct {
	t   testing.TB
	log *journal.Log
}

func write(t testing.TB, tell func(*scribe)) []byte {
	t.Helper()
	log, err := journal.Open(journal.Options{Dir: t.TempDir(), Start: epoch, Sync: journal.None, Level: slog.LevelDebug})
	if err != nil {
		t.Fatal(err)
	}
	tell(&scribe{t, log})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *scribe) run(p monitor.Policy) {
	s.record(0, "run_start", slog.Any("policy", p))
	s.record(0, "turn_start")
}

func (s *scribe) line(seconds float64, line string) {
	s.log.Begin(at(seconds))
	s.log.Line([]byte(line), "\n", events.Parse([]byte(line)).Storage)
	s.log.Commit()
}

func (s *scribe) part(seconds float64, piece string, last bool) {
	s.log.Begin(at(seconds))
	s.log.Part([]byte(piece), last, "\n")
	s.log.Commit()
}

func (s *scribe) record(seconds float64, msg string, attrs ...slog.Attr) {
	s.log.Record(at(seconds), slog.LevelInfo, msg, attrs...)
	s.log.Flush() // in order with the lines, whoever is quicker
}

func (s *scribe) held(told, from, to float64) {
	s.record(told, "held", slog.Int64("from", at(from).UnixMilli()), slog.Int64("to", at(to).UnixMilli()), slog.String("by", "reader"))
}

// verdict records a Reason as the live run does, member by member.
func (s *scribe) verdict(msg string, r *monitor.Reason) {
	s.t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		s.t.Fatal(err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &members); err != nil {
		s.t.Fatal(err)
	}
	var attrs []slog.Attr
	for key, value := range members {
		attrs = append(attrs, slog.Any(key, value))
	}
	s.log.Record(r.At.Time, slog.LevelError, msg, attrs...)
	s.log.Flush()
}

func keep(*monitor.Policy) {}

// replayed is what a replay tells, and each moment in one line.
func replayed(t *testing.T, log []byte, adjust func(*monitor.Policy)) (all []Moment, text string) {
	t.Helper()
	err := Replay(bytes.NewReader(log), adjust, func(m Moment) { all = append(all, m) })
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%s %s %s", m.Elapsed, m.What, m.Phase)
		if m.Deadline != nil {
			fmt.Fprintf(&b, " until %s", m.Deadline.Sub(m.At.Add(-time.Duration(m.Elapsed))))
		}
		if m.Text != "" {
			fmt.Fprintf(&b, " (%s)", m.Text)
		}
		b.WriteString("\n")
	}
	return all, b.String()
}

func of(all []Moment, what string) []Moment {
	var some []Moment
	for _, m := range all {
		if m.What == what {
			some = append(some, m)
		}
	}
	return some
}
