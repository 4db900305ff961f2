package process

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// guardAttr is how the guard is born: in a session of its own, out of reach of
// the terminal, and for PIDNS as the init of a pid namespace with a mount
// namespace beside it, so that it can have a /proc that shows the same pids.
func guardAttr(c Containment) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if c != PIDNS {
		return attr
	}
	attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		// We stay who we are inside, and exec takes the rights away from all
		// but root, save the ambient ones (capabilities(7)). The guard drops
		// this one before it starts the agent.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return attr
}

// enterNamespace gives the init of a fresh pid namespace its own /proc. With
// the old one, every pid that is read there would be an outer one, and killing
// by it would hit nobody, or somebody else.
func enterNamespace() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// outside is the agent as we see it from outside its namespace: the guard's
// first child.
func outside(guard int, inside Proc) Proc {
	pids, err := childrenOf(fmt.Sprint(guard))
	if err != nil || len(pids) == 0 {
		return inside
	}
	return identify(pids[0])
}
