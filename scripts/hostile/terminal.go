//go:build linux

package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal that is the supervisor's stdin, stdout, stderr
// and, as its caller sees to, its controlling terminal. Closing the master hangs it up.
func (k *keeper) openTerminal() ([]*os.File, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	k.pty = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock the terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("name the terminal: %w", err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the terminal: %w", err)
	}
	log, err := os.Create(k.Dir + "/err")
	if err != nil {
		return nil, err
	}
	// Somebody must read, or the supervisor blocks when it has said enough.
	go func() {
		defer log.Close()
		_, _ = io.Copy(log, k.pty) // ends with the terminal
	}()
	return []*os.File{tty, tty, tty}, nil
}
