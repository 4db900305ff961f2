package terminal

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// act is what a key asks for.
type act int

const (
	nothing act = iota
	insert      // the text
	paste       // the text, which may be many lines
	enter
	newline // a line break that sends nothing
	interrupt
	quit
	suspend
	eof // delete, at an empty prompt leave
	left
	right
	up
	down
	home
	end
	wordLeft
	wordRight
	backspace
	deleteNext
	killWordLeft
	killWordRight
	killLeft
	killRight
	yank
	clear
	search
	cancel
)

// event is one key, or one run of text.
type event struct {
	act  act
	text string // of insert and paste
	raw  []byte // as it came, a paste without its brackets
}

const (
	esc        = 0x1b
	del        = 0x7f
	pasteBegin = "200~"
	pasteEnd   = "\x1b[201~"

	// sequenceMost is the longest escape sequence that is waited for.
	sequenceMost = 64
)

// controls are the control characters; those that the person's terminal gives a
// meaning come first, see decoder.special.
var controls = map[byte]act{
	0x01: home, 0x02: left, 0x05: end, 0x06: right, 0x07: cancel, 0x08: backspace, '\n': enter, 0x0b: killRight,
	0x0c: clear, '\r': enter, 0x0e: down, 0x10: up, 0x12: search, 0x15: killLeft, 0x17: killWordLeft, 0x19: yank,
	del: backspace,
}

// sequences are what follows ESC [.
var sequences = map[string]act{
	"A": up, "B": down, "C": right, "D": left, "H": home, "F": end,
	"1~": home, "7~": home, "4~": end, "8~": end, "3~": deleteNext,
	"1;3C": wordRight, "1;5C": wordRight, "1;3D": wordLeft, "1;5D": wordLeft, "3;3~": killWordRight, "3;5~": killWordRight,
	"13;2u": newline, "27;2;13~": newline, // Shift-Enter, where the terminal tells it apart
}

// application is what follows ESC O: cursor keys of a terminal in application mode.
var application = map[byte]act{
	'A': up, 'B': down, 'C': right, 'D': left, 'H': home, 'F': end, 'M': enter,
}

// alternate is what follows ESC alone.
var alternate = map[byte]act{
	'b': wordLeft, 'f': wordRight, 'd': killWordRight, del: killWordLeft, 0x08: killWordLeft,
	'\r': newline, '\n': newline,
}

// decoder makes keys of bytes, wherever these are cut.
type decoder struct {
	special special
	buf     []byte
	inPaste bool
}

// feed takes the next bytes. A lone interrupt gets out of a paste whose end was
// lost on the way.
func (d *decoder) feed(p []byte) {
	if d.inPaste && len(p) == 1 && p[0] == d.special.interrupt {
		d.inPaste, d.buf = false, nil
	}
	d.buf = append(d.buf, p...)
}

// waiting reports whether the beginning of a key waits for its end.
func (d *decoder) waiting() bool { return len(d.buf) > 0 && !d.inPaste }

// give drops the beginning of a key whose end will not come: the Escape key.
func (d *decoder) give() {
	if d.waiting() {
		d.buf = nil
	}
}

// next is the next key; false where its end has not come.
func (d *decoder) next() (event, bool) {
	for len(d.buf) > 0 {
		ev, n := d.first()
		if n == 0 {
			return event{}, false
		}
		if ev.raw == nil {
			ev.raw = d.buf[:n:n]
		}
		if d.buf = d.buf[n:]; ev.act != nothing || len(ev.raw) > 0 && !d.inPaste {
			return ev, true
		}
	}
	d.buf = nil
	return event{}, false
}

// first decodes the key at the beginning and says how long it is; 0 asks for
// more.
func (d *decoder) first() (event, int) {
	switch {
	case d.inPaste:
		return d.pasted()
	case d.buf[0] == esc:
		return d.escape()
	}
	if a, ok := d.control(d.buf[0]); ok {
		return event{act: a}, 1
	}
	n := printable(d.buf)
	if n == 0 {
		return event{}, 0
	}
	return event{act: insert, text: strings.ToValidUTF8(string(d.buf[:n]), "\uFFFD")}, n
}

func (d *decoder) control(c byte) (act, bool) {
	switch c {
	case d.special.interrupt:
		return interrupt, true
	case d.special.quit:
		return quit, true
	case d.special.suspend:
		return suspend, true
	case d.special.eof:
		return eof, true
	}
	a, ok := controls[c]
	return a, ok || c < 0x20 && c != '\t'
}

// printable is the length of the text at the beginning, in whole runes.
func printable(b []byte) int {
	n := 0
	for n < len(b) && (b[n] >= 0x20 || b[n] == '\t') && b[n] != del {
		if !utf8.FullRune(b[n:]) {
			break
		}
		_, size := utf8.DecodeRune(b[n:])
		n += size
	}
	return n
}

func (d *decoder) pasted() (event, int) {
	i := bytes.Index(d.buf, []byte(pasteEnd))
	if i < 0 {
		return event{}, 0
	}
	d.inPaste = false
	text := string(d.buf[:i])
	return event{act: paste, text: plain(text), raw: []byte(text)}, i + len(pasteEnd)
}

// plain is pasted text with line ends of one kind.
func plain(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

func (d *decoder) escape() (event, int) {
	b := d.buf
	if len(b) == 1 {
		return event{}, 0
	}
	switch b[1] {
	case esc:
		return event{}, 1 // the Escape key, and then something else
	case '[':
		return d.sequence()
	case 'O':
		if len(b) == 2 {
			return event{}, 0
		}
		return event{act: application[b[2]]}, 3
	}
	if a, ok := alternate[b[1]]; ok {
		return event{act: a}, 2
	}
	if _, ok := d.control(b[1]); ok {
		return event{}, 1 // the Escape key, and then a key of its own
	}
	if !utf8.FullRune(b[1:]) {
		return event{}, 0
	}
	_, size := utf8.DecodeRune(b[1:])
	return event{}, 1 + size
}

// sequence decodes ESC [ and what follows up to its final byte.
func (d *decoder) sequence() (event, int) {
	i := 2
	for i < len(d.buf) && d.buf[i] >= 0x20 && d.buf[i] < 0x40 {
		i++
	}
	switch {
	case i == len(d.buf) && i < sequenceMost:
		return event{}, 0
	case i == len(d.buf) || d.buf[i] < 0x40 || d.buf[i] > 0x7e:
		return event{}, i // not a sequence
	case d.buf[i] == '[': // a function key of the Linux console
		if i+1 == len(d.buf) {
			return event{}, 0
		}
		return event{}, i + 2
	}
	text := string(d.buf[2 : i+1])
	if text == pasteBegin {
		d.inPaste = true
	}
	return event{act: sequences[text]}, i + 1
}
