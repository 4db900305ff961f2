package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/tree"
)

func newInspect(std stdio, code *int, _ *early) *cobra.Command {
	o := &ops{std: std, code: code}
	return o.command(&cobra.Command{
		Use:   "inspect ID...",
		Short: "Show what an agent is doing, process by process, and what it waits for",
		Long: `inspect shows one run in full: the open calls with the processes that run them,
background work, the deadline ahead, what the processes did in the last window,
and the tree of processes, each with its state, its CPU and what it waits for.`,
		Example: `  cursor-wrap inspect 3f2a
  cursor-wrap inspect --json 3f2a | jq .activity.procs`,
		Args: ids(many),
		RunE: func(_ *cobra.Command, args []string) error {
			first := true
			return o.each(args, func(e registry.Entry) error {
				if !first && !o.asJSON {
					fmt.Fprintln(std.out)
				}
				first = false
				return o.inspect(&e)
			})
		},
	})
}

// inspected is a run in full.
type inspected struct {
	Entry registry.Entry `json:"run"`
	registry.Tree
}

func (o *ops) inspect(e *registry.Entry) error {
	ctx, cancel := asking()
	defer cancel()
	t, err := registry.Dial(*e).Tree(ctx)
	if err != nil {
		return fmt.Errorf("%w; its wrapper is pid %d, its agent %d, its log %s", err, e.PID, e.Agent.PID, e.Log)
	}
	if o.asJSON {
		return writeJSON(o.std.out, inspected{*e, t})
	}
	v := &inspection{w: o.std.out, s: screenOf(o.std.out), e: e, t: &t}
	v.write()
	return nil
}

// inspection writes a run in full for a person.
type inspection struct {
	w io.Writer
	s screen
	e *registry.Entry
	t *registry.Tree
}

func (v *inspection) write() {
	v.head()
	if v.t.Reason != nil {
		v.progress(v.t.Reason)
		v.calls("open calls", v.t.Reason.OpenCalls)
		v.calls("background work", v.t.Reason.Background)
	}
	v.tree()
}

// fact is one line of the head.
func (v *inspection) fact(name, format string, args ...any) {
	text := display.Line(fmt.Sprintf(format, args...), " ")
	const indent = 12
	if v.s.columns > indent {
		text = strings.ReplaceAll(fold(text, v.s.columns-indent), "\n", "\n"+strings.Repeat(" ", indent))
	}
	fmt.Fprintf(v.w, "%-*s%s\n", indent, name, text)
}

func (v *inspection) head() {
	e, t := v.e, v.t
	v.fact("run", "%s: %s, %s", e.RunID, t.State, v.doing())
	if !t.Paused.IsZero() {
		v.fact("paused", "by uid %d, %s ago; cursor-wrap unpause %s lets it go on", t.PausedBy, ticked(monitor.Span(t.At.Sub(t.Paused.Time))), e.RunID)
	}
	if !t.Held.IsZero() {
		v.fact("held", "for %s nobody has read our stdout, or the log's disk stands still; no deadline comes closer", ticked(monitor.Span(t.At.Sub(t.Held.Time))))
	}
	v.fact("started", "%s, %s ago, by uid %d on %s", e.At.Local().Format(time.DateTime), ticked(monitor.Span(t.At.Sub(e.At.Time))), e.UID, e.Host)
	v.fact("workspace", "%s", shortPath(e.Workspace))
	if e.Prompt != "" {
		v.fact("prompt", "%s", e.Prompt)
	}
	v.fact("command", "cursor-wrap %s", strings.Join(e.Args, " "))
	v.fact("session", "%s", cmp.Or(t.Session, "not yet known"))
	if e.Tmux != "" {
		v.fact("tmux", "%s; cursor-wrap attach %s", e.Tmux, e.Tmux)
	}
	if t.Guard.PID != 0 {
		v.fact("pids", "wrapper %d, guard %d, agent %d", e.PID, t.Guard.PID, e.Agent.PID)
		v.fact("held by", "%s", t.Containment)
		v.fact("uses", "%s", v.uses())
	} else {
		v.fact("pids", "wrapper %d", e.PID)
	}
	v.fact("counts", "%s, %s, %s; %s, %s", plural(t.Counts.Lines, "line"), bytesOf(t.Counts.Bytes), plural(t.Counts.Calls, "call"),
		plural(int64(t.Restarts), "restart"), plural(t.Counts.Hangs, "hang"))
	v.fact("log", "%s", t.Log)
}

// doing is the phase in words.
func (v *inspection) doing() string {
	switch t := v.t; t.Phase {
	case "prompt":
		return fmt.Sprintf("between turns, after %s", plural(int64(t.Turn), "turn"))
	case "ending":
		return fmt.Sprintf("turn %d is being ended", t.Turn)
	default:
		return fmt.Sprintf("turn %d, phase %s", t.Turn, t.Phase)
	}
}

