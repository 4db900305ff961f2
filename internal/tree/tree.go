// Package tree makes sense of the process table: who belongs to the agent's
// tree, what it did between two looks, which process runs which tool call, and
// what each of them waits for, in words.
//
// It is pure: rows in, values out. It reads nothing, asks no clock and decides
// nothing: whether a tree that did so little hangs is the monitor's business.
// Who fills the rows is package process.
package tree

import "time"

// Unknown is what a count is that could not be read: another user's process, a
// kernel that does not tell, a process that left meanwhile. It is never to be
// taken for zero.
const Unknown = -1

// ID names a process for as long as the machine runs: its pid, and when it was
// started, in the units of the system (ticks since boot on Linux). A pid alone
// may be somebody else's by the next look.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Row is one process in a snapshot.
type Row struct {
	ID
	PPID    int
	PGID    int
	Session int
	State   byte          // the letter of proc_pid_stat(5): R, S, D, T, t, Z, X, I
	Threads int           // 0 unknown
	UID     int           // effective; Unknown
	Age     time.Duration // since it was started, at the time of the snapshot; negative unknown
	Name    string        // of the executable, at most 15 bytes on Linux
	Argv    []string      // masked and clipped; nil where it cannot be read

	CPU    time.Duration // its own, all threads; negative unknown
	Waited time.Duration // of its descendants that were waited for; negative unknown
	Disk   int64         // bytes that it caused to be read from and written to storage; Unknown
	Memory int64         // resident bytes; Unknown

	Sockets []Socket // its TCP sockets; see Snapshot.Sockets
	Wait    *Wait    // what it waits for, where that was looked into
}

// Socket is a connected TCP socket.
type Socket struct {
	Inode    uint64        `json:"-"`
	Peer     string        `json:"peer"`     // address:port
	Received int64         `json:"received"` // bytes since it was opened
	Sent     int64         `json:"sent"`     // bytes that the peer has acknowledged, likewise
	Quiet    time.Duration `json:"-"`        // since the last data arrived; negative unknown
}

// Wait is what the kernel tells of one process that waits, before it is put
// into words. The zero value of a field is "not told".
type Wait struct {
	Call    string // the system call that its first thread is in: "read", "futex"; "running" when in none
	FD      int    // the descriptor that the call is about; Unknown
	File    string // what that descriptor leads to: "/dev/pts/3", "pipe:[812]", "socket:[4711]", a path
	Child   int    // the pid that it waits for; 0 for any of its children
	Channel string // the kernel function that it sleeps in
	Signal  string // of a stopped process: what stopped it, SIGSTOP
	Holders []int  // pids that hold the other end of File, where it is a pipe; nil: not looked for
}

// Snapshot is the tree at one moment. Rows may stand in any order.
type Snapshot struct {
	At   time.Time
	Root int // pid of the guard: whoever is below it is the tree; itself is no member
	// Agent is the agent's own process.
	Agent ID
	Rows  []Row

	// CPU is what the whole tree has used since it was started, the dead
	// included, as the kernel counts it (cpu.stat of the cgroup); negative
	// where only the rows tell.
	CPU time.Duration
	// Reaped is what the guard has waited for: the CPU time of orphans that
	// have ended. It belongs to the sum over the rows. Negative unknown.
	Reaped time.Duration

	// Sockets tells whether the TCP sockets could be looked up. Where they
	// could not, rows without sockets say nothing.
	Sockets bool
	// Full tells that one pass over the whole process table was made, so that
	// who is not in Rows is not there.
	Full bool
	// Blind says why nothing can be seen; empty where it can.
	Blind string
}
