package events

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// completed is a completion of one tool call with these members.
func completed(members string) *Call {
	return parse(`{"type":"tool_call","subtype":"completed",` + members + `}`).Call
}

// started is a start of a tool with these arguments.
func started(tool, args string) *Call {
	return parse(`{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"` + tool + `":{"args":` + args + `}}}`).Call
}

func TestToolAmongItsSiblings(t *testing.T) {
	for _, tt := range []struct{ name, toolCall, tool, argument string }{
		{"one key, as in January", `{"shellToolCall":{"args":{"command":"ls"}}}`, "shell", "ls"},
		{"siblings behind it", `{"readToolCall":{"args":{"path":"/a"}},"hookAdditionalContexts":[],"toolCallId":"x","startedAtMs":"1"}`, "read", "/a"},
		{"siblings before it", `{"toolCallId":"x","hookAdditionalContexts":[],"startedAtMs":"1","readToolCall":{"args":{"path":"/a"}}}`, "read", "/a"},
		{"siblings that are objects", `{"hook":{"args":{"path":"no"}},"Context":{},"editToolCall":{"args":{"path":"/a"}}}`, "edit", "/a"},
		{"a key that looks like one but holds no object", `{"lastToolCall":"x","noToolCall":[{"args":{}}],"nilToolCall":null,"grepToolCall":{"args":{"pattern":"p"}}}`, "grep", "p"},
		{"the suffix alone is no tool", `{"ToolCall":{"args":{"path":"no"}},"lsToolCall":{"args":{"path":"/a"}}}`, "ls", "/a"},
		{"the first of two", `{"lsToolCall":{"args":{"path":"/a"}},"readToolCall":{"args":{"path":"no"}}}`, "ls", "/a"},
		{"a kind that nobody knows", `{"recordScreenToolCall":{"args":{"fps":1}}}`, "recordScreen", ""},
		{"an escaped key", `{"sh\u0065llToolCall":{"args":{"c\u006fmmand":"ls"}}}`, "shell", "ls"},
		{"a key that is not ASCII", `{"éToolCall":{"args":{"path":"/é"}}}`, "é", "/é"},
		{"no args, as when it was rejected", `{"shellToolCall":{"result":{"rejected":{"command":"rm","reason":""}}}}`, "shell", ""},
		{"result before args", `{"readToolCall":{"result":{"success":{"content":"}]\"{"}},"args":{"path":"/a"}}}`, "read", "/a"},
		{"args that are no object", `{"readToolCall":{"args":["path"]}}`, "read", ""},
		{"case and value", `{"tool":{"case":"shellToolCall","value":{"args":{"command":"ls"}}}}`, "shell", "ls"},
		{"value before case", `{"tool":{"value":{"args":{"command":"ls"}},"case":"shellToolCall"},"toolCallId":"x"}`, "shell", "ls"},
		{"case without value", `{"tool":{"case":"newToolCall"}}`, "new", ""},
		{"function", `{"function":{"name":"lookup","arguments":"{\"query\":\"a \\\"b\\\"\"}"}}`, "lookup", `a "b"`},
		{"function, arguments not encoded", `{"function":{"name":"lookup","arguments":{"query":"q"}}}`, "lookup", "q"},
		{"function, arguments that are no JSON", `{"function":{"name":"lookup","arguments":"{\"query\":"}}`, "lookup", ""},
		{"function, arguments that are no object", `{"function":{"name":"lookup","arguments":"[1,2]"}}`, "lookup", ""},
		{"function without arguments", `{"function":{"name":"lookup"}}`, "lookup", ""},
		{"a string where a tool should be", `{"tool":"x","function":"y"}`, "", ""},
		{"empty", `{}`, "", ""},
		{"null", `null`, "", ""},
		{"an array", `[{"shellToolCall":{}}]`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := completed(`"call_id":"c","tool_call":` + tt.toolCall)
			if c == nil || c.ID != "c" || c.Tool != tt.tool || c.Argument != tt.argument {
				t.Errorf("%+v, want tool %q, argument %q", c, tt.tool, tt.argument)
			}
		})
	}
}

func TestCallWithoutToolCallIsACall(t *testing.T) {
	if c := completed(`"call_id":"c","model_call_id":"m"`); c == nil || *c != (Call{ID: "c", ModelCallID: "m"}) {
		t.Errorf("%+v", c)
	}
}

