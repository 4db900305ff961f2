package terminal

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// mode is what the terminal's modes are set to.
type mode int

const (
	asFound  mode = iota
	editMode      // every byte at once, none of them special
	turnMode      // the same, but Ctrl-S and Ctrl-Q are the terminal's
	lineMode      // whole lines, echoed; interrupt and suspend end a line, quit is a signal
)

// modes sets the terminal's modes and puts them back.
type modes struct {
	fd int

	mu     sync.Mutex
	found  unix.Termios // by Open, and again after every stop
	now    mode
	closed bool
}

func newModes(fd int) (*modes, error) {
	found, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, fmt.Errorf("terminal modes: %w", err)
	}
	return &modes{fd: fd, found: *found}, nil
}

// foreground reports whether the terminal is ours to change: from the
// background the kernel would stop us for it. Where it is nobody's controlling
// terminal there is no job control, and it is ours.
func (m *modes) foreground() bool {
	group, err := unix.IoctlGetInt(m.fd, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// set changes the modes. A job in the background is stopped for it by the
// kernel, until the person wants it in front: that is right where a prompt is
// to be read. Whoever can do without it asks foreground before.
func (m *modes) set(want mode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	to := m.termios(want)
	if err := m.put(&to); err != nil {
		return err
	}
	m.now = want
	return nil
}

// restore puts back what was found. In the background there is nothing to put
// back: whoever took the terminal from us has set it as they need it.
func (m *modes) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed && m.now != asFound && m.foreground() {
		_ = m.put(&m.found) // the terminal may be gone
	}
	m.now = asFound
}

// forget is for a terminal that somebody else has set since.
func (m *modes) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = asFound
}

// learn takes what it finds for what is to be put back, after a time in which
// the person had the terminal to themselves.
func (m *modes) learn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != asFound || !m.foreground() {
		return
	}
	if found, err := unix.IoctlGetTermios(m.fd, getTermios); err == nil {
		m.found = *found
	}
}

// close puts back what was found for the last time and reports whether the
// terminal was ours. Output that Ctrl-S holds is let go: somebody may be
// waiting in a write.
func (m *modes) close() (ours bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if !m.foreground() {
		return false
	}
	flowing := m.found
	flowing.Iflag &^= unix.IXON
	_ = m.put(&flowing) // the terminal may be gone
	_ = m.put(&m.found)
	return true
}

// put does not wait for output to drain: it may be stopped.
func (m *modes) put(to *unix.Termios) error {
	for {
		err := unix.IoctlSetTermios(m.fd, setTermios, to)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EIO):
			return ErrHangup
		default:
			return err
		}
	}
}

func (m *modes) termios(want mode) unix.Termios {
	t := m.found
	switch want {
	case editMode, turnMode:
		t.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INLCR | unix.IGNCR | unix.ISTRIP
		t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		if want == editMode {
			t.Iflag &^= unix.IXON
		}
	case lineMode:
		t.Iflag |= unix.ICRNL
		t.Lflag |= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
		t.Cc[unix.VEOL], t.Cc[unix.VEOL2] = t.Cc[unix.VINTR], t.Cc[unix.VSUSP]
		t.Cc[unix.VINTR], t.Cc[unix.VSUSP] = noByte, noByte
	}
	if want != asFound {
		t.Oflag |= unix.OPOST | unix.ONLCR
	}
	return t
}

// special is which bytes the person's terminal calls interrupt, quit and so on.
type special struct{ interrupt, quit, suspend, eof byte }

func (m *modes) special() special {
	or := func(c, usual byte) byte {
		if c == noByte {
			return usual
		}
		return c
	}
	cc := m.found.Cc
	return special{
		interrupt: or(cc[unix.VINTR], 0x03), quit: or(cc[unix.VQUIT], 0x1c),
		suspend: or(cc[unix.VSUSP], 0x1a), eof: or(cc[unix.VEOF], 0x04),
	}
}

// gone reports whether the terminal has been hung up.
func (m *modes) gone() bool {
	_, err := unix.IoctlGetTermios(m.fd, getTermios)
	return err != nil
}
