package report

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// fields are the members of a record. A value of another type than the expected
// one is as if it were not there.
type fields map[string]json.RawMessage

// str returns a string decoded, and a number or a truth as it is written.
func (f fields) str(key string) string {
	v := f[key]
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	if len(v) > 0 && len(v) < 32 && v[0] != '{' && v[0] != '[' {
		return string(v)
	}
	return ""
}

func (f fields) num(key string) (n int64) {
	_ = json.Unmarshal(f[key], &n)
	return n
}

func (f fields) millis(key string) (m monitor.Millis) {
	_ = json.Unmarshal(f[key], &m)
	return m
}

func (f fields) group(key string) (g fields) {
	_ = json.Unmarshal(f[key], &g)
	return g
}

// ending is what run_end says beyond what stands in the Run.
type ending struct {
	at   time.Time
	took time.Duration
}

// decision takes a record of the wrapper's own.
func (r *reader) decision(at time.Time, rec *journal.Record) {
	switch rec.Msg {
	case "stderr":
		r.stderr(at, rec)
		return
	case "sample":
		r.sample(at, rec)
		return
	case "adopted_exit":
		r.known = true
		return
	}
	f := fields{}
	if json.Unmarshal(rec.Fields, &f) != nil {
		r.story.Torn++
		return
	}
	if r.run(at, rec.Msg, f) || r.span(at, rec.Msg, f) || r.judged(at, rec, f) {
		r.known = true
		return
	}
	text, known := told(rec.Msg, f)
	r.known = r.known || known
	if r.turn != nil {
		r.turn.decision(at, rec.Msg, f)
	}
	if rec.Msg == "log_gap" {
		r.story.Lost += max(f.num("records"), 0)
	}
	if of := f.str("tool"); rec.Msg == "undeclared_timeout" && of != "shell" {
		return // a read or a search has no wait to declare
	}
	if text != "" || rec.Level >= slog.LevelWarn {
		r.mark(at, rec, text, f)
	}
}

// run takes what tells of the run and of its turns.
func (r *reader) run(at time.Time, msg string, f fields) bool {
	run := &r.story.Run
	switch msg {
	case "run_start":
		run.ID, run.Version, run.Dir, run.Workspace = f.str("run_id"), f.str("version"), f.str("cwd"), f.str("workspace")
		p := r.policy
		if json.Unmarshal(f["policy"], &p) == nil && f["policy"] != nil {
			r.policy = p
			run.Policy, _ = json.Marshal(p) // of our own type
		}
	case "turn_start":
		r.begin(at)
	case "spawn":
		run.Agent, run.Held = f.str("resolved"), f.str("containment")
		if run.Agent == "" {
			run.Agent = f.str("path")
		}
		run.Args = nil
		_ = json.Unmarshal(f["args"], &run.Args)
		return false // it is a mark, too
	case "restart":
		r.attempt = int(min(max(f.num("attempt"), 1), 1<<20))
		return false
	case "run_end":
		r.end(at, f)
	default:
		return false
	}
	return true
}

func (r *reader) end(at time.Time, f fields) {
	r.close()
	run := &r.story.Run
	counts, agent := f.group("counts"), f.group("agent")
	run.Ended = true
	run.Outcome, run.ExitCode, run.Message = f.str("outcome"), int(f.num("exit_code")), f.str("message")
	run.Lines, run.Bytes, run.Calls = counts.num("lines"), counts.num("bytes"), counts.num("calls")
	run.Restarts = int(f.num("restarts"))
	run.Silence = milliseconds(f.num("longest_silence_ms"))
	run.AgentCPU, run.AgentRSS = milliseconds(agent.num("cpu_ms")), agent.num("max_rss_bytes")
	if id := f.str("session_id"); id != "" {
		run.Session = id
	}
	r.ending = &ending{at: at, took: time.Duration(milliseconds(f.num("took_ms")))}
}

// milliseconds is a length that a log tells, of which anything may have become.
func milliseconds(n int64) monitor.Span {
	const most = int64(100*365*24*time.Hour) / int64(time.Millisecond)
	return monitor.Span(min(max(n, 0), most)) * monitor.Span(time.Millisecond)
}

