package format

import (
	"fmt"
	"strings"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/events"
	"cursor-wrap/internal/markdown"
)

// maxSteps is how many of a subagent's calls are shown.
const maxSteps = 20

// inside shows what a subagent did, where its end tells and the stream has not
// told before.
func (t *Text) inside(c *events.Call, says fields) {
	steps := list(says["conversationSteps"])
	if c.Tool != "task" || t.steps[c.ID] {
		return
	}
	shown := 0
	for i, v := range steps {
		if shown == maxSteps {
			t.say(t.paint(faint, fmt.Sprintf("%s%s and %d more steps", t.child.indent, t.sign.more, len(steps)-i)))
			return
		}
		if t.step(object(v)) {
			shown++
		}
	}
}

func (t *Text) step(f fields) bool {
	if call := object(f["toolCall"]); call != nil {
		line := append(append([]byte(`{"type":"tool_call","subtype":"completed","tool_call":`), f["toolCall"]...), '}')
		ev := events.Parse(line)
		b := body{call: call}
		b.read(ev.Call.Tool)
		kind, says, text := outcome(b.result)
		v := judge(ev.Call.Tool, kind, says, text)
		colour, sign, tail := green, t.sign.done, ""
		if v.failed {
			colour, sign = red, t.sign.failed
		}
		if len(v.details) > 0 {
			tail = "(" + strings.ReplaceAll(strings.Join(v.details, ", "), "−", t.sign.minus) + ")"
		}
		t.event(t.child.indent, colour, sign, t.label(ev.Call, b), tail)
		return true
	}
	said := object(f["assistantMessage"]).pick("text")
	if said == "" {
		return false
	}
	room := 200
	if w := t.width(); w > 0 {
		room = max(w-len(t.child.indent), 4)
	}
	t.say(t.child.indent + t.paint(faint, t.clean(firstLine(said), room)))
	return true
}

// notified shows that background work has ended.
func (t *Text) notified(line []byte, task *events.Task) {
	if !task.Over() {
		return
	}
	f := object(line)
	title := f.pick("title")
	if title == "" {
		title = task.ID
	}
	l := label{word: "background", arg: t.clean(title, maxLabel), quoted: true}
	colour, sign, tail := green, t.sign.done, "ended"
	switch task.Status {
	case "error":
		colour, sign, tail = red, t.sign.trouble, "failed"
	case "aborted":
		colour, sign, tail = red, t.sign.trouble, "aborted"
	}
	if why := firstLine(f.pick("detail")); why != "" && task.Status != "success" {
		tail += " (" + why + ")"
	}
	t.event("", colour, sign, l, tail)
}

// aborted shows that the agent has given its background shells up.
func (t *Text) aborted(line []byte) {
	f := object(line)
	s := "background shells aborted"
	if n := f.pick("aborted_count"); n != "" {
		s = n + " " + s
	}
	if ms, ok := f.number("timeout_ms"); ok && ms > 0 {
		s += " after " + strings.Replace(span(ms), ".0s", "s", 1)
	}
	t.tell(yellow, t.sign.warning, s)
}

// reconnecting shows each attempt once: two kinds of lines tell of it.
func (t *Text) reconnecting(line []byte) {
	f := object(line)
	n := t.clean(f.pick("attempt"), 20)
	if n == "" || n == t.attempt {
		return
	}
	t.attempt = n
	t.tell(yellow, t.sign.more, "reconnecting, attempt "+n)
}

// result is silent about a success: the agent has said it all. Unless it has
// said nothing.
func (t *Text) result(line []byte, failed bool) {
	f := object(line)
	said := f.pick("result")
	switch {
	case failed:
		if said == "" {
			said = f.pick("error", "message", "subtype")
		}
		t.tell(red, t.sign.trouble, "error: "+said)
	case !t.spoke && said != "":
		t.main.hear(&Said{Text: said})
	}
	t.endTurn()
}

// foreign shows a line that is not JSON: they are often refusals.
func (t *Text) foreign(line []byte) {
	s := strings.TrimSpace(string(line[:min(len(line), 4*maxLabel)]))
	shown := strings.TrimSpace(t.clean(s, maxLabel))
	switch {
	case shown == "":
	case shown[0] == '{' || len(display.Line(s, " "))-len(s) > len(s)/2: // cut short, or not text
		t.say(t.paint(faint, "(an unreadable line of "+size(int64(len(line)))+" left out)"))
	default:
		for _, l := range t.wrap(shown, 0) {
			t.say(l)
		}
	}
}

// other shows the errors among the lines of a kind that is not known.
func (t *Text) other(line []byte, ev *events.Event) {
	if ev.Type != "error" && ev.Subtype != "error" {
		return
	}
	f := object(line)
	said := f.pick("message", "error", "text", "detail")
	if said == "" {
		said = object(f["error"]).pick("message")
	}
	t.tell(red, t.sign.trouble, strings.TrimSuffix("error: "+said, ": "))
}

// tell writes a sentence on as many lines as it needs.
func (t *Text) tell(colour, sign, sentence string) {
	s := display.Cut(display.Line(head(sentence), " "), maxLabel, t.sign.more)
	for i, line := range t.wrap(s, display.Width(sign)+1) {
		first := strings.Repeat(" ", display.Width(sign))
		if i == 0 {
			first = t.paint(colour, sign)
		}
		t.say(first + " " + line)
	}
}

// wrap breaks a sentence at the width of the terminal, less an indent.
func (t *Text) wrap(s string, indent int) []string {
	if w := t.width(); w > 0 {
		return markdown.Wrap(s, w-indent)
	}
	return []string{s}
}

func (t *Text) failure(f *Failure) {
	if f.Subtype == "hang" {
		t.tell(yellow, t.sign.warning, "Hang detected "+t.sign.dash+" killed cursor-agent ("+f.Message+")")
		return
	}
	t.tell(yellow, t.sign.warning, f.Message)
}
