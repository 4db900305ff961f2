package markdown

import (
	"strings"

	"cursor-wrap/internal/display"
)

// style is how a run of text looks.
type style uint8

const (
	bold style = 1 << iota
	italic
	underline
	code
	faint
	added
	removed
)

// sgr are the parameters that switch a style on, in the order of its bits.
var sgr = []string{"1", "3", "4", "36", "2", "32", "31"}

func (s style) paint(text string) string {
	if s == 0 || text == "" {
		return text
	}
	var on []string
	for i, p := range sgr {
		if s&(1<<i) != 0 {
			on = append(on, p)
		}
	}
	return "\x1b[" + strings.Join(on, ";") + "m" + text + "\x1b[0m"
}

// span is a run of text in one style. A line feed in it ends a line.
type span struct {
	text  string
	style style
}

func widthOf(line []span) (n int) {
	for _, s := range line {
		n += display.Width(s.text)
	}
	return n
}

// paint puts a line together, without style where there is to be no colour.
func (r *Renderer) paint(line []span) string {
	var b strings.Builder
	for _, s := range line {
		if r.Color {
			b.WriteString(s.style.paint(s.text))
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// wrap breaks text into lines of at most width columns: at blanks, around wide
// characters, and inside of what is too long for a line of its own.
func wrap(text []span, width int) [][]span {
	w := wrapper{width: max(width, 2)}
	for _, s := range text {
		w.style = s.style
		for i, part := range strings.Split(s.text, "\n") {
			if i > 0 {
				w.endLine()
			}
			w.add(part)
		}
	}
	w.endLine()
	return w.lines
}

// wrapper holds a word back until it is known to be whole.
type wrapper struct {
	width int
	style style
	lines [][]span

	line, word   []span
	used, length int // columns of the line, and of the word with the blanks before it
	blanks       int
	solid        bool // there is more to the word than blanks
	wide         bool // it ends in a wide character
}

func (w *wrapper) add(s string) {
	state := -1
	for s != "" {
		var c string
		var n int
		c, s, n, state = display.Next(s, state)
		if c == " " {
			if w.solid {
				w.endWord()
			}
			if w.blanks < w.width {
				w.push(c, 1)
				w.blanks++
			}
			continue
		}
		between := (n > 1 || w.wide) && !strings.Contains(closing, c)
		if between && w.solid || w.length-w.blanks+n > w.width {
			w.endWord()
		}
		w.push(c, n)
		w.solid, w.wide = true, n > 1
	}
}

// closing are the wide characters that do not begin a line.
const closing = "、。，．：；！？）］｝〕〉》」』】〙〗’”…ー々"

func (w *wrapper) push(c string, n int) {
	w.word = appendText(w.word, c, w.style)
	w.length += n
}

// endWord puts the word on the line, or on the next one without its blanks.
func (w *wrapper) endWord() {
	if w.used+w.length > w.width {
		if w.used > 0 {
			w.breakLine()
		}
		w.dropBlanks()
	}
	for _, s := range w.word {
		w.line = appendText(w.line, s.text, s.style)
	}
	w.used += w.length
	w.drop()
}

func (w *wrapper) drop() {
	w.word, w.length, w.blanks, w.solid, w.wide = nil, 0, 0, false, false
}

func (w *wrapper) breakLine() {
	w.lines = append(w.lines, w.line)
	w.line, w.used = nil, 0
}

func (w *wrapper) endLine() {
	if w.solid {
		w.endWord()
	}
	w.drop()
	w.breakLine()
}

func (w *wrapper) dropBlanks() {
	for w.blanks > 0 && len(w.word) > 0 {
		t := strings.TrimLeft(w.word[0].text, " ")
		gone := len(w.word[0].text) - len(t)
		w.length, w.blanks = w.length-gone, w.blanks-gone
		if w.word[0].text = t; t != "" {
			break
		}
		w.word = w.word[1:]
	}
}

func appendText(line []span, text string, st style) []span {
	if n := len(line); n > 0 && line[n-1].style == st {
		line[n-1].text += text
		return line
	}
	return append(line, span{text, st})
}

// Wrap breaks a line of plain clean text into lines of at most width columns.
func Wrap(s string, width int) []string {
	var all []string
	for _, line := range wrap([]span{{s, 0}}, width) {
		text := ""
		for _, s := range line {
			text += s.text
		}
		all = append(all, text)
	}
	return all
}
