package main

import (
	"strings"
	"testing"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/monitor"
)

func TestTableFitsTheScreen(t *testing.T) {
	r := row{
		ID: "3570eed80767", Status: "working", Session: "b51fc351-0000", Phase: "reconnecting", Workspace: "/home/ann/src/項目/a/very/long/path",
		Calls: []monitor.Call{{Tool: "shell", Argument: "go test ./...\x1b[2J and more of it", Elapsed: 41e9, Declared: 600e9}}, Limit: 1, Silence: 3e9,
	}
	for width, want := range map[int]string{
		0:   "3570eed80767  working  b51fc351  reconnecting  41s/10m go test ./...^[[2J and more of it",
		120: "3570eed",
		80:  "3570ee",
		40:  "3570ee",
	} {
		var b strings.Builder
		writeTable(&b, screen{columns: width}, psColumns, [][]string{r.cells()})
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[1], want) || strings.Contains(b.String(), "\x1b") {
			t.Errorf("%d columns: %q", width, lines)
		}
		if w := display.Width(lines[1]); width >= 80 && w > width {
			t.Errorf("%d columns: a line of %d", width, w)
		}
	}
}

func TestTickedIsShort(t *testing.T) {
	for d, want := range map[monitor.Span]string{
		0: "0s", 999e6: "0s", 42e9: "42s", 60e9: "1m", 320e9: "5m20s", 3 * 3600e9: "3h", 11100e9: "3h5m", 187200e9: "2d4h", -5e9: "-5s", -1: blank,
	} {
		if got := ticked(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}
