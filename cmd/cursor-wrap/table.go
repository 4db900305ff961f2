package main

import (
	"fmt"
	"io"
	"os"
	"slices"
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
	plain bool // it is cut without a mark: its beginning is as good
	drop  int  // in which order it is left out where there is no room; 0: never
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
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.title
	}
	cells := make([][]string, 0, len(rows)+1)
	for _, row := range append([][]string{head}, rows...) {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = display.Line(cell, " ")
		}
		cells = append(cells, line)
	}
	widths := fitted(s, columns, cells)
	for _, row := range cells {
		var line []string
		for i, cell := range row {
			if widths[i] > 0 {
				line = append(line, columns[i].cell(cell, widths[i], s))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(line, "  "), " "))
	}
}

// cell is a text in its place.
func (c *column) cell(text string, width int, s screen) string {
	mark := s.more()
	if c.plain {
		mark = ""
	}
	text = display.Cut(text, width, mark)
	pad := strings.Repeat(" ", max(0, width-display.Width(text)))
	if c.right {
		return pad + text
	}
	return text + pad
}

// fitted is how wide each column is: as its widest cell, unless the screen is
// too narrow. Then some are left out, at width 0, until the others have the
// least that they need, and the widest of those that give way do.
func fitted(s screen, columns []column, cells [][]string) []int {
	widths := make([]int, len(columns))
	for i := range columns {
		for _, row := range cells {
			widths[i] = max(widths[i], display.Width(row[i]))
		}
	}
	if s.columns == 0 {
		return widths
	}
	for order := 1; order <= len(columns) && total(widths, columns, true) > s.columns; order++ {
		if i := slices.IndexFunc(columns, func(c column) bool { return c.drop == order }); i >= 0 {
			widths[i] = 0
		}
	}
	for total(widths, columns, false) > s.columns {
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
	}
	return widths
}

// total is how wide the table is, or would be at least.
func total(widths []int, columns []column, least bool) int {
	sum := -2
	for i, w := range widths {
		if w == 0 {
			continue
		}
		if gives := columns[i].gives; least && gives > 0 {
			w = min(w, gives)
		}
		sum += w + 2
	}
	return sum
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

// bytesOf is a number of bytes for a person, in whole units: 812K, 34M.
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