// span takes what tells of a time that is over or begins.
func (r *reader) span(at time.Time, msg string, f fields) bool {
	switch msg {
	case "held":
		r.hold(f)
	case "paused":
		if r.paused == nil {
			r.paused = &Item{Lane: Paused, Start: monitor.Millis{Time: at}, Title: "paused" + who(f), Turn: r.last(), First: -1, Last: -1}
		}
		return false // it is a mark, too
	case "unpaused":
		if p := r.paused; p != nil {
			p.End = monitor.Millis{Time: at}
			p.Detail = "let go on" + who(f)
			r.story.Items, r.paused = append(r.story.Items, *p), nil
		}
		return false
	case "teardown":
		r.teardown(at, f)
	default:
		return false
	}
	return true
}

// who says on whose word something was done, where the record knows.
func who(f fields) string {
	if by := f.str("by"); by != "" {
		return " by uid " + by
	}
	return ""
}

// last is the index of the newest turn.
func (r *reader) last() int { return max(len(r.story.Turns)-1, 0) }

func (r *reader) hold(f fields) {
	from, to, by := r.inside(f.millis("from").Time), r.inside(f.millis("to").Time), f.str("by")
	if !to.After(from) {
		return
	}
	if r.turn != nil {
		r.turn.hold(from, to)
	}
	if n := len(r.held); n > 0 && r.held[n-1].Detail == by && r.held[n-1].End.Equal(from) {
		r.held[n-1].End = monitor.Millis{Time: to} // told piece by piece
		return
	}
	i := Item{Lane: Held, Start: monitor.Millis{Time: from}, End: monitor.Millis{Time: to}, Title: "nobody listened: " + by, Detail: by, Turn: r.last(), First: -1, Last: -1}
	if strings.HasPrefix(by, "paused") {
		i.Lane, i.Title = Paused, by
	}
	r.held = append(r.held, i)
}

// inside is a moment that a record speaks of, within the time of the log so far.
func (r *reader) inside(at time.Time) time.Time {
	switch run := &r.story.Run; {
	case at.Before(run.Start.Time):
		return run.Start.Time
	case at.After(run.End.Time):
		return run.End.Time
	}
	return at
}

func (r *reader) teardown(at time.Time, f fields) {
	took := milliseconds(f.num("took_ms"))
	td := Teardown{At: monitor.Millis{Time: at}, Took: took, Exit: f.str("exit"), By: f.str("by"), Proof: f.str("proof") == "true",
		Ended: fates(f["ended"]), Left: fates(f["left"]), Spare: fates(f["spared"])}
	r.story.Teardowns = append(r.story.Teardowns, td)
	i := Item{Lane: Ladder, Start: monitor.Millis{Time: r.inside(at.Add(-time.Duration(took)))}, End: td.At,
		Title: plural(len(td.Ended), "process") + " ended", Status: "ok", Turn: r.last(), First: -1, Last: -1, Detail: "the agent: " + td.Exit}
	if len(td.Left) > 0 {
		i.Status, i.Title = "failed", i.Title+", "+plural(len(td.Left), "process")+" left"
	}
	r.story.Items = append(r.story.Items, i)
	if r.turn != nil {
		r.turn.torn(at, &td)
	}
}

func fates(v json.RawMessage) []Fate {
	all := []Fate{}
	if json.Unmarshal(v, &all) != nil || all == nil {
		return []Fate{}
	}
	return all
}

// judged takes what the monitor said, and what the turn does about it.
func (r *reader) judged(at time.Time, rec *journal.Record, f fields) bool {
	switch rec.Msg {
	case "suspected", "hang_detected", "duration_exceeded":
	case "phase":
		r.phases = append(r.phases, Deadline{At: monitor.Millis{Time: at}, Until: f.millis("deadline"), Phase: monitor.Phase(f.str("to"))})
		return true
	default:
		return false
	}
	reason := &monitor.Reason{}
	if json.Unmarshal(rec.Fields, reason) != nil {
		r.story.Torn++
		return true
	}
	r.story.Verdicts = append(r.story.Verdicts, Verdict{At: monitor.Millis{Time: at}, What: rec.Msg, Reason: reason})
	if rec.Msg == "suspected" {
		r.mark(at, rec, "suspected: "+reason.Summary, f)
	} else if r.turn != nil {
		r.turn.verdict(at, rec.Msg, reason)
	}
	return true
}

