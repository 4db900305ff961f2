package terminal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var usual = special{interrupt: 0x03, quit: 0x1c, suspend: 0x1a, eof: 0x04}

// decoded is what keys mean, with text behind the act.
func decoded(d *decoder) (all []string) {
	for ev, ok := d.next(); ok; ev, ok = d.next() {
		if ev.act != nothing {
			all = append(all, fmt.Sprint(int(ev.act), ev.text))
		}
	}
	return all
}

func want(acts ...any) (all []string) {
	for i := 0; i < len(acts); i++ {
		text := ""
		if s, ok := acts[i].(string); ok {
			all[len(all)-1] += s
			continue
		}
		all = append(all, fmt.Sprint(int(acts[i].(act)), text))
	}
	return all
}

var keyTable = []struct {
	name, bytes string
	want        []string
}{
	{"text", "aü漢", want(insert, "aü漢")},
	{"a tab is text", "a\tb", want(insert, "a\tb")},
	{"controls", "\x01\x05\x0b\x03\x1a\x1c\x04\r", want(home, end, killRight, interrupt, suspend, quit, eof, enter)},
	{"cursor keys", "\x1b[A\x1b[D\x1bOC\x1b[1;5D", want(up, left, right, wordLeft)},
	{"alt", "\x1bb\x1bf\x1b\x7f\x1b\r", want(wordLeft, wordRight, killWordLeft, newline)},
	{"unknown sequences are no text", "\x1b[15~\x1b[<0;3;4M\x1b[[Ax", want(insert, "x")},
	{"alt and an unknown character", "\x1bäx", want(insert, "x")},
	{"escape before the interrupt key", "\x1b\x03", want(interrupt)},
	{"a broken sequence", "\x1b[12\x03a", want(interrupt, insert, "a")},
	{"bytes that are no text", "a\xffb\r", want(insert, "a\uFFFDb", enter)},
	{"a paste", "\x1b[200~a\r\nb\x03\x1b[31m\x00\x1b[201~\r", want(paste, "a\nb\x03\x1b[31m", enter)},
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, row := range keyTable {
		d := decoder{special: usual}
		d.feed([]byte(row.bytes))
		if got := decoded(&d); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// TestKeysInPieces: a slow line cuts keys anywhere. Text comes in more pieces
// then, and is the same.
func TestKeysInPieces(t *testing.T) {
	t.Parallel()
	for _, row := range keyTable {
		if strings.Contains(row.bytes, "b\x03") {
			continue // a lone interrupt ends a paste
		}
		d := decoder{special: usual}
		var got []string
		for i := range len(row.bytes) {
			d.feed([]byte(row.bytes[i : i+1]))
			got = append(got, decoded(&d)...)
		}
		if a, b := joined(got), joined(row.want); a != b {
			t.Errorf("%s: %q, not %q", row.name, a, b)
		}
	}
}

func joined(all []string) string {
	return strings.ReplaceAll(strings.Join(all, ""), fmt.Sprint(int(insert)), "")
}

func TestLoneInterruptEndsALostPaste(t *testing.T) {
	t.Parallel()
	d := decoder{special: usual}
	d.feed([]byte("\x1b[200~half of a paste"))
	if got := decoded(&d); got != nil {
		t.Fatal(got)
	}
	d.feed([]byte("\x03"))
	if got := decoded(&d); !slices.Equal(got, want(interrupt)) {
		t.Error(got)
	}
}

func TestKeysOfAnotherTerminal(t *testing.T) {
	t.Parallel()
	d := decoder{special: special{interrupt: 0x0b, quit: 0x1c, suspend: 0x1a, eof: 0x04}} // stty intr ^K
	d.feed([]byte("\x0b"))
	if got := decoded(&d); !slices.Equal(got, want(interrupt)) {
		t.Error(got)
	}
}

func FuzzKeys(f *testing.F) {
	for _, row := range keyTable {
		f.Add([]byte(row.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{special: usual}
		d.feed(b)
		e := editor{history: &history{}}
		for ev, ok := d.next(); ok; ev, ok = d.next() {
			e.apply(ev)
			lay("> ", "… ", e.text, e.pos, 20)
		}
		if len(d.buf) > sequenceMost && !d.inPaste {
			t.Errorf("%d bytes wait", len(d.buf))
		}
	})
}
