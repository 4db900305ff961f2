package events

import (
	"strings"
	"testing"
)

func TestParseHead(t *testing.T) {
	for _, tt := range []struct{ name, head, typ, subtype string }{
		{"cut in a long string (H22)", `{"type":"tool_call","subtype":"completed","tool_call":{"editToolCall":{"result":{"success":{"after":"xxx`, "tool_call", "completed"},
		{"cut in an escape", `{"type":"user","message":"\u00`, "user", ""},
		{"cut in the value itself", `{"type":"assistant","subtype":"compl`, "assistant", ""},
		{"cut in the key itself", `{"type":"assistant","subty`, "assistant", ""},
		{"cut right behind a value", `{"type":"result"`, "result", ""},
		{"behind a member that is whole", `{"a":[1,{"type":"no"}],"type":"result","b":[`, "result", ""},
		{"behind a member that is not", `{"a":[1,{"type":"no"},"type":"result","b":[`, "", ""},
		{"cut in a rune", "{\"type\":\"user\",\"message\":\"\xe2\x80", "user", ""},
		{"an escaped key", `{"t\u0079pe":"user","message":"`, "user", ""},
		{"not JSON at all", strings.Repeat("log ", 100), "", ""},
		{"rubbish behind what was read", `{"type":"user"]]]`, "user", ""},
		{"nothing", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := Event{Kind: Oversize, Storage: AsText, Type: tt.typ, Subtype: tt.subtype}
			e := ParseHead([]byte(tt.head))
			e.Ended = nil // has a test of its own
			if e != want {
				t.Errorf("%+v, want %+v", e, want)
			}
		})
	}
}

// A result that is too long to be held is a result all the same: what stands
// before its text says whether it is an error.
func TestParseHeadKnowsAResult(t *testing.T) {
	for _, tt := range []struct {
		head    string
		isError bool
		session string
	}{
		{`{"type":"result","subtype":"success","duration_ms":1,"is_error":false,"session_id":"s1","result":"xxx`, false, "s1"},
		{`{"type":"result","subtype":"success","is_error":true,"result":"xxx`, true, ""},
		{`{"type":"result","subtype":"success","result":"xxx`, false, ""},
		{`{"type":"result","result":"xxx`, true, ""},
	} {
		e := ParseHead([]byte(tt.head))
		if e.Ended == nil || e.Ended.IsError != tt.isError || e.SessionID != tt.session {
			t.Errorf("%s: %+v, ended %+v", tt.head, e, e.Ended)
		}
	}
}

// However a head is cut, it never tells something else than the whole line.
func TestParseHeadCutAnywhere(t *testing.T) {
	for _, line := range handwritten {
		whole := parse(line)
		if whole.Kind == Text || strings.Count(line, `"type"`) > 1 || strings.Count(line, `"subtype"`) > 1 {
			continue
		}
		for cut := range len(line) {
			e := ParseHead([]byte(line[:cut]))
			if e.Type != "" && e.Type != whole.Type || e.Subtype != "" && e.Subtype != whole.Subtype {
				t.Fatalf("%s, cut at %d: %s", line, cut, e.Name())
			}
		}
		if e := ParseHead([]byte(line)); e.Type != whole.Type || e.Subtype != whole.Subtype {
			t.Errorf("%s, not cut: %s", line, e.Name())
		}
	}
}
