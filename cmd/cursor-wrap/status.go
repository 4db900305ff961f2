package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/monitor"
)

// statusLine is where a turn stands, in a line: what is open and for how long,
// of what it declared; the silence, once a third of what is allowed is over;
// the processes and what they do, where they were looked at. Of all that the
// name of what is open is cut first.
func statusLine(r *monitor.Reason, columns int, ascii bool) string {
	between, cut := " · ", "…"
	if ascii {
		between, cut = " | ", "..."
	}
	name, times := what(r)
	parts := []string{""}
	if r.Silence >= r.Limit/3 && r.Limit > 0 && r.Silence >= monitor.Span(time.Second) {
		silent := "silent " + seconds(r.Silence)
		if r.Phase != monitor.Tools {
			silent += " of " + seconds(r.Limit)
		}
		parts = append(parts, silent)
	}
	if r.Evidence != nil && r.Evidence.Tree != nil && r.Evidence.Tree.Blind == "" {
		t := r.Evidence.Tree
		s := plural(int64(t.Alive), "process")
		if r.Evidence.Percent >= 0 {
			s += fmt.Sprintf(", %.0f %% CPU", r.Evidence.Percent)
		}
		parts = append(parts, s)
	}
	rest := times + strings.Join(parts, between)
	return display.Cut(display.Line(name, " "), max(columns-display.Width(rest), leastName), cut) + rest
}

// leastName is how much of a name is shown however narrow the terminal is.
const leastName = 12

// what is going on, and for how long.
func what(r *monitor.Reason) (name, times string) {
	switch r.Phase {
	case monitor.Starting:
		return "starting", " " + seconds(r.Elapsed)
	case monitor.Tools:
		return calls(r.OpenCalls)
	case monitor.Background:
		name, times = calls(r.Background)
		return "in the background: " + name, times
	case monitor.Reconnecting:
		return "reconnecting", fmt.Sprintf(" %s, attempt %d", seconds(r.NoProgress), r.Attempts)
	case monitor.Draining:
		return "ending", ""
	}
	return "thinking", ""
}

func calls(list []monitor.Call) (name, times string) {
	if len(list) == 0 {
		return "", ""
	}
	c := list[0]
	times = " " + seconds(c.Elapsed)
	if c.Declared > 0 {
		times += " of " + declared(c.Declared)
	}
	if len(list) > 1 {
		times += fmt.Sprintf(" and %d more", len(list)-1)
	}
	return cmp.Or(c.Argument, c.Tool), times
}

// declared is a wait that may be shorter than a second.
func declared(d monitor.Span) string {
	if d < monitor.Span(time.Second) {
		return d.String()
	}
	return seconds(d)
}

// seconds is a duration as it ticks.
func seconds(d monitor.Span) string {
	return time.Duration(d).Truncate(time.Second).String()
}
