package terminal

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// tabWidth is how wide a tab is drawn in a prompt.
const tabWidth = 4

// after is where the character at i ends, as a person counts characters.
func after(s string, i int) int {
	switch {
	case i >= len(s):
		return len(s)
	case s[i] < utf8.RuneSelf && (i+1 == len(s) || s[i+1] < utf8.RuneSelf):
		return i + 1
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(s[i:], -1)
	return i + max(len(cluster), 1)
}

// before is where the character that ends at i begins.
func before(s string, i int) int {
	start := strings.LastIndexByte(s[:i], '\n') + 1
	if start == i {
		return max(i-1, 0)
	}
	for {
		next := after(s, start)
		if next >= i {
			return start
		}
		start = next
	}
}

// shown is how one character is drawn, and how many cells that takes. What the
// terminal could take for an order is drawn as people write it.
func shown(cluster string) (string, int) {
	c := cluster[0]
	switch {
	case c == '\t':
		return strings.Repeat(" ", tabWidth), tabWidth
	case c < 0x20:
		return string([]byte{'^', c + 0x40}), 2
	case c == del:
		return "^?", 2
	case c < utf8.RuneSelf && len(cluster) == 1:
		return cluster, 1
	}
	if r, _ := utf8.DecodeRuneInString(cluster); unicode.IsControl(r) {
		return "?", 1
	}
	return cluster, uniseg.StringWidth(cluster)
}

// row is one row of the screen.
type row struct {
	text  string
	width int
}

// picture is rows at the bottom of the screen and where the cursor is in them.
type picture struct {
	rows []row
	y, x int
}

// drawing is a picture under way.
type drawing struct {
	picture
	width int
	row   strings.Builder
	at    int // cells of the row
}

func (d *drawing) put(cluster string) {
	text, width := shown(cluster)
	if d.at+width > d.width {
		d.end()
	}
	d.row.WriteString(text)
	d.at += width
}

func (d *drawing) end() {
	d.rows = append(d.rows, row{d.row.String(), d.at})
	d.row.Reset()
	d.at = 0
}

func (d *drawing) puts(s string) {
	for i := 0; i < len(s); {
		next := after(s, i)
		d.put(s[i:next])
		i = next
	}
}

// lay lays a text out on a screen of this width, each of its lines behind a
// prompt, with the cursor before the character at pos.
func lay(prompt, more, text string, pos, width int) picture {
	d := drawing{width: width}
	d.puts(prompt)
	for i := 0; i < len(text); {
		next := after(text, i)
		if text[i] == '\n' {
			d.mark(i == pos, true)
			d.end()
			d.puts(more)
		} else {
			_, w := shown(text[i:next])
			if d.at+w > d.width {
				d.end()
			}
			d.mark(i == pos, false)
			d.put(text[i:next])
		}
		i = next
	}
	if pos >= len(text) {
		if d.at == d.width {
			d.end() // the cursor is where the next character will be
		}
		d.mark(true, false)
	}
	d.end()
	return d.picture
}

// mark notes the cursor. Behind a full row that a line break ends there is no
// cell for it: it stands on the last one.
func (d *drawing) mark(here, full bool) {
	if !here {
		return
	}
	d.y, d.x = len(d.rows), d.at
	if full {
		d.x = min(d.x, d.width-1)
	}
}

func (p picture) same(q picture) bool {
	return p.y == q.y && p.x == q.x && slices.Equal(p.rows, q.rows)
}

// window is as much of a picture as a screen of this height has room for, with
// the cursor in it.
func (p picture) window(height int) picture {
	height = max(height, 1)
	if len(p.rows) <= height {
		return p
	}
	top := min(max(p.y-height+1, 0), len(p.rows)-height)
	return picture{rows: p.rows[top : top+height], y: p.y - top, x: p.x}
}

// reflowed is where the cursor of a picture is once the terminal has broken its
// rows to a new width. Terminals that do not break them are rare, and there a
// few rows above may be lost; on the others remains would pile up.
func (p picture) reflowed(width int) (y int) {
	for _, r := range p.rows[:min(p.y, len(p.rows))] {
		y += max(1, (r.width+width-1)/width)
	}
	return y + p.x/width
}

// cut is a text without control characters that fits the width.
func cut(text string, width int, ellipsis string) row {
	var kept strings.Builder
	dots := uniseg.StringWidth(ellipsis)
	at, fits := 0, 0 // cells so far; bytes that leave room for the dots
	for i := 0; i < len(text); {
		next := after(text, i)
		cluster := text[i:next]
		i = next
		if r, _ := utf8.DecodeRuneInString(cluster); unicode.IsControl(r) {
			continue
		}
		_, w := shown(cluster)
		if at+w > width {
			return cutAt(kept.String()[:fits], ellipsis)
		}
		kept.WriteString(cluster)
		if at += w; at+dots <= width {
			fits = kept.Len()
		}
	}
	return row{kept.String(), at}
}

func cutAt(text, ellipsis string) row {
	text += ellipsis
	return row{text, uniseg.StringWidth(text)}
}
