package supervise

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"cursor-wrap/internal/format"
	"cursor-wrap/internal/journal"
)

// memory is a source that has everything already.
type memory struct{ bytes.Reader }

func (*memory) SetReadDeadline(time.Time) error { return nil }
func (m *memory) Buffered() (int, error)        { return m.Len(), nil }

func BenchmarkPump(b *testing.B) {
	line := []byte(`{"type":"thinking","subtype":"delta","text":" one more token or two of it","session_id":"5f6c1c0e-7a53-4a39-8f43-7a6b1f0a9d11","timestamp_ms":1791038761002}` + "\n")
	input := bytes.Repeat(line, 100_000)
	for _, sync := range []journal.Sync{journal.Written, journal.Always} {
		b.Run(fmt.Sprintf("small/%s", sync), func(b *testing.B) {
			log, err := journal.Open(journal.Options{Dir: b.TempDir(), Start: time.Now(), Sync: sync, Level: slog.LevelDebug})
			if err != nil {
				b.Fatal(err)
			}
			defer log.Close()
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			for b.Loop() {
				src := &memory{}
				src.Reset(input)
				p := newPump(reserve(b), src, log, format.NewStream(null), NewClock())
				go p.run()
				for batch := range p.batches {
					p.spare <- batch
				}
			}
		})
	}
}
