package terminal

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

func TestLay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		pos, width int
		rows       []string
		y, x       int
	}{
		{"nothing", "", 0, 10, []string{"> "}, 0, 2},
		{"in one row", "ab", 1, 10, []string{"> ab"}, 0, 3},
		{"a full row goes on", "12345678", 8, 10, []string{"> 12345678", ""}, 1, 0},
		{"the cursor before the wrap", "123456789", 8, 10, []string{"> 12345678", "9"}, 1, 0},
		{"wide where one cell is left", "1234567漢", 7, 10, []string{"> 1234567", "漢"}, 1, 0},
		{"wide that fits", "漢字", 3, 10, []string{"> 漢字"}, 0, 4},
		{"combining", "e\u0301x", 3, 10, []string{"> e\u0301x"}, 0, 3},
		{"lines", "a\nb", 3, 10, []string{"> a", "… b"}, 1, 3},
		{"an empty last line", "a\n", 2, 10, []string{"> a", "… "}, 1, 2},
		{"the end of a full line", "12345678\nb", 8, 10, []string{"> 12345678", "… b"}, 0, 9},
		{"orders are drawn", "\x1b[31m\t\u009b", 6, 20, []string{"> ^[[31m    ?"}, 0, 12},
	} {
		p := lay("> ", "… ", row.text, row.pos, row.width)
		var rows []string
		for _, r := range p.rows {
			rows = append(rows, r.text)
			if w := uniseg.StringWidth(r.text); w != r.width || w > row.width {
				t.Errorf("%s: %q is %d cells, not %d of %d", row.name, r.text, w, r.width, row.width)
			}
		}
		if strings.Join(rows, "|") != strings.Join(row.rows, "|") || p.y != row.y || p.x != row.x {
			t.Errorf("%s: %q, cursor %d,%d", row.name, rows, p.y, p.x)
		}
	}
}

func TestBeforeAndAfterAreInverse(t *testing.T) {
	t.Parallel()
	const s = "a漢👩‍👩‍👧e\u0301\n🇩🇪🇫🇷 \tx\n\nü"
	var stops []int
	for i := 0; i < len(s); i = after(s, i) {
		stops = append(stops, i)
	}
	if stops = append(stops, len(s)); len(stops) != 14 {
		t.Errorf("%d stops: %v", len(stops), stops)
	}
	for i := 1; i < len(stops); i++ {
		if got := before(s, stops[i]); got != stops[i-1] {
			t.Errorf("before %d is %d, not %d", stops[i], got, stops[i-1])
		}
	}
}

func TestWindowHoldsTheCursor(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("line\n", 50) + "end"
	for pos := 0; pos <= len(text); pos += 7 {
		p := lay("> ", "… ", text, pos, 20)
		w := p.window(10)
		if len(w.rows) != 10 || w.y < 0 || w.y > 9 || w.rows[w.y] != p.rows[p.y] {
			t.Fatalf("at %d: row %d of %d", pos, w.y, len(w.rows))
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, want string }{
		{"short", "short"},
		{"exactly 10", "exactly 10"},
		{"eleven char", "eleven ch…"},
		{"漢字漢字漢字", "漢字漢字…"},
		{"a\x1b[31mb\nc", "a[31mbc"},
	} {
		if got := cut(row.text, 10, "…"); got.text != row.want || got.width != uniseg.StringWidth(row.want) {
			t.Errorf("%q: %q, %d", row.text, got.text, got.width)
		}
	}
}
