package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/tree"
)

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n == tree.Unknown:
		return "unknown"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Evidence is the tree's side of a Reason.
type Evidence struct {
	Finding  Finding  `json:"finding"`
	Why      []string `json:"why,omitempty"` // what speaks against a hang
	Samples  int      `json:"samples"`       // in this silence, as many as are kept
	Span     Span     `json:"span_ms"`       // that percent is the average of
	Percent  float64  `json:"percent"`       // of a core, the whole tree, the dead included; Unknown
	Window   Span     `json:"window_ms"`     // that the following are the sums of
	Born     int      `json:"born"`          // tools
	Ended    int      `json:"ended"`         // tools
	Disk     int64    `json:"disk_bytes"`    // Unknown
	Received int64    `json:"received_bytes"`
	Sent     int64    `json:"sent_bytes"`

	Tree *tree.Activity `json:"tree,omitempty"` // the last sample, process by process
}

func (m *Monitor) evidence(j *judgement) *Evidence {
	w := &m.tree
	window, worked := w.over(m.policy.Window), m.worked(j.kind)
	e := &Evidence{
		Finding: j.finding, Samples: len(w.samples),
		Span: Span(worked.span), Percent: worked.percent(), Window: Span(window.span),
		Born: window.born, Ended: window.ended,
		Disk: window.disk, Received: window.received, Sent: window.sent,
		Tree: w.last,
	}
	e.Why = m.why(j.kind)
	return e
}

// telling is the one fact about the tree that explains the most.
func (r *Reason) telling(s State) string {
	e := r.Evidence
	if e == nil {
		return ""
	}
	t := e.Tree
	switch {
	case s == Overdue && (t == nil || len(e.Why) == 0):
		return ""
	case s == Overdue:
		return "meanwhile " + e.busy()
	case t == nil:
		return "the tree was not seen in time"
	case t.Blind != "":
		return "the tree cannot be seen: " + t.Blind
	case len(t.Asking) > 0:
		return t.Asking[0].String() + " reads the terminal"
	case e.Finding == Stopped:
		return t.Stopped[0].String() + " is " + cmp.Or(t.Stopped[0].Waits, "stopped")
	case e.Finding == Busy && s == Hung:
		return "busy without progress: " + e.busy()
	case e.Finding == Busy:
		return "busy: " + e.busy()
	}
	if fate := r.fates(); fate != "" {
		return fate
	}
	if e.Finding != Confirmed || e.Percent < 0 {
		return ""
	}
	quiet := fmt.Sprintf("the tree is quiet: %.1f %% of a core over %s", e.Percent, e.Span)
	for i := range t.Procs {
		if p := &t.Procs[i]; strings.Contains(p.Waits, "nothing received") {
			return fmt.Sprintf("%s; %s %s", quiet, p, p.Waits)
		}
	}
	return fmt.Sprintf("%s, %s received", quiet, size(e.Received))
}

// busy names who works, if it is work that makes it busy.
func (e *Evidence) busy() string {
	why := strings.Join(e.Why, ", ")
	if len(e.Tree.Busiest) == 0 || e.Tree.Busiest[0].Percent < 100*quietShare {
		return why
	}
	p := &e.Tree.Busiest[0]
	who := fmt.Sprintf("%s uses %.0f %% of a core", p, p.Percent)
	alone := e.Tree.Alive <= len(e.Tree.Procs) && !slices.ContainsFunc(e.Tree.Procs, func(o tree.Proc) bool { return o.PPID == p.PID && o.State != "zombie" })
	if alone && p.Percent > spinning {
		who += " and has no child"
	}
	return who + " (" + why + ")"
}

// spinning is how much of a core a process takes that does nothing but spin, in
// percent; on a loaded machine it gets half of one.
const spinning = 40

// fates says what became of the processes of open calls.
func (r *Reason) fates() string {
	for _, c := range r.OpenCalls {
		if c.Process == nil {
			continue
		}
		switch p := c.Process; {
		case p.Fate == tree.Gone && r.Evidence.Tree.Full:
			return fmt.Sprintf("the process of %s %q is gone, its completion was lost", c.Tool, c.Argument)
		case p.Fate == tree.Alive && p.Waits != "" && '0' <= p.Waits[0] && p.Waits[0] <= '9': // another one's, with its name
			return p.Waits
		case p.Fate == tree.Alive && p.Waits != "":
			return fmt.Sprintf("%d %s %s", p.PID, p.Command, p.Waits)
		case p.Fate == tree.None && c.Tool == "shell" && r.Evidence.Tree.Full && r.Evidence.Tree.Tools == 0:
			return fmt.Sprintf("no process runs %s %q", c.Tool, c.Argument)
		}
	}
	return ""
}

// Acting reports whether a tool call that changes something was open, or goes
// on in the background.
func (r *Reason) Acting() bool {
	acts := func(c Call) bool { return (&events.Call{Tool: c.Tool}).Acts() }
	return slices.ContainsFunc(r.OpenCalls, acts) || slices.ContainsFunc(r.Background, acts)
}
