package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"cursor-wrap/internal/display"
)

// stripped is text without the colours that are ours.
func stripped(s string) string {
	var b strings.Builder
	for s != "" {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			break
		}
		_, s, _ = strings.Cut(after, "m")
	}
	return b.String()
}

// harmless checks that nothing in the text controls a terminal but line feeds,
// tabs and, where there are colours, the settings of them.
func harmless(t testing.TB, s string, colours bool) {
	t.Helper()
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case r == '\x1b' && colours && sgrAt(s[i:]):
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar && s[i] != 0xef:
			t.Fatalf("%q in %q", r, s[max(i-40, 0):min(i+40, len(s))])
		}
	}
}

func sgrAt(s string) bool {
	params, _, ok := strings.Cut(strings.TrimPrefix(s, "\x1b["), "m")
	return ok && strings.HasPrefix(s, "\x1b[") && strings.Trim(params, "0123456789;") == ""
}

// narrow checks that no line of ours is wider than the terminal; what the agent
// says is the terminal's to wrap, and code is not wrapped at all.
func narrow(t testing.TB, s string, o TextOptions) {
	t.Helper()
	if o.Width == nil {
		return
	}
	sign := NewText(nil, o).sign
	for line := range strings.Lines(stripped(s)) {
		line = strings.TrimSuffix(line, "\n")
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		own := false
		for _, s := range []string{sign.pending, sign.done, sign.failed, sign.trouble, sign.behind, sign.warning} {
			own = own || first == s
		}
		if own && display.Width(line) > o.Width() {
			t.Errorf("%d columns: %q", display.Width(line), line)
		}
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func shell(command string) string {
	return fmt.Sprintf(`{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"shellToolCall":{"args":{"command":%s}}}}`, quoted(command))
}

func says(text string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":%s}]}}`, quoted(text))
}

func delta(text string) string {
	return strings.TrimSuffix(says(text), "}") + `,"timestamp_ms":1}`
}

func midTurn(text string) string {
	return strings.TrimSuffix(delta(text), "}") + `,"model_call_id":"m"}`
}

const thought = `{"type":"thinking","subtype":"completed"}`

// TestWhatIsSaidIsShownOnce, in every order in which builds say it again.
func TestWhatIsSaidIsShownOnce(t *testing.T) {
	long := "This is one sentence that is long enough, said in two pieces."
	rows := []struct {
		name  string
		lines []string
		want  string
	}{
		{"whole", []string{says("Done.")}, "Done.\n\n"},
		{"pieces and the whole", []string{delta("Do"), delta("ne."), says("Done.")}, "Done.\n\n"},
		{"pieces, before a call, at the end", []string{delta("Do"), delta("ne."), midTurn("Done."), says("Done.")}, "Done.\n\n"},
		{"the whole is trimmed", []string{delta("\n\nDo"), delta("ne.\n\n"), says("Done.")}, "Done.\n\n"},
		{"the whole dressed as a piece", []string{delta(long[:20]), delta(long[20:]), delta(long), midTurn(long)}, long + "\n\n"},
		{"only whole, dressed as a piece first", []string{delta(long), midTurn(long)}, long + "\n\n"},
		{"a piece that repeats the one before", []string{delta("ha"), delta("ha"), delta("ha"), says("hahaha")}, "hahaha\n\n"},
		{"pieces of a step each, the whole of both", []string{delta("One."), midTurn("One."), delta("Two."), says("One.Two.")}, "One.\n\nTwo.\n\n"},
		{"pieces of a step each, whole each", []string{delta("One."), midTurn("One."), delta("Two."), says("Two.")}, "One.\n\nTwo.\n\n"},
		{"a call between pieces and whole", []string{delta("Look"), delta("ing."), shell("ls"), midTurn("Looking.")}, "Looking.\n\n⏳ `ls`\n\n"},
		{"two turns glued in one line", []string{says("Started."), `{"type":"system","subtype":"task_notification","task_id":"1","status":"success","title":"x"}`, says("Started.It ended.")}, "Started.\n\n✓ background `x` ended\n\nIt ended.\n\n"},
		{"the whole says more", []string{delta("One "), says("One two.")}, "One\n\ntwo.\n\n"},
		{"the same again after a call", []string{midTurn("Again."), shell("ls"), midTurn("Again.")}, "Again.\n\n⏳ `ls`\n\nAgain.\n\n"},
		{"a thought between pieces", []string{delta("One."), thought, delta("Two."), says("One.Two.")}, "One.\n\nTwo.\n\n"},
		{"old builds: pieces without a time", []string{says("Do"), says("ne."), says("Done.")}, "Done.\n\n"},
		{"a type of its own", []string{`{"type":"text","text":"Do"}`, `{"type":"text","text":"ne."}`, says("Done.")}, "Done.\n\n"},
		{"said by the result alone", []string{`{"type":"result","subtype":"success","is_error":false,"result":"Done."}`}, "Done.\n\n"},
		{"said by the result too", []string{says("Done."), `{"type":"result","subtype":"success","is_error":false,"result":"Done."}`}, "Done.\n\n"},
		{"nothing", []string{says(""), delta("\n"), says(" \n ")}, ""},
		{"content is a string", []string{`{"type":"assistant","message":{"content":"Done."}}`}, "Done.\n\n"},
		{"content is missing", []string{`{"type":"assistant"}`, `{"type":"assistant","message":7}`, `{"type":"assistant","message":{"content":{}}}`}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			stream := []byte(strings.Join(row.lines, "\n"))
			if got := render(t, stream, TextOptions{}, nil); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
			got := render(t, stream, TextOptions{Markdown: true}, nil)
			if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(row.want), " ") {
				t.Errorf("laid out: %q, want %q", got, row.want)
			}
		})
	}
}

