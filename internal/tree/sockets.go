package tree

import (
	"cmp"
	"slices"
)

// wire is one TCP connection, whoever holds it. Inodes are given out again; the
// peer tells two apart.
type wire struct {
	inode uint64
	peer  string
}

// traffic is what went over each connection of the rows since it was opened. One
// that was inherited stands with every process that holds it, and counts once.
func traffic(rows []*Row) map[wire]Socket {
	all := map[wire]Socket{}
	for _, r := range rows {
		for _, s := range r.Sockets {
			w := wire{s.Inode, s.Peer}
			s.Received = max(s.Received, all[w].Received)
			s.Sent = max(s.Sent, all[w].Sent)
			all[w] = s
		}
	}
	return all
}

// network is what went over TCP in the span. A connection that was not there
// before was opened since, and all of it counts, unless it is its process that
// was overlooked. Where not all sockets could be seen, the sums are unknown; but
// what was seen to go one way went, and is told.
func (c *change) network() (received, sent, oneWay int64) {
	if c.was == nil {
		if !c.now.snap.Sockets {
			return Unknown, Unknown, Unknown
		}
		return 0, 0, 0
	}
	whole := c.now.snap.Sockets && c.was.snap.Sockets
	before := traffic(c.was.rows)
	seen := slices.DeleteFunc(slices.Clone(c.now.rows), func(r *Row) bool { return c.apart[r.ID] || c.before(r) == nil && !c.newborn(r) })
	for w, s := range traffic(seen) {
		if _, old := before[w]; !old && !c.was.snap.Sockets {
			continue // it may have been there all the time
		}
		in := max(0, s.Received-before[w].Received)
		out := max(0, s.Sent-before[w].Sent)
		received += in
		sent += out
		oneWay += max(0, in-out)
	}
	switch {
	case whole:
		return received, sent, oneWay
	case oneWay > 0:
		return Unknown, Unknown, oneWay
	}
	return Unknown, Unknown, Unknown
}

// maxPeers is how many connections of a process are shown.
const maxPeers = 8

// peers are a process's connections, the liveliest first.
func peers(r *Row) []Peer {
	var all []Peer
	for _, s := range liveliest(r.Sockets) {
		if len(all) == maxPeers {
			break
		}
		all = append(all, Peer{Peer: Shown(s.Peer), Received: s.Received, Sent: s.Sent, Quiet: span(s.Quiet)})
	}
	return all
}

// liveliest sorts by how long ago data last arrived; those of which it is not
// known come last.
func liveliest(sockets []Socket) []Socket {
	return slices.SortedFunc(slices.Values(sockets), func(a, b Socket) int {
		return cmp.Or(cmp.Compare(uint64(a.Quiet), uint64(b.Quiet)),
			cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Inode, b.Inode))
	})
}
