package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cursor-wrap/internal/events"
)

// book is a session log in memory. It joins lines and parts as a reader of the
// journal does, and keeps the order of everything that happens to the bytes.
type book struct {
	mu        sync.Mutex
	raw       []byte // the agent's stdout, as a replay would write it back
	committed int    // how much of that is safe
	lines     int
	pieces    int
	live      int // bytes in pieces since the last commit
	liveMax   int
	recv      time.Time
	recvs     []time.Time // of every line and part
	order     []string
	early     string // the first violation: bytes forwarded before they were safe
	synthetic bool   // our own lines come now, which the log need not have
	total     int    // forwarded
	records   []record
	flushes   int

	session    func(id string) // what renaming costs
	committing func()          // what the disk costs
}

// record is one decision.
type record struct {
	at    time.Time
	level slog.Level
	msg   string
	json  []byte // its attributes
}

func (r record) fields() map[string]any {
	m := map[string]any{}
	if err := json.Unmarshal(r.json, &m); err != nil {
		panic(err)
	}
	return m
}

func (l *book) Begin(recv time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recv = recv
}

func (l *book) add(b []byte, eol string) {
	l.raw = append(append(l.raw, b...), eol...)
	l.recvs = append(l.recvs, l.recv)
}

func (l *book) Line(line []byte, eol string, as events.Storage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if as == events.AsJSON && len(line) < 1<<20 && !json.Valid(line) {
		panic("a line that is no JSON is logged as such")
	}
	l.lines++
	l.add(line, eol)
}

func (l *book) Part(piece []byte, last bool, eol string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !last && eol != "" {
		panic("an ending in the middle of a line")
	}
	if last {
		l.lines++
	}
	l.pieces++
	l.live += len(piece)
	l.liveMax = max(l.liveMax, l.live)
	l.add(piece, eol)
}

func (l *book) Commit() {
	if l.committing != nil {
		l.committing()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed = len(l.raw)
	l.live = 0
	l.order = append(l.order, "commit")
}

// forwarded is told by the reader of stdout. A line may be safe up to its CR
// only while its LF is still to be read, so sizes compare exactly.
func (l *book) forwarded(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = append(l.order, "forward")
	l.total += len(b)
	if l.total > l.committed && !l.synthetic && l.early == "" {
		l.early = fmt.Sprintf("%d bytes forwarded, %d in the log: %.60q", l.total, l.committed, b)
	}
}

func (l *book) Record(at time.Time, level slog.Level, msg string, attrs ...slog.Attr) {
	var b bytes.Buffer
	r := slog.NewRecord(time.Time{}, level, "", 0)
	r.AddAttrs(attrs...)
	_ = slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(g []string, a slog.Attr) slog.Attr {
		if len(g) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}}).Handle(context.Background(), r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, record{at, level, msg, b.Bytes()})
	l.order = append(l.order, msg)
	l.synthetic = l.synthetic || msg == "teardown" || msg == "spawn_failed"
}

func (l *book) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushes++
}

func (l *book) SetSession(id string) error {
	if l.session != nil {
		l.session(id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = append(l.order, "session "+id)
	return nil
}

// all are the records with that message.
func (l *book) all(msg string) []record {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []record
	for _, r := range l.records {
		if r.msg == msg {
			some = append(some, r)
		}
	}
	return some
}

// held is how much time the held records tell of, and whether none of it twice.
func (l *book) held() (sum time.Duration, ok bool) {
	var end float64
	for _, r := range l.all("held") {
		f := r.fields()
		from, to := f["from"].(float64), f["to"].(float64)
		if from < end || to <= from {
			return sum, false
		}
		end = to
		sum += time.Duration(to-from) * time.Millisecond
	}
	return sum, true
}