// TestHostileLines: nothing of them reaches the terminal as it is.
func TestHostileLines(t *testing.T) {
	nasty := "\x1b[2J\x1b]0;title\x07\x1bPq#0\x1b\\\rrm\b\b\x00\x7f\u0085\u009b31m\u202egpj\u2066\u200b\ufeff\U000e0041\n\ttail \x1b[31mred"
	q := quoted(nasty)
	lines := []string{
		says(nasty), delta(nasty), midTurn(nasty), shell(nasty), thought, nasty, "\xff\xfe\x80 " + nasty,
		says("&#27;[2J &#x9b;31m &#8238;x `a\x1b[2J` [l\x1b](http://\x1b[2J) <b\x1b>\n\n```\n\x1b[2J\n```\n\n| a\x1b | b |\n|---|---|\n| \u202e | &#27; |"),
		fmt.Sprintf(`{"type":"tool_call","subtype":"completed","call_id":"x","tool_call":{%s:{"args":{"path":%s},"result":{"error":{"error":%s}}}}}`, quoted(nasty+"ToolCall"), q, q),
		fmt.Sprintf(`{"type":"tool_call","subtype":"completed","call_id":"y","tool_call":{"shellToolCall":{"args":{"command":%[1]s},"result":{%[1]s:{"exitCode":%[1]s,"signal":%[1]s}}}}}`, q),
		fmt.Sprintf(`{"type":"system","subtype":"task_notification","task_id":%[1]s,"status":"error","title":%[1]s,"detail":%[1]s}`, q),
		fmt.Sprintf(`{"type":"connection","subtype":"reconnecting","attempt":%s}`, q),
		fmt.Sprintf(`{"type":"result","subtype":%[1]s,"is_error":true,"result":%[1]s}`, q),
	}
	for _, look := range looks {
		got := render(t, []byte(strings.Join(lines, "\n")), look.o, &Failure{Subtype: "hang", Message: nasty})
		harmless(t, got, look.o.Color)
		if !strings.Contains(got, "^[[2J") {
			t.Errorf("%s: the sequence is not shown: %q", look.name, got)
		}
	}
}

