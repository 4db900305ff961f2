package terminal

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

var (
	// ErrNotTerminal is Open's answer to an input that is no terminal.
	ErrNotTerminal = errors.New("not a terminal")
	// ErrInterrupt is the interrupt key at an empty prompt.
	ErrInterrupt = errors.New("interrupted at the prompt")
	// ErrQuit is the quit key at a prompt, empty or not.
	ErrQuit = errors.New("quit at the prompt")
	// ErrHangup is a terminal that is gone.
	ErrHangup = errors.New("the terminal is gone")
	// ErrClosed is what a read gets that Close ended.
	ErrClosed = errors.New("the terminal was closed")
)

const (
	defaultWidth  = 80
	defaultHeight = 24
	leastWidth    = 4 // on less nothing can be drawn, and nothing breaks either

	// closeWait is what Close gives a terminal that takes no output, and
	// goroutines that wait for it.
	closeWait = time.Second
)

// Options are how a terminal is used.
type Options struct {
	Width int  // where the terminal does not know its own; default 80
	Color bool // the status is dimmed; nothing else is coloured
	Dumb  bool // no escape sequences at all: no status, and the kernel's line editing
	ASCII bool // our own marks are ASCII

	History     string // the file, see HistoryFile; none where empty
	HistoryMost int    // entries; default 1000
	// Command is offered each line that is typed in a turn and takes those that
	// it returns true for; nil: none. It must not block.
	Command func(line string) bool

	Warn func(msg string) // takes what a person should know; nil for nobody
	Now  func() time.Time // tells Suspend how long it took; nil: it does not say
}

// Terminal is the person's terminal.
type Terminal struct {
	o       Options
	modes   *modes
	input   *input
	screen  *screen
	keys    chan Key
	decoder decoder
	history *history

	signals chan os.Signal
	closing chan struct{} // closed by Close
	closed  sync.Once
	joined  sync.WaitGroup // the goroutine that takes signals

	used  atomic.Int32 // who reads the keys; changed under mu
	mu    sync.Mutex
	watch chan struct{} // closed when the reader of a turn has ended; nil outside turns
	leave chan struct{} // closed to end it

	stopped   atomic.Bool // stop waits for a SIGCONT
	continued chan struct{}

	taken  atomic.Bool // the reader of a turn has set the modes
	typing typing
	warned bool // that the history is not kept
}

// Who reads the keys.
const (
	idle int32 = iota
	prompting
	watching
)

// Open takes a terminal for use and changes nothing of it yet. out is where
// prompt, status and output go: a terminal, or nil where there is none, and
// then nothing is shown, and what is written is lost. Escape sequences go to
// terminals only. ErrNotTerminal says that in is none.
func Open(in, out *os.File, o Options) (*Terminal, error) {
	if !term.IsTerminal(int(in.Fd())) {
		return nil, ErrNotTerminal
	}
	m, err := newModes(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	i, err := newInput(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	t := &Terminal{
		o: o, modes: m, input: i,
		keys:      make(chan Key, keysMost),
		signals:   make(chan os.Signal, 16),
		closing:   make(chan struct{}),
		continued: make(chan struct{}, 1),
	}
	t.decoder.special = m.special()
	t.typing.command = o.Command
	t.history = openHistory(o.History, o.HistoryMost, t.warn)
	t.screen = t.newScreen(out)
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGCONT)
	t.joined.Go(t.takeSignals)
	return t, nil
}

func (t *Terminal) newScreen(out *os.File) *screen {
	if out == nil {
		t.o.Dumb = true
		return newScreen(nowhere{}, look{dumb: true})
	}
	fd := int(out.Fd())
	t.o.Dumb = t.o.Dumb || !term.IsTerminal(fd)
	return newScreen(out, look{
		dumb: t.o.Dumb, color: t.o.Color, ascii: t.o.ASCII,
		ours: t.ours, rescue: t.orRestore,
		size: func() (int, int) { return size(fd, t.o.Width) },
	})
}

// ours reports whether the screen is ours to draw on: not from the background,
// and in a turn not before the modes are set, for who sees the status may type.
func (t *Terminal) ours() bool {
	return t.modes.foreground() && (t.used.Load() != watching || t.taken.Load())
}

// nowhere is the output of a terminal that is only read.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func size(fd, fallback int) (width, height int) {
	width, height, err := term.GetSize(fd)
	if err != nil || width <= 0 {
		width = fallback
	}
	if width <= 0 {
		width = defaultWidth
	}
	if err != nil || height <= 0 {
		height = defaultHeight
	}
	return max(width, leastWidth), height
}

// Size is the size of the output side now.
func (t *Terminal) Size() (width, height int) { return t.screen.size() }

func (t *Terminal) warn(msg string) {
	if t.o.Warn != nil {
		t.o.Warn(msg)
	}
}

// Write shows output of the session above the status line or the prompt. It is
// for whichever of stdout and stderr is the terminal, both in the usual case.
// After Close it writes as a file does.
func (t *Terminal) Write(p []byte) (int, error) { return t.screen.Write(p) }

// Status sets the line below the output; empty takes it away. It never blocks.
func (t *Terminal) Status(text string) { t.screen.setStatus(text) }

// Close puts the terminal back as Open found it, whoever uses it at the moment,
// and ends what reads it. It can be called at any time, by anybody, repeatedly:
// deferred, where it runs in a panic too, and before a signal ends the program.
// A terminal that takes no output holds it for a moment only.
func (t *Terminal) Close() {
	t.closed.Do(func() {
		ours := t.modes.close() // first: it needs nobody
		close(t.closing)
		signal.Stop(t.signals)
		t.input.close()
		within(closeWait, func() {
			t.mu.Lock()
			watch := t.watch
			t.mu.Unlock()
			if watch != nil {
				<-watch
			}
			t.joined.Wait()
		})
		t.screen.close(ours)
	})
}

// within waits for f, but not for ever. A panic that was on its way through one
// of those who are waited for is why it may not end.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// orRestore is deferred by every goroutine of the package: a panic there would
// leave the terminal as it is.
func (t *Terminal) orRestore() {
	if r := recover(); r != nil {
		t.Close()
		panic(r)
	}
}
