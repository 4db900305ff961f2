package tree

import (
	"slices"
	"time"
)

// tick is what a process's start is known to: a hundredth of a second on Linux.
const tick = 10 * time.Millisecond

// change is two snapshots side by side.
type change struct {
	was, now *table        // was is nil at the first one
	span     time.Duration // between them
	ended    []int         // rows of was that are not there any more, not even as zombies
	apart    map[ID]bool   // who is forgotten
	were     map[ID]bool   // who was
	runs     map[ID]bool   // who runs a call
}

func newChange(was, now *table) *change {
	c := &change{was: was, now: now}
	if was == nil {
		return c
	}
	c.span = now.snap.At.Sub(was.snap.At)
	for i, r := range was.rows {
		if now.find(r.ID) == nil {
			c.ended = append(c.ended, i)
		}
	}
	return c
}

// before is the same process in the snapshot before, or nil.
func (c *change) before(r *Row) *Row {
	if c.was == nil {
		return nil
	}
	return c.was.find(r.ID)
}

// newborn reports whether a process that was not there before was started in
// between. One that was only overlooked, as by a look that was not full, has a
// past that nobody can date.
func (c *change) newborn(r *Row) bool {
	return c.was != nil && c.before(r) == nil && r.Age >= 0 && r.Age <= c.span+tick
}

// born is the same for counting heads: of one that cannot be dated it is enough
// that it was not there.
func (c *change) born(r *Row) bool { return c.newborn(r) || c.before(r) == nil && r.Age < 0 }

// count says who is there, who came and who went.
func (c *change) count(a *Activity) {
	for i, r := range c.now.rows {
		if !lives(r) {
			continue
		}
		a.Alive++
		if c.apart[r.ID] {
			a.Forgotten++
			continue
		}
		if r.State == 'R' {
			a.Runnable++
		}
		if !c.now.tool(i) {
			continue
		}
		a.Tools++
		if c.was != nil && c.born(r) && !c.runs[r.ID] { // that a call is run is no news
			a.Born++
		}
	}
	if c.was == nil {
		return
	}
	for i, r := range c.was.rows {
		if lives(r) && c.was.tool(i) && !c.now.alive(r.ID) && !c.forgot(i) {
			a.Ended++
		}
	}
}

// counter reads one of a row's counters; negative where it is not known.
type counter func(*Row) int64

func ownCPU(r *Row) int64    { return int64(r.CPU) }
func waitedCPU(r *Row) int64 { return int64(r.Waited) }
func diskBytes(r *Row) int64 { return r.Disk }

// known reports whether the counter could be read of anybody.
func (t *table) known(get counter) bool {
	return slices.ContainsFunc(t.rows, func(r *Row) bool { return get(r) >= 0 })
}

// grew is by how much a process's counter grew in the span. It is not known of
// one that could not be read both times, unless it was born in between.
func (c *change) grew(r *Row, get counter) (int64, bool) {
	v, before := get(r), c.before(r)
	switch {
	case v < 0:
		return 0, false
	case before != nil:
		u := get(before)
		if u < 0 {
			return 0, false
		}
		return v - u, true
	}
	return v, c.newborn(r)
}

// sum is by how much the sum over all rows grew, of counters that a process
// hands to its parent when it is reaped. What the dead had before is subtracted,
// since it is back in somebody else's row. It is nothing to go by if somebody
// ended of whom it is not known.
func (c *change) sum(counters ...counter) (int64, bool) {
	var sum int64
	for _, get := range counters {
		for _, r := range c.now.rows {
			if d, ok := c.grew(r, get); ok {
				sum += d
			}
		}
		for _, i := range c.ended {
			v := get(c.was.rows[i])
			if v < 0 {
				return 0, false
			}
			sum -= v
		}
	}
	return sum, true
}

// ledger keeps what a sum fell by. A walk over the process table is not one
// moment: a child that is reaped after its parent's row was read, and before its
// own, is in neither. What it had in its whole life is back in its parent's row
// at the next look, and must not pass for work done since. So what a sum falls
// by is taken off the next one. If it fell because times got lost for good, one
// span comes out too small: a lower bound still.
type ledger struct{ debt int64 }

func (l *ledger) settle(sum int64, ok bool) int64 {
	if !ok {
		sum = 0
	}
	got := sum - l.debt
	l.debt = max(0, -sum)
	return got
}

// cpu is what the tree used in the span. It is the largest of three figures
// none of which can be more than the truth:
//
//   - The growth of what the cgroup has counted. It is the truth itself, as long
//     as nobody has moved to another cgroup. One that fell is another cgroup's.
//   - The growth of the sum over all rows, each with the time of the descendants
//     that it has waited for, and of what the guard has waited for. This sees
//     processes that came and went between two looks: a thousand short
//     compilers show in nothing but the Waited of make. Time that is handed up
//     leaves the child's row and enters the parent's, so a reaped child is no
//     work. But time of children whose parent ignores SIGCHLD gets lost, so
//     this may fall, and hide what others did.
//   - The growth of each surviving process's own time, and all of the newborns'.
//     This is blind to the dead, and loses nothing.
//
// A process that is first seen now, but was started earlier, counts from here
// on. The figure is unknown only where nothing at all could be read.
func (c *change) cpu(l *ledger) Span {
	used := time.Duration(Unknown)
	if leaf := c.now.snap.CPU; leaf >= 0 {
		switch {
		case c.was == nil:
			used = 0
		case c.was.snap.CPU >= 0:
			used = leaf - c.was.snap.CPU
		}
	}
	if c.now.known(ownCPU) {
		used = max(used, c.rowsCPU(l))
	}
	if used > 0 {
		used = max(0, used-time.Duration(c.aside(ownCPU, waitedCPU)))
	}
	return span(used)
}

// rowsCPU is the larger of the two figures that come from the rows.
func (c *change) rowsCPU(l *ledger) time.Duration {
	if c.was == nil {
		return 0
	}
	sum, ok := c.sum(ownCPU, waitedCPU)
	if c.was.snap.Reaped >= 0 && c.now.snap.Reaped >= 0 {
		sum += int64(c.now.snap.Reaped - c.was.snap.Reaped)
	}
	return time.Duration(max(l.settle(sum, ok), c.growth(ownCPU, nil), 0))
}

// growth is the sum over what grew, process by process, but for those to be left
// out.
func (c *change) growth(get counter, out map[ID]bool) int64 {
	var sum int64
	for _, r := range c.now.rows {
		if d, ok := c.grew(r, get); ok && !out[r.ID] {
			sum += max(0, d)
		}
	}
	return sum
}

// disk is what the tree read from and wrote to storage in the span: the larger
// of two lower bounds. A process's own bytes cannot be told from those of the
// children it has reaped, so it is either the sum over all rows, less what the
// dead had before, or the sum over the rows that had no dead below them and
// can have been credited with nobody's past.
func (c *change) disk(l *ledger) int64 {
	if !c.now.known(diskBytes) {
		return Unknown
	}
	if c.was == nil {
		return 0
	}
	credited := map[ID]bool{}
	for _, i := range c.ended {
		for j := c.was.up[i]; j >= 0; j = c.was.up[j] {
			credited[c.was.rows[j].ID] = true
		}
	}
	return max(0, max(l.settle(c.sum(diskBytes)), c.growth(diskBytes, credited))-c.aside(diskBytes))
}
