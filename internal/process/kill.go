package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Kill ends the process with that pid and start time, and nobody else. One that
// is gone already is no error.
func Kill(pid int, start uint64) error {
	err := signalProc(Proc{PID: pid, Start: start}, syscall.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
