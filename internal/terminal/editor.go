package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// editor is a prompt being written: many lines, edited as one text.
type editor struct {
	text   string
	pos    int    // of the cursor, in bytes
	killed string // for yank

	history *history
	at      int    // which entry is shown, 0 the draft
	draft   string // what was written before the history was looked at
}

// edits are the keys that change the text or move in it. What is not here
// belongs to the prompt.
var edits = map[act]func(*editor, event){
	insert:        func(e *editor, ev event) { e.insert(ev.text) },
	paste:         func(e *editor, ev event) { e.insert(ev.text) },
	newline:       func(e *editor, _ event) { e.insert("\n") },
	left:          func(e *editor, _ event) { e.pos = before(e.text, e.pos) },
	right:         func(e *editor, _ event) { e.pos = after(e.text, e.pos) },
	up:            func(e *editor, _ event) { e.up() },
	down:          func(e *editor, _ event) { e.down() },
	home:          func(e *editor, _ event) { e.pos = e.lineStart() },
	end:           func(e *editor, _ event) { e.pos = e.lineEnd() },
	wordLeft:      func(e *editor, _ event) { e.pos = e.word(before, -1) },
	wordRight:     func(e *editor, _ event) { e.pos = e.word(after, +1) },
	backspace:     func(e *editor, _ event) { e.remove(before(e.text, e.pos), e.pos) },
	deleteNext:    func(e *editor, _ event) { e.remove(e.pos, after(e.text, e.pos)) },
	eof:           func(e *editor, _ event) { e.remove(e.pos, after(e.text, e.pos)) },
	killWordLeft:  func(e *editor, _ event) { e.kill(e.blanksLeft(), e.pos) },
	killWordRight: func(e *editor, _ event) { e.kill(e.pos, e.word(after, +1)) },
	killLeft:      func(e *editor, _ event) { e.kill(e.orBreak(e.lineStart(), -1), e.pos) },
	killRight:     func(e *editor, _ event) { e.kill(e.pos, e.orBreak(e.lineEnd(), +1)) },
	yank:          func(e *editor, _ event) { e.insert(e.killed) },
}

func (e *editor) apply(ev event) {
	if f, ok := edits[ev.act]; ok {
		f(e, ev)
	}
}

func (e *editor) set(text string) { e.text, e.pos = text, len(text) }

func (e *editor) insert(s string) {
	e.text = e.text[:e.pos] + s + e.text[e.pos:]
	e.pos += len(s)
}

func (e *editor) remove(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.pos = from
}

func (e *editor) kill(from, to int) {
	if from < to {
		e.killed = e.text[from:to]
		e.remove(from, to)
	}
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.pos], '\n') + 1 }

func (e *editor) lineEnd() int {
	if i := strings.IndexByte(e.text[e.pos:], '\n'); i >= 0 {
		return e.pos + i
	}
	return len(e.text)
}

// orBreak goes over a line break where the cursor is at it already, so that a
// kill that is repeated goes on.
func (e *editor) orBreak(i, step int) int {
	if i == e.pos && i+step >= 0 && i+step <= len(e.text) {
		return i + step
	}
	return i
}

// word is where the cursor gets to over the next word, before or after it.
func (e *editor) word(step func(string, int) int, dir int) int {
	pos := e.pos
	inside := func(next int) bool {
		r, _ := utf8.DecodeRuneInString(e.text[min(pos, next):])
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	for _, want := range []bool{false, true} {
		for next := step(e.text, pos); next != pos && inside(next) == want; next = step(e.text, pos) {
			pos = next
		}
	}
	return pos
}

// blanksLeft is where the word before the cursor begins, where blanks alone
// part words: a path is one.
func (e *editor) blanksLeft() int {
	head := strings.TrimRightFunc(e.text[:e.pos], unicode.IsSpace)
	i := strings.LastIndexFunc(head, unicode.IsSpace)
	if i < 0 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(head[i:])
	return i + size
}

// up goes to the line above, and from the first one into the history.
func (e *editor) up() {
	if start := e.lineStart(); start > 0 {
		e.toLine(start-1, e.column())
		return
	}
	e.older()
}

func (e *editor) down() {
	if stop := e.lineEnd(); stop < len(e.text) {
		column := e.column()
		e.pos = stop + 1
		e.toLine(e.lineEnd(), column)
		return
	}
	e.newer()
}

// column is how many characters stand before the cursor on its line.
func (e *editor) column() int {
	n := 0
	for i := e.lineStart(); i < e.pos; i = after(e.text, i) {
		n++
	}
	return n
}

// toLine goes to the column of the line that ends at stop.
func (e *editor) toLine(stop, column int) {
	e.pos = stop
	i := e.lineStart()
	for ; column > 0 && i < stop; column-- {
		i = after(e.text, i)
	}
	e.pos = i
}

func (e *editor) older() {
	if e.at >= e.history.len() {
		return
	}
	if e.at == 0 {
		e.draft = e.text
	}
	e.at++
	e.set(e.history.entry(e.at))
}

func (e *editor) newer() {
	if e.at == 0 {
		return
	}
	if e.at--; e.at == 0 {
		e.set(e.draft)
		return
	}
	e.set(e.history.entry(e.at))
}

// continues reports whether the text ends in a backslash that asks for a next
// line, and takes it away. Of two the second is meant as one.
func (e *editor) continues() bool {
	slashes := len(e.text) - len(strings.TrimRight(e.text, `\`))
	if slashes%2 == 0 {
		return false
	}
	e.set(e.text[:len(e.text)-1] + "\n")
	return true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
