package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"

	"cursor-wrap/internal/display"
)

// inline returns what stands in a block, in the given style and those that it
// adds. A line of the source stays a line: agents write lists of facts so.
func (p *page) inline(n ast.Node, look style) []span {
	var all []span
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		for _, s := range p.one(c, look) {
			all = appendText(all, s.text, s.style)
		}
	}
	return all
}

func (p *page) one(n ast.Node, look style) []span {
	switch n := n.(type) {
	case *ast.Text:
		return []span{{p.text(n), look}}
	case *ast.String:
		return []span{{resolved(n.Value), look}}
	case *ast.CodeSpan:
		return p.codeSpan(n, look)
	case *ast.Emphasis:
		return p.emphasis(n, look)
	case *ast.Link:
		return p.link(p.inline(n, look|underline), string(n.Destination), look)
	case *ast.AutoLink:
		return []span{{display.Line(string(n.Label(p.source)), " "), look | underline}}
	case *ast.Image:
		return p.link(append([]span{{"image: ", look}}, p.inline(n, look)...), string(n.Destination), look)
	case *ast.RawHTML:
		return []span{{string(n.Segments.Value(p.source)), look}}
	}
	return p.inline(n, look)
}

func (p *page) text(n *ast.Text) string {
	s := resolved(n.Segment.Value(p.source))
	if n.SoftLineBreak() || n.HardLineBreak() {
		return strings.TrimRight(s, " ") + "\n"
	}
	return s
}

// resolved takes the backslashes away and puts characters in the place of
// references. They may be any characters, so they are cleaned once more.
func resolved(b []byte) string {
	if bytes.IndexByte(b, '&') >= 0 {
		b = util.ResolveEntityNames(util.ResolveNumericReferences(b))
	}
	if bytes.IndexByte(b, '\\') >= 0 {
		b = util.UnescapePunctuations(b)
	}
	return display.Line(string(b), " ")
}

// codeSpan keeps its quotes where no colour shows what it is.
func (p *page) codeSpan(n ast.Node, look style) []span {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(p.source))
		}
	}
	s := strings.ReplaceAll(b.String(), "\n", " ")
	if !p.Color {
		s = "`" + s + "`"
	}
	return []span{{s, look | code}}
}

func (p *page) emphasis(n *ast.Emphasis, look style) []span {
	more, mark := italic, "*"
	if n.Level > 1 {
		more, mark = bold, "**"
	}
	text := p.inline(n, look|more)
	if p.Color {
		return text
	}
	return append(append([]span{{mark, look}}, text...), span{mark, look})
}

// link shows where it leads, for there is nothing to click on.
func (p *page) link(label []span, to string, look style) []span {
	to = resolved([]byte(to))
	said := ""
	for _, s := range label {
		said += s.text
	}
	if to == "" || to == said || to == "mailto:"+said {
		return label
	}
	return append(label, span{" (" + to + ")", look | faint})
}
