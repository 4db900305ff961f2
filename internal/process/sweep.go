package process

import (
	"fmt"
	"strings"
)

// Leftover is what a run has left in its cgroup whose wrapper and guard were
// both killed in the same instant.
type Leftover struct {
	Cgroup string `json:"cgroup"`          // its leaf, removed
	Ended  []Proc `json:"ended"`           // what was alive in it, ended now
	Error  string `json:"error,omitempty"` // why it could not be cleared
}

// String tells it to a person.
func (l Leftover) String() string {
	if l.Error != "" {
		return fmt.Sprintf("a dead run's cgroup %s could not be cleared: %s", l.Cgroup, l.Error)
	}
	return fmt.Sprintf("a dead run's cgroup %s is removed; ended: %s", l.Cgroup, List(l.Ended))
}

// List names processes for a person.
func List(procs []Proc) string {
	if len(procs) == 0 {
		return "nobody"
	}
	names := make([]string, len(procs))
	for i, p := range procs {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}
