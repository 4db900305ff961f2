package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/events"
)

func TestDecisionForm(t *testing.T) {
	l := openLog(t, Options{})
	at := time.Date(2026, 2, 11, 17, 30, 45, 400_999_999, time.FixedZone("CET", 7200))
	nasty := "quote \" newline \n tab \t nul \x00 bad \xff sep \u2028 }"
	l.Record(at, slog.LevelError, "hang_detected", slog.String("kind", nasty), slog.Int("n", 3),
		slog.Group("g", slog.Any("time", "x")), slog.Any("raw", json.RawMessage("{ \"a\":\n1}")),
		slog.Any("bad", func() {}), slog.String("msg", "again"))
	l.Record(time.Time{}, slog.LevelInfo, nasty)
	l.Flush()
	data := readFile(t, l.Path())
	checkLines(t, data)
	want := `{"time":"2026-02-11T15:30:45.400Z","level":"ERROR","msg":"hang_detected","ts":1770823845400,"kind":`
	if !strings.HasPrefix(string(data), want) {
		t.Errorf("got  %s\nwant %s…", data, want)
	}
	records, torn := readAll(t, data)
	if torn != 0 || len(records) != 2 {
		t.Fatalf("%d records, %d torn", len(records), torn)
	}
	r := records[0]
	if r.Msg != "hang_detected" || r.Level != slog.LevelError || !r.At.Equal(at.Truncate(time.Millisecond)) || r.IsRaw() {
		t.Errorf("read back as %+v", r)
	}
	var fields struct{ Kind string }
	if err := json.Unmarshal(r.Fields, &fields); err != nil || fields.Kind != strings.ReplaceAll(nasty, "\xff", "\ufffd") {
		t.Errorf("kind came back as %q, %v", fields.Kind, err)
	}
	if records[1].Msg != strings.ReplaceAll(nasty, "\xff", "\ufffd") {
		t.Errorf("message came back as %q", records[1].Msg)
	}
}

// The reader must not take a decision for a line because of its name.
func TestDecisionNamedLikeALine(t *testing.T) {
	l := openLog(t, Options{Level: -4})
	l.Record(start, slog.LevelDebug, rawEvent, slog.Int("recv_ts", 1), slog.String("raw_text", "x"))
	l.Close()
	data := readFile(t, l.Path())
	records, torn := readAll(t, data)
	if torn != 0 || len(records) != 1 || records[0].IsRaw() || records[0].Msg != rawEvent {
		t.Errorf("%d torn, %+v", torn, records)
	}
}

func TestDecisionsComeBeforeTheLinesOfTheirCommit(t *testing.T) {
	f := newMemFile()
	l := memLog(t, f, Options{Sync: None, Level: -4})
	l.Begin(start)
	l.Line([]byte("{}"), "\n", events.AsJSON)
	l.ioMu.Lock() // the flusher cannot be first
	l.Record(start, 0, "spawn")
	committed := make(chan struct{})
	go func() { defer close(committed); l.Commit() }()
	l.ioMu.Unlock()
	<-committed
	records, _ := readAll(t, f.bytes())
	if got := messages(records); got != "spawn raw_event" {
		t.Errorf("got %s", got)
	}
}

func TestLevelDropsWhatIsBelow(t *testing.T) {
	f := newMemFile()
	l := memLog(t, f, Options{Level: slog.LevelInfo})
	l.Begin(start)
	l.Line([]byte("{}"), "\n", events.AsJSON)
	l.Part([]byte("x"), true, "\n")
	l.Record(start, slog.LevelDebug, "sample")
	l.Commit()
	l.Flush()
	if f.writes != 0 {
		t.Errorf("wrote %q", f.data)
	}
	l.Record(start, slog.LevelInfo, "exit")
	l.Commit()
	l.Flush()
	if records, _ := readAll(t, f.bytes()); messages(records) != "exit" {
		t.Errorf("wrote %q", f.data)
	}
}

