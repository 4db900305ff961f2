package tree

// Call is a tool call that is open, or work in the background, as the stream
// told of it.
type Call struct {
	ID      string
	Tool    string
	Command string // its telling argument, at most 200 runes; of a shell, the command
	PID     int    // of a background shell, as it was reported; 0 where it was not
	Behind  bool   // it is work in the background, no open call
	Age     Span   // since it was started, at the time of the snapshot
}

// Activity is what a tree did between two snapshots, and how it stood at the
// second one. It is what the monitor judges by and what the log keeps, so that
// a replay sees the same: all of it survives a way through JSON unchanged.
type Activity struct {
	// Span lies between the two snapshots; 0 for the first one, in which
	// nothing can be said to have happened.
	Span Span `json:"span_ms"`

	Alive    int  `json:"alive"`      // processes, zombies left out
	Tools    int  `json:"tools"`      // of those, the ones outside of the agent's own session
	Born     int  `json:"born"`       // tools that are here and were not
	Ended    int  `json:"ended"`      // tools that were here and are not
	Runnable int  `json:"runnable"`   // processes that run or want to (R); who waits for a disk (D) may do so for ever
	CPU      Span `json:"cpu_ms"`     // used in the span by the whole tree, the dead included; Unknown
	OwnCPU   Span `json:"own_cpu_ms"` // of it, what processes of the agent's own session used

	// Forgotten are processes that no counter here speaks of, nor any other
	// count but Alive: tools that have left the agent's tree and belong to no
	// call, as a daemon does that a finished tool has left behind.
	Forgotten int `json:"forgotten,omitempty"`

	Disk     int64 `json:"disk_bytes"`     // read from and written to storage; Unknown
	Received int64 `json:"received_bytes"` // on TCP sockets; Unknown
	Sent     int64 `json:"sent_bytes"`     // likewise
	// OneWay is the sum over all sockets of how much more arrived than left: a
	// keep-alive is answered in kind and comes to next to nothing, a stream of
	// tokens is not. Unknown.
	OneWay int64 `json:"one_way_bytes"`

	Busiest []Proc   `json:"busiest,omitempty"` // at most 3, who used the most CPU in the span first; nobody under 1 %
	Stopped []Proc   `json:"stopped,omitempty"` // of the agent and of who runs its open calls, those in state T
	Asking  []Proc   `json:"asking,omitempty"`  // who is blocked reading a terminal
	Runners []Runner `json:"runners,omitempty"` // one for each call, in the order of the calls
	Procs   []Proc   `json:"procs,omitempty"`   // the whole tree, where what it waits for was looked into; at most 200

	Full   bool     `json:"full"`             // who is not counted is not there
	Blind  string   `json:"blind,omitempty"`  // why nothing could be seen
	Hidden []string `json:"hidden,omitempty"` // what else could not be read, in words: "i/o of 3 processes"
}

// Proc is a process in an Activity.
type Proc struct {
	ID
	PPID    int     `json:"ppid"`
	Command string  `json:"command"`
	State   string  `json:"state"`             // running, asleep, stopped, traced, uninterruptible, zombie
	Still   Span    `json:"still_ms"`          // for how long it has used no CPU, as far as it was watched
	Age     Span    `json:"age_ms"`            // Unknown
	Percent float64 `json:"percent"`           // of a core in the span, to a tenth; Unknown
	CPU     Span    `json:"cpu_ms"`            // since it was started; Unknown
	Memory  int64   `json:"memory_bytes"`      // Unknown
	Waits   string  `json:"waits,omitempty"`   // what it waits for, in words
	Sockets []Peer  `json:"sockets,omitempty"` // at most 8
	Call    string  `json:"call,omitempty"`    // the id of the open call that it runs, or belongs to
}

// Peer is the other end of a process's connection.
type Peer struct {
	Peer     string `json:"peer"` // address:port
	Received int64  `json:"received_bytes"`
	Sent     int64  `json:"sent_bytes"`
	Quiet    Span   `json:"quiet_ms"` // since data last arrived; Unknown
}

// Fate is what became of the process that runs a call.
type Fate string

// The fates. None proves nothing: some agents run tools within themselves, and
// a short one may have come and gone between two looks.
const (
	Alive  Fate = "alive"
	Gone   Fate = "gone"   // it was seen, and is not there any more
	None   Fate = "none"   // none was ever seen
	Unseen Fate = "unseen" // nothing can be seen
)

// Runner is the live process that runs a call.
type Runner struct {
	Call    string `json:"call"` // its id
	Fate    Fate   `json:"fate"`
	ID             // of the process; zero for None and Unseen
	Command string `json:"command,omitempty"`
	By      string `json:"by,omitempty"`    // how it was found: "command line", "start time", "reported pid"
	Waits   string `json:"waits,omitempty"` // the most telling wait at or below it, with who waits, where it was looked into
	Asks    bool   `json:"asks,omitempty"`  // it, or somebody below it, is blocked reading a terminal
}
