package process

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Pipe is our end of the agent's stdout or stderr. Reads can be given a deadline.
type Pipe struct{ *os.File }

// Read is at its end when nobody has the other end open any more. A terminal
// says EIO then.
func (p *Pipe) Read(b []byte) (int, error) {
	n, err := p.File.Read(b)
	if errors.Is(err, unix.EIO) {
		err = io.EOF
	}
	return n, err
}

// WriteTo is Read's, and not the file's own, which knows no such end.
func (p *Pipe) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{p})
}

// Buffered is how many bytes can be read at once, without waiting: of a pipe,
// after the agent's exit, all that it wrote and nobody has read. A terminal
// has more behind them when it is asked again.
func (p *Pipe) Buffered() (int, error) {
	var n int
	var err error
	c, cerr := p.SyscallConn()
	if cerr != nil {
		return 0, cerr
	}
	if cerr := c.Control(func(fd uintptr) {
		// What was written to a terminal is on its way to our end in a queue
		// of the kernel's, which only a poll or a read waits for.
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		n, err = unix.IoctlGetInt(int(fd), fionread)
	}); cerr != nil {
		return 0, cerr
	}
	return n, err
}
