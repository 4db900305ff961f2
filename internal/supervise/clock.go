package supervise

import "time"

// NewClock returns a clock that starts at the present time of day and then
// runs by the monotonic clock, in whole milliseconds: it does not jump when
// somebody sets the time, its times can be logged and compared, and a replay
// of the log sees the same times to the millisecond.
func NewClock() func() time.Time {
	began := time.Now()
	wall := began.Round(0).UTC()
	return func() time.Time { return wall.Add(time.Since(began)).Truncate(time.Millisecond) }
}
