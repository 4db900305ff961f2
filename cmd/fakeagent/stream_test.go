package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

type line struct {
	Type, Subtype string
	CallID        string `json:"call_id"`
	ModelCallID   string `json:"model_call_id"`
	SessionID     string `json:"session_id"`
	Result        string
	Message       struct{ Content []struct{ Text string } }
	ToolCall      map[string]json.RawMessage `json:"tool_call"`
}

func decode(t *testing.T, stdout string) []line {
	t.Helper()
	var all []line
	for _, text := range lines(stdout) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%.200q: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

func TestTheUserEventEchoesThePrompt(t *testing.T) {
	t.Parallel()
	prompt := strings.Repeat("Mix \"quotes\" & <tags>,\nlines\tand Grüße; ", 250_000) // about 10 MB
	out, _, code := play(t, script(t, "init", "user", `{"again":"$PROMPT"}`), prompt)
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	got := lines(out)
	if echoed := decode(t, got[1])[0].Message.Content[0].Text; echoed != prompt {
		t.Errorf("%d bytes of prompt came back as %d", len(prompt), len(echoed))
	}
	if !strings.Contains(got[1], "& <tags>") {
		t.Error("the prompt was escaped for HTML, which the real agent does not do")
	}
	var again struct{ Again string }
	if err := json.Unmarshal([]byte(got[2]), &again); err != nil || again.Again != prompt {
		t.Errorf("$PROMPT: %d bytes, %v", len(again.Again), err)
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	out, _, _ := play(t, script(t, `{"s":"$SESSION","c":"$CWD","n":$NOW,"x":"$OTHER"}`), "", "--workspace", `/w"x`, "--resume", "r")
	var got struct {
		S, C, X string
		N       int64
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.S != "r" || got.C != `/w"x` || got.X != "$OTHER" || got.N < 1_700_000_000_000 {
		t.Errorf("%q became %+v", out, got)
	}
}

func TestToolCallsPairAndCarrySiblings(t *testing.T) {
	t.Parallel()
	out, _, _ := play(t, script(t,
		"think Two at once.", "tool start a shell 100 ls -l", "tool start b read x", "tool done b hello", "tool done a 2 bad",
		"tool start c shell 100 rm x", "tool reject c", "say Done.", "result"), "")
	all := decode(t, out)
	started, completed := all[2], all[5]
	if started.CallID != "call_a\nfc_a" || completed.CallID != started.CallID {
		t.Errorf("call ids %q and %q", started.CallID, completed.CallID)
	}
	if string(started.ToolCall["toolCallId"]) != `"call_a\nfc_a"` || started.ToolCall["startedAtMs"][0] != '"' {
		t.Errorf("siblings of the tool: %s", started.ToolCall)
	}
	if all[2].ModelCallID != all[3].ModelCallID || all[2].ModelCallID == all[6].ModelCallID {
		t.Errorf("model steps: %q, %q, %q", all[2].ModelCallID, all[3].ModelCallID, all[6].ModelCallID)
	}
	if shell := string(completed.ToolCall["shellToolCall"]); !strings.Contains(shell, `"failure":{"command":"ls -l"`) {
		t.Errorf("a shell that failed: %s", shell)
	}
	if shell := string(all[7].ToolCall["shellToolCall"]); strings.Contains(shell, `"args"`) || !strings.Contains(shell, `"rejected"`) {
		t.Errorf("a shell that was rejected: %s", shell)
	}
	if last := all[len(all)-1]; last.Type != "result" || last.Result != "Done." {
		t.Errorf("result %+v", last)
	}
}

func TestBackgroundShellReportsTheLivingPid(t *testing.T) {
	t.Parallel()
	s := begin(t, script(t, "tool start a background npm run dev", "spawn setsid 200ms npm run dev", "tool background a 77 last"), nil)
	out, _ := s.finish()
	want := `"shellId":77,"pid":` + fmt.Sprint(s.children()["setsid"]) + `,"backgroundReason":"SHELL_BACKGROUND_REASON_USER_REQUEST"`
	if !strings.Contains(out, want) {
		t.Errorf("no %s in %s", want, out)
	}
}

func TestPartialOutputIsDoubled(t *testing.T) {
	t.Parallel()
	out, _, _ := play(t, script(t, "say one two", "result"), "", "--stream-partial-output")
	var said []string
	for _, l := range decode(t, out) {
		if l.Type == "assistant" {
			said = append(said, l.Message.Content[0].Text)
		}
	}
	if got := strings.Join(said, "|"); got != "one |two|one two" || !strings.Contains(out, `"result":"one two"`) {
		t.Errorf("said %q in %s", got, out)
	}
}

func TestFillHasTheLengthAsked(t *testing.T) {
	t.Parallel()
	out, stderr, _ := play(t, script(t, "fill 300", "fill 3M", "stderr fill 2K"), "")
	got := lines(out)
	if len(got) != 2 || len(got[0])+1 != 300 || len(got[1])+1 != 3<<20 || len(stderr) != 2<<10 {
		t.Errorf("%d bytes in %d lines, %d on stderr", len(out), len(got), len(stderr))
	}
	decode(t, out)
}

func TestFloodIsComplete(t *testing.T) {
	t.Parallel()
	out, _, _ := play(t, script(t, "flood 20000", "flood 0"), "")
	got := lines(out)
	for i, text := range got {
		if !strings.Contains(text, `"text":"`+fmt.Sprint(i)+`"`) {
			t.Fatalf("line %d is %q", i, text)
		}
	}
	if len(got) != 20000 {
		t.Errorf("%d lines", len(got))
	}
}

func TestStderrAndMirror(t *testing.T) {
	t.Parallel()
	out, stderr, _ := play(t, script(t, `raw "a"`, "mirror on", `raw "b\x00\n"`, "mirror off", `raw "c"`,
		"stderr some words", `stderr raw "\xffno newline"`), "")
	if out != "ab\x00\nc" || stderr != "b\x00\nsome words\n\xffno newline" {
		t.Errorf("stdout %q, stderr %q", out, stderr)
	}
}

func TestPlayIsByteForByte(t *testing.T) {
	t.Parallel()
	const stream = "not json\r\n{\"timestamp_ms\":1000}\n\n{\"timestamp_ms\":9000}\n{\"timestamp_ms\":8000}\nno end"
	file := script(t, "play stream.jsonl fast", `raw "\n"`, "play stream.jsonl x100")
	if err := os.WriteFile(strings.Replace(file, "scenario.txt", "stream.jsonl", 1), []byte(stream), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := play(t, file, "")
	if out != stream+"\n"+stream || code != 0 {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestAReaderThatLeft(t *testing.T) {
	t.Parallel()
	s := begin(t, script(t, "init", "flood 100000"), nil)
	s.readUntil("\n")
	s.stdout.Close()
	if code := s.exit(); code != 1 || !strings.Contains(s.stderr.String(), "EPIPE") {
		t.Errorf("exit %d, stderr %q", code, &s.stderr)
	}
}

func TestCloseStdoutIsAnEndOfFile(t *testing.T) {
	t.Parallel()
	s := begin(t, scenarios+"/stdout-closed-but-alive.txt", nil)
	if out, err := io.ReadAll(s.stdout); err != nil || !strings.HasSuffix(string(out), "}\n") {
		t.Errorf("%q, %v", out, err)
	}
	s.signal(0) // fails when it is gone
}
