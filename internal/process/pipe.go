package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// Pipe is our end of the agent's stdout or stderr. Reads can be given a deadline.
type Pipe struct{ *os.File }

// Buffered is how many bytes can be read at once, without waiting: after the
// agent's exit, all that it wrote and nobody has read.
func (p *Pipe) Buffered() (int, error) {
	var n int
	var err error
	c, cerr := p.SyscallConn()
	if cerr != nil {
		return 0, cerr
	}
	if cerr := c.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), fionread) }); cerr != nil {
		return 0, cerr
	}
	return n, err
}
