package main

import (
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"cursor-wrap/internal/format"
)

// textOptions say what text on this stdout may look like.
func (o *options) textOptions(stdout *os.File, now func() time.Time) format.TextOptions {
	fd := int(stdout.Fd())
	t := format.TextOptions{Now: now, ASCII: !utf8Locale(os.Getenv)}
	if !term.IsTerminal(fd) {
		return t
	}
	t.Width = func() int {
		width, _, err := term.GetSize(fd)
		if err != nil {
			return 0
		}
		return width
	}
	t.Color = !o.plain && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	t.Markdown = t.Color
	return t
}

// utf8Locale reads the locale as the C library does: the first of the three
// that is set counts.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