func (r *reader) mark(at time.Time, rec *journal.Record, text string, f fields) {
	if len(r.story.Marks) >= marksMost {
		return
	}
	if text == "" {
		text = strings.ReplaceAll(rec.Msg, "_", " ")
		for _, key := range []string{"error", "cause", "message", "summary"} {
			if more := f.str(key); more != "" {
				text += ": " + more
			}
		}
	}
	r.story.Marks = append(r.story.Marks, Mark{At: monitor.Millis{Time: at}, What: r.mask.text(rec.Msg, titleMost),
		Text: r.mask.text(text, stderrMost), Level: rec.Level.String()})
}

func (r *reader) sample(at time.Time, rec *journal.Record) {
	r.known = true
	var a tree.Activity
	if json.Unmarshal(rec.Fields, &a) != nil {
		r.story.Torn++
		return
	}
	s := Sample{At: monitor.Millis{Time: at}, Percent: tree.Unknown, Alive: a.Alive, Tools: a.Tools, Received: a.Received, Disk: a.Disk}
	if a.CPU >= 0 && a.Span > 0 {
		s.Percent = float64(int64(1000*float64(a.CPU)/float64(a.Span)+0.5)) / 10
	}
	r.story.Samples = append(r.story.Samples, s)
}

func (r *reader) stderr(at time.Time, rec *journal.Record) {
	r.known = true
	var f struct{ Text string }
	_ = json.Unmarshal(rec.Fields, &f)
	if n := len(r.story.Stderr); n >= 2*stderrKept {
		r.story.Stderr = append(r.story.Stderr[:0], r.story.Stderr[n-stderrKept:]...)
	}
	r.story.Stderr = append(r.story.Stderr, Line{At: monitor.Millis{Time: at}, Text: r.mask.text(f.Text, stderrMost)})
}

// told is what a record says to a person, empty where it is of no interest, and
// whether it is one of ours.
func told(msg string, f fields) (text string, known bool) {
	call := func() string { return fmt.Sprintf("%s %q", f.str("tool"), f.str("argument")) }
	switch msg {
	case "spawn":
		return "the agent was started, pid " + f.str("pid"), true
	case "spawn_failed":
		return "the agent could not be started: " + f.str("error"), true
	case "signal":
		text = "told to stop by " + f.str("signal")
		if f.num("count") > 1 {
			text += ", again"
		}
		return text, true
	case "killed":
		text = "told to end" + who(f)
		if f.str("now") == "true" {
			text += ", at once"
		}
		return text, true
	case "paused":
		return "paused" + who(f), true
	case "unpaused":
		return "let go on" + who(f), true
	case "restart":
		return fmt.Sprintf("trying again, attempt %s of %s, after: %s", f.str("attempt"), f.str("most"), f.str("after")), true
	case "agent_exit":
		return "the agent's process ended", true
	case "lingering":
		return "the result is there, but the agent did not leave", true
	case "limit_exceeded":
		return f.str("summary"), true
	case "suspicion_lifted":
		return "the suspicion is lifted, it was " + f.str("finding"), true
	case "stdout_failed":
		return "stdout could not be written: " + f.str("error"), true
	case "stdout_ended":
		return "the agent closed its stdout without a result", true
	case "result":
		if f.str("is_error") == "true" {
			return "the agent's result, an error", true
		}
		return "the agent's result", true
	case "asking":
		return "waits for an answer at the terminal: " + f.str("pid") + " " + f.str("command"), true
	case "log_gap":
		return fmt.Sprintf("%s records are missing from the log here: %s", f.str("records"), f.str("cause")), true
	case "leftover", "marked":
		return leftover(msg, f), true
	case "undeclared_timeout":
		return call() + " declared no wait; the tool timeout counts for it", true
	case "replaced_call":
		return call() + " was started a second time", true
	case "unmatched_completion":
		return call() + " was completed without a start", true
	case "prompt_mismatch":
		return "the agent took another prompt than ours: " + f.str("taken"), true
	case "prune_failed", "log_not_renamed", "log_sync_failed":
		return "", true
	}
	return "", false
}

// leftover tells of what dead runs had left behind.
func leftover(msg string, f fields) string {
	if msg == "marked" {
		var all []json.RawMessage
		_ = json.Unmarshal(f["processes"], &all)
		return plural(len(all), "process") + " carry the mark of an earlier run"
	}
	one := f.group("leftover")
	var ended []json.RawMessage
	_ = json.Unmarshal(one["ended"], &ended)
	text := plural(len(ended), "process") + " of an earlier run ended"
	if why := one.str("error"); why != "" {
		text += ": " + why
	}
	return text
}

func plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
