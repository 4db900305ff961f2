package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"cursor-wrap/internal/tree"
)

// outcome is killed where the log just stops.
func (p *page) outcome() string {
	if p.Run.Outcome == "" {
		return "killed"
	}
	return p.Run.Outcome
}

// tone is the class that gives an outcome its colour.
func tone(outcome string) string {
	switch outcome {
	case "success":
		return "good"
	case "hang", "duration":
		return "hung"
	case "signal", "interrupted", "usage", "":
		return "told"
	}
	return "bad"
}

// hero is what everybody reads: how it came out, and why.
func (p *page) hero() part {
	r := &p.Run
	sentence := cmp.Or(r.Sentence, r.Message, "The run ended with "+p.outcome()+".")
	size := "short"
	if len(sentence) > 140 {
		size = "long"
	}
	folder := cmp.Or(r.Workspace, r.Dir)
	return el("div", class("hero "+tone(p.outcome())),
		el("p", el("span", class("badge"), text(short(p.outcome(), 40))),
			when(r.Ended, textf(" exit code %d", r.ExitCode))),
		el("h1", class(size), quoted(short(sentence, 600))),
		when(r.Message != "" && !strings.Contains(sentence, r.Message), el("p", class("message"), quoted(short(r.Message, 1000)))),
		el("p", class("under"),
			el("time", attr{"datetime", r.Start.UTC().Format("2006-01-02T15:04:05.000Z")}, text(date(r.Start))),
			when(folder != "", parts{text(" · "), quoted(short(folder, 120))}),
			when(r.Model != "", parts{text(" · "), quoted(short(r.Model, 60))})),
	)
}

// notices say what the report cannot tell.
func (p *page) notices() part {
	var all parts
	if !p.Run.Ended {
		all = append(all, el("p", class("notice"), text("The log has no end of its own: the wrapper was killed, or the run still goes on.")))
	}
	if p.Torn > 0 {
		all = append(all, el("p", class("notice"), textf("%s of the log could not be read.", many(p.Torn, "line"))))
	}
	if p.Lost > 0 {
		all = append(all, el("p", class("notice"), textf("%s could not be written to the log while the run went on.", many(int(p.Lost), "record"))))
	}
	return all
}

// tiles are the numbers that one compares runs by.
func (p *page) tiles() part {
	r := &p.Run
	tile := func(name, value, more string) part {
		return el("div", el("dt", text(name)), el("dd", text(value), when(more != "", el("small", text(more)))))
	}
	var turns string
	if len(p.Turns) > 1 {
		turns = "in " + many(len(p.Turns), "turn")
	}
	var restarts string
	if r.Restarts > 0 {
		restarts = many(r.Restarts, "restart")
	}
	return el("dl", class("tiles"),
		tile("Took", length(r.Start, r.End), turns),
		tile("Longest silence", r.Silence.String(), ""),
		tile("Tool calls", count(r.Calls), restarts),
		tile("Lines", count(r.Lines), bytesOf(r.Bytes)),
		when(r.Tokens != [2]int64{}, tile("Tokens", count(r.Tokens[0]), "in, "+count(r.Tokens[1])+" out")),
		tile("CPU time", r.AgentCPU.String(), bytesOf(r.AgentRSS)+" memory"),
	)
}

// facts are what one needs to find the run again, or to repeat it.
func (p *page) facts() part {
	r := &p.Run
	list := el("dl", class("facts"))
	row := func(name, value string) {
		if value = short(value, 2000); value != "" {
			list.inner = append(list.inner, el("dt", text(name)), el("dd", quoted(value)))
		}
	}
	row("Run", r.ID)
	row("Session", r.Session)
	row("Started", date(r.Start))
	if r.Ended {
		row("Ended", date(r.End))
		row("Exit code", strconv.Itoa(r.ExitCode))
	}
	row("Message", r.Message)
	row("Workspace", r.Workspace)
	if r.Dir != r.Workspace {
		row("Folder", r.Dir)
	}
	row("Agent", strings.Join(append([]string{r.Agent}, r.Args...), " "))
	row("Model", r.Model)
	row("Containment", r.Held)
	row("Version", r.Version)
	return parts{list, policyPart(r.Policy)}
}

// policyPart shows the thresholds that were in force, in their own order.
func policyPart(policy json.RawMessage) part {
	d := json.NewDecoder(bytes.NewReader(policy))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	list := el("dl", class("facts"))
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value any
		if d.Decode(&value) != nil {
			return nil
		}
		name, _ := key.(string)
		list.inner = append(list.inner, el("dt", text(thresholdName(name))), el("dd", quoted(threshold(name, value))))
	}
	return el("details", el("summary", text("Thresholds")), list)
}

func thresholdName(key string) string {
	return strings.ReplaceAll(strings.TrimSuffix(key, "_ms"), "_", " ")
}

func threshold(key string, value any) string {
	ms, number := value.(float64)
	switch {
	case number && strings.HasSuffix(key, "_ms") && ms == 0:
		return "off"
	case number && strings.HasSuffix(key, "_ms"):
		return tree.Span(ms * 1e6).String()
	}
	b, _ := json.Marshal(value) // it came from JSON
	return string(b)
}
