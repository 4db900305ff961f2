package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// handwritten are lines of every kind, and lines that are none.
var handwritten = []string{
	`{"type":"system","subtype":"init","apiKeySource":"login","cwd":"/w","session_id":"s-1","model":"Auto","permissionMode":"default"}`,
	`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a “prompt”\n"},{"text":"b"}]},"session_id":"s-1"}`,
	`{"type":"user","message":{"content":"plain"}}`,
	thinkingLine,
	`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I’ll look."}]},"session_id":"s-1"}`,
	`{"type":"tool_call","subtype":"started","call_id":"call_1\nfc_2","tool_call":{"shellToolCall":{"args":{"command":"sleep 5","timeout":10000,"toolCallId":"call_1\nfc_2","simpleCommands":["sleep"]}},"hookAdditionalContexts":[],"toolCallId":"call_1\nfc_2","startedAtMs":"1"},"model_call_id":"m-0","session_id":"s-1","timestamp_ms":1770000000123}`,
	`{"type":"tool_call","subtype":"completed","call_id":"call_1\nfc_2","tool_call":{"shellToolCall":{"args":{"command":"x"},"result":{"success":{"exitCode":0,"stdout":"a\"b","shellId":7,"pid":42},"isBackground":true}}},"session_id":"s-1"}`,
	`{"type":"tool_call","subtype":"completed","call_id":"t","tool_call":{"taskToolCall":{"args":{"description":"d"},"result":{"success":{"agentId":"a-1","isBackground":true}}}}}`,
	`{"type":"tool_call","status":"completed","call_id":"Grep_0","tool_call":{"tool":{"case":"grepToolCall","value":{"args":{"pattern":"p"}}}}}`,
	`{"type":"tool_call","subtype":"started","tool_call":{"function":{"name":"shell","arguments":"{\"command\":\"ls\",\"timeout\":\"20000\"}"},"toolCallId":"f"}}`,
	`{"type":"tool_call","subtype":"completed","call_id":1,"tool_call":{"mcpToolCall":{"args":{"serverIdentifier":"gh","toolName":"list"},"result":{"rejected":{}}}}}`,
	`{"type":"tool_call","subtype":"started","call_id":"w","tool_call":{"shellToolCall":{"args":{"command":"` + strings.Repeat(`cat <<\"E\"\n`, 500) + `","timeout":1}}}}`,
	`{"type":"interaction_query","subtype":"request","query_type":"webFetchRequestQuery","query":{"id":1}}`,
	`{"type":"connection","subtype":"reconnecting","attempt":1}`,
	`{"type":"retry","subtype":"starting","attempt":1,"is_resume":false}`,
	`{"type":"system","subtype":"task_notification","task_id":"7","status":"success","title":"x"}`,
	`{"type":"system","subtype":"background_shell_timeout","aborted_count":1,"timeout_ms":5}`,
	`{"type":"result","subtype":"success","duration_ms":1.5e3,"is_error":false,"result":"done","session_id":"s-1","usage":{"inputTokens":1}}`,
	`{"type":"result","subtype":"error","result":"\ud83d\ude00"}`,
	`{"type":"x","type":"user","t\u0079pe":"result","is_error":null}`,
	"{\"type\":\"user\",\"message\":{\"content\":\"\xff\"}}\r",
	`[{"type":"result"}]`,
	`RetriableError: [invalid_argument]`,
	`{"type":"result","subtype":"succ`,
	"",
	"\x00\xff",
}

// captured returns the lines of the recorded streams that the environment
// names; there may be none.
func captured(t testing.TB) (streams map[string][][]byte) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("CURSOR_WRAP_CAPTURES"), "*.jsonl"))
	if os.Getenv("CURSOR_WRAP_CAPTURES") == "" || err != nil {
		return nil
	}
	streams = map[string][][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(bytes.NewReader(data))
		for in.Buffer(nil, MaxLine); in.Scan(); {
			streams[filepath.Base(file)] = append(streams[filepath.Base(file)], bytes.Clone(in.Bytes()))
		}
	}
	return streams
}

func seed(f *testing.F) {
	for _, line := range handwritten {
		f.Add([]byte(line))
	}
	for _, lines := range captured(f) {
		for _, line := range lines {
			f.Add(line)
		}
	}
}

func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(compare)
}

