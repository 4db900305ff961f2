package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"cursor-wrap/internal/display"
)

// Renderer lays out Markdown. The zero Renderer is of 80 columns, without
// colour, in UTF-8.
type Renderer struct {
	Width func() int // of the terminal, asked anew for every block; 80 where it is nil or says 0
	Color bool
	ASCII bool // draw with ASCII alone

	parser parser.Parser // made when it is first needed
}

// maxDepth is how deep lists and quotes are followed; below it their source is
// shown as it is.
const maxDepth = 8

func (r *Renderer) columns() int {
	if r.Width != nil {
		if n := r.Width(); n > 0 {
			return n
		}
	}
	return 80
}

// render returns the lines of whole blocks of clean Markdown. A parser that
// gives up must not end the run of the agent that wrote it: the source is
// shown then.
func (r *Renderer) render(source string, width int) (lines []string) {
	p := &page{Renderer: r, source: []byte(source)}
	defer func() {
		if recover() != nil {
			lines = p.wrapped([]span{{strings.TrimRight(source, "\n"), 0}}, width)
		}
	}()
	return p.children(p.parse(), width, 0)
}

// page is a piece of Markdown that is being laid out.
type page struct {
	*Renderer
	source []byte
}

func (p *page) parse() ast.Node {
	if p.parser == nil {
		p.parser = parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithInlineParsers(parser.DefaultInlineParsers()...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
	}
	return p.parser.Parse(text.NewReader(p.source))
}

// children lays out the blocks in n, with an empty line between them unless
// they belong to a tight list.
func (p *page) children(n ast.Node, width, depth int) []string {
	var all []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		lines := p.block(c, width, depth)
		if len(lines) > 0 && len(all) > 0 && !tight(c) {
			all = append(all, "")
		}
		all = append(all, lines...)
	}
	return all
}

func tight(n ast.Node) bool {
	switch p := n.Parent().(type) {
	case *ast.List:
		return p.IsTight
	case *ast.ListItem:
		list, ok := p.Parent().(*ast.List)
		return ok && list.IsTight
	}
	return false
}

func (p *page) block(n ast.Node, width, depth int) []string {
	if depth > maxDepth {
		return p.literal(n, width)
	}
	switch n := n.(type) {
	case *ast.Heading:
		return p.heading(n, width)
	case *ast.Paragraph, *ast.TextBlock:
		return p.paragraph(n, width)
	case *ast.List:
		return p.list(n, width, depth)
	case *ast.Blockquote:
		return p.prefixed(p.children(n, width-2, depth+1), p.draw("│ ", "| "), p.draw("│ ", "| "))
	case *ast.FencedCodeBlock:
		return p.codeLines(n, string(n.Language(p.source)))
	case *ast.CodeBlock:
		return p.codeLines(n, "")
	case *ast.ThematicBreak:
		return []string{p.paint([]span{{strings.Repeat(p.draw("─", "-"), min(width, 40)), faint}})}
	case *ast.LinkReferenceDefinition:
		return nil
	}
	return p.literal(n, width)
}

// draw chooses what is drawn with.
func (r *Renderer) draw(utf8, ascii string) string {
	if r.ASCII {
		return ascii
	}
	return utf8
}

func (p *page) wrapped(text []span, width int) []string {
	var all []string
	for _, line := range wrap(text, width) {
		all = append(all, p.paint(line))
	}
	return all
}

func (p *page) heading(n *ast.Heading, width int) []string {
	look := bold
	if n.Level == 1 {
		look |= underline
	}
	text := p.inline(n, look)
	if !p.Color {
		text = append([]span{{strings.Repeat("#", n.Level) + " ", 0}}, text...)
	}
	return p.wrapped(text, width)
}

func (p *page) paragraph(n ast.Node, width int) []string {
	if before, rows := p.table(n, width); rows != nil {
		return append(before, p.grid(rows, width)...)
	}
	return p.wrapped(p.inline(n, 0), width)
}

func (p *page) list(n *ast.List, width, depth int) []string {
	var all []string
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := p.draw("• ", "* ")
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		room := display.Width(mark)
		lines := p.children(c, width-room, depth+1)
		if len(lines) == 0 {
			lines = []string{""}
		}
		if len(all) > 0 && !n.IsTight {
			all = append(all, "")
		}
		all = append(all, p.prefixed(lines, mark, strings.Repeat(" ", room))...)
	}
	return all
}

// prefixed puts one prefix before the first line and another before the rest.
func (p *page) prefixed(lines []string, first, rest string) []string {
	for i, line := range lines {
		if i == 0 {
			lines[i] = first + line
		} else {
			lines[i] = strings.TrimRight(rest+line, " ")
		}
	}
	return lines
}

// codeLines are not wrapped, so that they can be copied.
func (p *page) codeLines(n ast.Node, language string) []string {
	all := []string{}
	lines := n.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		all = append(all, p.codeLine(string(at.Value(p.source)), language))
	}
	return all
}

func (r *Renderer) codeLine(line, language string) string {
	line = strings.TrimRight(line, " \t\n")
	if line == "" {
		return ""
	}
	look := code
	if language == "diff" || language == "patch" {
		look = 0
		if strings.HasPrefix(line, "+") {
			look = added
		} else if strings.HasPrefix(line, "-") {
			look = removed
		}
	}
	return "  " + r.paint([]span{{strings.ReplaceAll(line, "\t", "    "), look}})
}

// literal shows a block as it was written.
func (p *page) literal(n ast.Node, width int) []string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, enter bool) (ast.WalkStatus, error) { // it has no error of its own
		if enter && n.Type() != ast.TypeInline {
			b.Write(n.Lines().Value(p.source))
		}
		return ast.WalkContinue, nil
	})
	s := strings.TrimRight(b.String(), "\n")
	if s == "" {
		return nil
	}
	return p.wrapped([]span{{s, 0}}, width)
}
