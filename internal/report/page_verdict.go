package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// maxVerdicts is how many are told in full: a tree that is busy is suspected
// again and again.
const maxVerdicts = 12

// where says in what a run hung.
var where = map[monitor.Kind]string{
	monitor.Startup: " at the start", monitor.Idle: ", idle", monitor.Tool: " in a tool call",
	monitor.Work: " in background work", monitor.Reconnect: " in reconnecting",
}

func verdictName(v *Verdict) string {
	kind := ""
	if v.Reason != nil {
		kind = where[v.Reason.Kind]
	}
	switch v.What {
	case "hang_detected":
		return "Hang" + kind
	case "duration_exceeded":
		return "Time is up"
	case "suspected":
		return "Suspicion" + kind
	}
	return v.What
}

// verdictPart tells why, the last word first: it is the one that counted.
func (p *page) verdictPart() part {
	var all parts
	for i := len(p.Verdicts) - 1; i >= 0 && len(all) < maxVerdicts; i-- {
		v := &p.Verdicts[i]
		name := fmt.Sprintf("%s, at %s", verdictName(v), p.rel(v.At))
		if len(all) == 0 {
			all = append(all, el("div", class("verdict"), el("h3", text(short(name, 100))), p.reason(v.Reason)))
			continue
		}
		all = append(all, el("details", class("verdict"), el("summary", text(short(name, 100))), p.reason(v.Reason)))
	}
	if len(all) == 0 {
		return nil
	}
	if more := len(p.Verdicts) - len(all); more > 0 {
		all = append(all, el("p", class("faint"), textf("%s before that.", many(more, "earlier suspicion"))))
	}
	return all
}

func (p *page) reason(r *monitor.Reason) part {
	if r == nil {
		return el("p", text("The log does not say why."))
	}
	return parts{
		el("p", class("summary"), quoted(short(r.Summary, 1000))),
		list("", p.circumstances(r)),
		when(r.Evidence != nil, evidencePart(r.Evidence)),
		p.openCalls("Open calls", r.OpenCalls),
		p.openCalls("In the background", r.Background),
		p.processes(r),
	}
}

// list is a list of sentences.
func list(kind string, sentences []string) part {
	if len(sentences) == 0 {
		return nil
	}
	ul := el("ul", class("words "+kind))
	for _, s := range sentences {
		ul.inner = append(ul.inner, el("li", quoted(short(s, 1000))))
	}
	return ul
}

func (p *page) circumstances(r *monitor.Reason) []string {
	all := []string{fmt.Sprintf("Nothing was heard for %s; the last line was %s.", r.Silence, cmp.Or(r.LastEvent, "none"))}
	if !r.Deadline.IsZero() {
		all = append(all, fmt.Sprintf("The deadline was %s (%s), after a limit of %s in phase %s.", p.rel(r.Deadline), clock(r.Deadline), r.Limit, r.Phase))
	}
	if r.NoProgress > r.Silence {
		all = append(all, fmt.Sprintf("No progress was made for %s, in which the agent tried %s to connect again.", r.NoProgress, many(r.Attempts, "time")))
	}
	return append(all, "The verdict rests on: "+cmp.Or(r.Witness, "unknown")+".")
}

func evidencePart(e *monitor.Evidence) part {
	if e == nil {
		return nil
	}
	return parts{el("h4", text("What the processes say")), list("evidence", testimony(e)), when(len(e.Why) > 0,
		parts{el("p", text("What speaks against a hang:")), list("", e.Why)})}
}

var findings = map[monitor.Finding]string{
	monitor.Confirmed:  "The tree is quiet: it confirms the hang.",
	monitor.Busy:       "The tree is busy.",
	monitor.Stopped:    "The agent or its tools are stopped, which is no hang.",
	monitor.Unverified: "Nothing could be seen: the stream alone decides.",
	monitor.Unasked:    "The tree was not asked (--confirm=off): the stream alone decides.",
	monitor.Waiting:    "The tree had not been looked at for long enough.",
}

