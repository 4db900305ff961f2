package format

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fields are the members of a JSON object. None of the functions here fails: a
// value of another type than the expected one is as if it were not there, for
// a build of the agent that nobody has seen yet must be shown, too.
type fields map[string]json.RawMessage

func object(v []byte) fields {
	if !isObject(v) {
		return nil
	}
	var f fields
	_ = json.Unmarshal(v, &f)
	return f
}

func isObject(v []byte) bool { return strings.HasPrefix(strings.TrimLeft(firstOf(v), " \t\r\n"), "{") }

func firstOf(v []byte) string { return string(v[:min(len(v), 64)]) }

// list are the elements of an array.
func list(v []byte) []json.RawMessage {
	var l []json.RawMessage
	_ = json.Unmarshal(v, &l)
	return l
}

// str returns a string decoded, and a number or a boolean as it is written.
func str(v []byte) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	if len(v) > 0 && len(v) < 32 && !strings.ContainsAny(string(v[:1]), `"{[n`) {
		return string(v)
	}
	return ""
}

// pick returns the first of some members that says something.
func (f fields) pick(keys ...string) string {
	for _, k := range keys {
		if s := strings.TrimSpace(str(f[k])); s != "" {
			return s
		}
	}
	return ""
}

// number returns the first of some members that is a number, or a string that
// holds one.
func (f fields) number(keys ...string) (float64, bool) {
	for _, k := range keys {
		if n, err := strconv.ParseFloat(str(f[k]), 64); err == nil {
			return n, true
		}
	}
	return 0, false
}

func (f fields) isTrue(key string) bool { return string(f[key]) == "true" }

func (f fields) sorted() []string { return slices.Sorted(maps.Keys(f)) }

// body is a tool call as it stands on a line, in whichever layout.
type body struct {
	line   fields // the whole line
	call   fields // its tool_call
	args   fields
	result json.RawMessage
}

// readBody finds the tool of which the parser has told the name.
func readBody(line []byte, tool string) body {
	b := body{line: object(line)}
	b.call = object(b.line["tool_call"])
	b.read(tool)
	return b
}

func (b *body) read(tool string) {
	inner := object(b.call[tool+"ToolCall"])
	switch {
	case inner != nil:
	case isObject(b.call["tool"]):
		inner = object(object(b.call["tool"])["value"])
	case isObject(b.call["function"]):
		inner = object(b.call["function"])
		b.args = object(inner["arguments"])
		if b.args == nil {
			b.args = object([]byte(str(inner["arguments"])))
		}
	}
	if b.args == nil {
		b.args = object(inner["args"])
	}
	b.result = inner["result"]
	if b.result == nil {
		b.result = b.call["result"]
	}
}

// outcomes are the members of a result that say how a call went, the worst
// first.
var outcomes = []string{"rejected", "permissionDenied", "spawnError", "failure", "error", "timeout", "aborted", "success"}

// outcome returns which of them the result has, and what it says.
func outcome(result json.RawMessage) (kind string, says fields, text string) {
	f := object(result)
	if f == nil {
		return "", nil, ""
	}
	if inner := object(f["result"]); inner != nil {
		f = inner
	}
	if kind = str(f["case"]); kind != "" {
		return kind, object(f["value"]), str(f["value"])
	}
	for _, kind = range outcomes {
		if v, ok := f[kind]; ok && string(v) != "null" {
			return kind, object(v), str(v)
		}
	}
	for _, kind = range f.sorted() {
		if isObject(f[kind]) {
			return kind, object(f[kind]), ""
		}
	}
	return "", f, ""
}

// content is the text of a message: a string, or a list of parts.
func content(v []byte) string {
	if len(v) == 0 || v[0] != '[' {
		return str(v)
	}
	var parts []struct{ Type, Text string }
	_ = json.Unmarshal(v, &parts) // a part that is none says nothing
	if len(parts) == 1 && (parts[0].Type == "" || parts[0].Type == "text") {
		return parts[0].Text
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "" || p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// parents are the names under which builds, or agents like this one, tell of
// which subagent's call a line is a part.
var parents = []string{"parent_tool_use_id", "parent_tool_call_id", "parent_call_id", "parentToolCallId"}
