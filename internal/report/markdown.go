package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// MarkdownMost is the most that Markdown writes for a step of GitHub's, which
// takes a MiB.
const MarkdownMost = 900 << 10

// How much of each thing is shown.
const (
	mdRows    = 50
	mdCell    = 300 // runes
	mdProcs   = 200
	mdSlowest = 10
	mdStderr  = 50 // lines
)

// Markdown writes a summary for people who read it in a browser: the outcome
// first. It has at most so many bytes. Nothing that it shows can become a
// heading, a link or the end of a table.
func Markdown(w io.Writer, s *Story, most int) error {
	var b strings.Builder
	const note = "\n(The rest is left out: it was too long.)\n"
	for _, section := range []func(*strings.Builder, *Story){mdHead, mdFacts, mdVerdict, mdTurns, mdSlow, mdLeft, mdStderrEnd, mdAnswer} {
		var part strings.Builder
		section(&part, s)
		if b.Len()+part.Len()+len(note) > most {
			if b.Len()+len(note) <= most {
				b.WriteString(note)
			}
			break
		}
		b.WriteString(part.String())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func mdHead(b *strings.Builder, s *Story) {
	sign := "❌"
	switch s.Run.Outcome {
	case "success":
		sign = "✅"
	case "survivors", killed:
		sign = "⚠️"
	}
	fmt.Fprintf(b, "## %s cursor-wrap: %s\n\n%s\n\n", sign, mdText(s.Run.Outcome), mdLine(s.Run.Sentence, 4000))
	if s.Torn > 0 || s.Lost > 0 {
		fmt.Fprintf(b, "The log is not complete: %s could not be read, %s are missing.\n\n", plural(s.Torn, "line"), plural(int(s.Lost), "record"))
	}
	for i := range s.Marks {
		if s.Marks[i].What == "no_raw_events" {
			fmt.Fprintf(b, "Note: %s.\n\n", mdText(s.Marks[i].Text))
		}
	}
}

// mdTable writes a table; its cells are escaped here.
func mdTable(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + c + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	line(strings.Split(strings.TrimSuffix(strings.Repeat("---,", len(head)), ","), ","))
	for i, row := range rows {
		if i == mdRows {
			fmt.Fprintf(b, "\nand %d more\n", len(rows)-i)
			break
		}
		cells := make([]string, len(row))
		for j, c := range row {
			cells[j] = mdLine(c, mdCell)
		}
		line(cells)
	}
	b.WriteString("\n")
}

func mdFacts(b *strings.Builder, s *Story) {
	run := &s.Run
	rows := [][]string{}
	fact := func(name, value string) {
		if value != "" && value != "0" {
			rows = append(rows, []string{name, value})
		}
	}
	if run.Ended {
		rows = append(rows, []string{"exit code", fmt.Sprint(run.ExitCode)})
	}
	fact("took", took(run).String())
	fact("longest silence", run.Silence.String())
	fact("tool calls", fmt.Sprint(run.Calls))
	fact("prompts", fmt.Sprint(len(s.Turns)-run.Restarts))
	fact("restarts", fmt.Sprint(run.Restarts))
	if run.Tokens != [2]int64{} {
		fact("tokens", fmt.Sprintf("%d in, %d out", run.Tokens[0], run.Tokens[1]))
	}
	fact("model", run.Model)
	fact("agent session", run.Session)
	fact("run", run.ID)
	fact("started", run.Start.UTC().Format(time.RFC3339))
	fact("folder", run.Dir)
	fact("agent", run.Agent)
	fact("containment", run.Held)
	if run.AgentCPU > 0 || run.AgentRSS > 0 {
		fact("agent's process", fmt.Sprintf("%s of CPU, at most %d MiB", run.AgentCPU, run.AgentRSS>>20))
	}
	mdTable(b, []string{"", ""}, rows)
}

func mdVerdict(b *strings.Builder, s *Story) {
	v := s.verdict()
	if v == nil {
		return
	}
	r := v.Reason
	fmt.Fprintf(b, "### Verdict: %s in phase %s\n\n", mdText(strings.ReplaceAll(v.What, "_", " ")), mdLine(string(r.Phase), 40))
	rows := [][]string{{"after the start", r.Elapsed.String()}, {"silence", r.Silence.String()}, {"limit", r.Limit.String()},
		{"last event", r.LastEvent}, {"rests on", r.Witness}}
	if e := r.Evidence; e != nil {
		rows = append(rows, []string{"finding", string(e.Finding)})
		if e.Percent >= 0 {
			rows = append(rows, []string{"CPU", fmt.Sprintf("%.1f %% of a core over %s", e.Percent, e.Span)})
		}
	}
	mdTable(b, []string{"", ""}, rows)
	mdCalls(b, "Open calls", r.OpenCalls)
	mdCalls(b, "In the background", r.Background)
	if e := r.Evidence; e != nil && e.Tree != nil && len(e.Tree.Procs) > 0 {
		b.WriteString("Processes at that moment:\n\n")
		mdFence(b, procTable(e.Tree.Procs))
	}
}

func mdCalls(b *strings.Builder, title string, calls []monitor.Call) {
	if len(calls) == 0 {
		return
	}
	rows := make([][]string, 0, len(calls))
	for i := range calls {
		c := &calls[i]
		declared, process := "", ""
		if c.Declared > 0 {
			declared = c.Declared.String()
		}
		if p := c.Process; p != nil {
			process = string(p.Fate)
			if p.Fate == tree.Alive {
				process = strings.TrimSpace(fmt.Sprintf("%d %s %s", p.PID, p.Command, p.Waits))
			}
		}
		rows = append(rows, []string{c.Tool, c.Argument, c.Elapsed.String(), declared, process})
	}
	fmt.Fprintf(b, "%s:\n\n", title)
	mdTable(b, []string{"tool", "what", "open for", "declared", "process"}, rows)
}

// procTable is a process table as ps would print it.
func procTable(procs []tree.Proc) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s %8s %-15s %6s %8s  %s\n", "PID", "PPID", "STATE", "CPU %", "STILL", "COMMAND, AND WHAT IT WAITS FOR")
	for i := range procs {
		if i == mdProcs {
			fmt.Fprintf(&b, "and %d more\n", len(procs)-i)
			break
		}
		p := &procs[i]
		percent := "?"
		if p.Percent >= 0 {
			percent = fmt.Sprintf("%.1f", p.Percent)
		}
		line := firstRunes(p.Command, mdCell)
		if p.Waits != "" {
			line += "  [" + firstRunes(p.Waits, mdCell) + "]"
		}
		fmt.Fprintf(&b, "%8d %8d %-15s %6s %8s  %s\n", p.PID, p.PPID, firstRunes(p.State, 15), percent, p.Still, oneLine(line))
	}
	return b.String()
}

func mdTurns(b *strings.Builder, s *Story) {
	if len(s.Turns) < 2 {
		return
	}
	var rows [][]string
	for i := range s.Turns {
		t := &s.Turns[i]
		prompt := title(t.Prompt)
		if t.Restart > 0 {
			prompt = fmt.Sprintf("(attempt %d) %s", t.Restart, prompt)
		}
		rows = append(rows, []string{prompt, t.Outcome, monitor.Span(t.End.Sub(t.Start.Time)).String(), t.Message})
	}
	b.WriteString("### Turns\n\n")
	mdTable(b, []string{"prompt", "outcome", "took", "why"}, rows)
}

func mdSlow(b *strings.Builder, s *Story) {
	var rows [][]string
	for _, i := range s.slowest(mdSlowest) {
		declared, status := "", i.Status
		if i.Declared > 0 {
			declared = i.Declared.String()
		}
		if i.Detail != "" {
			status += ": " + i.Detail
		}
		rows = append(rows, []string{i.Tool, i.Title, monitor.Span(i.End.Sub(i.Start.Time)).String(), declared, status})
	}
	if len(rows) == 0 {
		return
	}
	b.WriteString("### Slowest calls\n\n")
	mdTable(b, []string{"tool", "what", "took", "declared", "outcome"}, rows)
}

// mdLeft names who had to be ended, or was not.
func mdLeft(b *strings.Builder, s *Story) {
	var rows [][]string
	add := func(what string, list []Fate) {
		for i := range list {
			f := &list[i]
			how := f.How
			if how == "" {
				how = f.Signal
			}
			rows = append(rows, []string{what, fmt.Sprint(f.PID), f.Command, f.Found, strings.TrimSpace(how + " " + f.Error)})
		}
	}
	for i := range s.Teardowns {
		add("not ended", s.Teardowns[i].Left)
		add("spared", s.Teardowns[i].Spare)
	}
	for i := range s.Teardowns {
		add("ended", s.Teardowns[i].Ended)
	}
	if len(rows) == 0 {
		return
	}
	b.WriteString("### Processes at the end\n\n")
	mdTable(b, []string{"", "pid", "command", "found", "by"}, rows)
}

func mdStderrEnd(b *strings.Builder, s *Story) {
	if len(s.Stderr) == 0 {
		return
	}
	var text strings.Builder
	for _, l := range s.Stderr[max(0, len(s.Stderr)-mdStderr):] {
		text.WriteString(l.Text + "\n")
	}
	b.WriteString("### The end of the agent's stderr\n\n")
	mdFence(b, text.String())
}

func mdAnswer(b *strings.Builder, s *Story) {
	if s.Run.Answer == "" {
		return
	}
	b.WriteString("### The agent's answer\n\n")
	mdFence(b, s.Run.Answer)
}

// mdFence writes a code block whose fence is longer than any within.
func mdFence(b *strings.Builder, text string) {
	text = strings.Map(visible, strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD"))
	longest, run := 2, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	fmt.Fprintf(b, "%stext\n%s\n%s\n\n", fence, strings.TrimRight(text, "\n"), fence)
}

// visible replaces what is no character for people, but for line ends.
func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r):
		return '\uFFFD'
	}
	return r
}

// oneLine is a text without line ends.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(visible, strings.ToValidUTF8(s, "\uFFFD"))), " ")
}

// mdLine is a text of so many characters on one line, escaped.
func mdLine(s string, most int) string {
	s = oneLine(s)
	if cut := firstRunes(s, most); cut != s {
		s = cut + "…"
	}
	return mdText(s)
}

// mdText escapes whatever Markdown, or GitHub, would take for more than text.
// Character references stand for nothing but the character.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("&<>`*_[]()|~#@$\\!{}:", r) {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "www.", "www&#46;")
}
