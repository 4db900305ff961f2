package process

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Size is that of a terminal, in characters. The zero Size is 24 rows of 80.
type Size struct{ Rows, Cols uint16 }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }

// Terminal is our end of the agent's terminal: its stderr, and what a tool
// opens as /dev/tty. What is said there is read from the agent's Stderr, whose
// Close hangs it up.
type Terminal struct{ master *os.File }

// Write types on it: an answer to who asks there. A terminal echoes what is
// typed unless its reader has switched that off, as for a password. It waits
// while nobody reads and the line is full.
func (t *Terminal) Write(b []byte) (int, error) { return t.master.Write(b) }

// Resize gives it another size, and tells those in the foreground by SIGWINCH
// if that is news.
func (t *Terminal) Resize(s Size) error { return resize(t.master, s) }

func resize(f *os.File, s Size) error {
	if s == (Size{}) {
		s = Size{24, 80}
	}
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	// Not pty.Setsize: its Fd could meet a Close, and another file has the
	// number then.
	if cerr := c.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
	}); cerr != nil {
		return cerr
	}
	return err
}

// openTerminal opens a new terminal, which becomes nobody's controlling one by
// it.
func openTerminal(s Size) (master, slave *os.File, err error) {
	m, slave, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("no terminal: %w", err)
	}
	defer m.Close()
	if master, err = pollable(m); err == nil {
		err = resize(master, s)
	}
	if err != nil {
		closeAll(master, slave)
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	return master, slave, nil
}

// pollable is the same file with reads that can be given a deadline. Creack's
// Open has taken that away by File.Fd.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
