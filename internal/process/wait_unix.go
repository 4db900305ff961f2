package process

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitPeek is the pid of a child that has ended, without reaping it, or 0 when
// none has; ECHILD when there are no children. golang.org/x/sys wraps
// waitid(2) for Linux only, and not the pid that it finds; the kernel fills in
// a siginfo_t of 128 bytes or less on every system we build for.
func waitPeek() (int, error) { return waitid(0, unix.WNOHANG) }

// AwaitExit waits until a child has ended and leaves it to be reaped: until
// then its pid, and the id of its group, are nobody else's.
func AwaitExit(pid int) {
	for {
		if _, err := waitid(pid, 0); !errors.Is(err, unix.EINTR) {
			return // there is no such child where it failed
		}
	}
}

// waitid is for any child where pid is 0.
func waitid(pid, options int) (int, error) {
	const pALL, pPID = 0, 1
	which := pALL
	if pid != 0 {
		which = pPID
	}
	var info [128]byte
	_, _, e := unix.Syscall6(unix.SYS_WAITID, uintptr(which), uintptr(pid),
		uintptr(unsafe.Pointer(&info)), uintptr(options|unix.WEXITED|unix.WNOWAIT|waitAll), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(int32(binary.NativeEndian.Uint32(info[siginfoPID:]))), nil
}

// watch returns a channel that says when a child may have ended. It waits in a
// thread of its own, because a notification of SIGCHLD costs a program that has
// just started more than all the rest of its work. Who was told must reap, and
// then ask for more. The watch ends when there are no children.
func watch() (ended <-chan struct{}, more func()) {
	told, asked := make(chan struct{}, 1), make(chan struct{}, 1)
	go func() {
		for {
			if _, err := waitid(0, 0); errors.Is(err, unix.EINTR) {
				continue
			} else if err != nil {
				return // ECHILD
			}
			told <- struct{}{}
			<-asked
		}
	}()
	return told, func() { asked <- struct{}{} }
}
