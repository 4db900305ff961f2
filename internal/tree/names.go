package tree

import (
	"strconv"
	"strings"
)

// maxShown is how many bytes of a command line are shown.
const maxShown = 200

// String names a process in a sentence: "24857 node index.js".
func (p *Proc) String() string { return strconv.Itoa(p.PID) + " " + clipped(p.Command, 60) }

// command is a process's command line, fit to be shown.
func command(r *Row) string {
	if len(r.Argv) == 0 {
		return Shown("[" + r.Name + "]")
	}
	return Shown(clipped(strings.Join(r.Argv, " "), maxShown))
}

// name is how the process with that pid is called in a sentence: "807 node",
// or its pid alone if it is not there.
func (t *table) name(pid int) string {
	if i, ok := t.byPID[pid]; ok && t.rows[i].Name != "" {
		return strconv.Itoa(pid) + " " + Shown(t.rows[i].Name)
	}
	return strconv.Itoa(pid)
}

// Shown has a question mark for whatever might repaint a terminal or turn its
// text around, and for what is not UTF-8 and would not come back from a log.
func Shown(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20, 0x7f <= r && r < 0xa0, r == '\uFFFD',
			r == 0x61c, 0x200e <= r && r <= 0x200f, 0x2028 <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
			return '?'
		}
		return r
	}, s)
}

// clipped is at most n bytes of s, in whole runes.
func clipped(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	end := 0
	for i := range s {
		if i > n-len(mark) {
			break
		}
		end = i
	}
	return s[:end] + mark
}
