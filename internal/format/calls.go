package format

import (
	"fmt"
	"strings"
	"time"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/events"
)

// maxOpen is how many open calls are remembered; nobody makes so many, and the
// completion of one that is not names itself as well as it can.
const maxOpen = 1024

// openCall is a call that has not been completed.
type openCall struct {
	label label
	stamp float64   // timestamp_ms of its start, 0 where it had none
	at    time.Time // when we saw it
}

func (t *Text) now() time.Time {
	if t.o.Now == nil {
		return time.Time{}
	}
	return t.o.Now()
}

// started shows that a call begins.
func (t *Text) started(line []byte, c *events.Call) {
	b := readBody(line, c.Tool)
	indent := t.indent(b)
	if indent == "" {
		t.main.Tool()
	} else {
		t.child.Tool()
	}
	open := &openCall{label: t.label(c, b), at: t.now()}
	open.stamp, _ = b.line.number("timestamp_ms")
	if len(t.calls) < maxOpen {
		t.calls[c.ID] = open
	}
	t.event(indent, faint, t.sign.pending, open.label, "")
}

// indent is that of a subagent's call.
func (t *Text) indent(b body) string {
	parent := b.line.pick(parents...)
	if parent == "" {
		return ""
	}
	t.inStream(parent)
	return t.child.indent
}

// inStream notes that the stream itself shows what a subagent does.
func (t *Text) inStream(parent string) {
	if len(t.steps) < maxOpen {
		t.steps[parent] = true
	}
}

// completed shows how a call went.
func (t *Text) completed(line []byte, c *events.Call) {
	b := readBody(line, c.Tool)
	open := t.calls[c.ID]
	delete(t.calls, c.ID)
	kind, says, text := outcome(b.result)
	l := t.label(c, b)
	if open != nil && (l.arg == "" || b.args == nil) {
		l = open.label
	} else if l.arg == "" { // what was rejected has no arguments
		inner := body{args: says}
		l = t.label(c, inner)
	}
	indent := t.indent(b)
	if c.Background {
		t.background(indent, l, c)
		return
	}
	v := judge(c.Tool, kind, says, text)
	if !v.refused {
		if d := took(b, says, open, t.now()); d != "" {
			v.details = append([]string{d}, v.details...)
		}
	}
	colour, sign := green, t.sign.done
	if v.failed {
		colour, sign = red, t.sign.failed
	}
	tail := ""
	if len(v.details) > 0 {
		tail = "(" + strings.ReplaceAll(strings.Join(v.details, ", "), "−", t.sign.minus) + ")"
	}
	t.event(indent, colour, sign, l, tail)
	t.inside(c, says)
}

// background shows that the work of a call goes on without it, in fewer words
// where they would not leave room for what it is.
func (t *Text) background(indent string, l label, c *events.Call) {
	long, short := "goes on in the background", "(background)"
	if id := t.clean(c.TaskID, 80); id != "" {
		what := "agent "
		if c.Tool == "shell" {
			what = "shell "
		}
		long, short = long+" ("+what+id+")", "(background "+id+")"
	}
	if w := t.width(); w > 0 && len(indent)+display.Width(t.sign.behind+long)+l.width()+2 > w {
		long = short
	}
	t.event(indent, yellow, t.sign.behind, l, long)
}

// event writes a line about a call. Where it is too wide the label gives way
// first, as long as something of it is left.
func (t *Text) event(indent, colour, sign string, l label, tail string) {
	room := maxLabel
	if w := t.width(); w > 0 {
		room = max(w-len(indent)-display.Width(sign)-1, 4)
	}
	tail = t.clean(tail, maxLabel)
	if tail == "" {
		t.say(indent + t.paint(colour, sign) + " " + l.fit(room, t.sign.more))
		return
	}
	const enough = 16 // columns of a label
	forTail := room - min(l.width(), max(room/3, min(enough, room/2))) - 1
	if display.Width(tail) > forTail {
		tail = shorter(tail, max(forTail, 1), t.sign.more)
	}
	name := l.fit(room-display.Width(tail)-1, t.sign.more)
	t.say(indent + t.paint(colour, sign) + " " + name + " " + t.paint(faint, tail))
}

// shorter cuts what stands in parentheses inside of them.
func shorter(tail string, columns int, more string) string {
	if inner, ok := strings.CutSuffix(tail, ")"); ok && columns > 4 {
		return display.Cut(inner, columns-1, more) + ")"
	}
	return display.Cut(tail, columns, more)
}

// took is how long a call took, by the agent's own account where there is one.
func took(b body, says fields, open *openCall, now time.Time) string {
	if ms, ok := says.number("executionTime", "localExecutionTimeMs", "durationMs"); ok && ms > 0 {
		return span(ms)
	}
	from, ok1 := b.call.number("startedAtMs")
	to, ok2 := b.call.number("completedAtMs")
	if ok1 && ok2 && to >= from {
		return span(to - from)
	}
	if open == nil {
		return ""
	}
	if to, ok := b.line.number("timestamp_ms"); ok && open.stamp > 0 && to >= open.stamp {
		return span(to - open.stamp)
	}
	if !open.at.IsZero() {
		return span(float64(now.Sub(open.at).Milliseconds()))
	}
	return ""
}

// span is a time in milliseconds as a person says it.
func span(ms float64) string {
	if ms > 1e12 {
		return ""
	}
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}
