package tree

import (
	"maps"
	"time"
)

const (
	// early is how much before its call a process may seem to have been started:
	// its start is known to a tick, and the line that tells of the call is
	// stamped when it is read.
	early = 100 * time.Millisecond
	// late is how long after its call a process may be started and still be taken
	// for the call's by that alone. An agent that computes for longer than this
	// before it starts its tool has been seen (3 to 4 s), but the longer, the more
	// strangers.
	late = 3 * time.Second
)

// reported links the calls whose pid the agent told. That is better than any
// guess, and takes the process away from one.
func (l *linker) reported() {
	for _, c := range l.calls {
		known := l.links[c.ID]
		i, ok := l.byPID[c.PID]
		if c.PID == 0 || !ok || !lives(l.rows[i]) || known != nil && known.by == byPID {
			continue
		}
		id := l.rows[i].ID
		if known != nil && known.id == id {
			known.by = byPID
			continue
		}
		maps.DeleteFunc(l.links, func(_ string, other *link) bool { return other.id == id && other.by != byPID })
		if !l.runs(id) {
			l.take(c, i, byPID)
		}
	}
}

// commands links calls to processes by what they were told to do: outside of
// the agent's own session if anybody fits there, and the better fit first.
func (l *linker) commands() {
	grades := make([][]grade, len(l.calls))
	for n, c := range l.calls {
		grades[n] = l.grades(c)
	}
	for _, tools := range []bool{true, false} {
		for g := exact; g > stranger; g-- {
			for n, c := range l.calls {
				if l.links[c.ID] != nil {
					continue
				}
				if i := l.best(grades[n], g, tools); i >= 0 {
					l.take(c, i, byCommand)
				}
			}
		}
	}
}

// grades is how well each row fits the call.
func (l *linker) grades(c *Call) []grade {
	all := make([]grade, len(l.rows))
	if l.links[c.ID] != nil {
		return all
	}
	agent, hasAgent := l.byID[l.snap.Agent]
	p := newPattern(c.Command)
	for i, r := range l.rows {
		if lives(r) && (l.tool(i) || hasAgent && l.below(i, agent)) && startedSince(r, c) {
			all[i] = p.grade(r.Argv)
		}
	}
	return all
}

// best is the free row of that grade that stands highest in its tree, and of
// those the oldest; -1 if there is none.
func (l *linker) best(grades []grade, g grade, tools bool) int {
	found, covered := -1, 0
	for i, r := range l.rows {
		if grades[i] != g || l.tool(i) != tools || i < covered {
			continue
		}
		covered = l.end[i]
		if !l.claimed[i] && (found < 0 || older(r.ID, l.rows[found].ID) < 0) {
			found = i
		}
	}
	return found
}

// startedSince reports whether the process may have been started for the call.
func startedSince(r *Row, c *Call) bool {
	return r.Age < 0 || c.Age == Unknown || r.Age <= time.Duration(c.Age)+early
}

// starts links a shell call to the one shell that was started with it, where
// neither can be mixed up with another.
func (l *linker) starts() {
	fits := map[int][]int{} // rows to calls
	rows := map[int][]int{} // calls to rows
	for n, c := range l.calls {
		if c.Tool != "shell" || l.links[c.ID] != nil {
			continue
		}
		for i, r := range l.rows {
			if l.leads(i) && startedWith(r, c) {
				fits[i] = append(fits[i], n)
				rows[n] = append(rows[n], i)
			}
		}
	}
	for n, c := range l.calls {
		if r := rows[n]; len(r) == 1 && len(fits[r[0]]) == 1 {
			l.take(c, r[0], byStart)
		}
	}
	l.onlyOne()
}

// onlyOne links the one shell call that has nobody to the one tool below the
// agent that runs nothing, if it was started since, however late: a loaded agent
// has taken six seconds.
func (l *linker) onlyOne() {
	agent, ok := l.byID[l.snap.Agent]
	var shell *Call
	for _, c := range l.calls {
		switch {
		case c.Behind || c.Tool != "shell" || l.links[c.ID] != nil:
		case shell != nil || !ok:
			return
		default:
			shell = c
		}
	}
	if shell == nil {
		return
	}
	row := -1
	for i, r := range l.rows {
		if !l.leads(i) || !l.below(i, agent) || !startedSince(r, shell) {
			continue
		}
		if row >= 0 {
			return
		}
		row = i
	}
	if row >= 0 {
		l.take(shell, row, byStart)
	}
}

// leads reports whether a row is how a tool looks that the agent has just
// started: the leader of a session, right below the agent or an orphan.
func (l *linker) leads(i int) bool {
	r := l.rows[i]
	return lives(r) && !l.claimed[i] && l.tool(i) && r.PID == r.Session && (l.up[i] < 0 || !l.tool(l.up[i]))
}

// startedWith reports whether the process was started when the call was.
func startedWith(r *Row, c *Call) bool {
	after := time.Duration(c.Age) - r.Age
	return r.Age >= 0 && c.Age != Unknown && -early <= after && after <= late
}
