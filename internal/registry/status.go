package registry

import (
	"context"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// State is what a run or a session in tmux comes to, in one vocabulary.
type State string

// The states. A run that lives is one of the first two.
const (
	Working   State = "working"   // something came from the agent a moment ago, or its processes are at work
	Idle      State = "idle"      // nothing did, and they are not: it waits, is paused, or hangs
	Completed State = "completed" // it is over, and went well
	Failed    State = "failed"    // it is over, and did not
)

// Status is where a run stands.
type Status struct {
	RunID   string         `json:"run_id"`
	Session string         `json:"session_id"` // empty until it is known
	At      monitor.Millis `json:"at"`
	Started monitor.Millis `json:"started"` // the run

	State State  `json:"status"`
	Phase string `json:"phase"` // of the turn; "prompt" between turns, "ending" during the teardown

	// Paused is since when the tree is frozen, 0 while it is not; PausedBy is
	// the uid of who asked for it.
	Paused   monitor.Millis `json:"paused"`
	PausedBy int            `json:"paused_by"`

	// Held is since when nobody reads our stdout, or the log's disk stands
	// still, 0 while neither is so. No deadline comes closer meanwhile, so
	// nobody but who looks will notice.
	Held monitor.Millis `json:"held"`

	Turn     int `json:"turn"` // from 1; 0 before the first
	Restarts int `json:"restarts"`

	// Reason is what a verdict would say at this moment: open calls, silence
	// and its limit, the deadline ahead, the evidence of the last window.
	// Absent between turns.
	Reason *monitor.Reason `json:"progress,omitempty"`

	Counts Counts `json:"counts"`
	Tree   Usage  `json:"tree"`
	Self   Usage  `json:"wrapper"`
	Log    string `json:"log"`
}

// Counts are of the whole run.
type Counts struct {
	Lines    int64 `json:"lines"` // of the agent's stdout
	Bytes    int64 `json:"bytes"`
	Calls    int64 `json:"calls"`
	Stderr   int64 `json:"stderr_bytes"`
	Hangs    int64 `json:"hangs"` // turns that were ended because they hung
	LostLogs int64 `json:"lost_records"`
}

// Usage is what processes have and use. What could not be read is tree.Unknown.
type Usage struct {
	Processes int       `json:"processes"`
	CPU       tree.Span `json:"cpu_ms"`  // since they were started, the dead included where the kernel counts them
	Percent   float64   `json:"percent"` // of a core, a moment ago
	Memory    int64     `json:"memory_bytes"`
}

// Tree is the agent's tree, process by process.
type Tree struct {
	Status
	Activity    *tree.Activity   `json:"activity,omitempty"` // with what each process waits for; absent between turns
	Guard       Ref              `json:"guard"`
	Containment string           `json:"containment"`
	Leaf        string           `json:"leaf"`
	Cgroup      map[string]int64 `json:"cgroup,omitempty"` // what the leaf counts, by file and key: "cpu.stat usage_usec", "pids.current"
}

// Backend is the run behind the socket. Its methods are called from many
// goroutines.
type Backend interface {
	Status(context.Context) (Status, error)
	Tree(context.Context) (Tree, error)
	// Kill ends the run as SIGTERM would; now leaves the polite step out. It
	// does not wait for the end.
	Kill(by int, now bool) error
	// Pause freezes the tree and Unpause lets it go on; by is the uid of who
	// asked. Between turns there is nothing to freeze, which is an error.
	Pause(ctx context.Context, by int) error
	Unpause(ctx context.Context, by int) error
	// Grown is closed when the log has grown since the call, or was closed.
	Grown() <-chan struct{}
}

// Ending is how a run came out, for whoever waits for it.
type Ending struct {
	Outcome  string `json:"outcome"`
	ExitCode int    `json:"exit_code"`
	Message  string `json:"message,omitempty"`
}
