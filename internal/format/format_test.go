package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/events"
)

// Lines as the agent writes them.
const (
	okLine    = `{"type":"result","subtype":"success","is_error":false,"result":"a"}`
	laterLine = `{"type":"result","subtype":"success","is_error":false,"result":"b"}`
	otherLine = `{"type":"thinking","subtype":"delta"}`
)

var failure = &Failure{
	Subtype: "hang", Message: "idle <1m0s> & \"nothing\"", SessionID: "s", Duration: 1500 * time.Millisecond,
	Wrapper: map[string]int{"exit_code": 2},
}

const (
	failureSystem = `{"type":"system","subtype":"cursor_cli_error","reason":"hang","message":"idle <1m0s> & \"nothing\"","session_id":"s"}` + "\n"
	failureResult = `{"type":"result","subtype":"hang","is_error":true,"duration_ms":1500,"result":"idle <1m0s> & \"nothing\"","errors":[],"session_id":"s","wrapper":{"exit_code":2}}` + "\n"
)

// give hands over a line as the pump does: whole, or in pieces with what its
// head tells.
func give(o Output, line string, pieces int) {
	if pieces == 0 {
		ev := events.Parse([]byte(line))
		o.Line([]byte(line), &ev)
		return
	}
	ev := events.ParseHead([]byte(line)[:len(line)-10])
	size := len(line) / pieces
	for range pieces - 1 {
		o.Part([]byte(line[:size]), &ev, false)
		line = line[size:]
	}
	o.Part([]byte(line), &ev, false)
	o.Part(nil, &ev, true) // the last piece may be empty
}

type said struct {
	line   string
	pieces int
}

// TestResult: one line at the end, the last result or the failure.
func TestResult(t *testing.T) {
	long := strings.Replace(okLine, `"a"`, `"`+strings.Repeat("x", 5000)+`"`, 1)
	rows := []struct {
		name string
		said []said
		f    *Failure
		want string
	}{
		{"nothing was said", nil, nil, ""},
		{"a result among other lines", []said{{otherLine, 0}, {okLine, 0}, {otherLine, 0}, {"no json", 0}}, nil, okLine + "\n"},
		{"of several the last one", []said{{okLine, 0}, {laterLine, 0}}, nil, laterLine + "\n"},
		{"a shorter one behind a longer one", []said{{long, 0}, {okLine, 0}}, nil, okLine + "\n"},
		{"too long to be held", []said{{otherLine, 0}, {long, 4}}, nil, long + "\n"},
		{"too long, another long line behind it", []said{{long, 4}, {strings.Replace(long, "result", "message", 1), 3}}, nil, long + "\n"},
		{"too long, then a short one", []said{{long, 4}, {okLine, 0}}, nil, okLine + "\n"},
		{"a short one, then one too long", []said{{okLine, 0}, {long, 4}}, nil, long + "\n"},
		{"a failure", []said{{otherLine, 0}}, failure, failureResult},
		{"a failure, whatever was kept", []said{{okLine, 0}}, failure, failureResult},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var w bytes.Buffer
			r := NewResult(&w)
			for _, s := range row.said {
				give(r, s.line, s.pieces)
				if err := r.Forward([]byte(s.line + "\n")); err != nil || w.Len() > 0 {
					t.Fatalf("wrote %q before the end (%v)", w.String(), err)
				}
			}
			if err := r.Finish(row.f); err != nil || w.String() != row.want {
				t.Errorf("%v, wrote %.300q\nwant %.300q", err, w.String(), row.want)
			}
		})
	}
}

// Two results of which both are too long to be held are two lines.
func TestTwoLongResults(t *testing.T) {
	var w bytes.Buffer
	r := NewResult(&w)
	give(r, okLine, 3)
	give(r, otherLine, 0)
	give(r, laterLine, 3)
	if err := r.Finish(nil); err != nil || w.String() != laterLine+"\n" {
		t.Errorf("%v, wrote %q", err, w.String())
	}
}

