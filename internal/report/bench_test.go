package report

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"cursor-wrap/internal/monitor"
)

// longLog is a log of about so many lines of the agent: thinking and speech in
// pieces, and calls.
func longLog(t testing.TB, lines int) []byte {
	return write(t, func(s *scribe) {
		s.record(0, "run_start", slog.String("run_id", "r1"), slog.Any("policy", monitor.Default()))
		s.record(0, "turn_start")
		now := 0.1
		s.line(now, initLine)
		for n := 1; n < lines; {
			for i := range 12 {
				now += 0.02
				s.line(now, fmt.Sprintf(`{"type":"thinking","subtype":"delta","text":"some words %d about token counts","session_id":"s1","timestamp_ms":%d}`, i, n))
			}
			for i := range 6 {
				now += 0.02
				s.line(now, fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"word %d of it "}]},"session_id":"s1","timestamp_ms":%d}`, i, n))
			}
			s.line(now, fmt.Sprintf(`{"type":"tool_call","subtype":"started","call_id":"c%d","tool_call":{"shellToolCall":{"args":{"command":"make %d","timeout":90000}}}}`, n, n))
			now += 0.3
			s.line(now, fmt.Sprintf(`{"type":"tool_call","subtype":"completed","call_id":"c%d","tool_call":{"shellToolCall":{"args":{"command":"make %d","timeout":90000},"result":{"success":{"exitCode":0,"stdout":"%0300d"}}}}}`, n, n, n))
			n += 20
		}
		s.line(now, okLine)
	})
}

func BenchmarkRead(b *testing.B) {
	log := longLog(b, 100_000)
	m := NewMask([]string{"API_KEY=sk-1234567890abcdef", "GITHUB_TOKEN=ghp_abcdefghijklmnop", "DB_PASSWORD=hunter2hunter2", "SOME_SECRET=a/b\"c&d e"})
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(log), m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	story, err := Read(bytes.NewReader(longLog(b, 100_000)), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range Formats {
		b.Run(format, func(b *testing.B) {
			for b.Loop() {
				if err := Write(io.Discard, format, story); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}
