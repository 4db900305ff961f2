package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"time"
)

// ErrIncomplete says that a log does not hold everything that was to be kept
// in it: records were lost, or a line of it cannot be read.
var ErrIncomplete = errors.New("the log is incomplete")

// Record is one record of a log.
type Record struct {
	At    time.Time // when it was taken, to the millisecond, UTC
	Level slog.Level
	Msg   string

	// Raw records only. Raw is the line, or the piece of one, byte for byte as
	// the agent wrote it and without its ending; Recv is when it was read.
	Recv time.Time
	Raw  []byte
	End  bool   // a line ends with this record: always, but for the pieces before the last
	EOL  string // the ending where End is set: "\n", "\r\n", or "" for a last line that has none

	// Fields is the whole record as it stands in the log, for decisions and,
	// beside an error, for lines that cannot be read.
	Fields json.RawMessage
}

// IsRaw reports whether the record is a line of the agent, or a piece of one.
func (r *Record) IsRaw() bool { return !r.Recv.IsZero() }

// TornError is a line of the log that is no record: its end was lost when the
// disk was full or the machine died, or somebody edited the file. Reading goes
// on behind it.
type TornError struct {
	Line int64  // its number in the log, from 1
	Msg  string // the record's message where that much of it is left
}

func (e *TornError) Error() string {
	if e.Msg == "" {
		return fmt.Sprintf("log line %d: not a record", e.Line)
	}
	return fmt.Sprintf("log line %d: torn %s record", e.Line, e.Msg)
}

// Read yields the records of a log in order, of any length. A line that is no
// record comes with a *TornError and the next step goes on behind it; any other
// error is r's and the last thing that comes. A record's slices are valid until
// the next step.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := lineReader{from: bufio.NewReaderSize(r, 128<<10)}
		var p parser
		for n := int64(1); ; n++ {
			line, err := lines.next()
			if len(line) > 0 {
				rec, msg, ok := p.parse(line)
				var torn error
				if !ok {
					rec, torn = Record{Fields: line}, &TornError{n, msg}
				}
				if !yield(rec, torn) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
}

// lineReader reads lines of any length.
type lineReader struct {
	from *bufio.Reader
	long []byte // a line that does not fit from's buffer
}

// next returns a line without its newline, and the error that ended it early.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.from.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.long = append(l.long[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = l.from.ReadSlice('\n')
			l.long = append(l.long, line...)
		}
		line = l.long
	}
	return bytes.TrimSuffix(line, []byte{'\n'}), err
}

// WriteRaw writes the agent's stdout back, byte for byte, and says how many
// bytes that were. Where the log tells that lines are missing, by a gap that
// held raw records or by a torn line that may have been one, everything else is
// written and the error is an ErrIncomplete. A log that was kept above
// slog.LevelDebug holds no raw lines, which is no error.
func WriteRaw(w io.Writer, r io.Reader) (written int64, err error) {
	var lost, torn int64
	out := bufio.NewWriterSize(w, 128<<10)
	for rec, err := range Read(r) {
		if bad, ok := errors.AsType[*TornError](err); ok {
			if bad.mayBeRaw() {
				torn++
			}
			continue
		}
		switch {
		case err != nil:
			_ = out.Flush() // what was readable; the reason to stop matters more
			return written, fmt.Errorf("read session log: %w", err)
		case rec.Msg == logGap:
			lost += gapOf(rec.Fields)
		case rec.IsRaw():
			n, _ := out.Write(rec.Raw)
			m, err := out.WriteString(rec.EOL)
			written += int64(n + m)
			if err != nil {
				return written, err
			}
		}
	}
	switch err := out.Flush(); {
	case err != nil:
		return written, err
	case lost+torn > 0:
		return written, fmt.Errorf("%w: %d raw records lost, %d torn lines", ErrIncomplete, lost, torn)
	}
	return written, nil
}

// mayBeRaw reports whether bytes of the agent may be missing with the line. A
// gap whose own record is torn may stand for anything.
func (e *TornError) mayBeRaw() bool {
	switch e.Msg {
	case "", rawEvent, rawPart, logGap:
		return true
	}
	return false
}

// gapOf is how many raw records a log_gap stands for.
func gapOf(fields []byte) int64 {
	var gap struct {
		Raw *int64 `json:"raw_records"`
	}
	if json.Unmarshal(fields, &gap) != nil || gap.Raw == nil {
		return 1 // at least, as far as we can tell
	}
	return *gap.Raw
}