// The line that is handed over is used again by its owner.
func TestResultKeepsACopy(t *testing.T) {
	var w bytes.Buffer
	r := NewResult(&w)
	line := []byte(okLine)
	ev := events.Parse(line)
	r.Line(line, &ev)
	clear(line)
	if err := r.Finish(nil); err != nil || w.String() != okLine+"\n" {
		t.Errorf("wrote %q", w.String())
	}
}

// TestStream: byte for byte in the same writes, and nothing of its own but a
// failure.
func TestStream(t *testing.T) {
	rows := []struct {
		name   string
		blocks []string
		f      *Failure
		want   string // behind the blocks
	}{
		{"a healthy run", []string{"a\n", "b"}, nil, ""},
		{"a failure", []string{"a\n"}, failure, failureSystem + failureResult},
		{"a failure behind half a line", []string{"a\n", "b"}, failure, "\n" + failureSystem + failureResult},
		{"a failure behind a lone CR", []string{"a\r"}, failure, "\n" + failureSystem + failureResult},
		{"a failure and nothing else", nil, failure, failureSystem + failureResult},
		{"an empty block writes nothing", []string{"", "a\n", ""}, failure, failureSystem + failureResult},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := &writes{}
			s := NewStream(w)
			for _, b := range row.blocks {
				give(s, okLine, 0)
				give(s, okLine, 2)
				if err := s.Forward([]byte(b)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Finish(row.f); err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(w.all, ""), strings.Join(row.blocks, "")+row.want; got != want {
				t.Errorf("wrote %q\nwant %q", got, want)
			}
			if row.f != nil && w.all[len(w.all)-1] != row.want {
				t.Errorf("the failure came in several writes: %q", w.all)
			}
			for _, b := range w.all {
				if b == "" {
					t.Error("an empty write")
				}
			}
		})
	}
}

// NUL is a byte like any other: it is not the mark of an empty stream.
func TestStreamThatEndsInNUL(t *testing.T) {
	var w bytes.Buffer
	s := NewStream(&w)
	_ = s.Forward([]byte("a\x00"))
	if err := s.Finish(failure); err != nil || !strings.HasPrefix(w.String(), "a\x00\n{") {
		t.Errorf("%v, wrote %q", err, w.String())
	}
}

type writes struct{ all []string }

func (w *writes) Write(b []byte) (int, error) {
	w.all = append(w.all, string(b))
	return len(b), nil
}

type broken struct{ takes int }

var errBroken = errors.New("broken")

func (w broken) Write(b []byte) (int, error) { return min(w.takes, len(b)), errBroken }

func TestErrorsAreTheWriters(t *testing.T) {
	for _, o := range []Output{NewStream(broken{}), NewStream(broken{1}), NewResult(broken{})} {
		give(o, okLine, 0)
		if _, ok := o.(*Stream); ok {
			if err := o.Forward([]byte("abc")); !errors.Is(err, errBroken) {
				t.Errorf("Forward: %v", err)
			}
		}
		if err := o.Finish(failure); !errors.Is(err, errBroken) {
			t.Errorf("Finish: %v", err)
		}
	}
}

// TestFailureIsOneLineOfJSON whatever is in it.
func TestFailureIsOneLineOfJSON(t *testing.T) {
	f := *failure
	f.Message, f.Errors = "two\nlines \x00 \xff \u2028", []string{"Error:\n\tat <x>\r\n"}
	system, result := f.lines()
	for _, b := range [][]byte{system, result} {
		if bytes.Count(b, []byte("\n")) != 1 || b[len(b)-1] != '\n' || !json.Valid(b) {
			t.Errorf("%q", b)
		}
		if ev := events.Parse(bytes.TrimSuffix(b, []byte("\n"))); ev.Kind != events.System && (ev.Ended == nil || !ev.Ended.IsError) {
			t.Errorf("our own parser takes it for %+v", ev)
		}
	}
}