func TestRecordFromManyGoroutines(t *testing.T) {
	l := openLog(t, Options{Sync: Written, Level: -4})
	var wg sync.WaitGroup
	for g := range 10 {
		wg.Go(func() {
			for i := range 200 {
				l.Record(start, 0, "decision", slog.Int("g", g), slog.Int("i", i))
				if i%50 == 0 {
					l.Flush()
					l.Lost()
				}
			}
		})
	}
	wg.Go(func() {
		for range 200 {
			l.Begin(start)
			l.Line([]byte("{}"), "\n", events.AsJSON)
			l.Commit()
		}
	})
	wg.Go(func() {
		for i := range 20 {
			if err := l.SetSession(fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(l.Path()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data := readFile(t, l.Path())
	checkLines(t, data)
	next := map[int]int{}
	raw := 0
	records, _ := readAll(t, data)
	for _, r := range records {
		if r.IsRaw() {
			raw++
			continue
		}
		var d struct{ G, I int }
		if err := json.Unmarshal(r.Fields, &d); err != nil || d.I != next[d.G] {
			t.Fatalf("%s: %v, want number %d", r.Fields, err, next[d.G])
		}
		next[d.G]++
	}
	if raw != 200 || len(records) != 2200 {
		t.Errorf("%d raw records of 200, %d records of 2200", raw, len(records))
	}
}

// gate tells when a write begins.
type gate struct {
	file
	entered chan struct{}
	once    sync.Once
}

func (g *gate) writev(vec [][]byte) (int, error) {
	g.once.Do(func() { close(g.entered) })
	return g.file.writev(vec)
}

// A disk that does not answer, here a pipe that nobody reads, stops the pump
// but never the owner of the turn.
func TestRecordNeverWaitsForTheDisk(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g := &gate{file: &osFile{w}, entered: make(chan struct{})}
	var warned warnings
	l := newLog(g, "/logs/x.jsonl", 0, Options{Sync: None, Level: -4, Warn: warned.add})

	stream := bytes.Repeat([]byte("x"), 600<<10) // more than a pipe holds
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		feed(l, stream, nil)
	}()
	<-g.entered
	recorded := 0
	for lost := int64(0); lost == 0; lost, _ = l.Lost() {
		l.Record(start, 0, "decision", slog.String("text", strings.Repeat("y", 500)))
		l.Path()
		recorded++
	}
	select {
	case <-committed:
		t.Fatal("the write did not stall: nothing was tested")
	default:
	}
	if size := recorded * 580; size < pendingMax*9/10 || size > pendingMax*12/10 {
		t.Errorf("%d decisions were kept", recorded)
	}

	var data bytes.Buffer
	read := make(chan struct{})
	go func() { defer close(read); data.ReadFrom(r) }()
	<-committed
	l.Flush()
	l.Close()
	<-read
	checkLines(t, data.Bytes())
	records, _ := readAll(t, data.Bytes())
	if want := recorded - 1 + 1 + 1; len(records) != want { // one lost, one line, one log_gap
		t.Errorf("%d records, want %d", len(records), want)
	}
	var back bytes.Buffer
	if _, err := WriteRaw(&back, &data); err != nil || !bytes.Equal(back.Bytes(), stream) {
		t.Errorf("only a decision was lost, but: %v", err)
	}
	want := []string{"session log /logs/x.jsonl: the disk does not keep up; the run goes on, records are being lost"}
	if got := warned.all(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("warned %q", got)
	}
}

func TestAfterCloseEverythingIsLostAndNothingBreaks(t *testing.T) {
	f := newMemFile()
	var warned warnings
	l := memLog(t, f, Options{Level: -4, Warn: warned.add})
	l.Record(start, 0, "run_end")
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	size := len(f.bytes())
	l.Record(start, 0, "late")
	if n, _ := l.Lost(); n != 1 {
		t.Errorf("%d lost", n)
	}
	l.Begin(start)
	l.Line([]byte("{}"), "\n", events.AsJSON)
	l.Commit()
	l.Flush()
	if n, _ := l.Lost(); n != 2 || len(f.bytes()) != size || !f.closed {
		t.Errorf("%d lost, %q", n, f.bytes()[size:])
	}
	if got := warned.all(); len(got) != 0 {
		t.Errorf("warned %q", got)
	}
}

func TestWriteAll(t *testing.T) {
	var vec [][]byte
	for i := range 3000 {
		vec = append(vec, []byte(fmt.Sprint(i, ",")))
	}
	want := string(bytes.Join(vec, nil))
	var got []byte
	calls := 0
	n, err := writeAll(vec, func(some [][]byte) (int, error) {
		calls++
		if len(some) > 1024 {
			t.Fatalf("%d slices in one call", len(some))
		}
		flat := bytes.Join(some, nil)
		switch calls % 3 {
		case 0:
			return -1, unix.EINTR
		case 1:
			flat = flat[:(len(flat)+1)/2]
		}
		got = append(got, flat...)
		return len(flat), nil
	})
	if err != nil || n != len(want) || string(got) != want {
		t.Errorf("%d of %d bytes, %v", n, len(want), err)
	}
	if _, err := writeAll([][]byte{{1}}, func([][]byte) (int, error) { return 0, nil }); err == nil {
		t.Error("no progress, no error")
	}
}
