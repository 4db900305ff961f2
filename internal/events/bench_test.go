package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// thinkingLine is the line that comes most often, at its usual length.
const thinkingLine = `{"type":"thinking","subtype":"delta","text":", and then look at the test that fails first","session_id":"6f1c9a52-3b0e-4d7f-9a41-2c58e0b7d913","timestamp_ms":1770000000123}`

// quoted writes s as JSON.stringify would: nothing escaped that need not be.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// source is n bytes of what a tool's result holds: lines of code.
func source(n int) string {
	const line = "\tif err := store.Put(ctx, key, value); err != nil {\n\t\treturn fmt.Errorf(\"put %q: %w\", key, err)\n\t}\n"
	return strings.Repeat(line, n/len(line)+1)[:n]
}

// mix is a turn as it is written, about a kilobyte and a half a line.
func mix() [][]byte {
	lines := [][]byte{}
	add := func(format string, a ...any) { lines = append(lines, fmt.Appendf(nil, format, a...)) }
	for i := range 20 {
		for range 6 {
			lines = append(lines, []byte(thinkingLine))
		}
		id := fmt.Sprintf(`call_%022d\nfc_%048d`, i, i)
		shell := fmt.Sprintf(`"args":{"command":"go test ./... -run Test%d","workingDirectory":"","timeout":30000,"toolCallId":"%s","simpleCommands":["go"],"hasInputRedirect":false,"parsingResult":{"parsingFailed":false,"executableCommands":[{"name":"go","args":[{"type":"word","value":"test"}],"fullText":"go test ./..."}]},"isBackground":false}`, i, id)
		add(`{"type":"tool_call","subtype":"started","call_id":"%s","tool_call":{"shellToolCall":{%s},"toolCallId":"%s"},"model_call_id":"m-%d","session_id":"s","timestamp_ms":1770000000456}`, id, shell, id, i)
		add(`{"type":"tool_call","subtype":"completed","call_id":"%s","tool_call":{"shellToolCall":{%s,"result":{"success":{"exitCode":0,"stdout":%s,"stderr":""},"isBackground":false}},"toolCallId":"%s"},"model_call_id":"m-%d","session_id":"s","timestamp_ms":1770000000456}`, id, shell, quoted(source(2000)), id, i)
		add(`{"type":"tool_call","subtype":"completed","call_id":"%s","tool_call":{"editToolCall":{"args":{"path":"/src/store.go"},"result":{"success":{"path":"/src/store.go","afterFullFileContent":%s}}},"toolCallId":"%s"},"model_call_id":"m-%d","session_id":"s","timestamp_ms":1770000000456}`, id, quoted(source(500*i)), id, i)
		add(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":%s}]},"session_id":"s"}`, quoted(strings.Repeat("The store keeps it — naïvely. ", 20)))
	}
	return lines
}

func BenchmarkParse(b *testing.B) {
	edit := `{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"editToolCall":{"args":{"path":"/src/a.go"},"result":{"success":{"afterFullFileContent":%s}}}}}`
	message := `{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}`
	for _, bench := range []struct {
		name  string
		lines [][]byte
	}{
		{"small", [][]byte{[]byte(thinkingLine)}},
		{"mix", mix()},
		{"huge-plain", [][]byte{fmt.Appendf(nil, message, strings.Repeat("0123456789abcde ", 1<<20))}},
		{"huge-unicode", [][]byte{fmt.Appendf(nil, message, strings.Repeat("naïve — façade, ", 1<<20))}},
		{"huge-source", [][]byte{fmt.Appendf(nil, edit, quoted(source(8<<20)))}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			size := 0
			for _, line := range bench.lines {
				size += len(line)
			}
			b.SetBytes(int64(size / len(bench.lines))) // an operation is one line
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if e := Parse(bench.lines[i%len(bench.lines)]); e.Kind == Text {
					b.Fatal("not JSON")
				}
			}
		})
	}
}
