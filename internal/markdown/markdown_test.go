package markdown

import (
	"strings"
	"testing"

	"cursor-wrap/internal/display"
)

func fixed(n int) func() int { return func() int { return n } }

// laid is the text of some Markdown, which comes in pieces of the given size.
func laid(r *Renderer, source string, size int) string {
	s := NewStream(r)
	var b strings.Builder
	for ; len(source) > size; source = source[size:] {
		b.WriteString(s.Add(source[:size]))
	}
	b.WriteString(s.Add(source))
	b.WriteString(s.Flush())
	return b.String()
}

func TestLayout(t *testing.T) {
	rows := []struct{ name, source, want string }{
		{"paragraphs", "one\n\n\n\ntwo\n", "one\n\ntwo\n"},
		{"wrapped", "some words that do not fit\non a line", "some words that do\nnot fit\non a line\n"},
		{"a long word", strings.Repeat("x", 25), strings.Repeat("x", 20) + "\nxxxxx\n"},
		{"wide", "这样一行可以在任何一个，换行", "这样一行可以在任何一\n个，换行\n"},
		{"wide, closing sign", "这样一行可以在任何一，换行", "这样一行可以在任何\n一，换行\n"},
		{"headings", "# One\n## Two\ntext", "# One\n\n## Two\n\ntext\n"},
		{"styles", "*a* **b** `c` \\*d\\*", "*a* **b** `c` *d*\n"},
		{"a tight list", "- a\n- b\n  1. c\n  2. d", "* a\n* b\n  1. c\n  2. d\n"},
		{"a loose list", "1. a\n\n   more\n2. b", "1. a\n\n   more\n\n2. b\n"},
		{"a list that goes on", "3. a\n\n4. b\n\ntext", "3. a\n\n4. b\n\ntext\n"},
		{"a list and text below it", "- a\n\ntext\n- b", "* a\n\ntext\n\n* b\n"},
		{"code", "text\n```go\nx\t:= 1\n\n  y\n```\nmore", "text\n\n  x    := 1\n\n    y\n\nmore\n"},
		{"code without an end", "```\nx", "  x\n"},
		{"code of long lines", "~~~\n" + strings.Repeat("x", 30) + "\n~~~", "  " + strings.Repeat("x", 30) + "\n"},
		{"code in a list", "- a\n\n  ```\n  x\n\n  y\n  ```\n- b", "* a\n\n    x\n\n    y\n\n* b\n"},
		{"code by indent", "text\n\n    x\n", "text\n\n  x\n"},
		{"a quote", "> some words that do not fit\n> - a", "| some words that do\n| not fit\n|\n| * a\n"},
		{"a rule", "a\n\n---\n\nb", "a\n\n--------------------\n\nb\n"},
		{"links", "[a](http://b) <http://c> ![d](e)", "a (http://b)\nhttp://c image: d\n(e)\n"},
		{"a table", "| a | b |\n|---|:-:|\n| c d | `e` |\n| f |", "a   | b\n----+----\nc d | `e`\nf   |\n"},
		{"a table below text", "text:\n|a|b|\n|-|-|\n|1|2\\|3|", "text:\n\na | b\n--+----\n1 | 2|3\n"},
		{"a table too wide", "|a|b|\n|-|-|\n|some words|and others here|", "a        | b\n---------+----------\nsome     | and\nwords    | others\n         | here\n"},
		{"no table", "a | b\n--- | ---x", "a | b\n--- | ---x\n"},
		{"a table of many columns", "|a|b|c|d|\n|-|-|-|-|\n|1|2|3|4|", "a: 1\nb: 2\nc: 3\nd: 4\n"},
		{"HTML", "<b>x</b>\n\n<div>\n y\n</div>", "<b>x</b>\n\n<div>\n y\n</div>\n"},
		{"references", "&lt;a&gt; &amp; &#27;[2J", "<a> & ^[[2J\n"},
		{"a task", "- [ ] a\n- [x] b", "* [ ] a\n* [x] b\n"},
		{"nothing", "\n \n", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := &Renderer{Width: fixed(20), ASCII: true}
			for _, size := range []int{1, 7, 1000} {
				if got := laid(r, row.source, size); got != row.want {
					t.Errorf("in pieces of %d:\n%s\nwant\n%s", size, got, row.want)
				}
			}
		})
	}
}

// TestBlocksAppearAtOnce: what is finished does not wait for the next block.
func TestBlocksAppearAtOnce(t *testing.T) {
	s := NewStream(&Renderer{Width: fixed(40)})
	steps := []struct{ piece, want string }{
		{"One", ""}, {" two.\n", ""}, {"\n", "One two.\n"},
		{"```\nx", "\n"}, {"\n", "  x\n"}, {"y\n```\n", "  y\n"},
		{"- a\n", ""}, {"\n", ""}, {"- b\n", ""}, {"\ntext", ""}, {"\n", "\n• a\n\n• b\n"},
	}
	for _, step := range steps {
		if got := s.Add(step.piece); got != step.want {
			t.Errorf("%q: %q, want %q", step.piece, got, step.want)
		}
	}
	if got := s.Flush(); got != "\ntext\n" {
		t.Errorf("at the end %q", got)
	}
}

func TestColours(t *testing.T) {
	r := &Renderer{Width: fixed(20), Color: true}
	const source = "# A\n**b *c*** `d`\n\n```diff\n+e\n-f\n```\n"
	const want = "\x1b[1;3mA\x1b[0m\n\n\x1b[1mb \x1b[0m\x1b[1;2mc\x1b[0m \x1b[36md\x1b[0m\n\n  \x1b[32m+e\x1b[0m\n  \x1b[31m-f\x1b[0m\n"
	if got := laid(r, source, 3); got != strings.NewReplacer("1;3mA", "1;4mA", "1;2mc", "1;3mc").Replace(want) {
		t.Errorf("%q", got)
	}
}

// TestNothingIsLost when a block is too long to be laid out.
func TestNothingIsLost(t *testing.T) {
	for _, source := range []string{
		strings.Repeat("word ", maxBlock), strings.Repeat("x", 3*maxBlock),
		strings.Repeat("- item\n", maxBlock), "```\n" + strings.Repeat("code ", maxBlock),
	} {
		got := laid(&Renderer{Width: fixed(50)}, source, 100)
		less := strings.NewReplacer(" ", "", "\n", "", "```", "", "•", "-")
		if less.Replace(got) != less.Replace(source) {
			t.Errorf("%.20q: %d bytes became %d", source, len(source), len(got))
		}
	}
}

// FuzzWrap: no line is too wide, and nothing but blanks goes.
func FuzzWrap(f *testing.F) {
	f.Add("some 半角 words。 \u202e", 7)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 2 + (width%200+200)%200
		s = display.Line(s, " ")
		lines := Wrap(s, width)
		for _, l := range lines {
			if _, rest, _, _ := display.Next(l, -1); display.Width(l) > width && rest != "" {
				t.Fatalf("%d columns of %d: %q", display.Width(l), width, l)
			}
		}
		less := strings.NewReplacer(" ", "")
		if less.Replace(strings.Join(lines, "")) != less.Replace(s) {
			t.Fatalf("%q became %q", s, lines)
		}
	})
}
