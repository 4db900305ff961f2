package report

import (
	"fmt"
	"strings"
	"time"

	"cursor-wrap/internal/monitor"
)

// outcome settles how the run and its last turn came out.
func (r *reader) outcome() {
	run, turns := &r.story.Run, r.story.Turns
	prompts := 0
	for i := range turns {
		if turns[i].Restart == 0 {
			prompts++
		}
	}
	if r.ending == nil {
		run.Outcome, run.ExitCode, run.Message = killed, -1, noEnd
		run.Restarts = len(turns) - prompts
		return
	}
	if len(turns) == 0 {
		return
	}
	last := &turns[len(turns)-1]
	left := last.Outcome == "success" && run.Outcome == "signal" && r.ending.at.Sub(last.End.Time) > time.Second
	if prompts == 1 && !left { // what the run says is said of this turn, and the wrapper knew more
		last.Outcome, last.Message = run.Outcome, run.Message
	}
	if last.Outcome == killed {
		last.Outcome, last.Message = "error", "its end is not in the log"
	}
}

// took is how long the run took.
func took(run *Run) monitor.Span { return monitor.Span(run.End.Sub(run.Start.Time)) }

// sentence explains the outcome to a person.
func sentence(s *Story) string {
	run := &s.Run
	after := took(run).String()
	text := ""
	switch run.Outcome {
	case "success":
		text = fmt.Sprintf("The agent gave its result after %s, with %s; its longest silence was %s", after, plural(int(run.Calls), "tool call"), run.Silence)
	case "survivors":
		text = fmt.Sprintf("The agent gave its result after %s, but something could not be ended: %s", after, run.Message)
	case "hang":
		text = fmt.Sprintf("The agent hung and was ended after %s: %s", after, hung(s))
	case "duration":
		text = fmt.Sprintf("The run was ended after %s because its time was up: %s", after, run.Message)
	case "signal":
		text = fmt.Sprintf("The run was ended after %s from outside: %s%s", after, run.Message, s.meanwhile())
	case "usage":
		text = "Nothing was run: " + run.Message
	case killed:
		text = fmt.Sprintf("The log stops after %s without an end: the wrapper was killed, or the run still goes on%s", after, s.meanwhile())
	default:
		text = failure(s, after)
	}
	if run.Restarts > 0 {
		text += fmt.Sprintf(" (%s)", plural(run.Restarts, "restart"))
	}
	text = strings.Join(strings.Fields(text), " ")
	if strings.HasSuffix(text, "…") {
		return text
	}
	return strings.TrimRight(text, ".") + "."
}

// hung is what the last verdict rests on.
func hung(s *Story) string {
	for i := len(s.Verdicts) - 1; i >= 0; i-- {
		if v := &s.Verdicts[i]; v.What == "hang_detected" && v.Reason.Summary != "" {
			return v.Reason.Summary
		}
	}
	return s.Run.Message
}

func failure(s *Story, after string) string {
	run := &s.Run
	for i := range s.Marks {
		if s.Marks[i].What == "spawn_failed" && len(s.Events) == 0 {
			return "The agent could not be started: " + run.Message
		}
	}
	text := fmt.Sprintf("The run failed after %s: %s", after, run.Message)
	switch {
	case strings.Contains(run.Message, "result is an error") && run.Answer != "":
		text += ": " + begin(run.Answer, 300)
	case len(s.Stderr) > 0 && strings.Contains(run.Message, "without a result"):
		if said := begin(s.Stderr[len(s.Stderr)-1].Text, 300); said != "" {
			text += "; the last that it said on stderr: " + said
		}
	}
	return text
}

// meanwhile is what was open when the run was interrupted.
func (s *Story) meanwhile() string {
	var open []*Item
	for i := range s.Items {
		if s.Items[i].Status == "open" && s.Items[i].Turn == len(s.Turns)-1 {
			open = append(open, &s.Items[i])
		}
	}
	if len(open) == 0 {
		return ""
	}
	i := open[0]
	text := fmt.Sprintf(", while %s %q was open for %s", i.Tool, i.Title, monitor.Span(i.End.Sub(i.Start.Time)))
	if len(open) > 1 {
		text += fmt.Sprintf(" and %s more", plural(len(open)-1, "call"))
	}
	return text
}
