package report

import (
	"encoding/json"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// Story is what a session log tells, in the order in which people ask: how it
// came out, why, what happened when. It is what every format is made of.
type Story struct {
	Run       Run        `json:"run"`
	Turns     []Turn     `json:"turns"`
	Items     []Item     `json:"items"`     // by start
	Samples   []Sample   `json:"samples"`   // by time
	Deadlines []Deadline `json:"deadlines"` // as they moved
	Marks     []Mark     `json:"marks"`     // moments, by time
	Verdicts  []Verdict  `json:"verdicts"`
	Teardowns []Teardown `json:"teardowns"`
	Stderr    []Line     `json:"stderr"` // the end of it, bounded
	Torn      int        `json:"torn"`   // lines of the log that could not be read
	Lost      int64      `json:"lost"`   // records that the log itself says are missing

	// Events are the lines of the agent, for looking up what stands behind an
	// item. Not part of the JSON form.
	Events []Event `json:"-"`
}

// Run is the whole of it.
type Run struct {
	ID        string          `json:"run_id"`
	Version   string          `json:"version"`
	Session   string          `json:"session_id"`
	Dir       string          `json:"cwd"`
	Workspace string          `json:"workspace"`
	Agent     string          `json:"agent"` // its binary
	Args      []string        `json:"args"`  // of the agent
	Held      string          `json:"containment"`
	Policy    json.RawMessage `json:"policy,omitempty"`
	Model     string          `json:"model,omitempty"`

	Start monitor.Millis `json:"start"`
	End   monitor.Millis `json:"end"`   // of the last record
	Ended bool           `json:"ended"` // it has an end of its own; without one the wrapper was killed, or still runs

	Outcome  string       `json:"outcome"` // killed where it has no end
	ExitCode int          `json:"exit_code"`
	Message  string       `json:"message"`
	Sentence string       `json:"sentence"` // that explains the outcome to a person
	Silence  monitor.Span `json:"longest_silence_ms"`
	Lines    int64        `json:"lines"`
	Bytes    int64        `json:"bytes"`
	Calls    int64        `json:"calls"`
	Restarts int          `json:"restarts"`
	Tokens   [2]int64     `json:"tokens"` // in, cached ones included, and out
	AgentCPU monitor.Span `json:"agent_cpu_ms"`
	AgentRSS int64        `json:"agent_max_rss_bytes"`
	Answer   string       `json:"answer"` // the text of the result, bounded
}

// Turn is one prompt and what came of it, or one attempt at it.
type Turn struct {
	Start   monitor.Millis `json:"start"`
	End     monitor.Millis `json:"end"`
	Prompt  string         `json:"prompt"` // as the agent echoed it, bounded
	Outcome string         `json:"outcome"`
	Message string         `json:"message"`
	Restart int            `json:"restart"` // which attempt at the same prompt; 0 for the first
}

// Lane is what an Item is about.
type Lane string

// The lanes, from top to bottom.
const (
	Assistant  Lane = "assistant"
	Thinking   Lane = "thinking"
	Tool       Lane = "tool"       // one item a call
	Background Lane = "background" // work that goes on after its call
	Silence    Lane = "silence"    // longer than a moment, nothing came
	Held       Lane = "held"       // time in which nobody listened: it counts for no deadline
	Paused     Lane = "paused"     // somebody froze the tree
	Ladder     Lane = "teardown"
)

// Item is something with a beginning and an end.
type Item struct {
	Lane     Lane           `json:"lane"`
	Start    monitor.Millis `json:"start"`
	End      monitor.Millis `json:"end"`
	Title    string         `json:"title"`            // a tool's telling argument, the beginning of a text
	Tool     string         `json:"tool,omitempty"`   // its short name
	Call     string         `json:"call,omitempty"`   // its id
	Status   string         `json:"status,omitempty"` // of a call: ok, failed, open (it never ended), background
	Exit     *int           `json:"exit,omitempty"`   // of a shell
	Declared monitor.Span   `json:"declared_ms,omitempty"`
	Deadline monitor.Millis `json:"deadline,omitzero"` // of a call, as it was at its start
	Turn     int            `json:"turn"`              // index
	Detail   string         `json:"detail,omitempty"`  // more for a person, bounded

	// First and Last are the events behind it, as indexes of Story.Events, both
	// inclusive; -1 for none. Of a call they are its start and its end, and
	// what lies between belongs to others.
	First int `json:"first"`
	Last  int `json:"last"`
}

// Sample is what a look at the processes saw.
type Sample struct {
	At       monitor.Millis `json:"at"`
	Percent  float64        `json:"percent"` // of a core since the look before; tree.Unknown
	Alive    int            `json:"alive"`
	Tools    int            `json:"tools"`
	Received int64          `json:"received_bytes"`
	Disk     int64          `json:"disk_bytes"`
}

// Deadline is one from At on, until the next.
type Deadline struct {
	At    monitor.Millis `json:"at"`
	Until monitor.Millis `json:"until"` // 0: there is none
	Phase monitor.Phase  `json:"phase"`
}

// Mark is a moment: a signal, a restart, the agent's exit, a suspicion.
type Mark struct {
	At    monitor.Millis `json:"at"`
	What  string         `json:"what"`  // the message of the record
	Text  string         `json:"text"`  // for a person
	Level string         `json:"level"` // DEBUG, INFO, WARN, ERROR
}

// Verdict is a suspicion or a decision, with all that it rests on.
type Verdict struct {
	At     monitor.Millis  `json:"at"`
	What   string          `json:"what"` // suspected, hang_detected, duration_exceeded
	Reason *monitor.Reason `json:"reason"`
}

// Teardown is the end of a tree.
type Teardown struct {
	At    monitor.Millis `json:"at"` // when it was over
	Took  monitor.Span   `json:"took_ms"`
	Exit  string         `json:"exit"` // of the agent
	By    string         `json:"by"`
	Proof bool           `json:"proof"`
	Ended []Fate         `json:"ended"`
	Left  []Fate         `json:"left"`
	Spare []Fate         `json:"spared"`
}

// Fate is what became of one process.
type Fate struct {
	tree.ID
	PPID    int    `json:"ppid"`
	Command string `json:"command"`
	Found   string `json:"found"`
	Signal  string `json:"signal"`
	How     string `json:"how"`
	Error   string `json:"error"`
}

// Line is one of stderr.
type Line struct {
	At   monitor.Millis `json:"at"`
	Text string         `json:"text"`
}

// Event is one line of the agent.
type Event struct {
	At   monitor.Millis
	Name string // its type/subtype
	Raw  []byte // clipped
	Size int    // of the whole line
}
