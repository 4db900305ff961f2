package journal

import (
	"context"
	"log/slog"
	"strconv"
	"time"
)

// pendingMax bounds, in bytes, the decisions that wait for a disk that does not
// answer. Thousands fit.
const pendingMax = 1 << 20

// spareMax bounds what is kept of that, in bytes, while there is nothing to do.
const spareMax = 64 << 10

// losses counts what did not reach the file.
type losses struct {
	records, raw, bytes int64 // raw is the share of records that were raw lines
}

func (a losses) plus(b losses) losses {
	return losses{a.records + b.records, a.raw + b.raw, a.bytes + b.bytes}
}

func (a losses) minus(b losses) losses {
	return losses{a.records - b.records, a.raw - b.raw, a.bytes - b.bytes}
}

// Record adds a decision: level and message as slog writes them, then `ts`, the
// moment at in Unix milliseconds, then attrs. It never waits for the disk, so
// that a stalled one cannot stop the owner of the turn: the record lies in
// memory until the pump's next Commit or the flusher takes it, and what exceeds
// a MiB meanwhile is counted as lost.
func (l *Log) Record(at time.Time, level slog.Level, msg string, attrs ...slog.Attr) {
	if level < l.level {
		return
	}
	if at.IsZero() {
		at = time.Unix(0, 0) // slog leaves a zero time out, and the frame must be whole
	}
	ms := at.UnixMilli()
	l.last.Store(ms)
	r := slog.NewRecord(at, level, msg, 0)
	r.AddAttrs(slog.Int64("ts", ms))
	r.AddAttrs(attrs...)
	_ = l.slog.Handle(context.Background(), r) // it writes to memory: no error
	l.nudge()
}

// Lost says how much did not reach the file, in records and in bytes.
func (l *Log) Lost() (records, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost.records, l.lost.bytes
}

// newEncoder makes the handler that turns a decision into a line of pending.
// It formats outside the lock; only the append is inside.
func newEncoder(l *Log) slog.Handler {
	return slog.NewJSONHandler(pendingWriter{l}, &slog.HandlerOptions{
		Level: l.level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
				a.Value = slog.StringValue(a.Value.Time().UTC().Format(timeLayout))
			}
			return a
		},
	})
}

// pendingWriter gets one whole record a Write.
type pendingWriter struct{ l *Log }

func (w pendingWriter) Write(p []byte) (int, error) {
	l := w.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed || len(l.pending)+len(p) > pendingMax {
		l.lost = l.lost.plus(losses{records: 1, bytes: int64(len(p))})
	} else {
		l.pending = append(l.pending, p...)
		l.waiting++
	}
	return len(p), nil
}

// take hands the pending decisions and the losses so far to whoever holds ioMu.
func (l *Log) take() (pending []byte, count int, lost losses) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pending, count = l.pending, l.waiting
	l.pending, l.waiting = l.spare[:0], 0
	return pending, count, l.lost
}

// lose adds to the losses and says what they are now.
func (l *Log) lose(some losses) losses {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = l.lost.plus(some)
	return l.lost
}

// appendGap tells a reader what is missing before this place. It is made by
// hand because it goes around pending, in front of it.
func (l *Log) appendGap(b []byte, gap losses) []byte {
	ms := l.last.Load()
	b = append(b, `{"time":"`...)
	b = appendTime(b, ms)
	b = append(b, `","level":"WARN","msg":"`+logGap+`","ts":`...)
	b = strconv.AppendInt(b, ms, 10)
	b = append(b, `,"records":`...)
	b = strconv.AppendInt(b, gap.records, 10)
	b = append(b, `,"raw_records":`...)
	b = strconv.AppendInt(b, gap.raw, 10)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, gap.bytes, 10)
	b = append(b, `,"cause":"`...)
	b = appendText(b, []byte(l.why().Error()))
	return append(b, "\"}\n"...)
}

// logGap is the message of the record that stands where records are missing.
const logGap = "log_gap"
