package display

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Width is how many columns s takes. It is cleaned text without line feeds.
func Width(s string) int {
	if isPlain(s) {
		return len(s)
	}
	return uniseg.StringWidth(s)
}

// Next returns the first character of s as a reader sees it, with its width
// and what follows. state is -1 before the first.
func Next(s string, state int) (cluster, rest string, width, next int) {
	if len(s) > 1 && s[0] < 0x7f && s[0] >= ' ' && s[1] < 0x7f {
		return s[:1], s[1:], 1, -1
	}
	return uniseg.FirstGraphemeClusterInString(s, state)
}

// Fit returns as many whole characters from the beginning of s as fit into the
// given columns.
func Fit(s string, columns int) string {
	used, state := 0, -1
	for rest := s; rest != ""; {
		var width int
		var after string
		_, after, width, state = Next(rest, state)
		if used += width; used > columns {
			return s[:len(s)-len(rest)]
		}
		rest = after
	}
	return s
}

// Cut returns s where it fits into the given columns, and else as much of its
// beginning as does, with mark behind it.
func Cut(s string, columns int, mark string) string {
	if len(s) <= columns || Width(s) <= columns {
		return s
	}
	if w := Width(mark); w <= columns {
		return strings.TrimRight(Fit(s, columns-w), " ") + mark
	}
	return Fit(s, max(columns, 0))
}

// CutLeft does the same and keeps the end of s, as is best for a path.
func CutLeft(s string, columns int, mark string) string {
	over := Width(s) - columns
	if over <= 0 {
		return s
	}
	room := Width(mark)
	if room > columns {
		return Fit(s, max(columns, 0))
	}
	rest, state := s, -1
	for gone := 0; gone < over+room && rest != ""; {
		var width int
		_, rest, width, state = Next(rest, state)
		gone += width
	}
	return mark + rest
}
