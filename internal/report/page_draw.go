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
	before, next := l.neighbours()
	for i := range l.bars {
		b := &l.bars[i]
		y := top + b.row*rowHeight
		if strings.HasPrefix(b.kind, "mark") {
			g.inner = append(g.inner, d.mark(b, y))
			d.markLabel(b, y, before[i], next[i])
			continue
		}
		g.inner = append(g.inner, shade(b, y), d.bar(b, y), strip(b, y), within(b, y), due(b, y))
		d.barLabel(b, y)
	}
	d.tracks = append(d.tracks, g)
	d.y = top + l.high*rowHeight
}

func (l *lane) said() string {
	n, failed := 0, 0
	for i := range l.bars {
		n += len(l.bars[i].things)
		failed += l.bars[i].failed
	}
	s := fmt.Sprintf("%s: %d", l.name, n)
	if failed > 0 {
		s += fmt.Sprintf(", %d of them failed", failed)
	}
	return s
}

// neighbours are, for each bar, the one before it in its row and the one behind
// it; nil where there is none.
func (l *lane) neighbours() (before, next []*bar) {
	before, next = make([]*bar, len(l.bars)), make([]*bar, len(l.bars))
	last := make([]int, max(l.high, 1))
	for row := range last {
		last[row] = -1
	}
	for i := range l.bars {
		b := &l.bars[i]
		if was := last[b.row]; was >= 0 {
			before[i], next[was] = &l.bars[was], b
		}
		last[b.row] = i
	}
	return before, next
}

// item is what all that can be opened has in common.
func (d *drawing) item(name string, b *bar, all ...part) part {
	things := make([]string, len(b.things))
	for i, n := range b.things {
		things[i] = strconv.Itoa(n)
	}
	title := b.title
	if len(b.things) > 1 {
		title = fmt.Sprintf("%s, close together; the first: %s", b.several(), b.title)
	}
	e := el(name, append(parts{class("bar " + b.kind), attr{"role", "button"}, attr{"data-things", strings.Join(things, " ")}}, all...)...)
	if d.first {
		e.attrs = append(e.attrs, num("tabindex", 0))
		d.first = false
	}
	e.inner = append(e.inner, el("title", text(title)))
	return e
}

// bar is a rectangle; one without a width would not be drawn at all.
func (d *drawing) bar(b *bar, y int) part {
	return d.item("rect", b, share("x", b.start), share("width", b.wide()),
		num("y", y), num("height", barHeight), num("rx", 3))
}

// wide is how wide a bar is drawn.
func (b *bar) wide() float64 { return max(b.end-b.start, 2*hair) }

// strip is, at the foot of a bar of many that are mostly well, the part of those
// that failed.
func strip(b *bar, y int) part {
	if b.failed == 0 || b.failed == len(b.things) || len(b.things) == 1 {
		return nil
	}
	high := max(barHeight*b.failed/len(b.things), 2)
	return el("rect", class("strip"), share("x", b.start), share("width", b.wide()), num("y", y+barHeight-high), num("height", high))
}

// shade is the wait that a call declared, behind its bar.
func shade(b *bar, y int) part {
	if b.shade < b.start+b.wide() {
		return nil
	}
	return el("rect", class("declared"), share("x", b.start), share("width", b.shade-b.start),
		num("y", y+3), num("height", barHeight-6), num("rx", 2))
}

// within is the same of a call that took longer than it said, before its bar,
// which would hide it.
func within(b *bar, y int) part {
	if b.shade <= b.start || b.shade >= b.start+b.wide() {
		return nil
	}
	return el("rect", class("declared within"), share("x", b.start), share("width", b.shade-b.start),
		num("y", y+3), num("height", barHeight-6), num("rx", 2))
}

// due is when it would be too long, before its bar.
func due(b *bar, y int) part {
	if b.deadline == 0 {
		return nil
	}
	return el("line", class("due"), share("x1", b.deadline), share("x2", b.deadline), num("y1", y-2), num("y2", y+barHeight+2))
}

// barLabel writes into a bar what it is, cut off at its end.
func (d *drawing) barLabel(b *bar, y int) {
	wide, label := b.end-b.start, b.label
	if len(b.things) > 1 {
		label = b.several()
	}
	if wide <= 0 || label == "" {
		return
	}
	want := min(float64(len(label))*letter+10, 56)
	d.labels.add(el("svg", class("label"), share("x", b.start), share("width", wide), num("y", y), num("height", barHeight),
		el("text", num("x", 6), num("y", 14), text(label))), want/wide)
}

func (d *drawing) mark(b *bar, y int) part {
	return d.item("circle", b, share("cx", b.start), num("cy", y+barHeight/2), num("r", 5))
}

// markLabel stands beside its mark, to the right of it or, near the end, to the
// left. One that found no room among the others shows up where a zoom makes some.
func (d *drawing) markLabel(b *bar, y int, before, next *bar) {
	label := b.label
	if len(b.things) > 1 {
		label = b.several()
	}
	side := parts{num("dx", 10)}
	if b.lead > 0 {
		side = parts{num("dx", -10), attr{"text-anchor", "end"}}
	}
	from := b.labelFrom(label, before, next)
	if b.crowded && (b.lead > 0 || before == nil) {
		return
	}
	d.labels.add(el("text", append(side, class(b.kind), share("x", b.start), num("y", y+14), text(label))...), from)
}

// labelFrom is the width from which on a label has room beside its mark, between
// those before and behind it and their labels.
func (b *bar) labelFrom(label string, before, next *bar) float64 {
	if b.sure && !b.crowded {
		return 0 // the others make room
	}
	need := func(room, free float64) float64 { return room / max(free, hair/100) }
	room, from := markRoom(label), 0.0
	switch {
	case b.lead > 0 && before == nil:
		from = need(room, b.start)
	case b.lead > 0:
		from = need(room+before.beside(before.rank > b.rank, before.lead > 0), b.start-before.start)
	case next == nil:
		from = need(room, 1-b.start)
	default:
		from = need(room+next.beside(next.rank >= b.rank, next.lead == 0), next.start-b.start)
	}
	switch {
	case b.crowded && before != nil:
		from = max(from, need(before.beside(true, before.lead > 0), b.start-before.start))
	case !b.crowded && (next == nil || !next.crowded):
		from = min(from, usual) // for this width it was placed
	}
	return from
}

// beside is what a mark takes towards another one, in pixels: with its label if
// that stands on this side and goes before the other's.
func (b *bar) beside(first, away bool) float64 {
	if first && !away {
		return markRoom(b.label)
	}
	return 8
}

// markRoom is how much a mark takes with its label, in pixels.
func markRoom(label string) float64 { return float64(len(label))*letter + 24 }

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
		m := &d.Marks[i]
		if kind, rank := markKind(m); rank > 1 && drawn < 200 && !m.doubled() {
			line(kind+" pillar", d.share(m.At.Time))
			drawn++
		}
	}
	for i := range d.Verdicts {
		line(verdictKind(&d.Verdicts[i])+" pillar", d.share(d.Verdicts[i].At.Time))
	}
}