// testimony is the evidence in words.
func testimony(e *monitor.Evidence) []string {
	all := []string{cmp.Or(findings[e.Finding], string(e.Finding))}
	if e.Percent != tree.Unknown && e.Samples > 0 {
		all = append(all, fmt.Sprintf("It used %s of a core over %s (%s).", percent(e.Percent), e.Span, many(e.Samples, "sample")))
	}
	if e.Window > 0 {
		all = append(all, fmt.Sprintf("In the last %s: %s born, %d ended; disk: %s; received: %s; sent: %s.",
			e.Window, many(e.Born, "tool"), e.Ended, bytesOf(e.Disk), bytesOf(e.Received), bytesOf(e.Sent)))
	}
	t := e.Tree
	if t == nil {
		return all
	}
	all = append(all, fmt.Sprintf("%s alive, %d of them tools, %d runnable.", many(t.Alive, "process"), t.Tools, t.Runnable))
	for i := range t.Asking {
		all = append(all, t.Asking[i].String()+" reads the terminal.")
	}
	for i := range t.Stopped {
		all = append(all, t.Stopped[i].String()+" is "+cmp.Or(t.Stopped[i].Waits, "stopped")+".")
	}
	if t.Forgotten > 0 {
		all = append(all, many(t.Forgotten, "process")+" left the tree and belong to no call.")
	}
	if t.Blind != "" {
		all = append(all, "The tree cannot be seen: "+t.Blind+".")
	}
	if len(t.Hidden) > 0 {
		all = append(all, "Could not be read: "+strings.Join(t.Hidden, ", ")+".")
	}
	return all
}

func (p *page) openCalls(title string, calls []monitor.Call) part {
	if len(calls) == 0 {
		return nil
	}
	t := table(title, "Tool", "Argument", "#For", "#Declared", "Deadline", "Run by")
	for i := range calls {
		c := &calls[i]
		due := ""
		if !c.Deadline.IsZero() {
			due = p.rel(c.Deadline)
		}
		wait := "none"
		if c.Declared > 0 {
			wait = c.Declared.String()
		}
		t.row(quoted(c.Tool), p.callLink(c.ID, c.Argument), number(c.Elapsed.String(), float64(c.Elapsed)),
			number(wait, float64(c.Declared)), text(due), quoted(runner(c), class("waits")))
	}
	return parts{el("h4", text(title)), t.part()}
}

// callLink is the name of a call, which opens it where the report has it.
func (p *page) callLink(call, name string) part {
	for i := range p.Items {
		if it := &p.Items[i]; it.Lane == Tool && it.Call == call && call != "" {
			return opener(i, cmp.Or(short(name, 200), call))
		}
	}
	return command(name)
}

// command is one that was typed by somebody or something, within bounds.
func command(line string) part { return el("code", text(short(line, 400))) }

// runner is who runs a call, in words.
func runner(c *monitor.Call) string {
	switch r := c.Process; {
	case r == nil && c.PID > 0:
		return strconv.Itoa(c.PID) + ", as the agent says"
	case r == nil || r.Fate == tree.Unseen:
		return "unknown"
	case r.Fate == tree.None:
		return "no process"
	case r.Fate == tree.Gone:
		return fmt.Sprintf("%d %s, which is gone", r.PID, r.Command)
	default:
		s := fmt.Sprintf("%d %s", r.PID, r.Command)
		if r.Waits != "" {
			s += ": " + r.Waits
		}
		if r.By != "" {
			s += " (found by " + r.By + ")"
		}
		return s
	}
}

// processes is the process table at a verdict.
func (p *page) processes(r *monitor.Reason) part {
	if r.Evidence == nil || r.Evidence.Tree == nil {
		return nil
	}
	a := r.Evidence.Tree
	procs, title := a.Procs, "Processes"
	if len(procs) == 0 { // what they wait for was not looked into
		procs, title = slices.Concat(a.Asking, a.Stopped, a.Busiest), "Processes of note"
	}
	if len(procs) == 0 {
		return nil
	}
	titles := map[string]string{}
	for _, c := range slices.Concat(r.OpenCalls, r.Background) {
		titles[c.ID] = strings.TrimSpace(c.Tool + " " + c.Argument)
	}
	t := table(title, "Process", "State", "#CPU", "#Time", "#Memory", "#Age", "#Still for", "Waits for", "Runs", "Connections")
	for _, one := range planted(procs) {
		t.row(p.processCells(one, titles)...)
	}
	more := a.Alive - len(procs)
	return parts{el("h4", text(title)), t.part(), when(more > 0 && len(a.Procs) > 0, el("p", class("faint"), textf("%s not shown.", many(more, "more process"))))}
}

