package terminal

import (
	"io"
	"sync/atomic"
)

const (
	eraseBelow = "\x1b[J"
	eraseRight = "\x1b[K"
	clearAll   = "\x1b[H\x1b[2J"
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"

	// farewell is for what the agent's output may have left behind, too: a
	// hidden cursor, a colour.
	farewell = pasteOff + "\x1b[?25h\x1b[m"
)

// look is how a screen may write.
type look struct {
	dumb, color, ascii bool
	ours               func() bool       // nobody else has the terminal; nil: nobody ever
	size               func() (w, h int) // nil: the default one
	rescue             func()            // deferred by the painter; nil: nothing
}

// screen is the one way to the output: lines that stay, and below them a block
// of rows that can be taken away, the prompt or the status line.
type screen struct {
	look
	w    io.Writer
	lock chan struct{} // held by who writes; a channel, for Close cannot wait for ever

	column column
	shown  *picture // the block on the screen
	below  bool     // it stands under a line that has not ended
	back   int      // the column of that line where its end is
	prompt *picture // the block that a prompt wants; before any status
	buf    []byte

	absent bool // the person's shell has the screen
	status status
	closed atomic.Bool
}

func newScreen(w io.Writer, l look) *screen {
	if l.ours == nil {
		l.ours = func() bool { return true }
	}
	if l.rescue == nil {
		l.rescue = func() {}
	}
	if l.size == nil {
		l.size = func() (int, int) { return defaultWidth, defaultHeight }
	}
	s := &screen{look: l, w: w, lock: make(chan struct{}, 1)}
	s.status.init()
	if !s.dumb {
		go s.paintWhenDue()
	} else {
		close(s.status.stopped)
	}
	return s
}

func (s *screen) take() { s.lock <- struct{}{} }
func (s *screen) give() { <-s.lock }

// Write shows p and puts the block back below it. It blocks as long as the
// terminal does.
func (s *screen) Write(p []byte) (int, error) {
	s.take()
	defer s.give()
	s.erase()
	before := len(s.buf)
	s.buf = append(s.buf, p...)
	width, _ := s.size()
	s.column.feed(p, width)
	s.status.writes++
	s.afterOutput()
	n, err := s.flush()
	return min(max(n-before, 0), len(p)), err
}

// afterOutput puts the block back: the prompt always, the status where the
// line has ended and its turn has come.
func (s *screen) afterOutput() {
	switch {
	case s.closed.Load():
	case s.prompt != nil:
		s.put(*s.prompt)
	case !s.column.begun && !s.status.cooling:
		s.paintStatus()
	}
	s.status.ask()
}

// flush writes what was prepared, in one write.
func (s *screen) flush() (int, error) {
	if len(s.buf) == 0 {
		return 0, nil
	}
	n, err := s.w.Write(s.buf)
	if s.buf = s.buf[:0]; cap(s.buf) > 1<<16 {
		s.buf = nil
	}
	return n, err
}

// show shows a prompt, in place of the one before.
func (s *screen) show(p picture) {
	s.take()
	defer s.give()
	_, height := s.size()
	if s.prompt = &p; s.closed.Load() || s.shown != nil && s.shown.same(p.window(height)) {
		return
	}
	s.put(p)
	_, _ = s.flush() // reading will say that the terminal is gone
}

// leave makes the prompt output like any other: the line it ends in stays.
func (s *screen) leave(mark string) {
	s.take()
	defer s.give()
	if s.closed.Load() {
		return
	}
	if s.shown != nil {
		s.move(picture{rows: s.shown.rows, y: len(s.shown.rows) - 1, x: s.shown.rows[len(s.shown.rows)-1].width})
	}
	s.buf = append(append(s.buf, mark...), '\n')
	s.shown, s.prompt, s.below, s.column = nil, nil, false, column{}
	_, _ = s.flush() // reading will say that the terminal is gone
}

// resize follows the terminal, which may have broken the rows of the block; a
// prompt is laid out anew.
func (s *screen) resize(prompt func(width int) picture) {
	s.take()
	defer s.give()
	if s.closed.Load() {
		return
	}
	width, _ := s.size()
	if s.shown != nil {
		s.unbreak(width)
	}
	if prompt != nil {
		p := prompt(width)
		s.prompt = &p
		s.put(p)
	}
	s.status.again()
	_, _ = s.flush() // reading will say that the terminal is gone
}

// order writes an escape sequence, which moves nothing.
func (s *screen) order(seq string) {
	if s.dumb {
		return
	}
	s.take()
	defer s.give()
	s.buf = append(s.buf, seq...)
	_, _ = s.flush() // reading will say that the terminal is gone
}

// clear empties the screen; the prompt is to be shown anew.
func (s *screen) clear() {
	s.take()
	defer s.give()
	s.buf = append(s.buf, clearAll...)
	s.shown, s.below, s.column = nil, false, column{}
}

// freshLine begins a new line, unless the cursor is on one.
func (s *screen) freshLine() {
	s.take()
	defer s.give()
	s.erase()
	s.endLine()
	_, _ = s.flush() // reading will say that the terminal is gone
}

func (s *screen) endLine() {
	if s.column.begun {
		s.buf = append(s.buf, '\n')
	}
	s.column = column{}
}

// away leaves the screen to the person's shell: the block goes, and does not
// come back before forget.
func (s *screen) away() {
	s.take()
	defer s.give()
	s.erase()
	s.endLine()
	s.prompt, s.absent = nil, true
	_, _ = s.flush() // reading will say that the terminal is gone
}

// forget takes the screen back. Whatever the block was, others have written
// below it.
func (s *screen) forget() {
	s.take()
	defer s.give()
	s.shown, s.below, s.absent, s.column = nil, false, false, column{}
	s.status.again()
}

// close takes the block away for good, but for a prompt. Where the terminal takes nothing it is
// left as it is.
func (s *screen) close(ours bool) {
	s.closed.Store(true)
	close(s.status.done)
	within(closeWait, func() {
		s.take()
		defer s.give()
		if s.dumb || !ours {
			s.shown = nil
			return
		}
		if s.prompt != nil {
			s.column.begun = true
		} else {
			s.erase()
		}
		s.endLine()
		s.buf = append(s.buf, farewell...)
		_, _ = s.flush() // the terminal may be gone
	})
	within(closeWait, func() { <-s.status.stopped })
}
