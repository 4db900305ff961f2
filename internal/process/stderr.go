package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mode is what the agent has as its stderr.
type Mode string

// The modes; the zero Mode is StderrPipe. With a terminal the agent has it as
// its controlling one, so a tool that asks on /dev/tty can be seen asking;
// without one there is none, and such a tool fails at once.
const (
	StderrPipe    Mode = "pipe"
	StderrPTY     Mode = "pty"     // a terminal of its own
	StderrInherit Mode = "inherit" // our own descriptor 2
	StderrDiscard Mode = "discard" // /dev/null
)

// stderr opens both ends of the agent's stderr. Where what it says does not
// come to us, ours is at its end from the beginning.
func (f *files) stderr(m Mode, size Size) (err error) {
	const end = 2
	switch m {
	case StderrPipe, "":
		f.ours[end], f.theirs[end], err = os.Pipe()
	case StderrPTY:
		f.ours[end], f.theirs[end], err = openTerminal(size)
	case StderrInherit:
		f.theirs[end], err = ownStderr()
	case StderrDiscard:
		f.theirs[end], err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	default:
		return fmt.Errorf("stderr %q: not known", m)
	}
	if err == nil && f.ours[end] == nil {
		f.ours[end], err = os.Open(os.DevNull)
	}
	return err
}

// ownStderr is descriptor 2 under another number, because whoever gets it
// closes it.
func ownStderr() (*os.File, error) {
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("our stderr: %w", err)
	}
	return os.NewFile(uintptr(fd), "stderr"), nil
}
