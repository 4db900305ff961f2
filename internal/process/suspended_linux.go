package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Suspended is how long this machine has been suspended since it was started:
// CLOCK_BOOTTIME counts that time and CLOCK_MONOTONIC does not
// (clock_gettime(2)). Setting the time of day changes neither.
func Suspended() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
