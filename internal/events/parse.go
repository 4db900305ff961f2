package events

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse turns one line, without its '\n', into an event. It never fails: what
// it does not understand is of kind Text (not JSON) or Unknown (JSON, but of no
// known type). The event keeps nothing of line, which may be used again.
func Parse(line []byte) Event {
	s := scanner{line: line}
	if !s.scan() {
		return Event{Kind: Text, Storage: storage(AsText, utf8.Valid(line))}
	}
	e := Event{
		Storage: storage(AsJSON, s.seen&nonASCII == 0 || utf8.Valid(line)),
		Type:    name(s.value[fieldType]),
		Subtype: name(s.value[fieldSubtype]),
	}
	e.Kind = kind(e.Type, e.Subtype, s.value[fieldStatus])
	switch e.Kind {
	case ToolStarted, ToolCompleted:
		e.Call = s.call(e.Kind == ToolCompleted)
	case Init:
		e.SessionID = text(s.value[fieldSessionID])
	case User:
		e.SessionID = text(s.value[fieldSessionID])
		e.Prompt = prompt(s.value[fieldMessage])
	case Result:
		e.SessionID = text(s.value[fieldSessionID])
		e.Ended = &Ended{IsError: failed(s.value[fieldIsError], e.Subtype), Tokens: tokens(member(line, "usage"))}
	case TaskNotification:
		e.Task = &Task{ID: scalar(s.value[fieldTaskID]), Status: text(s.value[fieldStatus])}
	}
	return e
}

// tokens reads the usage of a result line.
func tokens(usage []byte) Tokens {
	count := func(key string) int64 {
		n, err := strconv.ParseInt(scalar(member(usage, key)), 10, 64)
		if err != nil {
			return 0
		}
		return max(n, 0)
	}
	return Tokens{count("inputTokens"), count("outputTokens"), count("cacheReadTokens"), count("cacheWriteTokens")}
}

// ParseHead turns the first bytes of a line that is longer than MaxLine into an
// event of kind Oversize. It may be cut anywhere: Type and Subtype come from
// the members that are whole. What stands behind them was never seen, so
// nothing is said about the line's validity. A result stays a result, so that
// even one that is too long to be held is not taken for none.
func ParseHead(head []byte) Event {
	s := scanner{line: head}
	s.scan()
	e := Event{
		Kind:    Oversize,
		Storage: AsText,
		Type:    name(s.value[fieldType]),
		Subtype: name(s.value[fieldSubtype]),
	}
	if e.Type == "result" {
		e.SessionID = text(s.value[fieldSessionID])
		e.Ended = &Ended{IsError: failed(s.value[fieldIsError], e.Subtype)}
	}
	return e
}

func storage(best Storage, validUTF8 bool) Storage {
	if !validUTF8 {
		return AsBase64
	}
	return best
}

// kind knows the types that the rest of the program treats differently.
func kind(typ, subtype string, status []byte) Kind {
	switch typ {
	case "thinking":
		return Thinking
	case "assistant":
		return Assistant
	case "tool_call":
		return callKind(subtype, status)
	case "system":
		return systemKind(subtype)
	case "user":
		return User
	case "result":
		return Result
	case "interaction_query":
		return Interaction
	case "connection":
		return Connection
	case "retry":
		return Retry
	}
	return Unknown
}

func systemKind(subtype string) Kind {
	switch subtype {
	case "init":
		return Init
	case "task_notification":
		return TaskNotification
	case "background_shell_timeout":
		return BackgroundTimeout
	}
	return System
}

// callKind takes the status where there is no subtype: never captured, but
// another parser's tests know such lines.
func callKind(subtype string, status []byte) Kind {
	if subtype == "" {
		subtype = name(status)
	}
	switch subtype {
	case "started":
		return ToolStarted
	case "completed":
		return ToolCompleted
	}
	return Unknown
}

// failed fails closed: a result that does not clearly say that all went well is
// an error (H16).
func failed(isError []byte, subtype string) bool {
	return isTrue(isError) || !isFalse(isError) && subtype != "success"
}

// prompt returns the text of a message, nil where it has no content.
func prompt(message []byte) *string {
	content := member(message, "content")
	if len(content) == 0 {
		return nil
	}
	all := text(content)
	if content[0] == '[' {
		var parts strings.Builder
		for w := walkOver(content); w.next(); {
			parts.WriteString(text(member(w.value, "text")))
		}
		all = parts.String()
	}
	return &all
}

// name returns the string v without an allocation where it is a known type or
// subtype.
func name(v []byte) string {
	switch string(v) {
	case `"thinking"`:
		return "thinking"
	case `"delta"`:
		return "delta"
	case `"completed"`:
		return "completed"
	case `"started"`:
		return "started"
	case `"tool_call"`:
		return "tool_call"
	case `"assistant"`:
		return "assistant"
	case `"interaction_query"`:
		return "interaction_query"
	case `"request"`:
		return "request"
	case `"response"`:
		return "response"
	case `"connection"`:
		return "connection"
	case `"reconnecting"`:
		return "reconnecting"
	case `"reconnected"`:
		return "reconnected"
	case `"retry"`:
		return "retry"
	case `"starting"`:
		return "starting"
	case `"resuming"`:
		return "resuming"
	case `"system"`:
		return "system"
	case `"init"`:
		return "init"
	case `"user"`:
		return "user"
	case `"result"`:
		return "result"
	case `"success"`:
		return "success"
	case `"task_notification"`:
		return "task_notification"
	case `"background_shell_timeout"`:
		return "background_shell_timeout"
	}
	return text(v)
}
