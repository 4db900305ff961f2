package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"testing"

	"cursor-wrap/internal/monitor"
)

// Whatever a log is, what is made of it can be read.
func FuzzRead(f *testing.F) {
	f.Add(leaky(f))
	f.Add(write(f, func(s *scribe) {
		s.run(monitor.Default())
		s.part(1, startLine[:20], false)
		s.part(2, startLine[20:], true)
		s.record(3, "paused")
		s.held(5, 4, 5)
		s.line(6, doneLine)
		s.line(6, "\xff\xfe no JSON \x00")
		s.record(7, "turn_start")
	}))
	f.Add([]byte(`{"time":"2026-01-28T12:00:00.000Z","level":"DEBUG","msg":"raw_event","recv_ts":9223372036854775807,"raw":{"type":"result","usage":{"inputTokens":9223372036854775807}}}`))
	f.Add([]byte(`{"time":"0000-01-28T12:00:00.000Z","level":"ERROR","msg":"hang_detected","ts":1,"evidence":{"tree":{"procs":[{"pid":-1,"still_ms":9223372036854775807}]}}}`))
	f.Add([]byte(`{"time":"2026-01-28T12:00:00.000Z","level":"INFO","msg":"run_end","ts":1,"outcome":"` + "]]>|" + `","took_ms":-1}`))
	m := NewMask([]string{"A_KEY=secret-one", `B_TOKEN=a"b\c{}d`})
	f.Fuzz(func(t *testing.T, log []byte) {
		s, err := Read(bytes.NewReader(log), m)
		if err != nil {
			return
		}
		for _, format := range Formats {
			var b bytes.Buffer
			if err := Write(&b, format, s); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			switch format {
			case "json":
				if !json.Valid(b.Bytes()) {
					t.Fatalf("no JSON: %s", b.Bytes())
				}
			case "trace":
				tracks(t, b.Bytes())
			case "junit":
				for d := xml.NewDecoder(&b); ; {
					if _, err := d.Token(); err == io.EOF {
						break
					} else if err != nil {
						t.Fatalf("no XML: %v", err)
					}
				}
			case "md":
				if b.Len() > MarkdownMost {
					t.Fatalf("%d bytes", b.Len())
				}
			}
		}
	})
}
