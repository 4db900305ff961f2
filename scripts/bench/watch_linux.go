package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// canWatch says that orphans come to us, so that survivors can be found.
const canWatch = true

const (
	// patience is how long a tree has, after its supervisor has gone, before
	// those who live are counted as survivors.
	patience = 2 * time.Second

	// endLimit is how long a supervisor has to exit.
	endLimit = 20 * time.Second
)

// watchEnd waits for the supervisor's exit and for the end of the life line,
// which only the tree holds: the kernel hangs it up at the last one's death, and
// not before somebody has opened it. Survivors are counted, and ended.
func watchEnd(pid, life int, told time.Time) (e ending, err error) {
	self, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return e, fmt.Errorf("watch the supervisor: %w", err)
	}
	defer unix.Close(self)
	// Only hang-ups of the line, whatever is written into it. A negative
	// descriptor is passed over.
	fds := []unix.PollFd{{Fd: int32(life)}, {Fd: int32(self), Events: unix.POLLIN}}
	over := time.Now().Add(endLimit)
	for fds[0].Fd >= 0 || fds[1].Fd >= 0 {
		left := time.Until(over)
		if left <= 0 {
			break
		}
		n, err := unix.Poll(fds, int(left/time.Millisecond)+1)
		now := time.Since(told)
		if err != nil && err != unix.EINTR {
			return e, fmt.Errorf("watch the end: %w", err)
		}
		if n <= 0 {
			continue
		}
		if fds[0].Revents != 0 {
			e.gone, fds[0] = now, unix.PollFd{Fd: -1}
		}
		if fds[1].Revents != 0 {
			e.exited, fds[1] = now, unix.PollFd{Fd: -1}
			over = time.Now().Add(patience)
		}
	}
	switch {
	case fds[1].Fd >= 0:
		return e, fmt.Errorf("did not exit within %v", endLimit)
	case fds[0].Fd < 0:
		return e, nil
	}
	if e.survivors = endOrphans(pid); e.survivors == 0 {
		return e, errors.New("somebody holds the life line who is not among our orphans")
	}
	return e, nil
}

// endOrphans kills the living that have come to us, all but the supervisor,
// and returns how many there were. They are ours to reap, so their pids are
// still their own.
func endOrphans(supervisor int) (n int) {
	for _, pid := range children(os.Getpid()) {
		if pid == supervisor || !alive(pid) {
			continue
		}
		n++
		_ = unix.Kill(pid, unix.SIGKILL) // who will not die outlives the run, which tells it
	}
	return n
}

// alive reports whether a process is more than a zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// pid (name) state …, and the name may hold anything.
	_, state, ok := strings.Cut(string(b[max(strings.LastIndexByte(string(b), ')'), 0):]), " ")
	return ok && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
