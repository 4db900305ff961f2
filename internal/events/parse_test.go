package events

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func parse(line string) Event { return Parse([]byte(line)) }

func TestKind(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Kind
		name string
	}{
		{`{"type":"system","subtype":"init"}`, Init, "system/init"},
		{`{"type":"system","subtype":"task_notification"}`, TaskNotification, "system/task_notification"},
		{`{"type":"system","subtype":"background_shell_timeout","aborted_count":1}`, BackgroundTimeout, "system/background_shell_timeout"},
		{`{"type":"system","subtype":"error"}`, System, "system/error"},
		{`{"type":"user"}`, User, "user"},
		{`{"type":"assistant","message":{}}`, Assistant, "assistant"},
		{`{"type":"thinking","subtype":"delta"}`, Thinking, "thinking/delta"},
		{`{"type":"thinking","subtype":"completed"}`, Thinking, "thinking/completed"},
		{`{"type":"interaction_query","subtype":"request"}`, Interaction, "interaction_query/request"},
		{`{"type":"interaction_query","subtype":"response"}`, Interaction, "interaction_query/response"},
		{`{"type":"tool_call","subtype":"started"}`, ToolStarted, "tool_call/started"},
		{`{"type":"tool_call","subtype":"completed"}`, ToolCompleted, "tool_call/completed"},
		{`{"type":"tool_call","status":"completed"}`, ToolCompleted, "tool_call"},
		{`{"type":"tool_call","subtype":"started","status":"completed"}`, ToolStarted, "tool_call/started"},
		{`{"type":"tool_call","subtype":"progress"}`, Unknown, "tool_call/progress"},
		{`{"type":"connection","subtype":"reconnecting"}`, Connection, "connection/reconnecting"},
		{`{"type":"connection","subtype":"reconnected"}`, Connection, "connection/reconnected"},
		{`{"type":"retry","subtype":"starting"}`, Retry, "retry/starting"},
		{`{"type":"retry","subtype":"resuming"}`, Retry, "retry/resuming"},
		{`{"type":"result","subtype":"success"}`, Result, "result/success"},
		{`{"type":"result","subtype":"error_during_execution"}`, Result, "result/error_during_execution"},
		{`{"type":"text","text":"x"}`, Unknown, "text"},
		{`{"type":"step_finish","subtype":"néw"}`, Unknown, "step_finish/néw"},
	} {
		if e := parse(tt.line); e.Kind != tt.want || e.Name() != tt.name {
			t.Errorf("%s: kind %d, name %q; want %d, %q", tt.line, e.Kind, e.Name(), tt.want, tt.name)
		}
	}
}

func TestTopLevelKeysAreReadAsJSONParseReadsThem(t *testing.T) {
	for _, tt := range []struct{ name, line, typ, subtype string }{
		{"order does not matter", `{"subtype":"b","x":{"type":"no"},"type":"a"}`, "a", "b"},
		{"the last of two wins", `{"type":"x","subtype":"b","type":"a"}`, "a", "b"},
		{"the last of two wins even if it is no string", `{"type":"x","type":null,"subtype":"b","subtype":{}}`, "", ""},
		{"case counts", `{"Type":"x","TYPE":"x","type":"a","subType":"b"}`, "a", ""},
		{"an escaped key is the key", `{"type":"x","\u0074ype":"a","subtyp\u0065":"b"}`, "a", "b"},
		{"an escaped key that is another", `{"type":"a","\u0054ype":"x","sub\/type":"b"}`, "a", ""},
		{"an escaped value", `{"type":"th\u0069nking","subtype":"d\u0065lta"}`, "thinking", "delta"},
		{"a value that is not ASCII", `{"type":"é","subtype":"日本"}`, "é", "日本"},
		{"bytes that are not UTF-8 in a value", "{\"type\":\"a\xff\"}", "a\ufffd", ""},
		{"white space everywhere", " \t{ \"type\" :\t\"a\" , \"subtype\"\r:\"b\" } \r", "a", "b"},
		{"a type that is no string", `{"type":1,"subtype":["a"]}`, "", ""},
		{"no members", `{}`, "", ""},
		{"no object", `[{"type":"x"}]`, "", ""},
		{"only a string", `"type"`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := parse(tt.line)
			if e.Kind == Text || e.Type != tt.typ || e.Subtype != tt.subtype {
				t.Errorf("%s: kind %d, %q/%q; want %q/%q", tt.line, e.Kind, e.Type, e.Subtype, tt.typ, tt.subtype)
			}
		})
	}
}

