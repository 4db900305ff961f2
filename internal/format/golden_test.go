package format

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/events"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	streams = "../../testdata/streams"
	golden  = "../../testdata/golden/text/streams"
)

func columns(n int) func() int { return func() int { return n } }

// looks are what a stream is shown on.
var looks = []struct {
	name string
	o    TextOptions
}{
	{"pipe", TextOptions{}},
	{"ascii-60", TextOptions{ASCII: true, Width: columns(60)}},
	{"plain-40", TextOptions{Width: columns(40)}},
	{"colour-80", TextOptions{Width: columns(80), Color: true, Markdown: true}},
	{"colour-40", TextOptions{Width: columns(40), Color: true, Markdown: true}},
	{"markdown-ascii-60", TextOptions{Width: columns(60), Markdown: true, ASCII: true}},
}

// render is the text of a stream, line by line as the pump hands it over.
func render(t testing.TB, stream []byte, o TextOptions, f *Failure) string {
	t.Helper()
	var out bytes.Buffer
	text := NewText(&out, o)
	for line := range bytes.Lines(stream) {
		bare := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		ev := events.Parse(bare)
		before := out.Len()
		text.Line(bare, &ev)
		if out.Len() != before {
			t.Fatal("written before it was logged")
		}
		if err := text.Forward(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := text.Finish(f); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no streams in %s: %v", dir, err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".jsonl")] = b
	}
	return all
}

// TestGoldenText: what every stream reads like. Escape stands as ␛.
func TestGoldenText(t *testing.T) {
	for name, stream := range files(t, streams) {
		for _, look := range looks {
			t.Run(name+"."+look.name, func(t *testing.T) {
				got := render(t, stream, look.o, nil)
				harmless(t, got, look.o.Color)
				narrow(t, got, look.o)
				compare(t, filepath.Join(golden, name+"."+look.name+".txt"), strings.ReplaceAll(got, "\x1b", "␛"))
			})
		}
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err, "; go test -update makes it")
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
	}
}

// TestCapturesAsText: the same of real streams, which are not part of the sources: nothing
// that controls a terminal, every call is there, no paragraph twice.
func TestCapturesAsText(t *testing.T) {
	dir := os.Getenv("CURSOR_WRAP_CAPTURES")
	if dir == "" {
		t.Skip("CURSOR_WRAP_CAPTURES names no folder of recorded streams")
	}
	for name, stream := range files(t, dir) {
		for _, look := range looks {
			t.Run(name+"."+look.name, func(t *testing.T) {
				got := render(t, stream, look.o, nil)
				harmless(t, got, look.o.Color)
				narrow(t, got, look.o)
				every(t, stream, got, look.o)
				once(t, got)
			})
		}
	}
}

// every counts the calls: each begins once.
func every(t *testing.T, stream []byte, got string, o TextOptions) {
	t.Helper()
	want := 0
	for line := range bytes.Lines(stream) {
		if ev := events.Parse(line); ev.Kind == events.ToolStarted {
			want++
		}
	}
	sign := NewText(nil, o).sign.pending
	n := 0
	for line := range strings.Lines(stripped(got)) {
		if strings.HasPrefix(strings.TrimSpace(line), sign+" ") && !strings.Contains(line, "reconnecting") {
			n++
		}
	}
	if n != want {
		t.Errorf("%d calls begin, want %d:\n%s", n, want, got)
	}
}

func once(t *testing.T, got string) {
	t.Helper()
	seen := map[string]bool{}
	for part := range strings.SplitSeq(stripped(got), "\n\n") {
		if part = strings.TrimSpace(part); len(part) > 20 && seen[part] {
			t.Errorf("twice: %q", part)
		}
		seen[part] = true
	}
}

// TestTheStreamOverTime: what is ready goes out with the next Forward, and a
// call that the stream does not time is timed by whoever saw it.
func TestTheStreamOverTime(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	text := NewText(&out, TextOptions{Now: func() time.Time { return now }})
	steps := []struct {
		line, want string
	}{
		{`{"type":"assistant","message":{"content":[{"type":"text","text":"One"}]},"timestamp_ms":1}`, "One"},
		{`{"type":"assistant","message":{"content":[{"type":"text","text":" two\n"}]},"timestamp_ms":1}`, " two"},
		{`{"type":"thinking","subtype":"delta","text":"x"}`, "\n"}, // what was said is over
		{`{"type":"tool_call","subtype":"started","call_id":"a","tool_call":{"lsToolCall":{"args":{"path":"."}}}}`, "\n⏳ ls .\n"},
		{`{"type":"tool_call","subtype":"completed","call_id":"a","tool_call":{"lsToolCall":{"result":{"success":{}}}}}`, "✓ ls . (1m15s)\n"},
		{`{"type":"result","subtype":"success","is_error":false,"result":"One two"}`, "\n"},
	}
	for _, s := range steps {
		ev := events.Parse([]byte(s.line))
		text.Line([]byte(s.line), &ev)
		if err := text.Forward(nil); err != nil || out.String() != s.want {
			t.Errorf("%s: %q, %v, want %q", s.line, out.String(), err, s.want)
		}
		out.Reset()
		now = now.Add(75 * time.Second)
	}
}
