package journal

import (
	"encoding/base64"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"cursor-wrap/internal/events"
)

// Sizes in bytes.
const (
	copyMax  = 32 << 10  // a longer JSON line is written from where it lies
	textMax  = 1 << 20   // a longer line that must be encoded becomes parts
	pieceMax = 512 << 10 // of these
	earlyAt  = 2 << 20   // a batch that was copied together to this size is written before its Commit
	keepMax  = 4 << 20   // a larger buffer is given back after use
)

// The messages and the frame of raw records. The reader goes by them.
const (
	rawEvent   = "raw_event"
	rawPart    = "raw_part"
	timeLayout = "2006-01-02T15:04:05.000Z" // always UTC
)

// batch is what the pump has handed over since its last Commit. Short records
// are copied one after another; a long line stays where it is and is only
// referred to.
type batch struct {
	buf     []byte
	refs    []ref
	records int
}

// ref is a line that belongs into the batch before buf[at].
type ref struct {
	at   int
	line []byte
}

// vectors appends the batch's bytes in order.
func (b *batch) vectors(vec [][]byte) [][]byte {
	from := 0
	for _, r := range b.refs {
		vec = append(vec, b.buf[from:r.at], r.line)
		from = r.at
	}
	if from < len(b.buf) {
		vec = append(vec, b.buf[from:])
	}
	return vec
}

// reset empties the batch and gives back memory that only a rare one needs.
func (b *batch) reset() {
	b.buf = kept(b.buf, keepMax)
	clear(b.refs)
	b.refs = b.refs[:0]
	b.records = 0
}

// kept empties a buffer for its next use, or gives it up when it grew too large.
func kept(b []byte, limit int) []byte {
	if cap(b) > limit {
		return nil
	}
	return b[:0]
}

// Begin says when the lines that follow were read. Raw lines that arrived
// together share one Begin: it formats the time.
func (l *Log) Begin(recv time.Time) {
	ms := recv.UnixMilli()
	l.last.Store(ms)
	if ms == l.recv || !l.raw {
		return
	}
	l.recv = ms
	l.event = appendRawFrame(l.event[:0], ms, rawEvent)
	l.part = l.part[:0]
}

func appendRawFrame(b []byte, ms int64, msg string) []byte {
	b = append(b, `{"time":"`...)
	b = appendTime(b, ms)
	b = append(b, `","level":"DEBUG","msg":"`...)
	b = append(b, msg...)
	b = append(b, `","recv_ts":`...)
	b = strconv.AppendInt(b, ms, 10)
	return append(b, ',')
}

func appendTime(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, timeLayout)
}

// Line adds one whole line, without its ending eol. as is how it may stand in
// JSON: AsJSON only for valid JSON in valid UTF-8 (nested at most 9,999 deep,
// since the record adds a level that readers count), AsText only for valid
// UTF-8. The line must not change before Commit: a long one is not copied. One
// of more than a MiB that is not JSON is kept as parts, which bounds the
// memory that encoding it takes.
func (l *Log) Line(line []byte, eol string, as events.Storage) {
	switch {
	case !l.raw:
		return
	case as != events.AsJSON && len(line) > textMax:
		l.pieces(line, eol)
		return
	}
	b := append(l.batch.buf, l.event...)
	if eol != "\n" {
		b = appendEOL(b, eol)
	}
	switch as {
	case events.AsJSON:
		b = append(b, `"raw":`...)
		if len(line) > copyMax {
			l.batch.refs = append(l.batch.refs, ref{len(b), line})
		} else {
			b = append(b, line...)
		}
		b = append(b, "}\n"...)
	case events.AsText:
		b = appendRawText(b, line)
	default:
		b = appendRawBase64(b, line)
	}
	l.added(b)
}

// Part adds a piece of a line that comes in pieces, in order; last says that
// its line ends here, with eol. A piece may be empty and may be cut anywhere,
// inside a character too. It is at most some MiB and is copied.
func (l *Log) Part(piece []byte, last bool, eol string) {
	if !l.raw {
		return
	}
	if len(l.part) == 0 {
		l.part = appendRawFrame(l.part, l.recv, rawPart)
	}
	// Room for the frame and for some escapes, so that the copy of a large
	// piece is not copied again while it grows.
	b := slices.Grow(l.batch.buf, len(piece)+len(piece)/16+256)
	b = append(b, l.part...)
	if last {
		b = append(b, `"end":true,`...)
		if eol != "\n" {
			b = appendEOL(b, eol)
		}
	}
	if utf8.Valid(piece) {
		b = appendRawText(b, piece)
	} else {
		b = appendRawBase64(b, piece)
	}
	l.added(b)
}

// pieces adds a whole line as parts, cut between characters where it has any,
// so that text stays text.
func (l *Log) pieces(line []byte, eol string) {
	for len(line) > pieceMax {
		n := pieceMax
		for back := 1; back < utf8.UTFMax; back++ {
			if utf8.RuneStart(line[n]) {
				break
			}
			n--
		}
		l.Part(line[:n], false, "")
		line = line[n:]
	}
	l.Part(line, true, eol)
}

// added takes the grown buffer back. A batch that becomes large is written at
// once, which bounds the memory; Commit syncs it with the rest.
func (l *Log) added(b []byte) {
	l.batch.buf = b
	l.batch.records++
	if len(b) < earlyAt {
		return
	}
	if l.put(&l.batch) {
		l.early = true
	}
	l.batch.reset()
}

func appendEOL(b []byte, eol string) []byte {
	b = append(b, `"eol":"`...)
	b = appendText(b, []byte(eol))
	return append(b, `",`...)
}

func appendRawText(b, text []byte) []byte {
	b = append(b, `"raw_text":"`...)
	b = appendText(b, text)
	return append(b, "\"}\n"...)
}

func appendRawBase64(b, data []byte) []byte {
	b = append(b, `"raw_b64":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, "\"}\n"...)
}
