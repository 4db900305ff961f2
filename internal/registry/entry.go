// Package registry knows the runs that live on this host. Each run keeps an
// entry of its own in a folder of the state directory and answers questions on
// a unix socket beside it; there is no daemon, and nobody else writes there.
package registry

import (
	"cursor-wrap/internal/monitor"
)

// Entry is a run as it stands in its run.json: who, what and since when. What
// changes from moment to moment is asked of the run itself, see Status.
type Entry struct {
	RunID   string `json:"run_id"`
	Version string `json:"version"` // of cursor-wrap

	PID       int    `json:"pid"`           // of the front
	Start     uint64 `json:"start"`         // its start time, in the units of process.Proc
	Namespace uint64 `json:"pid_namespace"` // that the pids are of; 0 where there are none
	Boot      string `json:"boot"`          // of the machine, since which pids count; empty where it is not told
	Guard     Ref    `json:"guard"`         // zero between turns
	Agent     Ref    `json:"agent"`         // zero between turns
	Leaf      string `json:"leaf"`          // path of the tree's cgroup; empty without one
	Held      string `json:"containment"`   // how the tree is held together, and why not better

	UID  int            `json:"uid"`
	Host string         `json:"host"`
	At   monitor.Millis `json:"started"`

	Mode      string   `json:"mode"`      // print, lines or terminal
	Args      []string `json:"args"`      // of cursor-wrap, secrets masked
	Prompt    string   `json:"prompt"`    // the beginning of the first one, secrets masked
	Dir       string   `json:"cwd"`       // of the front
	Workspace string   `json:"workspace"` // the folder that the agent works in
	Session   string   `json:"session_id"`
	Log       string   `json:"log"`
	Tmux      string   `json:"tmux,omitempty"` // the tmux session that it was started in by name
	Socket    string   `json:"socket"`

	// Removed is set by Sweep: the record of this dead run is gone.
	Removed bool `json:"-"`
}

// Ref names a process for as long as the machine runs.
type Ref struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}
