package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// patience is for a test that waits for a fact.
const patience = 20 * time.Second

// talkEnv makes the test binary a program that talks, see talk.
const talkEnv = "CURSOR_WRAP_TEST_TALK"

func TestMain(m *testing.M) {
	if os.Getenv(talkEnv) != "" {
		talk()
		return
	}
	os.Exit(m.Run())
}

// talk is a session without an agent: every prompt that begins with "turn" is
// a turn until a key ends it.
func talk() {
	t, err := Open(os.Stdin, os.Stderr, Options{Dumb: os.Getenv("TERM") == "dumb", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer t.Close()
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	go func() {
		<-term
		t.Close()
		os.Exit(143)
	}()
	for {
		text, err := t.ReadPrompt("> ")
		switch {
		case err != nil:
			fmt.Fprintln(t, "left with", err)
			return
		case text == "panic":
			t.Begin()
			panic("asked for it")
		case text == "turn":
			talkTurn(t)
		default:
			fmt.Fprintf(t, "got %q\n", text)
		}
	}
}

func talkTurn(t *Terminal) {
	t.Begin()
	defer t.End()
	t.Status("at work")
	defer t.Status("")
	for k := range t.Keys() {
		fmt.Fprintln(t, "key", k)
		if k != Suspend {
			return
		}
		fmt.Fprintln(t, "paused:", t.Suspend() > 0)
	}
}

// person sits at a pseudo-terminal.
type person struct {
	t        *testing.T
	keyboard *os.File
	tty      *os.File // nil where it is somebody else's
	found    unix.Termios

	mu    sync.Mutex
	out   bytes.Buffer // everything that was shown
	from  int          // what of it was looked at
	shell int          // its pid, where there is one
	news  chan struct{}
}

func newPerson(t *testing.T) *person {
	t.Helper()
	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	if err := pty.Setsize(keyboard, &pty.Winsize{Rows: 20, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	p := sit(t, keyboard)
	p.tty, p.found = tty, modesOf(t, tty)
	t.Cleanup(func() { _ = tty.Close() })
	return p
}

// sit takes the master of a pseudo-terminal, in a file that can be closed while
// it is read.
func sit(t *testing.T, master *os.File) *person {
	defer master.Close()
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	keyboard := os.NewFile(uintptr(fd), master.Name())
	p := &person{t: t, keyboard: keyboard, news: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.look()
	}()
	t.Cleanup(func() {
		_ = keyboard.Close()
		<-read
	})
	return p
}

func modesOf(t *testing.T, tty *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func (p *person) look() {
	buf := make([]byte, 4096)
	for {
		n, err := p.keyboard.Read(buf)
		p.mu.Lock()
		p.out.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *person) types(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keyboard, s); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until the text is shown, after what was seen before, and returns
// what was shown up to its end.
func (p *person) sees(text string) string {
	p.t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		rest := p.out.String()[p.from:]
		i := strings.Index(rest, text)
		if i >= 0 {
			p.from += i + len(text)
		}
		p.mu.Unlock()
		if i >= 0 {
			return rest[:i+len(text)]
		}
		select {
		case <-p.news:
		case <-late:
			p.t.Fatalf("%q is not shown, but %q", text, rest)
		}
	}
}

// findsItsModes: they are as they were before.
func (p *person) findsItsModes() {
	p.t.Helper()
	if got := modesOf(p.t, p.tty); got != p.found {
		p.t.Errorf("the modes are %+v, not %+v", got, p.found)
	}
}

// waitsForKeys waits until the terminal gives keys as they are: no shell does,
// where it edits no lines.
func (p *person) waitsForKeys() {
	p.t.Helper()
	for late := time.Now().Add(patience); modesOf(p.t, p.keyboard).Lflag&unix.ISIG != 0; {
		if time.Now().After(late) {
			p.t.Fatal("the terminal still makes signals of keys")
		}
		time.Sleep(time.Millisecond)
	}
}

// open opens a terminal that Close ends with the test.
func (p *person) open(o Options) *Terminal {
	p.t.Helper()
	t, err := Open(p.tty, p.tty, o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(t.Close)
	return t
}

// answer is what ReadPrompt returned.
type answer struct {
	text string
	err  error
}

func ask(t *Terminal) <-chan answer {
	ch := make(chan answer, 1)
	go func() {
		text, err := t.ReadPrompt("> ")
		ch <- answer{text, err}
	}()
	return ch
}

func (p *person) wants(ch <-chan answer, text string, err error) {
	p.t.Helper()
	select {
	case got := <-ch:
		if got.text != text || !errors.Is(got.err, err) {
			p.t.Errorf("%q, %v", got.text, got.err)
		}
	case <-time.After(patience):
		p.t.Fatal("no answer")
	}
}

func (p *person) wantsKey(t *Terminal, want Key) {
	p.t.Helper()
	select {
	case k := <-t.Keys():
		if k != want {
			p.t.Errorf("key %v, not %v", k, want)
		}
	case <-time.After(patience):
		p.t.Fatal("no key ", want)
	}
}

// inShell starts a shell with job control in a terminal, and in it a function
// that runs talk.
func inShell(t *testing.T) *person {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash, whose job control is wanted here")
	}
	cmd := exec.Command(bash, "--norc", "--noprofile", "--noediting", "-i")
	cmd.Env = append(os.Environ(), "PS1=shell$ ", "TERM=xterm", "LC_ALL=C", "HISTFILE=")
	keyboard, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 20, Cols: 200})
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	p := sit(t, keyboard)
	p.shell = cmd.Process.Pid
	p.sees("shell$ ")
	p.types(fmt.Sprintf("talk() { stty -g; %s=1 '%s' 2>&1; stty -g; }\n", talkEnv, os.Args[0]))
	p.sees("shell$ ")
	return p
}
