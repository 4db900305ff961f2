package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/events"
)

// start is when every test's log begins.
var start = time.Date(2026, 11, 21, 19, 7, 44, 123e6, time.UTC)

// memFile is a file in memory that takes up to room bytes.
type memFile struct {
	mu      sync.Mutex
	data    []byte
	room    int // bytes until ENOSPC; negative: no end
	writes  int // calls of writev
	largest int // bytes of the largest
	syncs   int
	syncErr error
	closed  bool
}

func newMemFile() *memFile { return &memFile{room: -1} }

func (f *memFile) writev(vec [][]byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	written := 0
	defer func() { f.largest = max(f.largest, written) }()
	for i, s := range vec {
		take := len(s)
		if f.room >= 0 {
			take = min(take, f.room)
			f.room -= take
		}
		f.data = append(f.data, s[:take]...)
		written += take
		if take < len(s) {
			return written, unix.ENOSPC
		}
		vec[i] = nil // the contract lets it
	}
	return written, nil
}

func (f *memFile) sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	return f.syncErr
}

func (f *memFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func (f *memFile) grow(room int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = room
}

func (f *memFile) bytes() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.data)
}

func (f *memFile) synced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// warnings collects what the log tells.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) add(msg string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, msg)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.list...)
}

// memLog is a log on f.
func memLog(t testing.TB, f file, o Options) *Log {
	l := newLog(f, "/logs/test.jsonl", start.UnixMilli(), o)
	t.Cleanup(func() { l.Close() })
	return l
}

// openLog is a log in a fresh directory.
func openLog(t testing.TB, o Options) *Log {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Start.IsZero() {
		o.Start = start
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// storage says how a line may stand, as events.Parse does. The record puts one
// level of nesting around it, and json.Valid has a limit.
func storage(line []byte) events.Storage {
	switch {
	case !utf8.Valid(line):
		return events.AsBase64
	case json.Valid(line) && json.Valid([]byte("["+string(line)+"]")):
		return events.AsJSON
	}
	return events.AsText
}

// readAll reads a whole log; lines that are no records are counted.
func readAll(t testing.TB, data []byte) (records []Record, torn int) {
	t.Helper()
	for rec, err := range Read(bytes.NewReader(data)) {
		if _, ok := errors.AsType[*TornError](err); ok {
			torn++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		rec.Raw, rec.Fields = bytes.Clone(rec.Raw), bytes.Clone(rec.Fields)
		records = append(records, rec)
	}
	return records, torn
}

// messages are the records' messages, in order.
func messages(records []Record) string {
	var list []string
	for _, r := range records {
		list = append(list, r.Msg)
	}
	return strings.Join(list, " ")
}

// checkLines fails unless every line of the log is one valid JSON object.
func checkLines(t testing.TB, data []byte) {
	t.Helper()
	if len(data) > 0 && data[len(data)-1] != '\n' {
		t.Fatalf("the log ends inside a line: …%q", data[max(0, len(data)-80):])
	}
	for line := range bytes.Lines(data) {
		if !json.Valid(line) || line[0] != '{' {
			t.Fatalf("not a JSON object: %.300q", line)
		}
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