func (v *inspection) uses() string {
	u := v.t.Tree
	if u.Processes < 0 {
		return "unknown: the processes cannot be seen"
	}
	s := fmt.Sprintf("%s, %s of a core now, %s of CPU time, %s of memory", plural(int64(u.Processes), "process"), percentOf(u.Percent), u.CPU, bytesOf(u.Memory))
	if n, ok := v.t.Cgroup["memory.current"]; ok {
		s += fmt.Sprintf(", %s by the cgroup's count", bytesOf(n))
	}
	return s
}

// progress is how far it is from being judged a hang, and why.
func (v *inspection) progress(r *monitor.Reason) {
	v.fact("silent", "%s; last event %s", ticked(r.Silence), cmp.Or(r.LastEvent, "none"))
	switch left := monitor.Span(r.Deadline.Sub(r.At.Time)); {
	case r.Deadline.IsZero():
		v.fact("deadline", "none")
	case left < 0 && r.Until.After(r.At.Time):
		v.fact("deadline", "passed %s ago (%s, allowed %s); waited for, at most %s more", ticked(-left), cmp.Or(string(r.Kind), "exit"), allowed(r.Limit),
			ticked(monitor.Span(r.Until.Sub(r.At.Time))))
	case left < 0:
		v.fact("deadline", "passed %s ago (%s, allowed %s)", ticked(-left), cmp.Or(string(r.Kind), "exit"), allowed(r.Limit))
	default:
		v.fact("deadline", "in %s (%s, allowed %s)", ticked(left), cmp.Or(string(r.Kind), "exit"), allowed(r.Limit))
	}
	if e := r.Evidence; e != nil && e.Samples > 0 {
		v.fact("evidence", "%s", evidence(e))
	}
}

// evidence is what the tree did in the last window, in words.
func evidence(e *monitor.Evidence) string {
	known := func(n int64) string {
		if n < 0 {
			return "unknown"
		}
		return bytesOf(n)
	}
	percent := percentOf(e.Percent)
	if e.Percent < 0 {
		percent = "an unknown part"
	}
	s := fmt.Sprintf("%s of a core over %s; in the last %s %d born and %d ended among the tools, %s of storage, %s received, %s sent (%s)",
		percent, e.Span, e.Window, e.Born, e.Ended, known(e.Disk), known(e.Received), known(e.Sent), plural(int64(e.Samples), "sample"))
	return s + "; " + found(e)
}

// found is what that comes to.
func found(e *monitor.Evidence) string {
	switch {
	case e.Finding == monitor.Stopped && e.Tree != nil && len(e.Tree.Stopped) > 0:
		p := &e.Tree.Stopped[0]
		return p.String() + " is " + cmp.Or(p.Waits, "stopped")
	case len(e.Why) > 0:
		return "at work: " + strings.Join(e.Why, ", ")
	case e.Finding == monitor.Unverified:
		return "nothing can be said of the tree"
	case e.Samples < 2 || e.Percent < 0:
		return "too little was seen to say more"
	}
	return "quiet"
}

func (v *inspection) calls(title string, calls []monitor.Call) {
	if len(calls) == 0 {
		return
	}
	fmt.Fprintf(v.w, "\n%s\n", title)
	for i := range calls {
		c := &calls[i]
		v.line("  ", fmt.Sprintf("%s %s", c.Tool, cmp.Or(c.Argument, c.ID)))
		v.line("      ", v.times(c))
		v.line("      ", v.runs(c.ID))
	}
}

// times is how long a call has been under way, and may be.
func (v *inspection) times(c *monitor.Call) string {
	s := "for " + ticked(c.Elapsed)
	if c.Declared > 0 {
		s += ", declared " + allowed(c.Declared)
	} else {
		s += ", declared no wait"
	}
	if !c.Deadline.IsZero() {
		if left := monitor.Span(c.Deadline.Sub(v.t.Reason.At.Time)); left < 0 {
			s += fmt.Sprintf(", past its deadline by %s", ticked(-left))
		} else {
			s += fmt.Sprintf(", deadline in %s", ticked(left))
		}
	}
	return s
}

// runs is who runs a call.
func (v *inspection) runs(call string) string {
	if v.t.Activity == nil {
		return "nobody looked who runs it"
	}
	i := slices.IndexFunc(v.t.Activity.Runners, func(r tree.Runner) bool { return r.Call == call })
	if i < 0 {
		return "no process of its own was seen"
	}
	switch r := &v.t.Activity.Runners[i]; r.Fate {
	case tree.Alive:
		s := fmt.Sprintf("run by %d (found by its %s)", r.PID, r.By)
		if r.Waits != "" {
			s += ": " + r.Waits
		}
		return s
	case tree.Gone:
		return fmt.Sprintf("%d, which ran it, is gone", r.PID)
	case tree.Unseen:
		return "who runs it cannot be seen"
	}
	return "no process of its own was seen"
}

