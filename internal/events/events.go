// Package events turns one line of the agent's stream into one Event.
//
// It is pure: bytes in, a value out. It never fails and never blocks; a line
// that it does not understand is an event all the same, because any line is a
// sign of life. It decides nothing: what an event means for a deadline is the
// monitor's business.
package events

import "time"

// Kind says what a line means to the rest of the program.
type Kind uint8

// The kinds of lines. The zero Kind is a line that is not JSON.
const (
	Text              Kind = iota // not valid JSON
	Unknown                       // valid JSON, but of no type known here
	System                        // system/* other than the ones below
	Init                          // system/init: the session begins
	TaskNotification              // system/task_notification: background work ended, or woke
	BackgroundTimeout             // system/background_shell_timeout: background shells were aborted
	User                          // the echo of the prompt that was taken
	Assistant
	Thinking
	Interaction // interaction_query/*: answered by the agent itself
	ToolStarted
	ToolCompleted
	Connection // connection/*: the client only, no progress
	Retry      // retry/*: the client only, no progress
	Result
	Oversize // a line longer than MaxLine: known by its head alone
	Partial  // bytes arrived, the end of their line did not
)

// MaxLine is the length in bytes up to which a line is held and parsed. A
// longer one is forwarded and logged in pieces and becomes an Oversize event.
const MaxLine = 16 << 20

// Storage says in which form a line may stand in a JSON log.
type Storage uint8

// The forms, from the most readable to the one that takes anything.
const (
	AsJSON   Storage = iota // valid JSON in valid UTF-8: may stand unquoted
	AsText                  // valid UTF-8: may stand as a JSON string
	AsBase64                // neither
)

// Event is what one line says.
type Event struct {
	Kind    Kind
	Storage Storage

	// Type and Subtype are the discriminators as they were written; both are
	// empty for a line that is not a JSON object.
	Type, Subtype string

	// SessionID is set for Init, User and Result.
	SessionID string

	Call   *Call   // ToolStarted and ToolCompleted
	Task   *Task   // TaskNotification
	Ended  *Ended  // Result, and an Oversize one
	Prompt *string // User: the text of the prompt that the agent says it took
}

// Progress reports whether the event is more than the client's own attempts to
// reach its server, which may go on for ever (H11).
func (e *Event) Progress() bool { return e.Kind != Connection && e.Kind != Retry }

// Name is type/subtype, for logs.
func (e *Event) Name() string {
	switch {
	case e.Kind == Text:
		return "text"
	case e.Kind == Partial:
		return "partial"
	case e.Subtype == "":
		return e.Type
	}
	return e.Type + "/" + e.Subtype
}

// Call is one tool call, as far as a started or completed line tells.
type Call struct {
	// ID pairs a start with its completion; decoded, so that two spellings of
	// one id are one. It often contains a newline.
	ID string

	// ModelCallID is shared by the calls that one model step made; they run
	// side by side.
	ModelCallID string

	// Tool is the kind of call: the key without its "ToolCall" ("shell",
	// "read", "mcp"), or the name of a function call.
	Tool string

	// Argument is the one argument that tells a person what the call does: the
	// command, the path, the pattern, the URL. At most 200 runes, may be empty.
	Argument string

	// Declared is how long the call said that it may take; 0 when it did not
	// say, and for the 0 that some builds write without meaning it.
	Declared time.Duration

	// The rest is set on completions.

	// Background is set where the call came back while its work goes on: a
	// shell that was moved to the background or a subagent.
	Background bool

	// TaskID names the background work in a later TaskNotification: the shell
	// id or the agent id.
	TaskID string

	// PID is the background shell's process, 0 where it is not told.
	PID int
}

// Task is background work that ended, or that only woke.
type Task struct {
	ID     string
	Status string // success, error, aborted; anything else is not an end
}

// Over reports whether the work has ended, by whatever status.
func (t *Task) Over() bool {
	switch t.Status {
	case "success", "error", "aborted":
		return true
	}
	return false
}

// Ended is a result line.
type Ended struct {
	IsError bool
	Tokens  Tokens
}

// Tokens are what a run took, as its result tells; all 0 where it does not.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Plus is the sum of both.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{t.Input + o.Input, t.Output + o.Output, t.CacheRead + o.CacheRead, t.CacheWrite + o.CacheWrite}
}

// Acts reports whether the call changes something: whoever repeats it may do so
// twice. What is not known to only look is taken to act.
func (c *Call) Acts() bool {
	switch c.Tool {
	case "read", "grep", "glob", "ls", "await", "semSearch", "webSearch", "webFetch", "fetch", "readLints",
		"readTodos", "updateTodos", "askQuestion", "createPlan", "switchMode", "getMcpTools",
		"listMcpResources", "readMcpResource":
		return false
	}
	return true
}
