package terminal

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
	noByte     = 0 // the special character that does not exist
)

// readable waits until one of the files has something to be read, and says
// which; d below zero waits for ever. A file that is not asked for is -1.
func readable(a, b int, d time.Duration) (isA, isB bool, err error) {
	fds := []unix.PollFd{{Fd: int32(a), Events: unix.POLLIN}, {Fd: int32(b), Events: unix.POLLIN}}
	timeout := -1
	if d >= 0 {
		timeout = int(d.Milliseconds())
	}
	_, err = unix.Poll(fds, timeout)
	return fds[0].Revents != 0, fds[1].Revents != 0, err
}
