package main

import (
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

func TestStatusLine(t *testing.T) {
	t.Parallel()
	s := func(n float64) monitor.Span { return monitor.Span(n * float64(time.Second)) }
	call := monitor.Call{Tool: "shell", Argument: "make -j8 all of it", Elapsed: s(12.9), Declared: s(30)}
	quiet := &monitor.Evidence{Percent: 0, Tree: &tree.Activity{Alive: 2}}
	for _, row := range []struct {
		r       monitor.Reason
		columns int
		ascii   bool
		want    string
	}{
		{monitor.Reason{Phase: monitor.Starting, Elapsed: s(2)}, 79, false, "starting 2s"},
		{monitor.Reason{Phase: monitor.Thinking, Silence: s(19), Limit: s(60)}, 79, false, "thinking"},
		{monitor.Reason{Phase: monitor.Thinking, Silence: s(20), Limit: s(60)}, 79, false, "thinking · silent 20s of 1m0s"},
		{monitor.Reason{Phase: monitor.Thinking, Silence: s(20), Limit: 0, Evidence: quiet}, 79, true, "thinking | 2 processes, 0 % CPU"},
		{monitor.Reason{Phase: monitor.Tools, OpenCalls: []monitor.Call{call}}, 79, false, "make -j8 all of it 12s of 30s"},
		{monitor.Reason{Phase: monitor.Tools, OpenCalls: []monitor.Call{call, call}}, 35, false, "make -j8 all… 12s of 30s and 1 more"},
		{monitor.Reason{Phase: monitor.Tools, OpenCalls: []monitor.Call{call}, Evidence: quiet}, 39, true, "make -j8... 12s of 30s | 2 processes, 0 % CPU"},
		{monitor.Reason{Phase: monitor.Tools, OpenCalls: []monitor.Call{{Tool: "mcp", Declared: s(0.5)}}}, 79, false, "mcp 0s of 500ms"},
		{monitor.Reason{Phase: monitor.Tools, OpenCalls: []monitor.Call{{Argument: "a\x1b[2Jb\nc"}}}, 79, false, "a^[[2Jb c 0s"},
	} {
		got := statusLine(&row.r, row.columns, row.ascii)
		if got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	const text = "cursor-wrap: a message of some length\n  log: /a/path/that/is/longer/than/a/line.jsonl\n  漢字漢字 漢字漢字 漢字漢字"
	const want = "cursor-wrap: a\n  message of some\n  length\n  log: /a/path/that/is/longer/than/a/line.jsonl\n  漢字漢字\n  漢字漢字\n  漢字漢字"
	if got := fold(text, 18); got != want {
		t.Errorf("%q", got)
	}
	for _, columns := range []int{0, 200} {
		if got := fold(text, columns); got != text {
			t.Errorf("at %d columns %q", columns, got)
		}
	}
}
