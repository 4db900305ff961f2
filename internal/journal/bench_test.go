package journal

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"testing"

	"cursor-wrap/internal/events"
)

// small is the commonest line, 172 bytes with its newline.
var small = []byte(`{"type":"thinking","subtype":"delta","text":" considering","session_id":"c6b62c6f-7ead-4fd6-9922-e952131177ff","timestamp_ms":1770823845400,"model_call_id":"m-1234567"}`)

// benchmarkBatches commits batches of 64 KiB of small lines, as a pipe gives
// them, and starts the file over before it fills a memory file system.
func benchmarkBatches(b *testing.B, f *os.File, sync Sync) {
	l := memLog(b, &osFile{f}, Options{Sync: sync, Level: -4})
	b.SetBytes(int64(len(small) + 1))
	b.ReportAllocs()
	const batch = 380
	for i := 0; b.Loop(); i++ {
		if i%batch == 0 {
			l.Begin(start)
		}
		l.Line(small, "\n", events.AsJSON)
		if i%batch == batch-1 {
			l.Commit()
		}
		if i%1_000_000 == 0 {
			_ = f.Truncate(0) // not every file can
		}
	}
	l.Commit()
}

func BenchmarkSmallNull(b *testing.B) {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	benchmarkBatches(b, f, None)
}

func BenchmarkSmallFile(b *testing.B) {
	for _, sync := range []Sync{None, Written, Always} {
		b.Run("sync="+string(sync), func(b *testing.B) {
			f, err := os.CreateTemp(b.TempDir(), "")
			if err != nil {
				b.Fatal(err)
			}
			benchmarkBatches(b, f, sync)
		})
	}
}

// A line that is not copied, 16 MiB.
func BenchmarkHugeNull(b *testing.B) {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	l := memLog(b, &osFile{f}, Options{Sync: None, Level: -4})
	line := bytes.Repeat([]byte("x"), 16<<20)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		l.Begin(start)
		l.Line(line, "\n", events.AsJSON)
		l.Commit()
	}
}

func BenchmarkPart(b *testing.B) {
	for name, unit := range map[string]string{
		"clean":   "words without anything to escape, ",
		"escapes": "a line of text that ends, of some seventy bytes, with a newline here\n",
		"wide":    "Wörter, in denen ab und zu ein Umlaut steht, ",
		"binary":  "\xff\x00\xfe",
	} {
		b.Run(name, func(b *testing.B) {
			f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			l := memLog(b, &osFile{f}, Options{Sync: None, Level: -4})
			piece := bytes.Repeat([]byte(unit), 1<<20/len(unit))
			b.SetBytes(int64(len(piece)))
			b.ReportAllocs()
			for b.Loop() {
				l.Begin(start)
				l.Part(piece, false, "")
				l.Commit()
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	l := memLog(b, &osFile{f}, Options{Sync: None})
	b.ReportAllocs()
	for b.Loop() {
		l.Record(start, slog.LevelInfo, "sample", slog.Int("alive", 12), slog.String("state", "busy"))
	}
}

func BenchmarkWriteRaw(b *testing.B) {
	f := newMemFile()
	l := memLog(b, f, Options{Sync: None, Level: -4})
	l.Begin(start)
	for range 10_000 {
		l.Line(small, "\n", events.AsJSON)
	}
	l.Commit()
	log := f.bytes()
	b.SetBytes(int64(10_000 * (len(small) + 1)))
	for b.Loop() {
		if _, err := WriteRaw(io.Discard, bytes.NewReader(log)); err != nil {
			b.Fatal(err)
		}
	}
}
