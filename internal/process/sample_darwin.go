package process

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// view is what the looks keep from one to the next.
type view struct {
	seen  map[procID]bool // who was of the tree: an orphan's parent link is gone
	asked asked
}

// look makes one pass over the whole process table, which is all that macOS
// has, and asks for the counters of the tree's processes. Sockets and what
// somebody waits for cannot be seen.
func (s *Sampler) look(snap *tree.Snapshot, _, _ bool) {
	if s.seen == nil {
		s.seen = map[procID]bool{}
	}
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		snap.Blind = fmt.Sprintf("the process table cannot be read: %v", err)
		return
	}
	all := make([]Proc, len(table))
	for i := range table {
		all[i] = fromKinfo(&table[i])
	}
	rows := belonging(all, s.root, Proc{PID: s.agent.PID}, s.seen)
	for i := range rows {
		rows[i].Session, _ = unix.Getsid(rows[i].PID) // 0 where it has gone
	}
	snap.Full = true
	snap.Rows = s.asked.rows(rows, func(p Proc) time.Duration {
		return snap.At.Sub(time.UnixMicro(int64(p.Start)))
	})
}

func (s *Sampler) close() { s.view = view{} }
