package tree

import (
	"slices"
	"time"
)

// forget says who of the tree no longer has to do with the agent: tools that
// were orphaned out of its tree, and belong to no call that is under way. What
// such a daemon does is no work of the agent's. Who was started since an open
// call belongs to it, wherever it hangs: some agents keep a tool open until its
// orphans have ended. Who was started by a forgotten one is forgotten, too. Where
// background work cannot be told from them, and where the agent itself is gone,
// nobody is forgotten.
func (w *Watch) forget(now *table, calls []Call, owners []string) map[ID]bool {
	w.apart = nil
	agent, ok := now.byID[now.snap.Agent]
	if !ok || slices.ContainsFunc(calls, func(c Call) bool { return c.Behind && w.links[c.ID] == nil }) {
		return nil
	}
	w.apart = map[ID]bool{}
	for i, r := range now.rows {
		if owners[i] != "" || !now.tool(i) || now.below(i, agent) {
			continue
		}
		under := now.up[i] >= 0 && w.apart[now.rows[now.up[i]].ID] // parents come first
		if under || !slices.ContainsFunc(calls, func(c Call) bool { return !c.Behind && startedSince(r, &c) }) {
			w.apart[r.ID] = true
		}
	}
	return w.apart
}

// forgot reports whether a row of the snapshot before was of somebody forgotten:
// who hangs below one that is.
func (c *change) forgot(i int) bool {
	for ; i >= 0; i = c.was.up[i] {
		if id := c.was.rows[i].ID; c.apart[id] || c.were[id] {
			return true
		}
	}
	return false
}

// aside is by how much the forgotten ones' share of a sum grew.
func (c *change) aside(counters ...counter) int64 {
	if c.was == nil || len(c.apart) == 0 {
		return 0
	}
	var sum int64
	for _, get := range counters {
		for _, r := range c.now.rows {
			if d, ok := c.grew(r, get); ok && c.apart[r.ID] {
				sum += d
			}
		}
		for _, i := range c.ended {
			if v := get(c.was.rows[i]); v > 0 && c.forgot(i) {
				sum -= v
			}
		}
	}
	return max(0, sum)
}

// ownSession is the CPU time that the agent's own session used in the span.
func (c *change) ownSession() Span {
	if c.was == nil {
		return 0
	}
	var sum int64
	for i, r := range c.now.rows {
		if d, ok := c.grew(r, ownCPU); ok && !c.now.tool(i) {
			sum += max(0, d)
		}
	}
	return span(time.Duration(sum))
}
