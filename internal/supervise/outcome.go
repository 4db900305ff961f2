package supervise

import (
	"syscall"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/process"
)

// Outcome is how a run came out, in one word.
type Outcome string

// The outcomes.
const (
	Success   Outcome = "success"   // a result, and it is no error
	Failed    Outcome = "error"     // an error result, no result, or the agent could not be started
	Hang      Outcome = "hang"      // the monitor's verdict
	Survivors Outcome = "survivors" // success, but something could not be ended
	Usage     Outcome = "usage"     // the command line was wrong; no agent was started
	Overtime  Outcome = "duration"  // the run's own time was up
	Stopped   Outcome = "signal"    // we were told to stop
)

// ExitCode is the exit code of the program for an outcome; sig is the signal
// of Stopped.
func ExitCode(o Outcome, sig syscall.Signal) int {
	switch o {
	case Success:
		return 0
	case Hang:
		return 2
	case Survivors:
		return 3
	case Usage:
		return 64
	case Overtime:
		return 124
	case Stopped:
		return 128 + int(sig)
	}
	return 1
}

// Report is what a turn came to.
type Report struct {
	Outcome   Outcome
	ExitCode  int
	Message   string // why, in one sentence; empty for success
	Reason    any    // *monitor.Reason of a hang or of a run whose time was up, process.Exceeded of a limit
	Advice    string // what to try, where the refusal is a known one
	SessionID string
	Named     bool // the agent named the session in this turn
	Result    bool // the agent said its result
	Took      time.Duration
	Started   bool
	Teardown  process.Teardown
	Counts    Counts
	Told      syscall.Signal // by which we were told to stop, whatever came of the turn; 0 if we were not
	Silence   time.Duration  // the longest, while we listened
	Tokens    events.Tokens  // as the result tells
}

// Counts are what a turn saw.
type Counts struct {
	Lines     int64 `json:"lines"`
	Bytes     int64 `json:"bytes"`
	Calls     int64 `json:"calls"`
	Unmatched int64 `json:"unmatched_completions"`
	Acted     int64 `json:"acting_calls"` // of the calls, those of tools that change something
	Stderr    int64 `json:"stderr_bytes"`
}

// Plus is the sum of both.
func (c Counts) Plus(o Counts) Counts {
	return Counts{c.Lines + o.Lines, c.Bytes + o.Bytes, c.Calls + o.Calls, c.Unmatched + o.Unmatched, c.Acted + o.Acted, c.Stderr + o.Stderr}
}

// cause is why a turn is being ended.
type cause struct {
	outcome Outcome
	subtype string // of the synthetic result
	message string
	reason  any // *monitor.Reason or process.Exceeded; nil where the message says it all
	signal  syscall.Signal
}
