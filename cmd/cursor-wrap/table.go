package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// column is one of a table.
type column struct {
	title string
	right bool // numbers
	gives int  // the least width down to which it gives way on a narrow terminal; 0: it does not
}

// screen is where a table is shown.
type screen struct {
	columns int // 0: as wide as it likes
	ascii   bool
}

func (s screen) more() string {
	if s.ascii {
		return "..."
	}
	return "…"
}

// screenOf is what the file is.
func screenOf(f *os.File) screen {
	return screen{columns: int(terminalSize(f).Cols), ascii: !utf8Locale(os.Getenv)}
}

// writeTable writes aligned columns. Nothing in a cell can leave it.
func writeTable(w io.Writer, s screen, columns []column, rows [][]string) {
	cells := make([][]string, 0, len(rows)+1)
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.title
	}
	for _, row := range append([][]string{head}, rows...) {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = display.Line(cell, " ")
		}
		cells = append(cells, line)
	}
	widths := fitted(s, columns, cells)
	for _, row := range cells {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			cell = display.Cut(cell, widths[i], s.more())
			pad := strings.Repeat(" ", max(0, widths[i]-display.Width(cell)))
			if columns[i].right {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// fitted is how wide each column is: as its widest cell, unless the screen is
// too narrow; then the widest of those that give way do.
func fitted(s screen, columns []column, cells [][]string) []int {
	widths := make([]int, len(columns))
	total := 2 * (len(columns) - 1)
	for i := range columns {
		for _, row := range cells {
			widths[i] = max(widths[i], display.Width(row[i]))
		}
		total += widths[i]
	}
	for s.columns > 0 && total > s.columns {
		widest := -1
		for i, c := range columns {
			if c.gives > 0 && widths[i] > c.gives && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

// blank stands where there is nothing to say.
const blank = "-"

// ticked is a duration as it ticks, in at most two units: 42s, 5m20s, 3h5m, 2d4h.
func ticked(d monitor.Span) string {
	t := time.Duration(d).Truncate(time.Second)
	sign := ""
	if t < 0 {
		t, sign = -t, "-"
	}
	two := func(big, small time.Duration, b, s string) string {
		text := fmt.Sprintf("%s%d%s", sign, t/big, b)
		if rest := t % big / small; rest > 0 {
			text += fmt.Sprintf("%d%s", rest, s)
		}
		return text
	}
	switch {
	case d == tree.Unknown:
		return blank
	case t < time.Minute:
		return fmt.Sprintf("%s%ds", sign, t/time.Second)
	case t < time.Hour:
		return two(time.Minute, time.Second, "m", "s")
	case t < 24*time.Hour:
		return two(time.Hour, time.Minute, "h", "m")
	}
	return two(24*time.Hour, time.Hour, "d", "h")
}

// allowed is a wait that may be shorter than a second.
func allowed(d monitor.Span) string {
	if d < monitor.Span(time.Second) {
		return d.String()
	}
	return ticked(d)
}

// bytesOf is a number of bytes for a person: 812K, 3.4M.
func bytesOf(n int64) string {
	switch {
	case n < 0:
		return blank
	case n < 1<<10:
		return fmt.Sprintf("%dB", n)
	case n < 10<<20:
		return fmt.Sprintf("%dK", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%dM", n>>20)
	}
	return fmt.Sprintf("%dG", n>>30)
}

// percentOf is a part of a core for a person.
func percentOf(p float64) string {
	if p < 0 {
		return blank
	}
	return fmt.Sprintf("%.0f%%", p)
}

// shortPath is a path as people write it: their home is ~.
func shortPath(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home); err == nil && home != "/" && ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}
