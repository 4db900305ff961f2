package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes s harmless and keeps its lines: a line feed and a tab stay, the
// carriage return of a CRLF goes, and every other control character is shown
// as what it is.
func Clean(s string) string { return clean(s, "\n", "\t") }

// Line makes s harmless and one line; newline stands for each of its ends.
func Line(s, newline string) string { return clean(strings.TrimRight(s, "\r\n"), newline, " ") }

// maxMarks is how many marks and joiners one character may carry. No script
// needs more, and a terminal has to keep all of them in one cell.
const maxMarks = 8

func clean(s, newline, tab string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n':
			b.WriteString(newline)
		case r == '\t':
			b.WriteString(tab)
		case r == '\r' && i+1 < len(s) && s[i+1] == '\n':
		case r == '\x1b' && colour(s[i:]) > 0:
			size = colour(s[i:])
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isMark(r):
			if marks++; marks <= maxMarks {
				b.WriteString(s[i : i+size])
			}
			i += size
			continue
		default:
			show(&b, r)
		}
		if r >= ' ' && (i < 3 || s[i-3:i] != zeroWidthJoiner) { // what is joined counts as one
			marks = 0
		}
		i += size
	}
	return b.String()
}

// unseen are dropped: a soft hyphen, a zero width space, a word joiner, a byte
// order mark, and the marks that give neutral characters a direction.
const unseen = "\u00ad\u200b\u2060\ufeff\u200e\u200f\u061c"

const zeroWidthJoiner = "\u200d"

// isPlain reports whether there is nothing to be done to s.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// colour returns the length of the escape sequence at the beginning of s where
// it does no more than set colours. They are dropped: warnings come with them
// even where nobody asked, and to show them would bury the text.
func colour(s string) int {
	if len(s) < 3 || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

func isMark(r rune) bool {
	return r >= 0x300 && (r == 0x200d || r == 0x200c || unicode.Is(unicode.M, r))
}

// show writes a character, or what stands for it where it would not be seen or
// would change how others are seen.
func show(b *strings.Builder, r rune) {
	switch {
	case r < ' ':
		b.WriteByte('^')
		b.WriteRune(r + '@')
	case r == 0x7f:
		b.WriteString("^?")
	case r < 0xa0 && r > 0x7f: // C1: some terminals obey them even as UTF-8
		fmt.Fprintf(b, `\x%02x`, r)
	case strings.ContainsRune(unseen, r):
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // Arabic signs, seen like any other
		b.WriteRune(r)
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp): // the overrides of direction, tags
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteRune(r)
	}
}