// TestOddLines are shown as well as they can be.
func TestOddLines(t *testing.T) {
	rows := []struct{ line, want string }{
		{"Checking for updates...", "Checking for updates...\n\n"},
		{"\x1b[33m⚠ Warning\x1b[0m", "⚠ Warning\n\n"},
		{"", ""}, {" \r", ""}, {"null", ""}, {"[1,2]", ""}, {"{}", ""},
		{`{"type":"assis`, "(an unreadable line of 14 bytes left out)\n\n"},
		{"\x00\x01\xff\xfe\x80 not", "(an unreadable line of 9 bytes left out)\n\n"},
		{"10%\r20%", "10%^M20%\n\n"},
		{`{"type":"tool_call","subtype":"started"}`, "⏳ tool\n\n"},
		{`{"type":"tool_call","subtype":"completed","call_id":"x"}`, "✓ tool\n\n"},
		{`{"type":"tool_call","subtype":"started","tool_call":{"shellToolCall":{"args":[]}}}`, "⏳ shell\n\n"},
		{`{"type":"tool_call","subtype":"started","tool_call":{"brewCoffeeToolCall":{"args":{"cups":2}}}}`, "⏳ brew coffee\n\n"},
		{`{"type":"tool_call","subtype":"completed","tool_call":{"brewCoffeeToolCall":{"result":{"outOfBeans":{"x":1}}}}}`, "✓ brew coffee (out of beans)\n\n"},
		{`{"type":"tool_call","subtype":"completed","tool_call":{"brewCoffeeToolCall":{"result":{"brewFailed":{}}}}}`, "✗ brew coffee (brew failed)\n\n"},
		{`{"type":"tool_call","subtype":"completed","tool_call":{"shellToolCall":{"result":{"rejected":{"command":"rm x","reason":" not now "}}}}}`, "✗ `rm x` (rejected: not now)\n\n"},
		{`{"type":"tool_call","subtype":"completed","tool_call":{"shellToolCall":{"args":{"command":"x"},"result":{"case":"failure","value":{"exitCode":"2"}}}}}`, "✗ `x` (exit 2)\n\n"},
		{`{"type":"tool_call","subtype":"completed","tool_call":{"shellToolCall":{"args":{"command":"x"},"result":{"failure":{}}}}}`, "✗ `x` (failed)\n\n"},
		{`{"type":"tool_call","subtype":"completed","tool_call":{"readToolCall":{"args":{"path":"x"},"result":{"error":"gone"}}}}`, "✗ read x (gone)\n\n"},
		{`{"type":"system","subtype":"error","error":{"message":"boom"}}`, "✗ error: boom\n\n"},
		{`{"type":"result","subtype":"error","is_error":true}`, "✗ error: error\n\n"},
		{`{"type":"connection","subtype":"reconnecting"}`, ""},
	}
	for _, row := range rows {
		if got := render(t, []byte(row.line), TextOptions{}, nil); got != row.want {
			t.Errorf("%s: %q, want %q", row.line, got, row.want)
		}
	}
}

// TestTextTellsFailures as the last thing, at the width of the terminal.
func TestTextTellsFailures(t *testing.T) {
	hang := &Failure{Subtype: "hang", Message: "idle 1m5s, 0 open tool calls"}
	rows := []struct {
		o    TextOptions
		f    *Failure
		want string
	}{
		{TextOptions{}, hang, "⚠ Hang detected — killed cursor-agent (idle 1m5s, 0 open tool calls)\n\n"},
		{TextOptions{ASCII: true}, hang, "! Hang detected - killed cursor-agent (idle 1m5s, 0 open tool calls)\n\n"},
		{TextOptions{Width: columns(40)}, hang, "⚠ Hang detected — killed cursor-agent\n  (idle 1m5s, 0 open tool calls)\n\n"},
		{TextOptions{}, &Failure{Subtype: "no_result", Message: "the agent ended without a result (exit 1)"}, "⚠ the agent ended without a result (exit 1)\n\n"},
	}
	for _, row := range rows {
		if got := render(t, nil, row.o, row.f); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
		if got := render(t, []byte(says("Half")), row.o, row.f); got != "Half\n\n"+row.want {
			t.Errorf("after half an answer: %q", got)
		}
	}
}

// TestALongLineIsNamed: what is too long to be held is said to be left out.
func TestALongLineIsNamed(t *testing.T) {
	var out strings.Builder
	text := NewText(&out, TextOptions{})
	give(text, strings.Replace(otherLine, "delta", strings.Repeat("x", 33_000_000), 1), 40)
	give(text, okLine, 3)
	if err := text.Finish(nil); err != nil || out.String() != "(a line of 33 MB left out)\n(a line of 67 bytes left out)\n\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestTextErrorsAreTheWriters(t *testing.T) {
	text := NewText(broken{}, TextOptions{})
	give(text, says("x"), 0)
	if err := text.Forward(nil); err != nil && !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if err := text.Finish(failure); !errors.Is(err, errBroken) {
		t.Errorf("Finish: %v", err)
	}
}

// TestLinesFollowTheTerminal: the width is asked anew for every line.
func TestLinesFollowTheTerminal(t *testing.T) {
	width := 20
	var out strings.Builder
	text := NewText(&out, TextOptions{Width: func() int { return width }})
	for _, width = range []int{20, 30, 8, 0} {
		give(text, shell("echo 半角と全角 and more"), 0)
	}
	if err := text.Finish(nil); err != nil {
		t.Fatal(err)
	}
	const want = "⏳ `echo 半角と全…`\n⏳ `echo 半角と全角 and more`\n⏳ `ec…`\n⏳ `echo 半角と全角 and more`\n\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
