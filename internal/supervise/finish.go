package supervise

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"unicode/utf8"

	"cursor-wrap/internal/format"
	"cursor-wrap/internal/process"
)

// errorsMax is how much of the agent's stderr a failure repeats, in characters.
const errorsMax = 500

// finish says how the turn came out, to the caller of Run and on stdout.
func (t *turn) finish() Report {
	r := &t.report
	c := t.verdict()
	r.Took = t.Now().Sub(t.began)
	if t.result == nil {
		t.silence(t.Now())
	}
	r.Outcome, r.Message, r.Reason = c.outcome, c.message, c.reason
	r.Result = t.result != nil
	r.ExitCode = ExitCode(c.outcome, c.signal)
	if c.outcome == Failed {
		r.Advice = advise(t.said())
		if r.Advice == "" && t.drain != nil {
			r.Advice = advise(string(t.drain.head))
		}
	}
	if t.leftover || t.outErr != nil {
		return *r
	}
	f := t.failure(c)
	if f != nil && t.GoesOn != nil {
		if note, message := t.GoesOn(r); note != "" {
			f.Note, f.Says, f.Reason = note, message, c.reason
		}
	}
	if err := t.Out.Finish(f); err != nil {
		t.outErr = err
		c = t.verdict()
		r.Outcome, r.Message, r.ExitCode = c.outcome, c.message, ExitCode(c.outcome, c.signal)
	}
	return *r
}

// verdict is the one cause that the outcome rests on. A result that nobody
// could read is not delivered; one that was delivered wins over every cause.
func (t *turn) verdict() cause {
	switch {
	case t.delivered: // what was lost after it is not the caller's loss
	case errors.Is(t.outErr, syscall.EPIPE):
		return cause{outcome: Stopped, message: "the reader of stdout has left", signal: syscall.SIGPIPE}
	case t.outErr != nil:
		return cause{outcome: Failed, message: "write stdout: " + t.outErr.Error()}
	}
	switch {
	case t.result != nil && t.result.IsError:
		return cause{outcome: Failed, message: "the agent's result is an error"}
	case t.result != nil && len(t.report.Teardown.Left) > 0:
		return cause{outcome: Survivors, message: "the result is there, but " + names(t.report.Teardown.Left) + " could not be ended"}
	case t.result != nil:
		return cause{outcome: Success}
	case t.cause != nil:
		return *t.cause
	}
	return cause{
		outcome: Failed,
		subtype: "no_result",
		message: "the agent ended without a result (" + t.report.Teardown.Exit.String() + ")",
	}
}

func names(left []process.Ended) string {
	var b strings.Builder
	for i, e := range left {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", e.Proc, e.Why())
	}
	return b.String()
}

// failure is what is to be told on stdout, or nil: after a result there is
// nothing to add, and a run that was stopped leaves its stream as it is.
func (t *turn) failure(c cause) *format.Failure {
	if t.Silent || t.result != nil || c.subtype == "" {
		return nil
	}
	type agent struct {
		Exit   int    `json:"exit_code"`
		Signal string `json:"signal,omitempty"`
	}
	wrapper := struct {
		Outcome  Outcome `json:"outcome"`
		ExitCode int     `json:"exit_code"`
		Reason   any     `json:"reason,omitempty"`
		Agent    *agent  `json:"agent,omitempty"`
		Advice   string  `json:"advice,omitempty"`
	}{c.outcome, ExitCode(c.outcome, c.signal), c.reason, nil, t.report.Advice}
	if t.report.Started {
		exit := t.report.Teardown.Exit
		wrapper.Agent = &agent{Exit: exit.Code}
		if exit.Signal != 0 {
			wrapper.Agent.Signal = process.SignalName(exit.Signal)
		}
	}
	return &format.Failure{
		Subtype:   c.subtype,
		Message:   c.message,
		Errors:    lastWords(t.said(), errorsMax),
		SessionID: t.report.SessionID,
		Duration:  t.report.Took,
		Wrapper:   wrapper,
	}
}

// said is the end of what the agent said on stderr, and on stdout outside the
// stream where it said nothing there.
func (t *turn) said() string {
	if t.drain == nil || t.leftover {
		return ""
	}
	return cmp.Or(string(t.drain.tail), string(t.pump.text))
}

// lastWords is the end of s, at most n characters, as a list of one or none.
func lastWords(s string, n int) []string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	for utf8.RuneCountInString(s) > n {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	if s == "" {
		return nil
	}
	return []string{s}
}

// attrs are the members of v's JSON object, in their order.
func attrs(v any) []slog.Attr {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types always encode
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	_, _ = dec.Token() // the opening brace
	var list []slog.Attr
	for dec.More() {
		key, _ := dec.Token()
		var value json.RawMessage
		_ = dec.Decode(&value) // it was encoded a moment ago
		list = append(list, slog.Any(key.(string), value))
	}
	return list
}
