package process

import (
	"slices"
	"strings"
	"time"

	"cursor-wrap/internal/tree"
)

// Sampler looks at the tree below an agent's guard. It keeps what it has
// learnt, and files open, from one look to the next. It is not for concurrent
// use.
type Sampler struct {
	root  int     // the guard: whoever is below it is the tree
	agent tree.ID // the agent's own process
	leaf  *leaf   // the tree's cgroup; nil without one

	view // what this system's way of looking keeps
}

// Sampler is a new look at the agent's tree. Close must follow.
func (a *Agent) Sampler() *Sampler { return newSampler(a.guard, a.leader, a.leaf) }

func newSampler(root int, agent Proc, l *leaf) *Sampler {
	return &Sampler{root: root, agent: tree.ID{PID: agent.PID, Start: agent.Start}, leaf: l}
}

// Sample takes a snapshot. With full, one pass over the whole process table is
// made as well, so that who is not listed is not there. With explain it tells
// what each process waits for. It never fails: what cannot be read is unknown
// in the rows, and where nothing can be seen the snapshot says why.
//
// A look can block: a file of /proc waits for a lock that a process in
// uninterruptible sleep may hold. Whoever cannot wait calls it from a goroutine
// of its own.
func (s *Sampler) Sample(at time.Time, full, explain bool) tree.Snapshot {
	snap := tree.Snapshot{At: at, Root: s.root, Agent: s.agent, CPU: tree.Unknown, Reaped: tree.Unknown}
	s.look(&snap, full, explain)
	return snap
}

// Close lets go of the files that are kept open.
func (s *Sampler) Close() { s.close() }

// argvMax is how much of a command line is kept, in bytes. A prompt can stand
// in one.
const argvMax = 8 << 10

// sights is at how many looks a command line is read: at the first one the
// process may be between fork and exec, and have its parent's.
const sights = 2

// shown is a command line as it may be shown: masked and clipped.
func shown(argv []string) []string {
	argv = Masked(argv)
	left := argvMax
	for i, arg := range argv {
		if len(arg) > left {
			argv[i] = strings.ToValidUTF8(arg[:left], "")
			return slices.Clip(argv[:i+1])
		}
		left -= len(arg)
	}
	return argv
}
