package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Boot names the time since which pids count; empty where it is not told.
func Boot() string {
	if id, err := unix.Sysctl("kern.bootsessionuuid"); err == nil && id != "" {
		return id
	}
	at, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return fmt.Sprint(at.Sec) // without its fraction, which moves when the clock is set
}

// Namespace is 0: macOS has no pid namespaces.
func Namespace() uint64 { return 0 }
