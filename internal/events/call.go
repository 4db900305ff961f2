package events

import (
	"bytes"
	"strconv"
	"strings"
)

const toolSuffix = "ToolCall"

// call reads a tool call. One that tells next to nothing is a call all the
// same: whatever the tool, its start has to be paired with its completion.
func (s *scanner) call(completed bool) *Call {
	t := findTool(s.value[fieldToolCall])
	a := readArgs(t.args)
	c := &Call{
		ID:          scalar(s.value[fieldCallID]),
		ModelCallID: scalar(s.value[fieldModelCallID]),
		Tool:        t.name,
		Argument:    a.telling(),
		Declared:    a.declared(t.name),
	}
	if c.ID == "" {
		c.ID = scalar(member(s.value[fieldToolCall], "toolCallId"))
	}
	if c.ID == "" {
		c.ID = scalar(a[argCallID])
	}
	if completed {
		c.background(t.result)
	}
	return c
}

// tool is what a tool_call says of its one tool, in whichever layout.
type tool struct {
	name         string
	args, result []byte
}

// findTool prefers the layout that is really seen: a key that ends in ToolCall
// and holds an object, among siblings that are no tools (toolCallId,
// startedAtMs, hookAdditionalContexts).
func findTool(toolCall []byte) (t tool) {
	for w := walkOver(toolCall); w.next(); {
		if !isObject(w.value) {
			continue
		}
		switch key := w.key; {
		case len(key) > len(toolSuffix) && bytes.HasSuffix(key, []byte(toolSuffix)):
			return namedTool(toolName(key), w.value)
		case string(key) == "tool":
			t = caseTool(w.value)
		case string(key) == "function":
			t = functionTool(w.value)
		}
	}
	return t
}

// namedTool stops at the result: it may be a whole file, and only a shell's or
// a subagent's is of interest.
func namedTool(name string, body []byte) tool {
	t := tool{name: name}
	for w := walkOver(body); (t.args == nil || t.result == nil) && w.next(); {
		switch string(w.key) {
		case "args":
			t.args = w.value
		case "result":
			t.result = w.value
		}
	}
	return t
}

// caseTool reads {"case":"shellToolCall","value":{…}}.
func caseTool(v []byte) tool {
	return namedTool(toolName([]byte(text(member(v, "case")))), member(v, "value"))
}

// functionTool reads {"name":"shell","arguments":"{\"command\":…}"}. The
// arguments were a string when the line was checked, so they are checked here.
func functionTool(v []byte) tool {
	t := tool{name: toolName([]byte(text(member(v, "name"))))}
	t.args = member(v, "arguments")
	if !isObject(t.args) {
		s := scanner{line: []byte(strings.TrimSpace(text(t.args)))}
		if t.args = nil; s.scan() {
			t.args = s.line
		}
	}
	return t
}

// toolName returns a tool's key without its suffix.
func toolName(key []byte) string {
	switch key = bytes.TrimSuffix(key, []byte(toolSuffix)); string(key) {
	case "shell":
		return "shell"
	case "read":
		return "read"
	case "edit":
		return "edit"
	case "grep":
		return "grep"
	case "glob":
		return "glob"
	case "mcp":
		return "mcp"
	case "task":
		return "task"
	case "await":
		return "await"
	}
	return string(key)
}

// background reads the result of a completion whose work goes on without it
// (H1, H2). Only a success can: what failed or was rejected runs no more. A
// shell says it beside success, a subagent inside.
func (c *Call) background(result []byte) {
	if c.Tool != "shell" && c.Tool != "task" {
		return
	}
	var outer, inner, success []byte
	for w := walkOver(result); w.next(); {
		switch string(w.key) {
		case "isBackground":
			outer = w.value
		case "success":
			success = w.value
		}
	}
	if !isObject(success) || c.Tool == "shell" && isFalse(outer) {
		return // the usual case, and success may be long
	}
	var shell, agent, pid []byte
	for w := walkOver(success); w.next(); {
		switch string(w.key) {
		case "isBackground":
			inner = w.value
		case "shellId":
			shell = w.value
		case "agentId":
			agent = w.value
		case "pid":
			pid = w.value
		}
	}
	if !isTrue(outer) && !isTrue(inner) {
		return
	}
	c.Background = true
	c.PID = processID(pid)
	if c.Tool == "shell" {
		c.TaskID = scalar(shell)
	} else {
		c.TaskID = scalar(agent)
	}
}

// processID returns 0 for what cannot be one.
func processID(v []byte) int {
	n, err := strconv.ParseInt(scalar(v), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}
