package process

import (
	"os"
	"strconv"
	"strings"
)

// Boot names the time since which pids and start times count; empty where it is
// not told, or where /proc speaks of other pids than those that we have.
func Boot() string {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return ""
	}
	b, err := readFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Namespace names the pid namespace that we are in; 0 where it is not told.
func Namespace() uint64 {
	n, err := pidNamespace()
	if err != nil {
		return 0
	}
	return n
}
