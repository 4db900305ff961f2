package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one open tool call.
type call struct {
	kind      *callKind
	args      object
	modelCall string
	startedMs int64
}

// callKind is what the lines of one tool have in common. Its functions read the rest of the line, and
// what they return builds the payload when the line is played.
type callKind struct {
	key        string // of the tool_call object
	args       func(rest string) (build, error)
	done       func(rest string) (outcome, error) // the call ended by itself
	background func(rest string) (outcome, error) // it returned, and its work goes on; may be nil
}

// build makes the arguments of a call that begins.
type build func(a *agent, callID string) object

// outcome makes the result of a call that returns.
type outcome func(a *agent, c *call) object

// callID has a line feed in its middle, as most of the real ones.
func callID(id string) string { return "call_" + id + "\nfc_" + id }

func compileTool(c *compiler, rest string) (action, error) {
	words := strings.SplitN(rest, " ", 3)
	if len(words) < 2 {
		return nil, fmt.Errorf("too few words")
	}
	verb, id, tail := words[0], words[1], ""
	if len(words) == 3 {
		tail = strings.TrimSpace(words[2])
	}
	if verb == "start" {
		return c.startTool(id, tail)
	}
	k := c.calls[id]
	if k == nil {
		return nil, fmt.Errorf("call %q was not started above", id)
	}
	switch verb {
	case "done":
		result, err := k.done(tail)
		return completeTool(id, result, true), err
	case "background":
		if k.background == nil {
			return nil, fmt.Errorf("a %s has no background", k.key)
		}
		result, err := k.background(tail)
		return completeTool(id, result, true), err
	case "reject":
		return completeTool(id, refused("rejected", "reason", tail), false), nil
	case "deny":
		return completeTool(id, refused("permissionDenied", "error", tail), false), nil
	case "fail":
		return completeTool(id, failed(tail), false), nil
	}
	return nil, fmt.Errorf("unknown verb %q", verb)
}

func (c *compiler) startTool(id, rest string) (action, error) {
	name, rest, _ := strings.Cut(rest, " ")
	k := callKinds[name]
	if name == "other" {
		k, rest = otherKind(rest)
	}
	if k == nil {
		return nil, fmt.Errorf("unknown tool %q", name)
	}
	args, err := k.args(strings.TrimSpace(rest))
	if err != nil {
		return nil, err
	}
	c.calls[id] = k
	return func(a *agent) error {
		open := &call{kind: k, args: args(a, callID(id)), modelCall: a.modelCallID(), startedMs: nowMs()}
		a.calls[id] = open
		return a.emitCall("started", id, open, k.payload(open.args, nil))
	}, nil
}

// completeTool emits the completion of a call. A call that was turned away shows no args.
func completeTool(id string, result outcome, withArgs bool) action {
	return func(a *agent) error {
		open := a.calls[id]
		if open == nil {
			return fmt.Errorf("call %q is not open", id)
		}
		args := open.args
		if !withArgs {
			args = nil
		}
		delete(a.calls, id)
		a.stepOver = len(a.calls) == 0
		completed := field{"completedAtMs", strconv.FormatInt(nowMs(), 10)}
		return a.emitCall("completed", id, open, open.kind.payload(args, result(a, open)), completed)
	}
}

// payload is the object under the tool's key.
func (k *callKind) payload(args, result object) object {
	var o object
	if args != nil {
		o = append(o, field{"args", args})
	}
	if result != nil {
		o = append(o, field{"result", result})
	}
	if d := args.get("description"); d != nil && k.key == "shellToolCall" {
		o = append(o, field{"description", d}) // newer builds repeat it beside the args
	}
	return o
}

// emitCall writes the event, with the siblings of the tool's key that builds since 2026.07 have.
func (a *agent) emitCall(subtype, id string, c *call, payload object, more ...field) error {
	tool := object{
		{c.kind.key, payload}, {"hookAdditionalContexts", []string{}}, {"toolCallId", callID(id)},
		{"startedAtMs", strconv.FormatInt(c.startedMs, 10)},
	}
	return a.emit(object{
		{"type", "tool_call"}, {"subtype", subtype}, {"call_id", callID(id)}, {"tool_call", append(tool, more...)},
		{"model_call_id", c.modelCall}, {"session_id", a.session}, {"timestamp_ms", nowMs()},
	})
}

func (o object) get(key string) any {
	for _, f := range o {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

func elapsed(c *call) int64 { return time.Now().UnixMilli() - c.startedMs }

// refused is the result of a call that was not run; a shell call says which command that was.
func refused(how, key, why string) outcome {
	return func(_ *agent, c *call) object {
		if c.kind.key != "shellToolCall" {
			return object{{how, object{{key, why}}}}
		}
		return object{{how, object{
			{"command", c.args.get("command")}, {"workingDirectory", ""}, {key, why}, {"isReadonly", false},
		}}}
	}
}

// failed is the result of a call that could not be run.
func failed(why string) outcome {
	return func(_ *agent, c *call) object {
		if c.kind.key == "shellToolCall" {
			return object{{"spawnError", object{{"command", ""}, {"workingDirectory", ""}, {"error", why}}}}
		}
		return object{{"error", object{{"error", why}}}}
	}
}

// otherKind is any tool at all: a key and its arguments as JSON.
func otherKind(rest string) (k *callKind, args string) {
	key, args, _ := strings.Cut(rest, " ")
	return &callKind{
		key: key,
		args: func(rest string) (build, error) {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal([]byte(rest), &fields); err != nil {
				return nil, fmt.Errorf("arguments of %s: %w", key, err)
			}
			return func(_ *agent, callID string) object {
				var o object
				for _, name := range slices.Sorted(maps.Keys(fields)) {
					o = append(o, field{name, fields[name]})
				}
				return append(o, field{"toolCallId", callID})
			}, nil
		},
		done: func(rest string) (outcome, error) {
			return func(*agent, *call) object {
				return object{{"success", object{{"content", rest}}}}
			}, nil
		},
	}, args
}
