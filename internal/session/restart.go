package session

import (
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/supervise"
)

// DefaultPrompt asks an agent to go on that was ended in the middle of its work.
const DefaultPrompt = "Please continue where you stopped."

// backoff is how long is waited before each attempt; the last one stands for
// all that follow.
var backoff = []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}

// Restarts says when a turn that hung is run again.
type Restarts struct {
	Most   int    // attempts after the first; 0 is never
	Prompt string // for an agent that resumes its session
	// Untouched restarts only where no tool had acted: nothing was changed.
	Untouched bool
	// Unsafe restarts also where a tool that changes something was under way:
	// it may have done half of it, and will do it again.
	Unsafe bool
}

// next is the attempt that follows a turn, and when.
func (p *Restarts) next(t Turn, r *supervise.Report) (next Turn, wait time.Duration, again bool) {
	if r.Outcome != supervise.Hang || t.Restart >= p.Most || r.Told != 0 || len(r.Teardown.Left) > 0 || !p.safe(r) {
		return Turn{}, 0, false
	}
	next = t
	next.Restart++
	switch {
	case r.Counts.Lines == 0: // it never began: from the start
	case !r.Named && t.Resume == "":
		return Turn{}, 0, false // there is something to go on with, and no name for it
	case !r.Named: // it has not begun with this prompt
	default:
		next.Resume, next.Prompt = r.SessionID, p.Prompt
	}
	return next, backoff[min(t.Restart, len(backoff)-1)], true
}

// safe reports whether nothing will be done twice.
func (p *Restarts) safe(r *supervise.Report) bool {
	if p.Untouched && r.Counts.Acted > 0 {
		return false
	}
	reason, ok := r.Reason.(*monitor.Reason)
	return p.Unsafe || !ok || !reason.Acting()
}
