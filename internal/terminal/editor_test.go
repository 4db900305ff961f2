package terminal

import (
	"strings"
	"testing"
)

func TestEditor(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, keys, want string }{ // | is the cursor
		{"in the middle", "helo\x1b[Dl", "hell|o"},
		{"home and end", "b\x01a\x05c", "abc|"},
		{"backspace takes a whole character", "a👩‍👩‍👧\x7f", "a|"},
		{"a combining character joins", "e\u0301\x1b[D", "|e\u0301"},
		{"delete", "abc\x01\x1b[3~", "|bc"},
		{"end of file deletes", "abc\x01\x04", "|bc"},
		{"kill right and yank", "one two\x01\x0b\x19\x19", "one twoone two|"},
		{"kill left", "one two\x1b[D\x15", "|o"},
		{"kill a word", "ls /usr/bin\x17", "ls |"},
		{"alt backspace", "git  push  \x1b\x7f", "git  |"},
		{"words", "one, two-three\x1bb\x1bb", "one, |two-three"},
		{"words right", "one, two\x01\x1bf\x1bf", "one, two|"},
		{"kill the next word", "one two\x01\x1bd", "| two"},
		{"lines", "\x1b[200~one\ntwo\x1b[201~\x01x", "one\nx|two"},
		{"up in lines keeps the column", "\x1b[200~one\ntwo\x1b[201~\x1b[D\x1b[A", "on|e\ntwo"},
		{"down", "\x1b[200~one\ntwo\x1b[201~\x1b[A\x1b[D\x1b[B", "one\ntw|o"},
		{"kill at the break joins", "\x1b[200~a\nb\x1b[201~\x01\x15", "a|b"},
		{"history", "dra\x1b[A", "newer\nlines|"},
		{"history and back", "dra\x1b[A\x1b[A\x1b[A\x1b[B\x1b[B\x1b[B", "dra|"},
		{"the oldest", "\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A", "older|"},
	} {
		d := decoder{special: usual}
		d.feed([]byte(row.keys))
		e := editor{history: &history{entries: []string{"older", "newer\nlines"}}}
		for ev, ok := d.next(); ok; ev, ok = d.next() {
			e.apply(ev)
		}
		if got := e.text[:e.pos] + "|" + e.text[e.pos:]; got != row.want {
			t.Errorf("%s: %q, not %q", row.name, got, row.want)
		}
	}
}

func TestBackslashAsksForMore(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text, want string
		more       bool
	}{{`a\`, "a\n", true}, {`a\\`, `a\\`, false}, {`a\\\`, `a\\` + "\n", true}, {"", "", false}} {
		e := editor{text: row.text}
		if more := e.continues(); more != row.more || e.text != row.want {
			t.Errorf("%q: %q, %v", row.text, e.text, more)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	l := Lines(strings.NewReader("one\r\n\n  \n" + long + "\nlast"))
	for _, want := range []string{"one", long, "last"} {
		if got, err := l.Next(); got != want || err != nil {
			t.Fatalf("%.20q, %v", got, err)
		}
	}
	if got, err := l.Next(); err == nil {
		t.Errorf("%q after the end", got)
	}
}
