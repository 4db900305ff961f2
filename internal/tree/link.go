package tree

import (
	"cmp"
	"maps"
	"slices"
)

// How a runner was found.
const (
	byPID     = "reported pid"
	byCommand = "command line"
	byStart   = "start time"
)

// link is what is known of the process that runs a call.
type link struct {
	id      ID
	by      string
	command string
	below   []ID // who was last seen below it: the call goes on with them when it ends
}

// drop forgets the calls that are over.
func (w *Watch) drop(calls []Call) {
	maps.DeleteFunc(w.links, func(id string, _ *link) bool {
		return !slices.ContainsFunc(calls, func(c Call) bool { return c.ID == id })
	})
}

// link finds out who runs which call, and says by row which call each belongs
// to. What was found once holds for as long as the call is open.
func (w *Watch) link(now *table, calls []Call) []string {
	if w.links == nil {
		w.links = map[string]*link{}
	}
	l := linker{table: now, calls: shellsFirst(calls), links: w.links, claimed: make([]bool, len(now.rows))}
	l.inherit()
	for _, known := range w.links {
		l.claim(known)
	}
	l.reported()
	l.commands()
	l.starts()
	all := owners(now, calls, w.links)
	for call, known := range w.links {
		known.remember(now, call, all)
	}
	return all
}

// remember notes how a runner is called, and who else belongs to its call.
func (known *link) remember(now *table, call string, owners []string) {
	known.below = nil
	for i, r := range now.rows {
		switch {
		case owners[i] != call || !lives(r):
		case r.ID == known.id:
			known.command = command(r)
		default:
			known.below = append(known.below, r.ID)
		}
	}
}

// shellsFirst are the calls in the order in which they may choose. The argument
// of a call that reads a file is the last one of any cat of that file, too.
func shellsFirst(calls []Call) []*Call {
	var shells, others []*Call
	for i := range calls {
		if c := &calls[i]; c.Tool == "shell" {
			shells = append(shells, c)
		} else {
			others = append(others, c)
		}
	}
	return append(shells, others...)
}

// linker links the calls to the processes of one snapshot.
type linker struct {
	*table
	calls   []*Call
	links   map[string]*link
	claimed []bool // rows that cannot run another call
}

// runs reports whether the process runs a call.
func (l *linker) runs(id ID) bool {
	for _, known := range l.links {
		if known.id == id {
			return true
		}
	}
	return false
}

// inherit hands a call on when its process has ended and left somebody behind:
// a shell that ended before its jobs.
func (l *linker) inherit() {
	for _, c := range l.calls {
		known := l.links[c.ID]
		if known == nil || l.alive(known.id) {
			continue
		}
		heirs := slices.DeleteFunc(slices.Clone(known.below), func(id ID) bool { return !l.alive(id) })
		if len(heirs) > 0 {
			known.id = slices.MinFunc(heirs, older)
		}
	}
}

func older(a, b ID) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) }

// take links a call to a row.
func (l *linker) take(c *Call, i int, by string) {
	known := &link{id: l.rows[i].ID, by: by}
	l.links[c.ID] = known
	l.claim(known)
}

// claim takes away from the other calls whoever belongs to this one: everybody
// above and below it, up to the agent's own session. Of the agent's own
// processes only the one itself: it may have the tools of many calls below it.
func (l *linker) claim(known *link) {
	i, ok := l.byID[known.id]
	if !ok {
		return
	}
	l.claimed[i] = true
	if !l.tool(i) {
		return
	}
	for j := i + 1; j < l.end[i]; j++ {
		l.claimed[j] = true
	}
	for j := l.up[i]; j >= 0 && l.tool(j); j = l.up[j] {
		l.claimed[j] = true
	}
	for _, id := range known.below {
		if j, ok := l.byID[id]; ok {
			l.claimed[j] = true
		}
	}
}
