package main

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"time"
)

// fillIn replaces the placeholders of a literal line.
func (a *agent) fillIn(line string) string {
	if !strings.Contains(line, "$") {
		return line
	}
	return strings.NewReplacer(
		"$SESSION", quoted(a.session),
		"$PROMPT", quoted(a.prompt),
		"$CWD", quoted(a.cwd),
		"$NOW", strconv.FormatInt(nowMs(), 10),
	).Replace(line)
}

func (a *agent) sayInit() error {
	source := "login"
	switch {
	case a.opts.apiKey != "":
		source = "flag"
	case os.Getenv("CURSOR_API_KEY") != "":
		source = "env"
	}
	model := a.opts.model
	if model == "" {
		model = "Auto"
	}
	return a.emit(object{
		{"type", "system"}, {"subtype", "init"}, {"apiKeySource", source}, {"cwd", a.cwd},
		{"session_id", a.session}, {"model", model}, {"permissionMode", "default"},
	})
}

// message is what one side says, in the shape that user and assistant events share.
func message(role, text string) object {
	return object{{"role", role}, {"content", []object{{{"type", "text"}, {"text", text}}}}}
}

// sayUser echoes the prompt that was taken, or another text in its place.
func (a *agent) sayUser(instead string) error {
	text := a.prompt
	if instead != "" {
		text = instead
	}
	return a.emit(object{{"type", "user"}, {"message", message("user", text)}, {"session_id", a.session}})
}

// think emits one delta and the completion, which carries no text.
func (a *agent) think(text string) error {
	if text == "" {
		text = "Considering what to do."
	}
	if err := a.thinkDelta(text); err != nil {
		return err
	}
	return a.emit(object{
		{"type", "thinking"}, {"subtype", "completed"}, {"session_id", a.session}, {"timestamp_ms", nowMs()},
	})
}

func (a *agent) thinkDelta(text string) error {
	a.beginStep()
	return a.emit(object{
		{"type", "thinking"}, {"subtype", "delta"}, {"text", text},
		{"session_id", a.session}, {"timestamp_ms", nowMs()},
	})
}

// sayFinal emits assistant text in the shape of a turn's end: a message and nothing else.
func (a *agent) sayFinal(text string) error {
	return a.say(text, object{{"session_id", a.session}})
}

// sayMidturn emits assistant text that was flushed before a tool call.
func (a *agent) sayMidturn(text string) error {
	return a.say(text, object{
		{"session_id", a.session}, {"model_call_id", a.modelCallID()}, {"timestamp_ms", nowMs()},
	})
}

func (a *agent) say(text string, tail object) error {
	a.beginStep()
	a.said.WriteString(text)
	if a.opts.partial {
		for _, word := range strings.SplitAfter(text, " ") {
			delta := object{{"session_id", a.session}, {"timestamp_ms", nowMs()}}
			if err := a.emitAssistant(word, delta); err != nil {
				return err
			}
		}
	}
	return a.emitAssistant(text, tail)
}

func (a *agent) emitAssistant(text string, tail object) error {
	return a.emit(append(object{{"type", "assistant"}, {"message", message("assistant", text)}}, tail...))
}

// sayResult ends the stream; without a text it repeats what was said, without separators.
func (a *agent) sayResult(text string) error {
	if text == "" {
		text = a.said.String()
	}
	took := time.Since(a.born).Milliseconds()
	return a.emit(object{
		{"type", "result"}, {"subtype", "success"}, {"duration_ms", took}, {"duration_api_ms", took},
		{"is_error", false}, {"result", text}, {"session_id", a.session}, {"request_id", a.request},
		{"usage", object{
			{"inputTokens", 1200}, {"outputTokens", len(text)}, {"cacheReadTokens", 4800}, {"cacheWriteTokens", 0},
		}},
	})
}

func (a *agent) sayNotification(task, status, title string) error {
	return a.emit(object{
		{"type", "system"}, {"subtype", "task_notification"}, {"task_id", task}, {"status", status},
		{"title", title}, {"session_id", a.session}, {"timestamp_ms", nowMs()},
	})
}

// network emits an event of the connection's own, which says nothing about the work.
func (a *agent) network(kind, subtype string, tail ...field) error {
	return a.emit(append(object{
		{"type", kind}, {"subtype", subtype}, {"session_id", a.session}, {"timestamp_ms", nowMs()},
	}, tail...))
}

func (a *agent) sayReconnecting(attempt int) error {
	return a.network("connection", "reconnecting",
		field{"attempt", attempt}, field{"endpoint_url", "https://agent.example.invalid"})
}

func (a *agent) sayRetrying(attempt int) error {
	return a.network("retry", "starting", field{"attempt", attempt}, field{"is_resume", false})
}

func (a *agent) sayResuming(attempt int) error {
	return a.network("retry", "resuming", field{"checkpoint_turn_count", 1}, field{"attempt", attempt})
}

func (a *agent) sayReconnected() error { return a.network("connection", "reconnected") }

// beginStep notes that the model speaks again after the calls of its last step have all completed.
func (a *agent) beginStep() {
	if a.stepOver {
		a.step++
		a.stepOver = false
	}
}

// modelCallID is shared by the calls of one model step: request, number of the step, four characters.
func (a *agent) modelCallID() string {
	a.beginStep()
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %d", a.request, a.step)
	suffix := strconv.FormatUint(1<<24|uint64(h.Sum32()), 36)
	return fmt.Sprintf("%s-%d-%s", a.request, a.step, suffix[len(suffix)-4:])
}
