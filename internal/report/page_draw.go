package report

import (
	"fmt"
	"strconv"
	"strings"
)

// lane draws the bars of a lane.
func (d *drawing) lane(l *lane) {
	d.y += laneGap
	top := d.y
	d.names = append(d.names, el("text", num("x", 0), num("y", top+15), text(l.name)),
		el("line", class("edge"), attr{"x2", "100%"}, num("y1", top-3), num("y2", top-3)))
	d.back = append(d.back, el("line", class("edge"), attr{"x2", "100%"}, num("y1", top-3), num("y2", top-3)))
	g := el("g", class("lane"), attr{"role", "group"}, attr{"aria-label", l.said()})
	next := l.followers()
	for i := range l.bars {
		b := &l.bars[i]
		y := top + b.row*rowHeight
		if strings.HasPrefix(b.kind, "mark") {
			g.inner = append(g.inner, d.mark(b, y))
			d.markLabel(b, y, next[i])
			continue
		}
		g.inner = append(g.inner, shade(b, y), d.bar(b, y))
		d.barLabel(b, y)
	}
	d.tracks = append(d.tracks, g)
	d.y = top + l.high*rowHeight
}

func (l *lane) said() string {
	n, failed := 0, 0
	for i := range l.bars {
		n += len(l.bars[i].things)
		if l.bars[i].kind == "failed" {
			failed++
		}
	}
	s := fmt.Sprintf("%s: %d", l.name, n)
	if failed > 0 {
		s += fmt.Sprintf(", some of them failed")
	}
	return s
}

// followers is where the next bar of the same row begins, for each.
func (l *lane) followers() []float64 {
	next := make([]float64, len(l.bars))
	last := make([]float64, max(l.high, 1))
	for row := range last {
		last[row] = 1
	}
	for i := len(l.bars) - 1; i >= 0; i-- {
		next[i] = last[l.bars[i].row]
		last[l.bars[i].row] = l.bars[i].start
	}
	return next
}

// item is what all that can be opened has in common.
func (d *drawing) item(name string, b *bar, all ...part) part {
	things := make([]string, len(b.things))
	for i, n := range b.things {
		things[i] = strconv.Itoa(n)
	}
	title := b.title
	if len(b.things) > 1 {
		title = fmt.Sprintf("%d close together, the first: %s", len(b.things), b.title)
	}
	e := el(name, append(parts{class("bar " + b.kind), attr{"role", "button"}, attr{"data-things", strings.Join(things, " ")}}, all...)...)
	if d.first {
		e.attrs = append(e.attrs, num("tabindex", 0))
		d.first = false
	}
	e.inner = append(e.inner, el("title", text(title)))
	return e
}

func (d *drawing) bar(b *bar, y int) part {
	return d.item("rect", b, share("x", b.start), share("width", b.end-b.start),
		num("y", y), num("height", barHeight), num("rx", 3))
}

// shade is the wait that a call declared, and when it is too long.
func shade(b *bar, y int) part {
	var all parts
	if b.shade > b.start {
		all = append(all, el("rect", class("declared"), share("x", b.start), share("width", b.shade-b.start),
			num("y", y+3), num("height", barHeight-6), num("rx", 2)))
	}
	if b.deadline > 0 {
		all = append(all, el("line", class("due"), share("x1", b.deadline), share("x2", b.deadline), num("y1", y-2), num("y2", y+barHeight+2)))
	}
	return all
}

// barLabel writes into a bar what it is, cut off at its end.
func (d *drawing) barLabel(b *bar, y int) {
	wide, label := b.end-b.start, b.label
	if len(b.things) > 1 {
		label = strconv.Itoa(len(b.things))
	}
	if wide <= 0 || label == "" {
		return
	}
	want := min(float64(len(label))*letter+10, 56)
	d.label(el("svg", class("label"), share("x", b.start), share("width", wide), num("y", y), num("height", barHeight),
		el("text", num("x", 6), num("y", 14), text(label))), want/wide)
}

func (d *drawing) mark(b *bar, y int) part {
	return d.item("circle", b, share("cx", b.start), num("cy", y+barHeight/2), num("r", 5))
}

// markLabel stands beside its mark, to the right of it or, near the end, to the
// left.
func (d *drawing) markLabel(b *bar, y int, next float64) {
	label := short(b.label, 44)
	if len(b.things) > 1 {
		label = strconv.Itoa(len(b.things))
	}
	want := float64(len(label))*letter + 20
	e := el("text", class(b.kind), share("x", b.start), num("dx", 10), num("y", y+14), text(label))
	free := next - b.start
	if b.start > 0.8 && 1-b.start < want/usual {
		e.attrs = append(e.attrs, attr{"text-anchor", "end"})
		e.attrs[2] = num("dx", -10)
		free = 0.2
	}
	if free > 0 {
		d.label(e, want/free)
	}
}

// pillars are what goes through all lanes: where a turn begins, what went wrong.
func (d *drawing) pillars() {
	line := func(kind string, x float64) {
		d.lines = append(d.lines, el("line", class(kind), share("x1", x), share("x2", x), num("y1", axisHeight), num("y2", d.y)))
	}
	for i := range d.Turns {
		if i > 0 && len(d.Turns) <= maxBars {
			line("border", d.share(d.Turns[i].Start.Time))
		}
	}
	drawn := 0
	for i := range d.Marks {
		if kind, rank := markKind(d.Marks[i].Level); rank > 1 && drawn < 200 {
			line(kind+" pillar", d.share(d.Marks[i].At.Time))
			drawn++
		}
	}
	for i := range d.Verdicts {
		kind := "mark error pillar"
		if d.Verdicts[i].What == "suspected" {
			kind = "mark warn pillar"
		}
		line(kind, d.share(d.Verdicts[i].At.Time))
	}
}
