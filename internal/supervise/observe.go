package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/monitor"
)

// batch takes what one read brought; ok is false at the end of the stream.
func (t *turn) batch(b *batch, ok bool) {
	if !ok {
		t.onEOF()
		return
	}
	t.expire(b.at)
	t.silence(b.at)
	for i := range b.events {
		t.report.Counts.Lines += int64(b.events[i].lines)
		t.observe(b.at, &b.events[i].Event)
	}
	t.report.Counts.Bytes += int64(b.bytes)
	if long := b.until.Sub(b.at) >= held; long || t.held.After(b.at) {
		by := "reader of stdout"
		if b.logged.Sub(b.at) > b.until.Sub(b.logged) {
			by = "log disk"
		}
		t.hold(b.at, b.until, by)
	}
	t.seen, t.stale = b.at, true
	if b.err != nil {
		t.stdoutFailed(b.err)
	}
	t.delivered = t.delivered || t.result != nil && t.outErr == nil
	at := b.at
	t.pump.spare <- b
	t.transition(at)
	if t.doubt != monitor.Waiting && t.paused.IsZero() {
		v := t.mon.Judge(at)
		t.doubted(at, &v)
	}
	if t.result != nil && t.gone {
		t.end(nil)
	}
}

// expire ends a run whose time is up before it hears what came later: at that
// moment nobody had said it, and a replay goes by that. Where more lies between,
// we may have stood still, and who wakes us finds out.
func (t *turn) expire(at time.Time) {
	limit := t.mon.Expires()
	if limit.IsZero() || !at.After(limit) || at.Sub(limit) >= lateFloor || t.ladder || !t.paused.IsZero() {
		return
	}
	if v := t.mon.Judge(limit); v.State == monitor.Overdue {
		t.act(&v)
	}
}

// silence notes the longest time without a byte in which we listened.
func (t *turn) silence(now time.Time) {
	t.report.Silence = max(t.report.Silence, t.mon.Silent(now))
}

func (t *turn) observe(at time.Time, ev *events.Event) {
	note := t.mon.Observe(at, ev)
	switch ev.Kind {
	case events.ToolStarted:
		t.report.Counts.Calls++
		if ev.Call.Acts() {
			t.report.Counts.Acted++
		}
	case events.Init, events.User:
		t.identify(ev.SessionID)
		t.checkEcho(ev)
	}
	if ev.Ended != nil {
		t.identify(ev.SessionID)
		t.onResult(at, ev)
	}
	if note != monitor.Nothing {
		t.note(at, note, ev.Call)
	}
}

func (t *turn) identify(session string) {
	t.report.Named = t.report.Named || session != ""
	if session != "" && session != t.report.SessionID {
		t.report.SessionID = session
		if err := t.Log.SetSession(session); err != nil { // the old name is as good a name
			t.Log.Record(t.Now(), slog.LevelWarn, "log_not_renamed", slog.String("error", err.Error()))
		}
	}
}

// checkEcho compares the prompt that the agent says it took with ours: a stray
// word among the agent flags becomes the prompt, and the run then succeeds at
// something else.
func (t *turn) checkEcho(ev *events.Event) {
	if ev.Prompt == nil || t.echoed {
		return
	}
	t.echoed = true
	if fold(*ev.Prompt) == fold(string(t.Prompt)) {
		return
	}
	t.Log.Record(t.Now(), slog.LevelWarn, "prompt_mismatch", slog.String("taken", cut(*ev.Prompt, 200)))
	t.Say(fmt.Sprintf("the agent took another prompt than ours: %q; a stray word among the agent flags becomes the prompt", cut(*ev.Prompt, 80)))
}

// fold leaves out what a JSON echo cannot carry, and white space but for its
// being there.
func fold(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\uFFFD", "")
	return strings.Join(strings.Fields(s), " ")
}

// cut is at most n bytes of s, at the boundary of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func (t *turn) onResult(at time.Time, ev *events.Event) {
	t.Log.Record(at, slog.LevelInfo, "result",
		slog.Bool("is_error", ev.Ended.IsError), slog.Bool("while_stopping", t.ladder))
	// The agent's answer to our asking it to stop is not its word on the work.
	if t.cause != nil && t.cause.outcome == Stopped && ev.Ended.IsError {
		return
	}
	e := *ev.Ended
	t.report.Tokens = e.Tokens
	t.result = &e
}

func (t *turn) note(at time.Time, n monitor.Note, c *events.Call) {
	call := []slog.Attr{slog.String("id", c.ID), slog.String("tool", c.Tool), slog.String("argument", c.Argument)}
	switch n {
	case monitor.Undeclared:
		t.Log.Record(at, slog.LevelWarn, "undeclared_timeout", append(call, slog.Int64("tool_timeout_ms", t.Policy.Tool.Milliseconds()))...)
	case monitor.Replaced:
		t.Log.Record(at, slog.LevelWarn, "replaced_call", call...)
	case monitor.Unmatched:
		t.report.Counts.Unmatched++
		t.Log.Record(at, slog.LevelWarn, "unmatched_completion", call...)
	}
}

func (t *turn) transition(at time.Time) {
	phase := t.mon.Phase()
	if phase == t.phase {
		return
	}
	attrs := []slog.Attr{slog.String("from", string(t.phase)), slog.String("to", string(phase))}
	if d := t.mon.Deadline(); !d.IsZero() {
		attrs = append(attrs, slog.Int64("deadline", d.UnixMilli()))
	}
	t.Log.Record(at, slog.LevelInfo, "phase", attrs...)
	t.phase = phase
}

// stdoutFailed: nobody takes the stream any more. A reader who left is what
// SIGPIPE would have told; anything else is our own failure.
func (t *turn) stdoutFailed(err error) {
	t.outErr = err
	t.Log.Record(t.Now(), slog.LevelWarn, "stdout_failed", slog.String("error", err.Error()))
	c := &cause{outcome: Failed, message: "write stdout: " + err.Error()}
	if errors.Is(err, syscall.EPIPE) {
		c = &cause{outcome: Stopped, message: "the reader of stdout has left", signal: syscall.SIGPIPE}
	}
	t.end(c)
}
