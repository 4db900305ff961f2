package terminal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func TestReadPrompt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, keys, text string
		err              error
	}{
		{"a line", "fix it\r", "fix it", nil},
		{"a paste is one prompt", "see: \x1b[200~one\r\ntwo\n\x03three\x1b[201~ ok\r", "see: one\ntwo\n\x03three ok", nil},
		{"a backslash goes on", "one\\\rtwo\\\r\r", "one\ntwo\n", nil},
		{"alt-enter goes on", "one\x1b\rtwo\r", "one\ntwo", nil},
		{"blank lines are no prompt", "\r  \rtext\r", "text", nil},
		{"interrupt clears the line", "wrong\x03right\r", "right", nil},
		{"interrupt at an empty prompt", "\x03", "", ErrInterrupt},
		{"end of file", "\x04", "", io.EOF},
		{"end of file within a line", "ab\x01\x04\r", "b", nil},
		{"quit", "half\x1c", "", ErrQuit},
		{"history", "\x1b[A\x1b[A\r", "older", nil},
		{"a search", "\x12old\r", "older", nil},
		{"a search that is left", "draft\x12new\x07\r", "draft", nil},
		{"bytes that are no text", "a\xff\r", "a\uFFFD", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			term := p.open(Options{})
			term.history.entries = []string{"older", "newer"}
			p.findsItsModes()
			got := ask(term)
			p.sees("> ")
			p.types(row.keys)
			p.wants(got, row.text, row.err)
			p.findsItsModes()
		})
	}
}

func TestPasteModeIsSwitchedOff(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	term := p.open(Options{})
	got := ask(term)
	p.sees(pasteOn)
	p.types("x\r")
	p.wants(got, "x", nil)
	p.sees(pasteOff)
}

func TestHistoryAcrossSessions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "h", "x.jsonl")
	for _, row := range []struct{ keys, text string }{{"one\\\rtwo\r", "one\ntwo"}, {"\x1b[A\x1b[Dx\r", "one\ntwxo"}} {
		p := newPerson(t)
		term := p.open(Options{History: file})
		got := ask(term)
		p.types(row.keys)
		p.wants(got, row.text, nil)
	}
}

func TestTypedAheadIsADraft(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	term := p.open(Options{})
	term.Begin()
	p.types("\r\rfirst\rsecond\x04\r\x03")
	p.wantsKey(term, Interrupt)
	term.End()
	p.findsItsModes()
	got := ask(term)
	if shown := p.sees("second"); strings.Count(shown, "first") != 1 {
		t.Errorf("echoed in the turn: %q", shown)
	}
	p.types("!\r")
	p.wants(got, "\n\nfirst\nsecond!", nil)
}

func TestKeysOfATurn(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	term := p.open(Options{})
	term.Begin()
	p.types("\x03\x1b[200~\x03\x1b[201~\x1a\x1c")
	for _, k := range []Key{Interrupt, Suspend, Quit} {
		p.wantsKey(term, k)
	}
	term.End()
	term.End()
	p.findsItsModes()
}

func TestForward(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	term := p.open(Options{})
	r, w := io.Pipe()
	term.Begin()
	term.Forward(w)
	p.types("secret\r\x04\x1b[A\x1b[200~pasted\x1b[201~\x03")
	const want = "secret\r\x04\x1b[Apasted"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	p.wantsKey(term, Interrupt)
	p.types(strings.Repeat("nobody reads this\r", 1000) + "\x1c")
	p.wantsKey(term, Quit)
	_ = r.Close()
	term.End()
	if draft := term.typing.draft(term.history); draft != "" {
		t.Errorf("%q is left for the prompt", draft)
	}
}

func TestHangup(t *testing.T) {
	t.Parallel()
	for _, dumb := range []bool{false, true} {
		p := newPerson(t)
		got := ask(p.open(Options{Dumb: dumb}))
		p.sees("> ")
		_ = p.keyboard.Close()
		p.wants(got, "", ErrHangup)

		p = newPerson(t)
		term := p.open(Options{Dumb: dumb})
		term.Begin()
		_ = p.keyboard.Close()
		p.wantsKey(term, Hangup)
		term.End()
		term.Close()
	}
}

