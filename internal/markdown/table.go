package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// table returns the rows of a paragraph that is a table, each with its cells,
// and what stands before them. The delimiter row is left out. Tables are read
// here and not by goldmark's extension, whose package would cost every run
// another half a millisecond.
func (p *page) table(n ast.Node, width int) (before []string, rows [][]string) {
	lines := n.Lines()
	if lines == nil || lines.Len() < 2 {
		return nil, nil
	}
	head := -1
	for i := 1; i < lines.Len() && head < 0; i++ {
		this, last := lines.At(i), lines.At(i-1)
		if n := delimiters(string(this.Value(p.source))); n > 0 && n == len(cells(string(last.Value(p.source)))) {
			head = i - 1
		}
	}
	if head < 0 {
		return nil, nil
	}
	var b strings.Builder
	for i := range lines.Len() {
		at := lines.At(i)
		line := string(at.Value(p.source))
		switch {
		case i < head:
			b.WriteString(line)
		case i != head+1:
			rows = append(rows, cells(line))
		}
	}
	if b.Len() > 0 {
		before = append(p.render(b.String(), width), "")
	}
	return before, rows
}

// delimiters counts the columns of a row such as |---|:-:|, and is 0 for
// anything else.
func delimiters(line string) int {
	if !strings.Contains(line, "|") || strings.Trim(line, " |:-\t\n") != "" {
		return 0
	}
	all := cells(line)
	for _, c := range all {
		if c = strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":"); c == "" || strings.Trim(c, "-") != "" {
			return 0
		}
	}
	return len(all)
}

// cells are what stands between the bars that no backslash precedes.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	var all []string
	cell := ""
	for part := range strings.SplitSeq(line, "|") {
		if strings.HasSuffix(part, `\`) {
			cell += part[:len(part)-1] + "|"
			continue
		}
		all = append(all, strings.TrimSpace(cell+part))
		cell = ""
	}
	if cell != "" {
		all = append(all, strings.TrimSpace(cell))
	}
	return all
}

// least is how narrow a column of a table may become.
const least = 6

// grid lays rows out in columns, with a line below the first.
func (p *page) grid(rows [][]string, width int) []string {
	columns := len(rows[0])
	text := make([][][]span, len(rows))
	natural := make([]int, columns)
	for i, row := range rows {
		look := style(0)
		if i == 0 {
			look = bold
		}
		for c := range columns {
			cell := ""
			if c < len(row) {
				cell = row[c]
			}
			text[i] = append(text[i], p.cell(cell, look))
			natural[c] = max(natural[c], widthOf(text[i][c]), 1)
		}
	}
	room := width - 3*(columns-1)
	if room < least*columns {
		return p.records(text, width)
	}
	squeeze(natural, room)
	var all []string
	for i, row := range text {
		all = append(all, p.row(row, natural)...)
		if i == 0 {
			all = append(all, p.rule(natural))
		}
	}
	return all
}

func (p *page) cell(source string, look style) []span {
	inner := &page{Renderer: p.Renderer, source: []byte(source)}
	if block := inner.parse().FirstChild(); block != nil && block.Kind() == ast.KindParagraph && block.NextSibling() == nil {
		return inner.inline(block, look)
	}
	return []span{{source, look}}
}

// squeeze takes from the widest column until all fit.
func squeeze(widths []int, room int) {
	sum := 0
	for _, w := range widths {
		sum += w
	}
	for ; sum > room; sum-- {
		widest := 0
		for c, w := range widths {
			if w > widths[widest] {
				widest = c
			}
		}
		widths[widest]--
	}
}

// row is as many lines as its longest cell needs.
func (p *page) row(cells [][]span, widths []int) []string {
	wrapped := make([][][]span, len(cells))
	height := 0
	for c, cell := range cells {
		wrapped[c] = wrap(cell, widths[c])
		height = max(height, len(wrapped[c]))
	}
	all := make([]string, height)
	for i := range all {
		var line []span
		for c := range cells {
			if c > 0 {
				line = append(line, span{p.draw(" │ ", " | "), faint})
			}
			var part []span
			if i < len(wrapped[c]) {
				part = wrapped[c][i]
			}
			line = append(line, part...)
			if c < len(cells)-1 {
				line = append(line, span{strings.Repeat(" ", max(widths[c]-widthOf(part), 0)), 0})
			}
		}
		all[i] = p.paint(trimmed(line))
	}
	return all
}

// trimmed is the line without the blanks at its end.
func trimmed(line []span) []span {
	for n := len(line) - 1; n >= 0; n-- {
		if line[n].text = strings.TrimRight(line[n].text, " "); line[n].text != "" {
			return line
		}
		line = line[:n]
	}
	return line
}

func (p *page) rule(widths []int) string {
	var parts []string
	for _, w := range widths {
		parts = append(parts, strings.Repeat(p.draw("─", "-"), w))
	}
	return p.paint([]span{{strings.Join(parts, p.draw("─┼─", "-+-")), faint}})
}

// records shows the rows of a table that has too many columns one below the
// other, each cell behind the name of its column.
func (p *page) records(text [][][]span, width int) []string {
	var all []string
	for i, row := range text[1:] {
		if i > 0 {
			all = append(all, "")
		}
		for c, cell := range row {
			line := append(append([]span{}, text[0][c]...), span{": ", bold})
			all = append(all, p.wrapped(append(line, cell...), width)...)
		}
	}
	return all
}
