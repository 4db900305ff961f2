package tmux

import (
	"fmt"

	"cursor-wrap/internal/registry"
)

// facts are what the status of a session follows from.
type facts struct {
	closed   bool // the session
	dead     bool // the pane's own process
	children int  // of the pane's shell, that live
	exit     *int // of what ran last; nil unknown
	changed  bool // the output, since the last look
}

// judge is the table of the states. The first row that fits counts.
func judge(f facts) (registry.State, string) {
	known := ""
	if f.exit != nil {
		known = fmt.Sprintf(", exit status %d", *f.exit)
	}
	switch {
	case f.closed:
		return registry.Failed, "the tmux session is closed" + known
	case f.dead:
		return registry.Failed, "the pane's shell is dead" + known
	case f.children == 0 && f.exit != nil && *f.exit != 0:
		return registry.Failed, "the shell has no child" + known
	case f.children == 0:
		return registry.Completed, "the shell has no child" + known
	case f.changed:
		return registry.Working, "the output has changed since the last look"
	}
	return registry.Idle, "the output has not changed since the last look"
}
