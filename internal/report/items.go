package report

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/format"
	"cursor-wrap/internal/monitor"
)

// talk is what somebody says in one go.
type talk struct {
	item   int // index in the story
	lane   Lane
	parent string
	text   strings.Builder // bounded
	seam   seam
}

// tell takes a whole line for what it says.
func (t *turn) tell(at time.Time, ev *events.Event, line []byte, index int) {
	switch ev.Kind {
	case events.Assistant, events.Thinking:
		t.speak(at, ev, line, index)
		return
	case events.Connection, events.Retry, events.Unknown, events.System, events.Interaction, events.Oversize:
	default:
		t.hush()
	}
	switch ev.Kind {
	case events.User:
		t.prompt(ev)
	case events.ToolStarted:
		t.started(at, ev.Call, line, index)
	case events.ToolCompleted:
		t.completed(at, ev.Call, line, index)
	case events.TaskNotification:
		t.notify(at, ev.Task, index)
	case events.BackgroundTimeout:
		for id, i := range t.background {
			t.closeTask(i, at, "failed", index)
			delete(t.background, id)
		}
	}
	if ev.Ended != nil {
		t.ended(ev.Ended, line)
	}
}

func (t *turn) prompt(ev *events.Event) {
	if turn := &t.r.story.Turns[t.index]; ev.Prompt != nil && turn.Prompt == "" {
		turn.Prompt = t.r.mask.text(*ev.Prompt, promptMost)
	}
}

func (t *turn) ended(e *events.Ended, line []byte) {
	if t.result == nil {
		failed := e.IsError
		t.result = &failed
	}
	run := &t.r.story.Run
	run.Tokens[0] += e.Tokens.Input + e.Tokens.CacheRead + e.Tokens.CacheWrite
	run.Tokens[1] += e.Tokens.Output
	var f struct {
		Result json.RawMessage `json:"result"`
	}
	_ = json.Unmarshal(line, &f) // one that is too long was cut
	if text := (fields{"result": f.Result}).str("result"); text != "" {
		run.Answer = t.r.mask.text(text, answerMost)
	}
}

// speak takes what the agent, or a subagent, says or thinks. What comes in
// pieces is one item, and what is only said again is none.
func (t *turn) speak(at time.Time, ev *events.Event, line []byte, index int) {
	said, lane := format.ReadSaid(line), Assistant
	news := said.Text
	if ev.Kind == events.Thinking {
		lane = Thinking
	} else {
		news, _ = t.voice(said.Parent).Fresh(&said)
	}
	same := t.talk != nil && t.talk.lane == lane && t.talk.parent == said.Parent
	if !same {
		t.hush()
		if news == "" {
			return
		}
		t.talk = &talk{item: t.add(Item{Lane: lane, Start: monitor.Millis{Time: at}, First: index}), lane: lane, parent: said.Parent}
	}
	item := &t.r.story.Items[t.talk.item]
	item.End, item.Last = monitor.Millis{Time: at}, index
	t.talk.add(news, lane == Assistant && !said.Piece)
	t.talk.seam.add(t.r, said.Text, index)
	if lane == Thinking && ev.Subtype == "completed" {
		t.hush()
	}
}

func (k *talk) add(text string, whole bool) {
	if room := textMost + 4096 - k.text.Len(); len(text) > room { // some more than is kept: a secret may be cut there
		text = text[:max(room, 0)]
	}
	if whole && k.text.Len() > 0 && text != "" {
		k.text.WriteString("\n\n")
	}
	k.text.WriteString(text)
}

// voice is who speaks, so that repetitions are known.
func (t *turn) voice(parent string) *format.Speech {
	if parent == "" {
		return &t.main
	}
	v := t.children[parent]
	if v == nil {
		if len(t.children) >= mostVoices {
			clear(t.children)
		}
		v = &format.Speech{}
		t.children[parent] = v
	}
	return v
}

// hush ends what is being said.
func (t *turn) hush() {
	if t.talk == nil {
		return
	}
	item := &t.r.story.Items[t.talk.item]
	text := strings.TrimSpace(t.talk.text.String())
	t.talk.seam.look(t.r)
	t.talk = nil
	item.Title = title(t.r.mask.text(text, 4*titleMost))
	if item.Title != text {
		item.Detail = t.r.keep(text)
	}
}

