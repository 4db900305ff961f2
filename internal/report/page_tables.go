package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A table shows its first rows and, on demand, the others; beyond maxShown they
// are left to the timeline.
const (
	firstRows = 15
	maxShown  = 200
)

// grid is a table. It scrolls within itself where it is too wide.
type grid struct {
	name    string
	columns []string
	used    []bool // columns that nothing is in are left out
	body    [][]part
}

// table makes one. A column whose name begins with # holds numbers.
func table(name string, columns ...string) *grid {
	return &grid{name: name, columns: columns, used: make([]bool, len(columns))}
}

// cell is a table cell with something to sort it by.
type cell struct {
	part
	value string
}

// number is a cell that is sorted by value.
func number(said string, value float64) part {
	return cell{text(said), strconv.FormatFloat(value, 'f', -1, 64)}
}

func (g *grid) row(cells ...part) {
	for i, c := range cells {
		g.used[i] = g.used[i] || !blank(c)
	}
	g.body = append(g.body, cells)
}

// blank reports whether a cell says nothing.
func blank(c part) bool {
	switch c := c.(type) {
	case nil:
		return true
	case text:
		return c == ""
	case parts:
		return !slices.ContainsFunc(c, func(p part) bool { return !blank(p) })
	case cell:
		return false
	case *element:
		return blank(c.inner)
	}
	return false
}

func (g *grid) part() part {
	head := el("tr")
	for i, name := range g.columns {
		if !g.used[i] {
			continue
		}
		name, isNumber := strings.CutPrefix(name, "#")
		th := el("th", attr{"scope", "col"}, text(name))
		if isNumber {
			th.attrs = append(th.attrs, class("n"))
		}
		head.inner = append(head.inner, th)
	}
	body := el("tbody")
	for n, cells := range g.body[:min(len(g.body), maxShown)] {
		body.inner = append(body.inner, g.line(n, cells))
	}
	all := parts{el("div", class("wide"), attr{"role", "group"}, attr{"aria-label", g.name}, num("tabindex", 0),
		el("table", class("sortable"), el("thead", head), body))}
	if more := len(g.body); more > firstRows {
		all = append(all, el("button", class("all scripted"), attr{"type", "button"}, textf("Show all %s", count(int64(min(more, maxShown))))))
	}
	if len(g.body) > maxShown {
		all = append(all, el("p", class("faint"), textf("%s more are not in this table.", count(int64(len(g.body)-maxShown)))))
	}
	return el("div", class("grid"), all)
}

func (g *grid) line(n int, cells []part) part {
	tr := el("tr")
	if n >= firstRows {
		tr.attrs = append(tr.attrs, class("more"))
	}
	for i, c := range cells {
		if !g.used[i] {
			continue
		}
		td := el("td", c)
		if strings.HasPrefix(g.columns[i], "#") {
			td.attrs = append(td.attrs, class("n"))
		}
		if v, ok := c.(cell); ok {
			td.attrs = append(td.attrs, attr{"data-value", v.value})
		}
		tr.inner = append(tr.inner, td)
	}
	return tr
}

// opener is a button that shows what is behind a row.
func opener(thing int, label string) part {
	return el("button", class("opener"), attr{"type", "button"}, num("data-things", thing), quoted(label))
}

// calls are the calls that took the longest.
func (p *page) calls() part {
	var slow []int
	for i := range p.Items {
		if p.Items[i].Lane == Tool {
			slow = append(slow, i)
		}
	}
	if len(slow) == 0 {
		return nil
	}
	took := func(i int) int64 { return int64(p.Items[i].End.Sub(p.Items[i].Start.Time)) }
	slices.SortStableFunc(slow, func(a, b int) int { return cmp.Compare(took(b), took(a)) })
	t := table("Slowest calls", "#Took", "Tool", "Call", "Status", "#Declared", "#Start", "#Turn")
	for _, i := range slow {
		if len(t.body) >= maxShown { // the others are counted only
			t.body = append(t.body, nil)
			continue
		}
		it := &p.Items[i]
		kind := callKind(it.Status)
		t.row(number(length(it.Start, it.End), float64(took(i))), quoted(it.Tool), opener(i, cmp.Or(short(it.Title, 100), it.Call, "(nothing)")),
			el("span", class("status "+kind), text(fated(it))), number(declared(it), float64(it.Declared)),
			number(p.rel(it.Start), float64(it.Start.Sub(p.zero))), number(strconv.Itoa(it.Turn+1), float64(it.Turn)))
	}
	t.used[6] = len(p.Turns) > 1
	return t.part()
}

func (p *page) turnTable() part {
	if len(p.Turns) == 0 {
		return nil
	}
	t := table("Turns", "#Turn", "Prompt", "Outcome", "#Took", "#Start", "Message")
	for i := range p.Turns {
		turn := &p.Turns[i]
		name := strconv.Itoa(i + 1)
		if turn.Restart > 0 {
			name += ", again"
		}
		t.row(number(name, float64(i)), opener(p.turns()+i, cmp.Or(short(turn.Prompt, 140), "(no prompt)")),
			el("span", class("status "+tone(turn.Outcome)), text(turn.Outcome)),
			number(length(turn.Start, turn.End), float64(turn.End.Sub(turn.Start.Time))),
			number(p.rel(turn.Start), float64(turn.Start.Sub(p.zero))), quoted(turn.Message))
	}
	return t.part()
}

func (p *page) answer() part {
	if p.Run.Answer == "" {
		return nil
	}
	return el("pre", class("prose"), attr{"dir", "auto"}, num("tabindex", 0), attr{"role", "group"}, attr{"aria-label", "Answer"}, text(p.Run.Answer))
}

func (p *page) stderr() part {
	if len(p.Stderr) == 0 {
		return nil
	}
	pre := el("pre", class("lines"), num("tabindex", 0), attr{"role", "group"}, attr{"aria-label", "End of stderr"})
	for i := range p.Stderr {
		l := &p.Stderr[i]
		pre.inner = append(pre.inner, el("span", class("faint"), textf("%10s  ", p.rel(l.At))), quoted(short(l.Text, 10_000)), text("\n"))
	}
	return pre
}
