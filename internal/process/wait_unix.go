package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitNoReap is waitid(P_PID, pid, WEXITED|WNOWAIT). golang.org/x/sys wraps
// the call for Linux only; the kernel fills in a siginfo_t of 128 bytes or
// less on every system we build for.
func waitNoReap(pid int) error {
	const pPID = 1
	var info [128]byte
	_, _, e := unix.Syscall6(unix.SYS_WAITID, pPID, uintptr(pid),
		uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