// line is cut to the screen.
func (v *inspection) line(indent, text string) {
	text = display.Line(text, " ")
	if v.s.columns > 0 {
		text = display.Cut(text, max(v.s.columns-len(indent), 20), v.s.more())
	}
	fmt.Fprintln(v.w, indent+text)
}

// branches are how a tree is drawn.
func (s screen) branches() (on, last, down, none string) {
	if s.ascii {
		return "|- ", "`- ", "|  ", "   "
	}
	return "├─ ", "└─ ", "│  ", "   "
}

// tree draws the processes below those that started them.
func (v *inspection) tree() {
	a := v.t.Activity
	switch {
	case a == nil && v.t.Guard.PID != 0:
		fmt.Fprintln(v.w, "\nthe processes could not be looked at in time")
		return
	case a == nil:
		return
	case a.Blind != "":
		v.fact("\nprocesses", "cannot be seen: %s", a.Blind)
		return
	}
	fmt.Fprintf(v.w, "\nprocesses\n")
	children := map[int][]*tree.Proc{}
	known := map[int]bool{}
	for i := range a.Procs {
		known[a.Procs[i].PID] = true
	}
	for i := range a.Procs {
		p := &a.Procs[i]
		parent := p.PPID
		if !known[parent] || parent == p.PID {
			parent = 0
		}
		children[parent] = append(children[parent], p)
	}
	for _, p := range children[0] {
		v.proc(p, "  ", "  ", children, map[int]bool{})
	}
	if a.Alive > len(a.Procs) {
		v.line("  ", fmt.Sprintf("and %d more", a.Alive-len(a.Procs)))
	}
	for _, what := range a.Hidden {
		v.line("  ", "could not be read: "+what)
	}
}

// proc draws one process, and all below it.
func (v *inspection) proc(p *tree.Proc, indent, below string, children map[int][]*tree.Proc, drawn map[int]bool) {
	if drawn[p.PID] {
		return // parents that changed while the table was read
	}
	drawn[p.PID] = true
	v.line(indent, fmt.Sprintf("%d %s", p.PID, p.Command))
	on, last, down, none := v.s.branches()
	kids := children[p.PID]
	inner := below + none
	if len(kids) > 0 {
		inner = below + down
	}
	v.line(inner, v.facts(p))
	for _, s := range p.Sockets {
		v.line(inner, fmt.Sprintf("connected to %s: %s received, %s sent, quiet for %s", s.Peer, bytesOf(s.Received), bytesOf(s.Sent), ticked(s.Quiet)))
	}
	for i, kid := range kids {
		if i == len(kids)-1 {
			v.proc(kid, below+last, below+none, children, drawn)
		} else {
			v.proc(kid, below+on, below+down, children, drawn)
		}
	}
}

// facts is the state of a process in a line.
func (v *inspection) facts(p *tree.Proc) string {
	parts := []string{p.State}
	if p.Still >= monitor.Span(time.Second) {
		parts[0] += " for " + ticked(p.Still)
	}
	if strings.HasPrefix(p.Waits, p.State) {
		parts[0] = strings.Replace(parts[0], p.State, p.Waits, 1)
	} else if p.Waits != "" {
		parts = append(parts, p.Waits)
	}
	if p.Percent >= 0 {
		parts = append(parts, percentOf(p.Percent)+" of a core")
	}
	if p.CPU >= 0 {
		parts = append(parts, p.CPU.String()+" CPU")
	}
	parts = append(parts, bytesOf(p.Memory), ticked(p.Age)+" old")
	if p.Call != "" {
		parts = append(parts, v.part(p)+v.named(p.Call))
	}
	return strings.Join(parts, ", ")
}

// part is what a process is to its call.
func (v *inspection) part(p *tree.Proc) string {
	if slices.ContainsFunc(v.t.Activity.Runners, func(r tree.Runner) bool { return r.ID == p.ID }) {
		return "runs "
	}
	return "part of "
}

// named is a call as people know it.
func (v *inspection) named(id string) string {
	if v.t.Reason == nil {
		return id
	}
	for _, c := range slices.Concat(v.t.Reason.OpenCalls, v.t.Reason.Background) {
		if c.ID == id {
			return fmt.Sprintf("%s %q", c.Tool, display.Cut(cmp.Or(c.Argument, c.ID), 40, v.s.more()))
		}
	}
	return id
}