// title is the beginning of a text, on one line.
func title(text string) string { return begin(text, titleMost/2) }

// begin is the first line of a text, in at most so many characters.
func begin(text string, most int) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if cut := firstRunes(line, most); cut != line {
		return cut + "…"
	}
	if more {
		return line + " …"
	}
	return line
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// add puts an item of this turn into the story and returns its index.
func (t *turn) add(i Item) int {
	i.Turn = t.index
	if i.End.IsZero() {
		i.End = i.Start
	}
	t.r.story.Items = append(t.r.story.Items, i)
	return len(t.r.story.Items) - 1
}

func (t *turn) started(at time.Time, c *events.Call, line []byte, index int) {
	t.r.calls++
	t.voice(format.ReadSaid(line).Parent).Tool()
	if i, ok := t.open[c.ID]; ok {
		old := &t.r.story.Items[i]
		old.End, old.Detail = monitor.Millis{Time: at}, "it was started a second time"
	}
	if len(t.open) == 0 {
		t.limit = 0
	}
	i := Item{Lane: Tool, Start: monitor.Millis{Time: at}, Tool: t.r.mask.text(c.Tool, titleMost), Call: c.ID,
		Title: t.r.mask.Text(cmp.Or(c.Argument, c.Tool)), Status: "open", Declared: monitor.Span(c.Declared), First: index, Last: -1}
	limit := t.r.policy.Tool
	if c.Declared > 0 {
		limit = c.Declared + t.r.policy.ToolGrace
	}
	if limit > 0 {
		i.Deadline = monitor.Millis{Time: at.Add(limit)}
	}
	t.limit = max(t.limit, limit)
	t.open[c.ID] = t.add(i)
}

func (t *turn) completed(at time.Time, c *events.Call, line []byte, index int) {
	i, ok := t.open[c.ID]
	delete(t.open, c.ID)
	if !ok {
		i = t.add(Item{Lane: Tool, Start: monitor.Millis{Time: at}, Tool: t.r.mask.text(c.Tool, titleMost), Call: c.ID,
			Title: t.r.mask.Text(cmp.Or(c.Argument, c.Tool)), Declared: monitor.Span(c.Declared), First: index})
	}
	failed, details, exit := format.ReadOutcome(line, c.Tool)
	item := &t.r.story.Items[i]
	item.End, item.Last, item.Exit = monitor.Millis{Time: at}, index, exit
	item.Detail = t.r.keep(strings.Join(details, ", "))
	if !ok {
		item.Detail = strings.TrimSuffix("its start is not in the log, "+item.Detail, ", ")
	}
	switch item.Status = "ok"; {
	case c.Background:
		item.Status, item.Detail = "background", ""
		item.Exit = nil // that of its going there: nothing has ended yet
		t.goesOn(at, c, item.Title, index)
	case failed:
		item.Status = "failed"
	}
}

// goesOn begins what a call leaves behind.
func (t *turn) goesOn(at time.Time, c *events.Call, what string, index int) {
	id := cmp.Or(c.TaskID, c.ID)
	if t.notified[id] {
		return
	}
	t.background[id] = t.add(Item{Lane: Background, Start: monitor.Millis{Time: at}, Tool: t.r.mask.text(c.Tool, titleMost), Call: c.ID,
		Title: what, Status: "open", First: index, Last: -1})
}

func (t *turn) notify(at time.Time, task *events.Task, index int) {
	if !task.Over() {
		return
	}
	i, ok := t.background[task.ID]
	if !ok {
		t.notified[task.ID] = true
		return
	}
	status := "failed"
	if task.Status == "success" {
		status = "ok"
	}
	t.closeTask(i, at, status, index)
	delete(t.background, task.ID)
}

func (t *turn) closeTask(i int, at time.Time, status string, index int) {
	item := &t.r.story.Items[i]
	item.End, item.Last, item.Status = monitor.Millis{Time: at}, index, status
}
