package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// The clocks of <time.h> on macOS: the one counts the time asleep, the other
// does not.
const (
	clockMonotonic = 6
	clockUptime    = 8
)

// Suspended is how long this machine has been asleep since it was started.
func Suspended() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(clockMonotonic, &all) != nil || unix.ClockGettime(clockUptime, &awake) != nil {
		return 0
	}
	return time.Duration(all.Nano() - awake.Nano())
}
