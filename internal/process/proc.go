package process

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Proc is a row of the process table. PID and Start together name a process.
type Proc struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // ticks since boot on Linux, microseconds since 1970 on macOS; 0 unknown
	PPID    int    `json:"ppid"`
	PGID    int    `json:"pgid"`
	Session int    `json:"session"`
	State   string `json:"state"`   // the letter of proc_pid_stat(5)
	UID     int    `json:"uid"`     // effective; -1 where it was not asked for
	Command string `json:"command"` // its argv, or its name where that cannot be read
	threads int
}

// String names the process for a person.
func (p Proc) String() string { return fmt.Sprintf("%d %s", p.PID, p.Command) }

// gone reports whether only the entry in the table is left. A process whose
// leading thread has ended shows as a zombie, too, while its others run on.
func (p Proc) gone() bool { return (p.State == "Z" || p.State == "X") && p.threads < 2 }

func (p Proc) id() procID { return procID{p.PID, p.Start} }

// procID names a process for as long as the machine runs.
type procID struct {
	pid   int
	start uint64
}

// Step is one rung of the ladder: signals to everybody who is alive, and how
// long they have. It is left as soon as nobody is.
type Step struct {
	Signals []syscall.Signal `json:"signals"`
	Wait    time.Duration    `json:"wait_ns"`
}

// Ladder is how a tree is ended, from the polite to the certain. Its last step
// is always the kill, whatever signals it names; its wait is how long the
// kernel has.
type Ladder []Step

// Settle is how long the kernel has to end what was killed; what is left then
// sits in uninterruptible sleep or belongs to somebody else.
const Settle = 10 * time.Second

// NewLadder asks with SIGTERM, and SIGCONT so that the stopped can act on it,
// and kills after grace.
func NewLadder(grace time.Duration) Ladder {
	return Ladder{
		{Signals: []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, Wait: grace},
		{Signals: []syscall.Signal{syscall.SIGKILL}, Wait: Settle},
	}
}

// Teardown is what the end of a tree came to.
type Teardown struct {
	Exit   Exit          `json:"exit"`
	Took   time.Duration `json:"took_ns"`
	By     string        `json:"by"`     // who did it: "guard", or "front" after the guard's death
	Proof  bool          `json:"proof"`  // the kernel has said that no descendant is left
	Ended  []Ended       `json:"ended"`  // who was alive when it began, or was born later, and is gone
	Left   []Ended       `json:"left"`   // who is not gone
	Spared []Ended       `json:"spared"` // who was left alone on request
	Cgroup string        `json:"cgroup"` // what the leaf said at the end; empty without one
}

// Ended is one process of a teardown.
type Ended struct {
	Proc
	Found  string `json:"found"`            // how it came into the list: agent, child, adopted, cgroup
	Signal string `json:"signal,omitempty"` // the last one that it was sent
	How    string `json:"how,omitempty"`    // the signal that ended it, where we were told
	Error  string `json:"error,omitempty"`  // why it could not be signalled
	Spared bool   `json:"-"`
	sights int    // how often it was seen alive
}

// Why says why a process is still there.
func (e *Ended) Why() string {
	switch {
	case e.Error != "" && e.UID >= 0:
		return fmt.Sprintf("%s, uid %d", e.Error, e.UID)
	case e.Error != "":
		return e.Error
	case e.State == "D":
		return "in uninterruptible sleep"
	}
	return "did not end"
}

// Exit is how the agent ended.
type Exit struct {
	Code   int            `json:"code"`   // exit code, -1 if a signal ended it or it is not known
	Signal syscall.Signal `json:"signal"` // 0 if it exited
	User   time.Duration  `json:"user_ns"`
	System time.Duration  `json:"system_ns"` // CPU time, its waited-for children included
	MaxRSS int64          `json:"max_rss"`   // bytes, the largest of it and its waited-for children
}

// String is what a person would say: "exit 1", "killed by SIGTERM".
func (e Exit) String() string {
	switch {
	case e.Signal != 0:
		return "killed by " + unix.SignalName(e.Signal)
	case e.Code < 0:
		return "exit status unknown"
	}
	return fmt.Sprintf("exit %d", e.Code)
}

func exitOf(ws syscall.WaitStatus, ru *syscall.Rusage) Exit {
	e := Exit{
		Code:   ws.ExitStatus(),
		User:   time.Duration(ru.Utime.Nano()),
		System: time.Duration(ru.Stime.Nano()),
		MaxRSS: MaxRSS(ru),
	}
	if ws.Signaled() {
		e.Signal = ws.Signal()
	}
	return e
}

// SignalName is the name of a signal, such as SIGTERM; empty for none.
func SignalName(sig syscall.Signal) string { return unix.SignalName(sig) }
