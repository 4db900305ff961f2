package tree

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// maxProcs is how many processes a list in an Activity names at most; a tree of
// thousands would be in every line of the log.
const maxProcs = 200

// view shows a change: what is named in an Activity, beyond what is counted.
type view struct {
	*change
	still  map[ID]time.Time
	calls  []Call
	links  map[string]*link
	owners []string // by row, the call that it belongs to
	effort []int64  // by row, see efforts
	waits  []string // by row, in words
}

func (v *view) show(a *Activity) {
	v.effort = v.efforts()
	v.waits = make([]string, len(v.now.rows))
	for i := range v.now.rows {
		v.waits[i] = v.now.waits(i)
	}
	a.Busiest = v.busiest()
	a.Stopped = v.procs(v.stopped)
	a.Asking = v.procs(v.asks)
	if slices.ContainsFunc(v.now.rows, func(r *Row) bool { return r.Wait != nil }) {
		a.Procs = v.procs(func(int) bool { return true })
	}
	for n := range v.calls {
		a.Runners = append(a.Runners, v.runner(&v.calls[n]))
	}
	a.Hidden = v.now.hidden()
}

// procs are the processes that want says to show, in the order of the tree.
func (v *view) procs(want func(i int) bool) []Proc {
	var all []Proc
	for i := range v.now.rows {
		if want(i) && len(all) < maxProcs {
			all = append(all, v.proc(i))
		}
	}
	return all
}

func (v *view) proc(i int) Proc {
	r := v.now.rows[i]
	return Proc{
		ID:      r.ID,
		PPID:    r.PPID,
		Command: command(r),
		State:   state(r.State),
		Still:   span(max(0, v.now.snap.At.Sub(v.still[r.ID]))),
		Age:     span(r.Age),
		Percent: percent(v.effort[i], v.span),
		CPU:     span(r.CPU),
		Memory:  max(r.Memory, Unknown),
		Waits:   v.waits[i],
		Sockets: peers(r),
		Call:    v.owners[i],
	}
}

func state(letter byte) string {
	switch letter {
	case 'R':
		return "running"
	case 'T':
		return "stopped"
	case 't':
		return "traced"
	case 'D':
		return "uninterruptible"
	case 'Z', 'X', 'x':
		return "zombie"
	}
	return "asleep"
}

// percent is the part of a core, rounded to a tenth.
func percent(used int64, span time.Duration) float64 {
	if used < 0 || span <= 0 {
		return Unknown
	}
	return float64((used*1000+int64(span)/2)/int64(span)) / 10
}

// efforts is what each process used in the span, for naming the busy ones: its
// own time, or, of one that waited for more than it used, both together, so
// that a make is named for its thousand short compilers. What those who ended
// had used before the span is not counted. Negative where it is not known.
func (v *view) efforts() []int64 {
	handed := v.handed()
	all := make([]int64, len(v.now.rows))
	for i, r := range v.now.rows {
		all[i] = Unknown
		own, ok := v.grew(r, ownCPU)
		if !ok {
			continue
		}
		all[i] = max(0, own)
		if waited, ok := v.grew(r, waitedCPU); ok && waited-handed[r.ID] > own {
			all[i] += waited - handed[r.ID]
		}
	}
	return all
}

// handed is what those who ended had used before the span, by the nearest of
// their ancestors that is still there: whoever waited for them.
func (v *view) handed() map[ID]int64 {
	handed := map[ID]int64{}
	for _, i := range v.ended {
		r := v.was.rows[i]
		for j := v.was.up[i]; j >= 0; j = v.was.up[j] {
			if id := v.was.rows[j].ID; v.now.find(id) != nil {
				handed[id] += max(0, ownCPU(r)) + max(0, waitedCPU(r))
				break
			}
		}
	}
	return handed
}

// busiest are those who used the most CPU in the span.
func (v *view) busiest() []Proc {
	var busy []int
	for i, used := range v.effort {
		if v.span > 0 && used*100 >= int64(v.span) {
			busy = append(busy, i)
		}
	}
	slices.SortStableFunc(busy, func(a, b int) int { return cmp.Compare(v.effort[b], v.effort[a]) })
	var all []Proc
	for _, i := range busy[:min(3, len(busy))] {
		all = append(all, v.proc(i))
	}
	return all
}

// stopped reports whether the row is stopped and it matters: the agent, or
// somebody of a call. A tool or a server of the agent's that was stopped before
// all that, and forgotten, holds up nobody.
func (v *view) stopped(i int) bool {
	r := v.now.rows[i]
	if r.State != 'T' && r.State != 't' && v.waits[i] != frozen {
		return false
	}
	return v.now.launched(i) || v.owners[i] != "" ||
		slices.ContainsFunc(v.calls, func(c Call) bool { return startedSince(r, &c) })
}

// asks reports whether the row is blocked reading a terminal.
func (v *view) asks(i int) bool { return v.waits[i] == readsTerminal }

// hidden says what could not be read.
func (t *table) hidden() []string {
	var cpu, disk int
	for _, r := range t.rows {
		if lives(r) && r.CPU < 0 {
			cpu++
		}
		if lives(r) && r.Disk < 0 {
			disk++
		}
	}
	var all []string
	if cpu > 0 {
		all = append(all, "cpu time of "+processes(cpu))
	}
	if disk > 0 {
		all = append(all, "i/o of "+processes(disk))
	}
	if !t.snap.Sockets {
		all = append(all, "sockets")
	}
	return all
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