func (p *page) processCells(one branch, titles map[string]string) []part {
	q := one.Proc
	var runs part
	if q.Call != "" {
		runs = p.callLink(q.Call, cmp.Or(titles[q.Call], q.Call))
	}
	return []part{
		el("span", class("process"), el("span", class("branch"), attr{"aria-hidden", "true"}, text(one.branch)),
			el("span", textf("%d ", q.PID), command(q.Command))),
		el("span", class("state "+stateClass(q.State)), text(q.State)),
		number(percent(q.Percent), q.Percent), number(q.CPU.String(), float64(q.CPU)),
		number(bytesOf(q.Memory), float64(q.Memory)), number(q.Age.String(), float64(q.Age)),
		number(q.Still.String(), float64(q.Still)),
		quoted(q.Waits, class("waits")), runs, peers(q.Sockets),
	}
}

func stateClass(state string) string {
	switch state {
	case "running":
		return "live"
	case "stopped", "traced", "uninterruptible", "zombie":
		return "odd"
	}
	return "rest"
}

func peers(sockets []tree.Peer) part {
	var all parts
	for _, s := range sockets {
		quiet := ""
		if s.Quiet != tree.Unknown {
			quiet = ", quiet for " + s.Quiet.String()
		}
		all = append(all, el("div", quoted(s.Peer), textf(" in %s, out %s%s", bytesOf(s.Received), bytesOf(s.Sent), quiet)))
	}
	return all
}

// branch is a process with the lines of the tree in front of it.
type branch struct {
	*tree.Proc
	branch string
}

// planted puts processes below their parents. Whose parent is not there stands
// at the top; so does, once, who has itself for an ancestor.
func planted(procs []tree.Proc) []branch {
	p := planter{procs: procs, children: map[int][]int{}, done: make([]bool, len(procs))}
	here := map[int]bool{}
	for i := range procs {
		here[procs[i].PID] = true
	}
	var top []int
	for i := range procs {
		if q := &procs[i]; here[q.PPID] && q.PPID != q.PID {
			p.children[q.PPID] = append(p.children[q.PPID], i)
		} else {
			top = append(top, i)
		}
	}
	for _, i := range top {
		p.put(i, "", "")
	}
	for i := range procs {
		p.put(i, "", "")
	}
	return p.all
}

type planter struct {
	procs    []tree.Proc
	children map[int][]int
	done     []bool
	all      []branch
}

func (p *planter) put(i int, own, below string) {
	if p.done[i] {
		return
	}
	p.done[i] = true
	p.all = append(p.all, branch{&p.procs[i], own})
	children := p.children[p.procs[i].PID]
	for n, child := range children {
		if n == len(children)-1 {
			p.put(child, below+"└─ ", below+"   ")
		} else {
			p.put(child, below+"├─ ", below+"│  ")
		}
	}
}

// teardown tells how each tree was ended, process by process.
func (p *page) teardown() part {
	var all parts
	for i := range p.Teardowns {
		t := &p.Teardowns[i]
		inner := parts{list("", teardownWords(t)), fateTable("Ended", t.Ended), fateTable("Left alive", t.Left), fateTable("Spared", t.Spare)}
		name := fmt.Sprintf("At %s, in %s", p.rel(t.At), t.Took)
		if i == len(p.Teardowns)-1 || len(t.Left) > 0 {
			all = append(all, el("h3", text(short(name, 100))), inner)
		} else {
			all = append(all, el("details", el("summary", text(fmt.Sprintf("%s: %s ended", name, many(len(t.Ended), "process")))), inner))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func teardownWords(t *Teardown) []string {
	var all []string
	if t.Exit != "" {
		all = append(all, "The agent: "+t.Exit+".")
	}
	if t.By != "" {
		all = append(all, "By: "+t.By+".")
	}
	switch {
	case len(t.Left) > 0:
		all = append(all, many(len(t.Left), "process")+" could not be ended.")
	case t.Proof:
		all = append(all, "Nobody is left, and that is proven.")
	default:
		all = append(all, "Nobody who was found is left; there is no proof that nobody was missed.")
	}
	return all
}

func fateTable(title string, who []Fate) part {
	if len(who) == 0 {
		return nil
	}
	t := table(title, "#Pid", "#Parent", "Command", "Found", "Signal", "How", "Error")
	for i := range who {
		f := &who[i]
		t.row(number(strconv.Itoa(f.PID), float64(f.PID)), number(strconv.Itoa(f.PPID), float64(f.PPID)), command(f.Command),
			quoted(f.Found), quoted(f.Signal), quoted(f.How), quoted(f.Error))
	}
	return parts{el("h4", textf("%s (%d)", title, len(who))), t.part()}
}