func TestCallID(t *testing.T) {
	for _, tt := range []struct{ name, members, want string }{
		{"decoded", `"call_id":"call_1\nfc_2"`, "call_1\nfc_2"},
		{"spelled in another way", `"call_id":"call_1\u000afc_2"`, "call_1\nfc_2"},
		{"short", `"call_id":"Grep_0"`, "Grep_0"},
		{"before the others", `"call_id":"a","tool_call":{"toolCallId":"b","xToolCall":{"args":{"toolCallId":"c"}}}`, "a"},
		{"of the tool call", `"tool_call":{"xToolCall":{"args":{"toolCallId":"c"}},"toolCallId":"b\n1"}`, "b\n1"},
		{"of the arguments", `"tool_call":{"xToolCall":{"args":{"toolCallId":"c\n1"}}}`, "c\n1"},
		{"empty is absent", `"call_id":"","tool_call":{"toolCallId":"","xToolCall":{"args":{"toolCallId":"c"}}}`, "c"},
		{"nowhere", `"tool_call":{}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if c := completed(tt.members); c.ID != tt.want {
				t.Errorf("id %q, want %q", c.ID, tt.want)
			}
		})
	}
}

func TestDeclared(t *testing.T) {
	const decade = 10 * 365 * 24 * time.Hour
	for _, tt := range []struct {
		tool, args string
		want       time.Duration
	}{
		{"shellToolCall", `{"timeout":30000,"hardTimeout":86400000}`, 30 * time.Second},
		{"shellToolCall", `{"timeout":"30000"}`, 30 * time.Second},
		{"shellToolCall", `{"timeout":" 30000 "}`, 30 * time.Second},
		{"shellToolCall", `{"timeout":1500.5}`, 1500500 * time.Microsecond},
		{"shellToolCall", `{"timeout":3e4}`, 30 * time.Second},
		{"shellToolCall", `{"timeout":172800000}`, 48 * time.Hour},
		{"shellToolCall", `{"timeout":0}`, 0},
		{"shellToolCall", `{"timeout":-5}`, 0},
		{"shellToolCall", `{"timeout":-0}`, 0},
		{"shellToolCall", `{"timeout":null}`, 0},
		{"shellToolCall", `{"timeout":true}`, 0},
		{"shellToolCall", `{"timeout":{"ms":1}}`, 0},
		{"shellToolCall", `{"timeout":""}`, 0},
		{"shellToolCall", `{"timeout":"-"}`, 0},
		{"shellToolCall", `{"timeout":"1."}`, 0},
		{"shellToolCall", `{"timeout":"30s"}`, 0},
		{"shellToolCall", `{"timeout":"0x10"}`, 0},
		{"shellToolCall", `{"timeout":"Infinity"}`, 0},
		{"shellToolCall", `{"timeout":9223372036854775807}`, decade},
		{"shellToolCall", `{"timeout":1e999}`, decade},
		{"shellToolCall", `{"timeout":-1e999}`, 0},
		{"shellToolCall", `{"timeout":1e-999}`, 0},
		{"shellToolCall", `{"hardTimeout":86400000,"blockUntilMs":5}`, 0},
		{"shellToolCall", `{}`, 0},
		{"awaitToolCall", `{"blockUntilMs":60000,"timeout":5}`, time.Minute},
		{"awaitToolCall", `{"timeout":5}`, 0},
		{"mcpToolCall", `{"timeout":5,"args":{"timeout":5}}`, 0}, // H8: nobody knows what it means
		{"taskToolCall", `{"timeout":5,"blockUntilMs":5}`, 0},    // H14
	} {
		if c := started(tt.tool, tt.args); c.Declared != tt.want {
			t.Errorf("%s%s: declared %v, want %v", tt.tool, tt.args, c.Declared, tt.want)
		}
	}
	function := `"tool_call":{"function":{"name":"%s","arguments":"{\"timeout\":20000}"}}`
	if c := completed(fmt.Sprintf(function, "shell")); c.Declared != 20*time.Second {
		t.Errorf("a shell as a function: declared %v", c.Declared)
	}
	if c := completed(fmt.Sprintf(function, "fetch")); c.Declared != 0 {
		t.Errorf("another function: declared %v", c.Declared)
	}
}

func TestArgumentTellsWhatACallDoes(t *testing.T) {
	for _, tt := range []struct{ tool, args, want string }{
		{"shellToolCall", `{"description":"Count","command":"wc -l\ta","workingDirectory":"/w"}`, "wc -l\ta"},
		{"shellToolCall", `{"command":"","description":"Count"}`, "Count"},
		{"editToolCall", `{"path":"/a","streamContent":"no"}`, "/a"},
		{"grepToolCall", `{"path":"/a","pattern":"x+"}`, "x+"},
		{"globToolCall", `{"targetDirectory":"/a","globPattern":"*.go"}`, "*.go"},
		{"webFetchToolCall", `{"url":"https://example.org"}`, "https://example.org"},
		{"webSearchToolCall", `{"searchTerm":"x"}`, "x"},
		{"semSearchToolCall", `{"query":"where"}`, "where"},
		{"taskToolCall", `{"prompt":"Long","description":"Short","agentId":"a"}`, "Short"},
		{"awaitToolCall", `{"taskId":"233697","blockUntilMs":1}`, "233697"},
		{"awaitToolCall", `{"taskId":233697}`, "233697"},
		{"mcpToolCall", `{"name":"gh-list","args":{"path":"no"},"providerIdentifier":"p","toolName":"list","serverIdentifier":"gh"}`, "gh list"},
		{"mcpToolCall", `{"name":"gh-list","providerIdentifier":"p"}`, "p gh-list"},
		{"mcpToolCall", `{"toolName":"list"}`, "list"},
		{"getMcpToolsToolCall", `{"server":"gh","toolName":"list"}`, "gh list"},
		{"readTodosToolCall", `{}`, ""},
		{"readToolCall", `{"path":["no"]}`, ""},
	} {
		if c := started(tt.tool, tt.args); c.Argument != tt.want {
			t.Errorf("%s%s: %q, want %q", tt.tool, tt.args, c.Argument, tt.want)
		}
	}
}

// A command may hold a whole file: what is shown of it is cut, never within a
// character and never before it has to be.
func TestArgumentIsCutToItsFirstRunes(t *testing.T) {
	for _, unit := range []string{"x", "é", "日", "😀", "\n", "\"", "\\", "😀é\t", "\u2028a"} {
		for _, n := range []int{1, 66, 199, 200, 201, 400, 5000} {
			want := strings.Repeat(unit, n)
			for _, spelled := range []string{quoted(want), escapeAll(want)} {
				got := started("shellToolCall", `{"command":`+spelled+`,"timeout":1}`)
				if w := string([]rune(want)[:min(200, len([]rune(want)))]); got.Argument != w {
					t.Errorf("%d times %q: %d bytes %.40q, want %d", n, unit, len(got.Argument), got.Argument, len(w))
				}
				if got.Declared == 0 {
					t.Errorf("%d times %q: what follows it was lost", n, unit)
				}
			}
		}
	}
	mcp := started("mcpToolCall", `{"serverIdentifier":"`+strings.Repeat("é", 150)+`","toolName":"`+strings.Repeat("é", 150)+`"}`)
	if n := len([]rune(mcp.Argument)); n != 200 {
		t.Errorf("server and tool: %d runes", n)
	}
}

func TestBackground(t *testing.T) { // H1, H2
	const success = `"success":{"exitCode":0,"stdout":"","shellId":233697,"pid":54306,"backgroundReason":"SHELL_BACKGROUND_REASON_USER_REQUEST"}`
	for _, tt := range []struct {
		name, tool, result string
		want               Call
	}{
		{"a shell", "shell", `{` + success + `,"isBackground":true,"terminalsFolder":"/t"}`, Call{Background: true, TaskID: "233697", PID: 54306}},
		{"a shell, said first", "shell", `{"isBackground":true,` + success + `}`, Call{Background: true, TaskID: "233697", PID: 54306}},
		{"a shell, ids as strings", "shell", `{"success":{"shellId":"s-1","pid":"12"},"isBackground":true}`, Call{Background: true, TaskID: "s-1", PID: 12}},
		{"a shell that tells no more", "shell", `{"success":{},"isBackground":true}`, Call{Background: true}},
		{"a shell with a pid that is none", "shell", `{"success":{"shellId":1,"pid":-4},"isBackground":true}`, Call{Background: true, TaskID: "1"}},
		{"a shell with a pid that cannot be", "shell", `{"success":{"shellId":1,"pid":99999999999},"isBackground":true}`, Call{Background: true, TaskID: "1"}},
		{"a shell that ended", "shell", `{` + success + `,"isBackground":false}`, Call{}},
		{"a shell that does not say", "shell", `{` + success + `}`, Call{}},
		{"a shell that says it as text", "shell", `{` + success + `,"isBackground":"true"}`, Call{}},
		{"a shell that failed", "shell", `{"failure":{"exitCode":1,"shellId":1},"isBackground":true}`, Call{}},
		{"a shell that was rejected", "shell", `{"rejected":{"command":"x","isBackground":true},"isBackground":true}`, Call{}},
		{"a shell that was not spawned", "shell", `{"spawnError":{"error":"ENOENT"},"isBackground":true}`, Call{}},
		{"a subagent", "task", `{"success":{"conversationSteps":[{"isBackground":false}],"agentId":"a-1","isBackground":true,"durationMs":"5"}}`, Call{Background: true, TaskID: "a-1"}},
		{"a subagent, denied outside", "task", `{"success":{"agentId":"a-1","isBackground":true},"isBackground":false}`, Call{Background: true, TaskID: "a-1"}},
		{"a subagent that ended", "task", `{"success":{"agentId":"a-1","isBackground":false}}`, Call{}},
		{"a subagent that failed", "task", `{"error":{"error":"x","isBackground":true}}`, Call{}},
		{"another tool", "mcp", `{"success":{"isBackground":true,"agentId":"a"},"isBackground":true}`, Call{}},
		{"a success that is none", "shell", `{"success":null,"isBackground":true}`, Call{}},
		{"no result", "shell", `null`, Call{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.ID, tt.want.Tool = "c", tt.tool
			for _, args := range []string{``, `"args":{"isBackground":true},`} {
				line := `"call_id":"c","tool_call":{"` + tt.tool + `ToolCall":{` + args + `"result":` + tt.result + `}}`
				if c := completed(line); *c != tt.want {
					t.Errorf("%s: %+v, want %+v", line, *c, tt.want)
				}
			}
		})
	}
	if c := parse(`{"type":"tool_call","subtype":"started","tool_call":{"shellToolCall":{"result":{` + success + `,"isBackground":true}}}}`).Call; c.Background {
		t.Error("a start is in the background")
	}
}
