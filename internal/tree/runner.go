package tree

import "strings"

// owners is the call that each row belongs to: the nearest one that somebody at
// or above it runs, or for an orphan the one that it was below of.
func owners(t *table, calls []Call, links map[string]*link) []string {
	runs, left := map[ID]string{}, map[ID]string{}
	for _, c := range calls {
		known := links[c.ID]
		if known == nil {
			continue
		}
		runs[known.id] = c.ID
		for _, id := range known.below {
			left[id] = c.ID
		}
	}
	all := make([]string, len(t.rows))
	for i, r := range t.rows {
		if all[i] = runs[r.ID]; all[i] == "" && t.up[i] >= 0 {
			all[i] = all[t.up[i]]
		}
		if all[i] == "" {
			all[i] = left[r.ID]
		}
	}
	return all
}

// runner says what became of who runs the call.
func (v *view) runner(c *Call) Runner {
	known := v.links[c.ID]
	if known == nil {
		return Runner{Call: c.ID, Fate: None}
	}
	r := Runner{Call: c.ID, Fate: Gone, ID: known.id, Command: known.command, By: known.by}
	if !v.now.alive(known.id) {
		return r
	}
	r.Fate = Alive
	for i, owner := range v.owners {
		r.Asks = r.Asks || owner == c.ID && v.asks(i)
	}
	r.Waits = v.telling(c.ID, v.now.byID[known.id])
	return r
}

// telling is the most telling wait among those who belong to a call, with who
// waits unless it is the runner itself. Of equal ones it is the one deepest
// down, since that is whom the others wait for.
func (v *view) telling(call string, runner int) string {
	found, best := -1, len(tellings)
	for i, owner := range v.owners {
		if owner != call {
			continue
		}
		if rank := telling(v.waits[i]); rank < best || rank == best && found >= 0 && v.now.depth[i] > v.now.depth[found] {
			found, best = i, rank
		}
	}
	if found < 0 {
		found = v.lowest(runner)
	}
	if found == runner || v.waits[found] == "" {
		return v.waits[found]
	}
	return v.now.name(v.now.rows[found].PID) + " " + v.waits[found]
}

// tellings is how the waits begin that say by themselves why nothing happens,
// the most telling first.
var tellings = [][]string{
	{readsTerminal},
	{stoppedNow, frozen},
	{uninterruptible},
	{receivesFromPeer},
	{waitsForLock},
	{readsPipe},
	{waitsForPeers},
}

// telling is the rank of a wait among them, or their number if it is none.
func telling(waits string) int {
	for rank, begins := range tellings {
		for _, begin := range begins {
			if strings.HasPrefix(waits, begin) && waits != receivesFromSocket {
				return rank
			}
		}
	}
	return len(tellings)
}

// lowest follows single children down from a runner, to the last one of whom
// it is known what it waits for.
func (v *view) lowest(i int) int {
	last := i
	for {
		heirs := v.now.heirs(i)
		if len(heirs) != 1 {
			return last
		}
		if i = heirs[0]; v.waits[i] != "" {
			last = i
		}
	}
}
