package display

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	rows := []struct{ name, in, text, line string }{
		{"plain", "go test ./...", "go test ./...", "go test ./..."},
		{"letters of all kinds", "grüße 半角 עברית ا", "grüße 半角 עברית ا", "grüße 半角 עברית ا"},
		{"line feeds and tabs", "a\n\tb\n", "a\n\tb\n", "a⏎ b"},
		{"CRLF", "a\r\nb", "a\nb", "a⏎b"},
		{"a lone CR", "10%\r20%", "10%^M20%", "10%^M20%"},
		{"C0", "\x00\x07\b\x7f", "^@^G^H^?", "^@^G^H^?"},
		{"C1", "\u0085\u009b31m", `\x85\x9b31m`, `\x85\x9b31m`},
		{"colours are dropped", "\x1b[1;31mred\x1b[m \x1b[38:5:1mx", "red x", "red x"},
		{"what only looks like one", "\x1b[31", "^[[31", "^[[31"},
		{"sequences are seen", "\x1b[2J\x1b]0;t\x07\x1bc", "^[[2J^[]0;t^G^[c", "^[[2J^[]0;t^G^[c"},
		{"not UTF-8", "a\xff\x1b[2J\xc3", `a\xff^[[2J\xc3`, `a\xff^[[2J\xc3`},
		{"the replacement character itself", "\ufffd", "\ufffd", "\ufffd"},
		{"overrides of direction", "\u202eab\u2066c", `\u202eab\u2066c`, `\u202eab\u2066c`},
		{"separators", "a\u2028b\u2029c", `a\u2028b\u2029c`, `a\u2028b\u2029c`},
		{"tags", "x\U000e0041", `x\ue0041`, `x\ue0041`},
		{"unseen", "\ufeffa\u200bb\u00adc\u200ed", "abcd", "abcd"},
		{"joined", "👩\u200d👩\u200d👧 é", "👩\u200d👩\u200d👧 é", "👩\u200d👩\u200d👧 é"},
		{"too many marks", "e" + strings.Repeat("\u0301", 20) + "x\u0301", "e" + strings.Repeat("\u0301", 8) + "x\u0301", "e" + strings.Repeat("\u0301", 8) + "x\u0301"},
		{"an Arabic sign", "\u0600", "\u0600", "\u0600"},
	}
	for _, row := range rows {
		if got := Clean(row.in); got != row.text {
			t.Errorf("%s: Clean %q, want %q", row.name, got, row.text)
		}
		if got := Line(row.in, "⏎"); got != row.line {
			t.Errorf("%s: Line %q, want %q", row.name, got, row.line)
		}
	}
}

func TestCut(t *testing.T) {
	rows := []struct {
		in         string
		columns    int
		cut, start string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 5, "abcd…", "…cdef"},
		{"abcdef", 1, "…", "…"},
		{"abcdef", 0, "", ""},
		{"abcdef", -1, "", ""},
		{"ab cdef", 4, "ab…", "…def"},
		{"半角全角", 8, "半角全角", "半角全角"},
		{"半角全角", 6, "半角…", "…全角"},
		{"ae\u0301\u0302b", 2, "a…", "…b"},
		{"e\u0301\u0302bc", 2, "e\u0301\u0302…", "…c"},
		{"👩\u200d👩\u200d👧x👧", 4, "👩\u200d👩\u200d👧x…", "…x👧"},
		{"🇩🇪🇫🇷🇮🇹", 5, "🇩🇪🇫🇷…", "…🇫🇷🇮🇹"},
		{"", 3, "", ""},
	}
	for _, row := range rows {
		if got := Cut(row.in, row.columns, "…"); got != row.cut {
			t.Errorf("Cut(%q, %d) = %q, want %q", row.in, row.columns, got, row.cut)
		}
		if got := CutLeft(row.in, row.columns, "…"); got != row.start {
			t.Errorf("CutLeft(%q, %d) = %q, want %q", row.in, row.columns, got, row.start)
		}
	}
	if got := Cut("abcdef", 5, "..."); got != "ab..." {
		t.Errorf("a longer mark: %q", got)
	}
}

// FuzzClean: what comes out controls nothing, is UTF-8, stays as it is when it
// is cleaned again, and is never cut to more than there is room for.
func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J\r\n\u202e半e\u0301\xff", 5)
	f.Fuzz(func(t *testing.T, s string, columns int) {
		columns %= 1000
		for _, got := range []string{Clean(s), Line(s, "⏎")} {
			for _, r := range got {
				if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%q keeps %q", s, r)
				}
			}
			if !utf8.ValidString(got) || Clean(got) != got {
				t.Fatalf("%q: %q, again %q", s, got, Clean(got))
			}
		}
		line := Line(s, "⏎")
		for _, cut := range []string{Cut(line, columns, "…"), CutLeft(line, columns, "…")} {
			if w := Width(cut); w > max(columns, 0) {
				t.Fatalf("%q has %d columns of %d", cut, w, columns)
			}
		}
	})
}