func FuzzParseHead(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, head []byte) {
		before := bytes.Clone(head)
		e := ParseHead(head)
		if !bytes.Equal(head, before) {
			t.Fatalf("%q: was changed", before)
		}
		if e.Kind != Oversize || e.Call != nil || e.Task != nil || e.Prompt != nil || (e.Ended != nil) != (e.Type == "result") {
			t.Fatalf("%q: %+v", head, e)
		}
		if whole := Parse(head); whole.Kind != Text && (e.Type != whole.Type || e.Subtype != whole.Subtype) {
			t.Fatalf("%q: %s, as a whole %s", head, e.Name(), whole.Name())
		}
	})
}

// compare checks that Parse says of a line what encoding/json says of it.
func compare(t *testing.T, line []byte) {
	before := bytes.Clone(line)
	e := Parse(line)
	if !bytes.Equal(line, before) {
		t.Fatalf("%q: was changed", before)
	}
	ok := json.Valid(line)
	if (e.Kind == Text) == ok {
		t.Fatalf("%q: kind %d, json.Valid says %t", line, e.Kind, ok)
	}
	want := AsBase64
	if utf8.Valid(line) {
		want = AsText
		if ok {
			want = AsJSON
		}
	}
	if e.Storage != want {
		t.Fatalf("%q: storage %d, want %d", line, e.Storage, want)
	}
	var m map[string]json.RawMessage
	if !ok || json.Unmarshal(line, &m) != nil { // it may be no object
		m = nil
	}
	same := func(what, got, want string) {
		if got != want {
			t.Fatalf("%q: %s %q, want %q", line, what, got, want)
		}
	}
	same("type", e.Type, str(m["type"]))
	same("subtype", e.Subtype, str(m["subtype"]))
	switch e.Kind {
	case Init, User, Result:
		same("session", e.SessionID, str(m["session_id"]))
	case TaskNotification:
		same("task", e.Task.ID, strOrNumber(m["task_id"]))
		same("status", e.Task.Status, str(m["status"]))
	case ToolStarted, ToolCompleted:
		if id := strOrNumber(m["call_id"]); id != "" {
			same("call", e.Call.ID, id)
		}
		same("model call", e.Call.ModelCallID, strOrNumber(m["model_call_id"]))
		if tool, found := firstTool(m["tool_call"]); found {
			same("tool", e.Call.Tool, tool)
		}
		if n := utf8.RuneCountInString(e.Call.Argument); n > maxArgument {
			t.Fatalf("%q: %d runes of argument", line, n)
		}
		if e.Call.Declared < 0 || e.Call.Declared > maxDeclared || e.Call.PID < 0 {
			t.Fatalf("%q: %+v", line, e.Call)
		}
	}
	if e.Kind == User {
		text, found := promptOf(m["message"])
		if found != (e.Prompt != nil) {
			t.Fatalf("%q: prompt %v, want one: %t", line, e.Prompt, found)
		}
		if found {
			same("prompt", *e.Prompt, text)
		}
	}
	if e.Kind == Result {
		no := new(bool) // stays nil for anything but a boolean
		if json.Unmarshal(m["is_error"], &no) != nil || no == nil {
			failed := e.Subtype != "success"
			no = &failed
		}
		if e.Ended.IsError != *no {
			t.Fatalf("%q: an error: %t, want %t", line, e.Ended.IsError, *no)
		}
	}
}

// str is what a string holds, and "" for anything else.
func str(raw json.RawMessage) string {
	var v any
	_ = json.Unmarshal(raw, &v) // absent: stays nil
	s, _ := v.(string)
	return s
}

func strOrNumber(raw json.RawMessage) string {
	var n json.Number
	if s := bytes.TrimSpace(raw); len(s) > 0 && s[0] != '"' && json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return str(raw)
}

// firstTool reads token by token, since a map forgets the order.
func firstTool(raw json.RawMessage) (tool string, found bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", false
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return "", false
		}
		if name, ok := strings.CutSuffix(key.(string), "ToolCall"); ok && name != "" && v[0] == '{' {
			return name, true
		}
	}
	return "", false
}

func promptOf(raw json.RawMessage) (text string, found bool) {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return "", false
	}
	content, found := m["content"]
	text, _ = content.(string)
	parts, _ := content.([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		s, _ := part["text"].(string)
		text += s
	}
	return text, found
}