func TestCloseAtAnyMoment(t *testing.T) {
	for _, dumb := range []bool{false, true} {
		p := newPerson(t)
		term := p.open(Options{Dumb: dumb})
		got := ask(term)
		p.sees("> ")
		p.types("half")
		p.sees("half")
		term.Close()
		p.findsItsModes()
		p.wants(got, "", ErrClosed)
		p.findsItsModes()

		p = newPerson(t)
		term = p.open(Options{Dumb: dumb})
		term.Begin()
		term.Status("at work")
		term.Close()
		term.Close()
		term.End()
		term.Begin()
		p.findsItsModes()
		p.wants(ask(term), "", ErrClosed)
		if _, err := term.Write([]byte("still a file\n")); err != nil {
			t.Error(err)
		}
		p.sees("still a file")
	}
	wantNoGoroutines(t)
}

// wantNoGoroutines waits for what Close does not wait for: our own helpers.
func wantNoGoroutines(t *testing.T) {
	t.Helper()
	late := time.Now().Add(patience)
	for {
		buf := make([]byte, 1<<20)
		all := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(all, "terminal.(*Terminal)") && !strings.Contains(all, "terminal.(*screen)") {
			return
		}
		if time.Now().After(late) {
			t.Fatal(all)
		}
		runtime.Gosched()
	}
}

func TestPanicPutsTheTerminalBack(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	func() {
		defer func() { _ = recover() }()
		term := p.open(Options{})
		defer term.Close()
		term.Begin()
		if modesOf(t, p.tty) == p.found {
			t.Error("nothing to put back")
		}
		panic("in a turn")
	}()
	p.findsItsModes()
}

func TestNoTerminal(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Open(r, w, Options{}); !errors.Is(err, ErrNotTerminal) {
		t.Error(err)
	}
}

func TestNothingShownWithoutAnOutput(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	term, err := Open(p.tty, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	got := ask(term)
	p.types("text\r")
	p.wants(got, "text", nil)
	if shown := p.sees("text"); strings.ContainsAny(shown, "\x1b>") {
		t.Errorf("%q", shown)
	}
}

func TestDumbPrompt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		keys, text string
		err        error
	}{
		{"fix it\r", "fix it", nil},
		{"fixx\x7f it\r", "fix it", nil},
		{"one\\\rtwo\r", "one\ntwo", nil},
		{"\r\rtext\r", "text", nil},
		{"wrong\x03right\r", "right", nil},
		{"\x03", "", ErrInterrupt},
		{"\x04", "", io.EOF},
	} {
		p := newPerson(t)
		term := p.open(Options{Dumb: true})
		got := ask(term)
		p.sees("> ")
		p.types(row.keys)
		p.wants(got, row.text, row.err)
		p.findsItsModes()
		p.mu.Lock()
		if strings.Contains(p.out.String(), "\x1b") {
			t.Errorf("%q has escapes", p.out.String())
		}
		p.mu.Unlock()
	}
}

func TestResizeRedrawsThePrompt(t *testing.T) {
	p := newPerson(t)
	term := p.open(Options{})
	got := ask(term)
	p.sees("> ")
	p.types("0123456789 123456789 12345")
	p.sees("12345")
	if err := pty.Setsize(p.keyboard, &pty.Winsize{Rows: 20, Cols: 12}); err != nil {
		t.Fatal(err)
	}
	_ = unix.Kill(os.Getpid(), unix.SIGWINCH) // it is nobody's controlling terminal
	p.sees("> 0123456789\r\r\n")
	p.types("\r")
	p.wants(got, "0123456789 123456789 12345", nil)
}

// TestCtrlSHoldsNobodyForEver: Close lets the output go that Ctrl-S holds.
func TestCtrlSHoldsNobodyForEver(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	term := p.open(Options{})
	term.Begin()
	p.types("\x13\x1c")
	p.wantsKey(term, Quit)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = term.Write([]byte(strings.Repeat("held\n", 1000)))
	}()
	term.Status("does not block")
	p.types("\x03")
	p.wantsKey(term, Interrupt)
	term.Close()
	<-wrote
	p.findsItsModes()
}
