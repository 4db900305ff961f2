package main

import (
	"fmt"
	"strings"
	"time"

	"cursor-wrap/internal/monitor"
)

// statusLine is where a turn stands, in a line: what is open and for how long,
// of what it declared; the silence, once a third of what is allowed is over;
// the processes and what they do, where they were looked at.
func statusLine(r *monitor.Reason) string {
	parts := []string{what(r)}
	if r.Silence >= r.Limit/3 && r.Limit > 0 && r.Silence >= monitor.Span(time.Second) {
		silent := "silent " + seconds(r.Silence)
		if r.Phase != monitor.Tools {
			silent += " of " + seconds(r.Limit)
		}
		parts = append(parts, silent)
	}
	if r.Evidence != nil && r.Evidence.Tree != nil && r.Evidence.Tree.Blind == "" {
		t := r.Evidence.Tree
		s := fmt.Sprintf("%d processes", t.Alive)
		if t.Alive == 1 {
			s = "1 process"
		}
		if r.Evidence.Percent >= 0 {
			s += fmt.Sprintf(", %.0f %% CPU", r.Evidence.Percent)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " · ")
}

// what is going on.
func what(r *monitor.Reason) string {
	switch r.Phase {
	case monitor.Starting:
		return "starting " + seconds(r.Elapsed)
	case monitor.Tools:
		return calls(r.OpenCalls)
	case monitor.Background:
		return "in the background: " + calls(r.Background)
	case monitor.Reconnecting:
		return fmt.Sprintf("reconnecting %s, attempt %d", seconds(r.NoProgress), r.Attempts)
	case monitor.Draining:
		return "ending"
	}
	return "thinking"
}

func calls(list []monitor.Call) string {
	if len(list) == 0 {
		return ""
	}
	c := list[0]
	name := c.Argument
	if name == "" {
		name = c.Tool
	}
	s := fmt.Sprintf("%s %s", name, seconds(c.Elapsed))
	if c.Declared > 0 {
		s += " of " + seconds(c.Declared)
	}
	if len(list) > 1 {
		s += fmt.Sprintf(" and %d more", len(list)-1)
	}
	return s
}

// seconds is a duration as it ticks.
func seconds(d monitor.Span) string {
	return time.Duration(d).Truncate(time.Second).String()
}
