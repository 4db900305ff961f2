package format

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/display"
)

// TestMuchIsShownInTime: what is long, and what was made to make parsers slow,
// takes no longer than its bytes are worth.
func TestMuchIsShownInTime(t *testing.T) {
	const mb = 1 << 18
	rows := []struct{ name, text string }{
		{"words", strings.Repeat("some words and `code` ", 10<<20/22)},
		{"one word", strings.Repeat("x", 10*mb)},
		{"paragraphs", strings.Repeat("A paragraph of **text**.\n\n", 5*mb/26)},
		{"blank", strings.Repeat(" ", 5*mb) + "x"},
		{"line feeds", "x" + strings.Repeat("\n", 5*mb) + "x"},
		{"brackets", strings.Repeat("[", 2*mb)},
		{"links", strings.Repeat("[a](", 2*mb/4)},
		{"emphasis", strings.Repeat("*a **b ", 2*mb/7)},
		{"backticks", strings.Repeat("`a ``b ", 2*mb/7)},
		{"quotes", strings.Repeat(">", mb) + "x"},
		{"deep lists", strings.Repeat("- ", mb/2) + "x"},
		{"table", strings.Repeat("|", mb) + "\n" + strings.Repeat("|-", mb/2) + "\n"},
		{"code", "```\n" + strings.Repeat("x := 1\n", 5*mb/7)},
		{"a code block inside a list", "- a\n  ```\n" + strings.Repeat("  x := 1\n", 2*mb/9)},
		{"entities", strings.Repeat("&#27;&amp;", mb/10)},
		{"marks", "e" + strings.Repeat("\u0301", mb)},
		{"joined", strings.Repeat("👩\u200d", mb/7)},
		{"wide", strings.Repeat("宽", mb)},
		{"controls", strings.Repeat("\x1b[2J\x00", mb/5)},
	}
	for _, row := range rows {
		for _, o := range []TextOptions{{}, {Markdown: true, Color: true, Width: columns(80)}} {
			t.Run(fmt.Sprintf("%s markdown=%t", row.name, o.Markdown), func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				got := render(t, []byte(says(row.text)), o, nil)
				took := time.Since(began)
				harmless(t, got, o.Color)
				t.Logf("%d bytes of %d in %v", len(got), len(row.text), took)
				if took > 20*time.Second { // it is one or two
					t.Errorf("%v", took)
				}
			})
		}
	}
}

// TestALongCommandIsALine of bounded length, whatever it is shown on.
func TestALongCommandIsALine(t *testing.T) {
	for _, command := range []string{strings.Repeat("echo 半角 ", 100_000), strings.Repeat("e\u0301", 500_000), strings.Repeat("\n", 1<<20) + "x"} {
		for _, o := range []TextOptions{{}, {Width: columns(80)}, {Width: columns(40), ASCII: true}} {
			got := render(t, []byte(shell(command)), o, nil)
			most := 2*maxLabel + 10
			if o.Width != nil {
				most = o.Width()
			}
			line, rest, _ := strings.Cut(got, "\n")
			if rest != "\n" || display.Width(line) > most || len(line) > 20*maxLabel {
				t.Errorf("%d columns, %d bytes, then %q", display.Width(line), len(line), rest)
			}
		}
	}
}

// TestTextKeepsLittle: neither calls that never end nor pieces of text add up.
func TestTextKeepsLittle(t *testing.T) {
	text := NewText(io.Discard, TextOptions{Markdown: true})
	for i := range 5000 {
		give(text, strings.Replace(shell("x"), `"c"`, fmt.Sprintf(`"c%d","parent_tool_call_id":"p%d"`, i, i), 1), 0)
		give(text, delta("x "), 0)
		if err := text.Forward(nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(text.calls) > maxOpen || len(text.steps) > maxOpen || text.out.Cap() > keep {
		t.Errorf("%d calls, %d parents, %d bytes", len(text.calls), len(text.steps), text.out.Cap())
	}
	give(text, okLine, 0)
	if len(text.calls)+len(text.steps) > 0 {
		t.Error("the turn is over")
	}
}

// FuzzText: whatever comes, it is shown, and nothing of it controls a terminal.
func FuzzText(f *testing.F) {
	for _, stream := range files(f, streams) {
		f.Add(stream, uint8(40))
	}
	f.Add([]byte(says("\x1b[2J\r\u202e")+"\n"+shell("\x00")+"\n\xff\x1b]0;x\x07"), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, width uint8) {
		for _, look := range looks {
			o := look.o
			if o.Width != nil {
				o.Width = columns(int(width))
			}
			harmless(t, render(t, stream, o, &Failure{Subtype: "hang", Message: string(stream)}), o.Color)
		}
	})
}

// FuzzSpeech: the same of what the agent says, which is laid out, in pieces.
func FuzzSpeech(f *testing.F) {
	f.Add("# A\n\n- b\n\n  ```\n  c\n  ```\n| a | b |\n|---|---|\n| c | &#27; |\n> *x* `y` [z](u)", uint8(3), uint8(40))
	f.Fuzz(func(t *testing.T, said string, size, width uint8) {
		var stream bytes.Buffer
		for rest := said; rest != ""; {
			n := min(int(size)+1, len(rest))
			stream.WriteString(delta(rest[:n]) + "\n")
			rest = rest[n:]
		}
		stream.WriteString(says(said))
		for _, o := range []TextOptions{{}, {Markdown: true, Width: columns(int(width)), Color: true}} {
			harmless(t, render(t, stream.Bytes(), o, nil), o.Color)
		}
	})
}