func TestStorage(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		kind       Kind
		want       Storage
	}{
		{"an event", `{"type":"user"}`, User, AsJSON},
		{"an event of CRLF lines", "{\"type\":\"user\"}\r", User, AsJSON},
		{"an event in valid UTF-8", `{"type":"user","text":"’日本😀"}`, User, AsJSON},
		{"an event with a byte that is not UTF-8", "{\"type\":\"user\",\"text\":\"0123456789\xff\"}", User, AsBase64},
		{"an event with such a byte in a key", "{\"type\":\"user\",\"\xc3\":1}", User, AsBase64},
		{"an event with such a byte deep inside", "{\"type\":\"user\",\"a\":[{\"k\":[\"\xe2\x80\"]}]}", User, AsBase64},
		{"an encoded surrogate", "{\"type\":\"user\",\"text\":\"\xed\xa0\x80\"}", User, AsBase64},
		{"an escaped lone surrogate", `{"type":"user","text":"\ud800"}`, User, AsJSON},
		{"a scalar", `12`, Unknown, AsJSON},
		{"a blank line", "", Text, AsText},
		{"a blank line of CRLF", "\r", Text, AsText},
		{"an error message (H16)", "RetriableError: [invalid_argument] unknown option", Text, AsText},
		{"a byte order mark", "\ufeff{}", Text, AsText},
		{"a NUL", "\x00", Text, AsText},
		{"a NUL inside a string", "{\"type\":\"user\x00\"}", Text, AsText},
		{"a last line that was cut (H21)", `{"type":"result","subtype":"succ`, Text, AsText},
		{"a line cut inside a rune (H21)", "{\"type\":\"result\",\"result\":\"\xe2\x80", Text, AsBase64},
		{"two values", `{} {}`, Text, AsText},
		{"Latin-1", "caf\xe9", Text, AsBase64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if e := parse(tt.line); e.Kind != tt.kind || e.Storage != tt.want {
				t.Errorf("%q: kind %d, storage %d; want %d, %d", tt.line, e.Kind, e.Storage, tt.kind, tt.want)
			}
			if e := parse(tt.line); e.Kind == Text && e.Name() != "text" {
				t.Errorf("%q: name %q", tt.line, e.Name())
			}
		})
	}
}

func TestResultFailsClosed(t *testing.T) { // H16
	for line, want := range map[string]bool{
		`{"type":"result","subtype":"success","is_error":false}`:               false,
		`{"type":"result","subtype":"success","is_error":true}`:                true,
		`{"type":"result","subtype":"error","is_error":false}`:                 false,
		`{"type":"result","subtype":"error_during_execution","is_error":true}`: true,
		`{"type":"result","subtype":"success"}`:                                false,
		`{"type":"result","subtype":"success","is_error":null}`:                false,
		`{"type":"result","subtype":"success","is_error":"true"}`:              false,
		`{"type":"result","subtype":"error"}`:                                  true,
		`{"type":"result","subtype":"error","is_error":0}`:                     true,
		`{"type":"result"}`: true,
		`{"type":"result","subtype":"success","is_error":false,"is_error":true}`:   true,
		`{"type":"result","subtype":"success","is_error":true,"is_error" : false}`: false,
	} {
		e := parse(line)
		if e.Ended == nil || e.Ended.IsError != want {
			t.Errorf("%s: %+v, want an error: %t", line, e.Ended, want)
		}
	}
}

