package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
)

// How wide some columns of the list may become. The workspace has what is left
// of 80 beside the others.
const (
	sessionColumns = 8
	tableColumns   = 80
	leastWorkspace = 10
)

// logColumns are the columns of the list; the workspace's is found by its place.
var logColumns = []string{" ", "WHEN", "OUTCOME", "TOOK", "RUN", "SESSION", "WORKSPACE", "TURNS", "CALLS", "SIZE", "LOG"}

const workspaceColumn = 6

// logTable is the list for a person. Where a line would be longer than the
// terminal, the paths have lines of their own, so that they can be copied
// whole. columns is 0 where nobody's terminal is asked.
func logTable(list []journal.Info, now time.Time, columns int, ascii bool) string {
	rows := [][]string{logColumns}
	for n := range list {
		rows = append(rows, logRow(&list[n], now))
	}
	widths := make([]int, len(logColumns)-1)
	for _, row := range rows {
		for n := range widths {
			widths[n] = max(widths[n], display.Width(row[n]))
		}
	}
	used := 0
	for n, w := range widths {
		if n != workspaceColumn {
			used += w + 1
		}
	}
	widths[workspaceColumn] = min(widths[workspaceColumn], max(tableColumns-1-used, leastWorkspace))
	apart := false
	for _, row := range rows {
		apart = apart || columns > 0 && used+widths[workspaceColumn]+1+display.Width(row[len(widths)]) > columns
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.TrimRight(logLine(row, widths, ascii), " "))
		switch path := row[len(widths)]; {
		case !apart:
			b.WriteString(" " + path)
		case path != "LOG":
			b.WriteString("\n  " + path)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// logLine is a row up to the path.
func logLine(row []string, widths []int, ascii bool) string {
	cut := "…"
	if ascii {
		cut = "..."
	}
	var b strings.Builder
	for n, w := range widths {
		cell := display.CutLeft(row[n], w, cut)
		space := strings.Repeat(" ", max(0, w-display.Width(cell)))
		if n > workspaceColumn { // numbers
			cell = space + cell
		} else {
			cell += space
		}
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(cell)
	}
	return b.String()
}

// logRow is a log, a cell each column.
func logRow(i *journal.Info, now time.Time) []string {
	const none = "-"
	mark, took, turns, calls := " ", none, none, none
	if i.Flagged {
		mark = "!"
	}
	switch {
	case i.End != nil:
		took = spent(time.Duration(i.End.Took) * time.Millisecond)
		turns, calls = fmt.Sprint(i.End.Turns), fmt.Sprint(i.End.Counts.Calls)
	case i.Live:
		took = spent(now.Sub(i.Start))
	}
	return []string{
		mark, moment(i.Start, now), outcome(i), took,
		display.Line(cmp.Or(i.RunID(), none), " "), display.Fit(display.Line(cmp.Or(i.Session, none), " "), sessionColumns),
		cmp.Or(display.Line(fromHome(i.Workspace()), " "), none), turns, calls, bytesShort(i.Size), display.Line(i.Path, " "),
	}
}

// outcome is how a run came out, with its exit code where it has one.
func outcome(i *journal.Info) string {
	s := display.Fit(display.Line(cmp.Or(i.Outcome(), "?"), " "), 20)
	if i.End != nil {
		s += fmt.Sprint(" ", i.End.ExitCode)
	}
	return s
}

// shortID names a run where its log does.
func shortID(i *journal.Info) string {
	return display.Line(cmp.Or(i.RunID(), i.Session, "a run without an id"), " ")
}

// moment is local time to the minute, and without what goes without saying.
func moment(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() != now.Year() {
		return t.Format(time.DateOnly)
	}
	return t.Format("01-02 15:04")
}

// spent is a duration in at most six columns.
func spent(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return monitor.Span(d).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 100*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// bytesShort is a size in at most five columns.
func bytesShort(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	f := float64(n)
	unit := 0
	for f /= 1024; f >= 999.5; f /= 1024 {
		unit++
	}
	if f < 9.95 {
		return fmt.Sprintf("%.1f%c", f, "KMGTPE"[unit])
	}
	return fmt.Sprintf("%.0f%c", f, "KMGTPE"[unit])
}

// fromHome shortens what lies in the home folder.
func fromHome(path string) string {
	dir, err := os.UserHomeDir()
	if err != nil || dir == "/" || dir == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, dir); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}
