// Package format writes what the caller sees on stdout: the agent's stream as
// it is, or the one result line of it. It starts nothing and decides nothing.
package format

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"cursor-wrap/internal/events"
)

// Output takes the stream on its way to the caller. One goroutine calls it, and
// what it is given is only valid during the call. Line and Part come before the
// line is in the log, so they may only make ready; Forward comes after it and
// is the place to write. Errors are the writer's.
type Output interface {
	// Line takes a whole line without its end.
	Line(line []byte, ev *events.Event)
	// Part takes the next piece of a line that is too long to be held, and is
	// told which one is the last.
	Part(piece []byte, ev *events.Event, last bool)
	// Forward takes the next bytes of the stream, wherever they are cut.
	Forward(b []byte) error
	// Finish ends the stream; f is nil unless a failure is to be told in it.
	Finish(f *Failure) error
}

// Failure is a run that ended without a result of the agent's own.
type Failure struct {
	Subtype   string        // exec_error, no_result, hang or duration
	Message   string        // one sentence
	Errors    []string      // the end of the agent's stderr
	SessionID string        // empty where none was seen
	Duration  time.Duration // of the run
	Wrapper   any           // what the wrapper knows, as JSON

	// Note is set where the stream goes on: another turn, or another attempt at
	// this one, follows. It is the subtype of the wrapper's own line that then
	// stands in the place of a result: hang_detected or restart.
	Note   string
	Says   string // its message
	Reason any    // of a note, as JSON
}

// note is the line that says why the stream goes on without a result.
func (f *Failure) note() []byte {
	return line(struct {
		Type      string `json:"type"`
		Subtype   string `json:"subtype"`
		Message   string `json:"message"`
		SessionID string `json:"session_id"`
		Reason    any    `json:"reason,omitempty"`
	}{"wrapper", f.Note, f.Says, f.SessionID, f.Reason})
}

// lines are the two lines that tell a failure in the agent's own terms.
func (f *Failure) lines() (system, result []byte) {
	errs := f.Errors
	if errs == nil {
		errs = []string{}
	}
	system = line(struct {
		Type      string `json:"type"`
		Subtype   string `json:"subtype"`
		Reason    string `json:"reason"`
		Message   string `json:"message"`
		SessionID string `json:"session_id"`
	}{"system", "cursor_cli_error", f.Subtype, f.Message, f.SessionID})
	result = line(struct {
		Type       string   `json:"type"`
		Subtype    string   `json:"subtype"`
		IsError    bool     `json:"is_error"`
		DurationMS int64    `json:"duration_ms"`
		Result     string   `json:"result"`
		Errors     []string `json:"errors"`
		SessionID  string   `json:"session_id"`
		Wrapper    any      `json:"wrapper"`
	}{"result", f.Subtype, true, f.Duration.Milliseconds(), f.Message, errs, f.SessionID, f.Wrapper})
	return system, result
}

func line(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // our own types always encode
	}
	return b.Bytes()
}

// Stream forwards the agent's bytes as they are.
type Stream struct {
	w       io.Writer
	midLine bool // something went out, and it did not end a line
}

// NewStream returns an Output that repeats the stream on w byte for byte.
func NewStream(w io.Writer) *Stream { return &Stream{w: w} }

// Forward writes b, in one write where the writer takes it.
func (s *Stream) Forward(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := s.w.Write(b)
	if n > 0 {
		s.midLine = b[n-1] != '\n'
	}
	return err
}

// Line does nothing: the bytes are out already.
func (s *Stream) Line([]byte, *events.Event) {}

// Part does nothing: the bytes are out already.
func (s *Stream) Part([]byte, *events.Event, bool) {}

// Finish writes the two lines of a failure, or its note, on lines of their own
// even where the agent's last line was cut short.
func (s *Stream) Finish(f *Failure) error {
	if f == nil {
		return nil
	}
	var out []byte
	if s.midLine {
		out = append(out, '\n')
	}
	if f.Note != "" {
		out = append(out, f.note()...)
	} else {
		system, result := f.lines()
		out = append(append(out, system...), result...)
	}
	_, err := s.w.Write(out)
	return err
}

// Result writes one line at the end, the agent's result or the failure, as the
// agent does with --output-format json.
type Result struct {
	w      io.Writer
	line   []byte
	inPart bool
}

// NewResult returns an Output that writes the result line alone.
func NewResult(w io.Writer) *Result { return &Result{w: w} }

// Forward keeps the stream to itself.
func (r *Result) Forward([]byte) error { return nil }

// Line keeps a result; the last one stands.
func (r *Result) Line(line []byte, ev *events.Event) {
	if ev.Ended != nil {
		r.line = append(r.line[:0], line...)
		r.inPart = false
	}
}

// Part keeps a result that is too long to be parsed: it is held all the same,
// because it is what the caller waits for.
func (r *Result) Part(piece []byte, ev *events.Event, last bool) {
	if ev.Ended != nil {
		if !r.inPart {
			r.line = r.line[:0]
		}
		r.line = append(r.line, piece...)
	}
	r.inPart = ev.Ended != nil && !last
}

// Finish writes the result, or the failure where there was none and none will
// come.
func (r *Result) Finish(f *Failure) error {
	out := r.line
	switch {
	case f != nil && f.Note != "":
		return nil
	case f != nil:
		_, out = f.lines()
	case len(out) == 0:
		return nil
	default:
		out = append(out, '\n')
	}
	_, err := r.w.Write(out)
	return err
}