func TestSessionID(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"system","subtype":"init","session_id":"a-1"}`: "a-1",
		`{"type":"user","session_id":"a-1"}`:                    "a-1",
		`{"type":"result","session_id":"a\u002d1"}`:             "a-1",
		`{"type":"result","session_id":null}`:                   "",
		`{"type":"thinking","session_id":"a-1"}`:                "",
	} {
		if got := parse(line).SessionID; got != want {
			t.Errorf("%s: session %q, want %q", line, got, want)
		}
	}
}

func TestPromptIsTheTextThatWasTaken(t *testing.T) {
	long := strings.Repeat("a line of the prompt\n", 3000)
	for _, tt := range []struct{ name, message, want string }{
		{"one part", `{"role":"user","content":[{"type":"text","text":"say \"hi\" – now\n"}]}`, "say \"hi\" – now\n"},
		{"several parts", `{"content":[{"type":"text","text":"a"},{"type":"image","data":[1]},{"text":"b"}],"role":"user"}`, "ab"},
		{"a plain string", `{"content":"plain"}`, "plain"},
		{"57 KB of it", `{"content":[{"type":"text","text":` + quoted(long) + `}]}`, long},
		{"parts that are no parts", `{"content":[null,1,"x",[],{},{"text":1},{"text":"ok"}]}`, "ok"},
		{"an empty text", `{"content":[{"type":"text","text":""}]}`, ""},
		{"no parts", `{"content":[]}`, ""},
		{"no content", `{"role":"user"}`, "none"},
		{"no message", `null`, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := "none"
			if p := parse(`{"type":"user","message":` + tt.message + `}`).Prompt; p != nil {
				got = *p
			}
			if got != tt.want {
				t.Errorf("prompt %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTaskNotification(t *testing.T) { // H1, H2
	for _, tt := range []struct {
		fields string
		want   Task
		over   bool
	}{
		{`"task_id":"233697","status":"success"`, Task{"233697", "success"}, true},
		{`"task_id":233697,"status":"error"`, Task{"233697", "error"}, true},
		{`"task_id":"a\u0031","status":"aborted"`, Task{"a1", "aborted"}, true},
		{`"task_id":"a1","status":"task_progress"`, Task{"a1", "task_progress"}, false},
		{`"task_id":null,"status":1`, Task{}, false},
		{`"title":"x"`, Task{}, false},
	} {
		e := parse(`{"type":"system","subtype":"task_notification",` + tt.fields + `}`)
		if e.Task == nil || *e.Task != tt.want || e.Task.Over() != tt.over {
			t.Errorf("%s: %+v, want %+v, over %t", tt.fields, e.Task, tt.want, tt.over)
		}
	}
}

// The reader's buffer is filled again as soon as Parse has returned.
func TestParseKeepsNothingOfTheLine(t *testing.T) {
	for _, line := range handwritten {
		buf := []byte(line)
		got := Parse(buf)
		if string(buf) != line {
			t.Errorf("%s: was changed", line)
		}
		copy(buf, bytes.Repeat([]byte{'#'}, len(buf)))
		if want := parse(line); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: became %+v when its buffer was used again", line, got)
		}
	}
}

func TestTheCommonLinesAllocateNothing(t *testing.T) {
	for _, line := range []string{
		thinkingLine,
		`{"type":"thinking","subtype":"completed","session_id":"s","timestamp_ms":1}`,
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I’ll \"see\"\n"}]},"session_id":"s"}`,
		`{"type":"connection","subtype":"reconnecting","attempt":1}`,
		`{"type":"retry","subtype":"starting"}`,
	} {
		b := []byte(line)
		if n := testing.AllocsPerRun(100, func() { Parse(b) }); n != 0 {
			t.Errorf("%s: %v allocations", line, n)
		}
	}
}

func TestProgressIsMoreThanReconnecting(t *testing.T) { // H11
	for line, want := range map[string]bool{
		`{"type":"connection","subtype":"reconnected"}`: false,
		`{"type":"retry","subtype":"resuming"}`:         false,
		`{"type":"new"}`:                                true,
		`Checking for updates...`:                       true,
	} {
		if e := parse(line); e.Progress() != want {
			t.Errorf("%s: progress %t", line, e.Progress())
		}
	}
}
