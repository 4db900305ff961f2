//go:build darwin || portable

package process

import (
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"cursor-wrap/internal/tree"
)

// asked fills rows by asking for each process, where there are no files to
// read. It is built into Linux for its test alone, with the tag portable:
// there every question would cost four times what the files do, and the
// package's own start 0.1 ms of ours.
type asked struct {
	known map[procID]*heard
}

// heard is what was heard of a process.
type heard struct {
	argv  []string
	reads int
	gone  bool // it was not among those that were last asked for
}

// rows are those of the given processes. Nobody but them is asked for: the
// package's lists of children and of all processes cost a program started for
// each, or a walk over the machine.
func (a *asked) rows(procs []Proc, age func(Proc) time.Duration) []tree.Row {
	process.EnableBootTimeCache(true)
	if a.known == nil {
		a.known = map[procID]*heard{}
	}
	for _, h := range a.known {
		h.gone = true
	}
	all := make([]tree.Row, len(procs))
	for i, p := range procs {
		h := a.known[p.id()]
		if h == nil {
			h = &heard{}
			a.known[p.id()] = h
		}
		h.gone = false
		all[i] = h.row(p, age(p))
	}
	for id, h := range a.known {
		if h.gone {
			delete(a.known, id)
		}
	}
	return all
}

func (h *heard) row(p Proc, age time.Duration) tree.Row {
	r := tree.Row{
		ID: tree.ID{PID: p.PID, Start: p.Start}, PPID: p.PPID, PGID: p.PGID, Session: p.Session, State: p.State[0],
		Threads: p.threads, UID: p.UID, Age: age, Name: p.Command,
		CPU: tree.Unknown, Waited: tree.Unknown, Disk: tree.Unknown, Memory: tree.Unknown,
	}
	if p.gone() {
		r.CPU, r.Argv = 0, h.argv
		return r
	}
	it := &process.Process{Pid: int32(p.PID)} // NewProcess would ask whether it is there
	if status, err := it.Status(); err == nil && len(status) > 0 && letters[status[0]] != 0 {
		r.State = letters[status[0]]
	}
	if times, err := it.Times(); err == nil {
		r.CPU = seconds(times.User) + seconds(times.System)
	}
	if memory, err := it.MemoryInfo(); err == nil {
		r.Memory = int64(memory.RSS)
	}
	if h.reads < sights {
		h.reads++
		if argv, err := it.CmdlineSlice(); err == nil && len(argv) > 0 {
			h.argv = shown(argv)
		}
	}
	r.Argv = h.argv
	return r
}

// letters are the states as proc_pid_stat(5) writes them.
var letters = map[string]byte{
	process.Running: 'R', process.Sleep: 'S', process.Idle: 'S', process.Wait: 'S', process.Lock: 'S',
	process.Blocked: 'D', process.Stop: 'T', process.Zombie: 'Z',
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
