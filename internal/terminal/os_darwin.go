package terminal

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	noByte     = 0xff // the special character that does not exist
)

// readable waits until one of the files has something to be read, and says
// which; d below zero waits for ever. A file that is not asked for is -1. It is
// select, because poll does not know terminals here.
func readable(a, b int, d time.Duration) (isA, isB bool, err error) {
	var set unix.FdSet
	for _, fd := range []int{a, b} {
		if fd >= 0 {
			set.Set(fd)
		}
	}
	var timeout *unix.Timeval
	if d >= 0 {
		tv := unix.NsecToTimeval(d.Nanoseconds())
		timeout = &tv
	}
	if _, err = unix.Select(max(a, b)+1, &set, nil, nil, timeout); err != nil {
		return false, false, err
	}
	return a >= 0 && set.IsSet(a), set.IsSet(b), nil
}
