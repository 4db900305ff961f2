package tree

import (
	"cmp"
	"slices"
)

// table is a snapshot in the order of its tree: parents before their children,
// siblings by pid. Whoever's parent is not there stands at the top.
type table struct {
	snap  *Snapshot
	rows  []*Row
	up    []int // the parent's index; -1 at the top
	end   []int // below row i are the rows from i+1 to end[i]
	depth []int // how many stand above it
	byID  map[ID]int
	byPID map[int]int
	own   int // the agent's session
}

// index puts a snapshot in order. was is the one before, or nil.
func index(s *Snapshot, was *table) *table {
	t := &table{snap: s, byID: map[ID]int{}, byPID: map[int]int{}}
	(&planter{table: t, rows: tidy(s)}).plant()
	for i, r := range t.rows {
		t.byID[r.ID] = i
		if j, ok := t.byPID[r.PID]; !ok || t.rows[j].Start < r.Start {
			t.byPID[r.PID] = i
		}
	}
	t.own = s.Agent.PID
	if i, ok := t.byID[s.Agent]; ok {
		t.own = t.rows[i].Session
	} else if was != nil && was.snap.Agent == s.Agent {
		t.own = was.own // a launcher may die before what it launched
	}
	return t
}

// tidy sorts the rows by pid, each process once: as it was last seen, which is
// when it had used the most CPU. The guard is no member of the tree.
func tidy(s *Snapshot) []*Row {
	rows := make([]*Row, 0, len(s.Rows))
	for i := range s.Rows {
		if r := &s.Rows[i]; s.Root == 0 || r.PID != s.Root {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Start, b.Start),
			cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Waited, a.Waited), cmp.Compare(b.Disk, a.Disk),
			cmp.Compare(a.PPID, b.PPID), cmp.Compare(a.State, b.State))
	})
	return slices.CompactFunc(rows, func(a, b *Row) bool { return a.ID == b.ID })
}

// planter makes a tree of rows that stand in the order of their pids.
type planter struct {
	*table
	rows     []*Row
	children map[int][]int
	planted  []bool
}

func (p *planter) plant() {
	p.planted = make([]bool, len(p.rows))
	p.children = map[int][]int{}
	last := map[int]int{} // pid to index; of a pid that was used twice, the younger
	for i, r := range p.rows {
		last[r.PID] = i
	}
	var top []int
	for i, r := range p.rows {
		if parent, ok := last[r.PPID]; ok && parent != i {
			p.children[parent] = append(p.children[parent], i)
		} else {
			top = append(top, i)
		}
	}
	for _, i := range top {
		p.put(i, -1)
	}
	// Who is left has itself for an ancestor: parents that changed while the
	// table was read. One of them has to be the first.
	for i := range p.rows {
		p.put(i, -1)
	}
}

func (p *planter) put(i, up int) {
	if p.planted[i] {
		return
	}
	p.planted[i] = true
	me := len(p.table.rows)
	p.table.rows = append(p.table.rows, p.rows[i])
	p.up = append(p.up, up)
	p.end = append(p.end, 0)
	depth := 0
	if up >= 0 {
		depth = p.depth[up] + 1
	}
	p.depth = append(p.depth, depth)
	for _, child := range p.children[i] {
		p.put(child, me)
	}
	p.end[me] = len(p.table.rows)
}

// find is the process's row, or nil.
func (t *table) find(id ID) *Row {
	if i, ok := t.byID[id]; ok {
		return t.rows[i]
	}
	return nil
}

// alive reports whether the process is there and no zombie.
func (t *table) alive(id ID) bool {
	r := t.find(id)
	return r != nil && lives(r)
}

// tool reports whether a row is outside of the agent's own session: all tools
// of all agents lead sessions of their own.
func (t *table) tool(i int) bool { return t.rows[i].Session != t.own }

// launched reports whether row i is the agent, or what it was started to launch:
// the only child, in its own session, of such a one. A script execs node, and
// node starts the agent proper.
func (t *table) launched(i int) bool {
	at, ok := t.byID[t.snap.Agent]
	for ok && at != i {
		kids := slices.DeleteFunc(t.heirs(at), t.tool)
		if ok = len(kids) == 1; ok {
			at = kids[0]
		}
	}
	return ok
}

// below reports whether row i has row top for an ancestor.
func (t *table) below(i, top int) bool { return top < i && i < t.end[top] }

// heirs are the live children of a row.
func (t *table) heirs(i int) []int {
	var live []int
	for j := i + 1; j < t.end[i]; j = t.end[j] {
		if lives(t.rows[j]) {
			live = append(live, j)
		}
	}
	return live
}

// lives reports whether a process is more than a zombie. One whose first
// thread has ended looks like a zombie, but its other threads go on.
func lives(r *Row) bool {
	switch r.State {
	case 'Z', 'X', 'x':
		return r.Threads > 1
	}
	return true
}
