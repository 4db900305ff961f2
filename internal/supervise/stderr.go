package supervise

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"
	"unicode/utf8"
)

const (
	tailSize   = 8 << 10  // of stderr, kept for reports
	stderrLine = 8 << 10  // the longest stretch of stderr in one record
	stderrRead = 32 << 10 // one read of stderr
	headMax    = 1 << 10  // of stderr, looked at for a known refusal
	flushEvery = 128 << 10

	// restMost bounds what is read once the tree is gone. It is more than a
	// pipe or a terminal can hold.
	restMost = 1 << 20
)

// drain empties the agent's stderr, so that nothing it says there can ever
// stop it, passes it on as it is, logs it by lines as a person reads them, and
// keeps the end of those.
type drain struct {
	src  Source
	log  Log
	to   io.Writer // never blocks
	now  func() time.Time
	done chan struct{}

	spoke chan struct{} // told that something came; nil for nobody

	// Read by the owner once done is closed.
	head  []byte // a refusal may be one line of 200 KB that begins with its reason
	tail  []byte
	bytes int64

	line      []byte // the beginning of one, as it was written
	screen    screen
	text      []byte // what a person reads of a piece
	unflushed int    // bytes recorded since the log was last waited for
}

func newDrain(src Source, log Log, to io.Writer, now func() time.Time) *drain {
	return &drain{src: src, log: log, to: to, now: now, done: make(chan struct{})}
}

// run returns at the end of the stream or after stop.
func (d *drain) run() {
	defer close(d.done)
	buf := make([]byte, stderrRead)
	for {
		n, err := d.src.Read(buf)
		d.take(buf[:n])
		if err != nil {
			break
		}
	}
	d.rest(buf)
	d.record(d.line)
}

// rest takes what is there at this moment, and not much more: it was written
// before stop was called, and who still holds the other end may write on
// without us. A terminal does not say at once how much there is.
func (d *drain) rest(buf []byte) {
	_ = d.src.SetReadDeadline(time.Time{})
	for most := restMost; most > 0; {
		left, err := d.src.Buffered()
		if err != nil || left == 0 {
			return
		}
		n, err := d.src.Read(buf[:min(left, len(buf))])
		d.take(buf[:n])
		most -= n
		if errors.Is(err, os.ErrDeadlineExceeded) { // stop's, and a moment late
			err = d.src.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return
		}
	}
}

// stop ends the drain once it has read what is there.
func (d *drain) stop() { _ = d.src.SetReadDeadline(time.Unix(1, 0)) }

func (d *drain) take(b []byte) {
	if len(b) == 0 {
		return
	}
	select {
	case d.spoke <- struct{}{}:
	default:
	}
	d.bytes += int64(len(b))
	d.unflushed += len(b)
	_, _ = d.to.Write(b) // the log has it, whoever does not read
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		switch {
		case i >= 0:
			d.record(append(d.line, b[:i+1]...))
			d.line, b = d.line[:0], b[i+1:]
		case len(d.line)+len(b) >= stderrLine:
			line := append(d.line, b...)
			whole := wholeRunes(line)
			d.record(line[:whole])
			d.line, b = append(d.line[:0], line[whole:]...), nil
		default:
			d.line, b = append(d.line, b...), nil
		}
	}
	if d.unflushed > flushEvery {
		d.log.Flush() // a flood waits for the disk here, where nobody waits for us
		d.unflushed = 0
	}
}

// record logs a line, or the beginning of one, in pieces.
func (d *drain) record(line []byte) {
	for len(line) > 0 {
		n := len(line)
		if n > stderrLine {
			n = wholeRunes(line[:stderrLine])
		}
		d.piece(line[:n])
		line = line[n:]
	}
}

// piece logs what a person reads of a piece, and where that is not all of it,
// the bytes beside it.
func (d *drain) piece(raw []byte) {
	d.text = d.screen.show(d.text[:0], raw)
	valid := utf8.Valid(raw)
	if !valid { // nor may two halves that are none meet and become a control character
		d.text = bytes.ToValidUTF8(d.text, []byte("\uFFFD"))
	}
	d.head = append(d.head, d.text[:min(len(d.text), headMax-len(d.head))]...)
	d.tail = append(d.tail, d.text...)
	d.tail = d.tail[max(0, len(d.tail)-tailSize):]

	text := bytes.TrimSuffix(d.text, []byte("\n"))
	raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	attrs := []slog.Attr{slog.String("text", string(text))}
	switch {
	case len(raw) == 0:
		return
	case !valid:
		attrs = append(attrs, slog.String("raw_b64", base64.StdEncoding.EncodeToString(raw)))
	case !bytes.Equal(raw, text):
		attrs = append(attrs, slog.String("raw_text", string(raw)))
	}
	d.log.Record(d.now(), slog.LevelInfo, "stderr", attrs...)
}

// wholeRunes is the length of b without a character that is cut off at its end.
func wholeRunes(b []byte) int {
	for n := len(b); n > 0 && n > len(b)-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n-1]) {
			if utf8.FullRune(b[n-1:]) {
				return len(b)
			}
			return n - 1
		}
	}
	return len(b)
}
