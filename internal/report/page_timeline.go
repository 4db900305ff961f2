package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cursor-wrap/internal/monitor"
)

// The measures of the timeline, in pixels. Across everything is a share of the
// width, so that a browser can stretch it without a script's help and text stays
// as it is; only labels need to know for which widths they fit.
const (
	rowHeight   = 26
	barHeight   = 20
	axisHeight  = 26
	laneGap     = 6
	chartHeight = 44
	letter      = 6.4 // of a label, on average
	narrowest   = 610 // the style sheet sees to it that none is narrower
	middling    = 738 // of a small window
	usual       = 1079
)

// lane is a row of bars, or several, with a name.
type lane struct {
	name string
	bars []bar
	high int // rows
}

// drawing collects what is drawn, from top to bottom.
type drawing struct {
	*page
	y      int
	first  bool // the first item takes the focus when somebody tabs into the timeline
	names  parts
	back   parts // behind everything
	tracks parts
	lines  parts  // through everything
	ticks  layers // behind the bars
	labels layers // on them
}

// layers are things by the width from which on there is room for them.
type layers map[int]*parts

// timeline is the picture of the whole run. To its left stand the names of the
// lanes, which stay where they are when it is scrolled.
func (p *page) timeline() part {
	d := &drawing{page: p, first: true, ticks: layers{}, labels: layers{}}
	d.scale()
	for _, l := range p.lanes() {
		d.lane(&l)
	}
	d.charts()
	d.pillars()
	height := d.y + 2
	d.lines = append(d.lines, el("line", id("hairline"), attr{"x1", "-9"}, attr{"x2", "-9"}, num("y1", 0), num("y2", height)))
	return parts{
		d.tools(),
		el("div", class("timeline"),
			el("svg", class("names"), num("height", height), attr{"aria-hidden", "true"}, d.names),
			el("div", class("scroller"), id("scroller"), attr{"tabindex", "-1"},
				el("svg", id("tracks"), class("tracks"), num("height", height), attr{"role", "group"}, attr{"aria-label", "Timeline"}, attr{"tabindex", "-1"},
					stripes(), d.back, d.ticks.part(), d.tracks, d.lines, d.labels.part())),
		),
		legend(),
	}
}

// stripes is what an open call is filled with: colour alone does not tell.
func stripes() part {
	return el("defs", el("pattern", id("stripes"), num("width", 6), num("height", 6),
		attr{"patternUnits", "userSpaceOnUse"}, attr{"patternTransform", "rotate(45)"},
		el("rect", class("stripe-back"), num("width", 6), num("height", 6)),
		el("rect", class("stripe"), num("width", 2), num("height", 6))))
}

func (d *drawing) tools() part {
	button := func(name, label, content string) part {
		return el("button", id(name), attr{"type", "button"}, attr{"aria-label", label}, text(content))
	}
	return el("div", class("tools"),
		el("div", class("zoom scripted"), attr{"role", "group"}, attr{"aria-label", "Zoom"},
			button("zoom-out", "Zoom out", "−"), button("zoom-in", "Zoom in", "+"), button("zoom-fit", "Fit", "Fit")),
		el("p", id("readout"), class("scripted"), text("Arrow keys walk, Enter opens, + − 0 zoom.")),
	)
}

// legend says what the looks of a bar mean.
func legend() part {
	list := el("ul", class("legend"), attr{"aria-label", "Legend"})
	for _, one := range []struct{ kind, name string }{
		{"ok", "ok"}, {"failed", "failed"}, {"open", "never ended"}, {"behind", "background"},
		{"silence", "silence"}, {"held", "not counted"}, {"declared", "declared wait"}, {"due", "deadline"}, {"late", "waited past it"},
	} {
		list.inner = append(list.inner, el("li", el("i", class("swatch "+one.kind)), text(one.name)))
	}
	return list
}

// add keeps something until the whole is so wide that it fits. The widths above
// are among its steps.
func (l layers) add(p part, width float64) {
	step := narrowest
	for float64(step) < width {
		step += step / 10
	}
	if step > 1<<16 {
		return // no zoom gets there
	}
	if l[step] == nil {
		l[step] = new(parts)
	}
	*l[step] = append(*l[step], p)
}

// part is all of it. Without a script what fits on a usual screen is seen.
func (l layers) part() part {
	var all parts
	for _, step := range slices.Sorted(maps.Keys(l)) {
		g := el("g", class("fits"), num("data-from", step), attr{"aria-hidden", "true"}, *l[step])
		if step > usual {
			g.attrs = append(g.attrs, attr{"display", "none"})
		}
		all = append(all, g)
	}
	return all
}

// scale draws the time axis. Every level of ticks has only those that the
// coarser ones leave out.
func (d *drawing) scale() {
	d.y = axisHeight
	var coarser []time.Duration
	for _, step := range steps(d.span) {
		part := float64(step) / float64(d.span)
		for at := time.Duration(0); d.zero.Add(at).Before(d.start.Add(d.span)); at += step {
			if slices.ContainsFunc(coarser, func(c time.Duration) bool { return at%c == 0 }) {
				continue
			}
			x := d.share(d.zero.Add(at))
			d.ticks.add(parts{
				el("line", class("tick"), share("x1", x), share("x2", x), num("y1", axisHeight-6), attr{"y2", "100%"}),
				when(x < 0.96, el("text", class("tick-name"), share("x", x), num("dx", 4), num("y", 14), text(brief(at)))),
			}, 64/part)
		}
		coarser = append(coarser, step)
	}
	d.names = append(d.names, el("text", class("faint"), num("x", 0), num("y", 14), text("since start")))
}

// steps are the distances of ticks, the widest first: each a multiple of the
// next, down to what can be told apart at the greatest zoom.
func steps(span time.Duration) []time.Duration {
	all := []time.Duration{24 * time.Hour, 12 * time.Hour, 6 * time.Hour, 2 * time.Hour, time.Hour, 30 * time.Minute, 10 * time.Minute,
		5 * time.Minute, time.Minute, 30 * time.Second, 10 * time.Second, 5 * time.Second, time.Second,
		500 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond, 10 * time.Millisecond}
	return slices.DeleteFunc(all, func(step time.Duration) bool { return step > span || span/step > 400 })
}

// kinds are the classes of bars of a lane; calls have their status.
var kinds = map[Lane]string{
	Assistant: "assistant", Thinking: "thinking", Background: "behind",
	Silence: "silence", Held: "held", Paused: "paused", Ladder: "ladder",
}

const (
	moments = "Moments" // the name of the lane of what has no length
	other   = Lane("")  // whatever else a story may have
)

// lanes are those in which something happened, from top to bottom.
func (p *page) lanes() []lane {
	by := map[Lane][]bar{}
	for i := range p.Items {
		it := &p.Items[i]
		where := it.Lane
		if _, known := kinds[where]; where == Paused {
			where = Held
		} else if !known && where != Tool {
			where = other
		}
		by[where] = append(by[where], p.itemBar(i, it))
	}
	all := []lane{{name: "Turns", bars: p.turnBars()}, {name: moments, bars: p.markBars()}}
	for _, one := range []struct {
		lane Lane
		name string
	}{
		{Assistant, "Assistant"}, {Thinking, "Thinking"}, {Tool, "Tool calls"}, {Background, "Background"},
		{Silence, "Silence"}, {Held, "Not counted"}, {Ladder, "Teardown"}, {other, "Other"},
	} {
		all = append(all, lane{name: one.name, bars: by[one.lane]})
	}
	all = slices.DeleteFunc(all, func(l lane) bool { return len(l.bars) == 0 })
	for i := range all {
		l := &all[i]
		slices.SortStableFunc(l.bars, func(a, b bar) int { return cmp.Compare(a.start, b.start) })
		l.bars = thin(l.bars)
		if l.name == moments {
			l.high = place(l.bars)
		} else {
			l.high = stack(l.bars)
		}
	}
	return all
}

func (p *page) itemBar(i int, it *Item) bar {
	b := bar{start: p.share(it.Start.Time), things: []int{i}, kind: cmp.Or(kinds[it.Lane], "silence"), noun: "item"}
	b.end = max(p.share(it.End.Time), b.start)
	b.label = strings.TrimSpace(it.Tool + " " + short(it.Title, 60))
	said := []string{kindOf(it) + ": " + short(it.Title, 160), length(it.Start, it.End)}
	if it.Lane == Tool {
		b.kind, b.noun = callKind(it.Status), "call"
		b.alone = b.kind == "open"
		if b.kind == "failed" {
			b.failed = 1
		}
		said = append(said, fated(it))
		if it.Declared > 0 {
			b.shade = p.share(it.Start.Add(time.Duration(it.Declared)))
			said = append(said, "declared "+it.Declared.String())
		}
		if at := it.Deadline; !at.IsZero() && at.Sub(p.start) < p.span {
			b.deadline = p.share(at.Time)
		}
	}
	b.title = strings.Join(append(said, "at "+p.rel(it.Start)), ", ")
	return b
}

// callKind is the class of a call.
func callKind(status string) string {
	switch status {
	case "failed", "open":
		return status
	case "background":
		return "behind"
	}
	return "ok"
}

// kindOf is what an item is, in a word.
func kindOf(it *Item) string {
	switch it.Lane {
	case Tool:
		return "Call of " + cmp.Or(it.Tool, "a tool")
	case Held:
		return "Held"
	case Ladder:
		return "Teardown"
	}
	if it.Lane == "" {
		return "Item"
	}
	return strings.ToUpper(string(it.Lane[:1])) + string(it.Lane[1:])
}

// fated is how a call ended.
func fated(it *Item) string {
	s := it.Status
	if s == "open" {
		s = "never ended"
	}
	if it.Exit != nil {
		s = strings.TrimPrefix(s+", exit "+strconv.Itoa(*it.Exit), ", ")
	}
	return s
}

func declared(it *Item) string {
	if it.Declared <= 0 {
		return "none"
	}
	return it.Declared.String()
}

func (p *page) turnBars() []bar {
	if len(p.Turns) < 2 {
		return nil
	}
	var all []bar
	for i := range p.Turns {
		t := &p.Turns[i]
		b := bar{start: p.share(t.Start.Time), end: p.share(t.End.Time), things: []int{p.turns() + i}, kind: "turn " + tone(t.Outcome), noun: "turn"}
		b.end = max(b.end, b.start)
		if tone := tone(t.Outcome); tone == "bad" || tone == "hung" {
			b.failed = 1
		}
		b.label = fmt.Sprintf("%d %s", i+1, short(t.Prompt, 80))
		b.title = fmt.Sprintf("Turn %d, %s: %s, %s, at %s", i+1, t.Outcome, short(t.Prompt, 160), length(t.Start, t.End), p.rel(t.Start))
		all = append(all, b)
	}
	return all
}

// markBars are the moments: marks and verdicts. Their label stands beside them.
func (p *page) markBars() []bar {
	var all []bar
	for i := range p.Marks {
		m := &p.Marks[i]
		if m.doubled() {
			continue
		}
		b := p.moment(m.At, p.marks()+i, cmp.Or(m.Text, m.What))
		b.kind, b.rank = markKind(m)
		b.alone = b.rank > 1
		all = append(all, b)
	}
	last := len(p.Verdicts) - 1
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		b := p.moment(v.At, p.verdicts()+i, verdictName(v))
		b.kind, b.rank, b.alone = verdictKind(v), 2, true
		if v.final() {
			b.rank, b.sure = 4, true
			if i == last { // the one that counted
				b.rank = 5
			}
		}
		all = append(all, b)
	}
	for i := range all {
		all[i].wants()
	}
	return all
}

func (p *page) moment(at monitor.Millis, n int, said string) bar {
	x, label := p.share(at.Time), short(said, 44)
	return bar{start: x, end: x, things: []int{n}, noun: "moment", label: label, title: fmt.Sprintf("%s at %s, %s", label, p.rel(at), clock(at))}
}

// wants settles on which side of a moment its label stands, and how much room it
// asks for there. That of a verdict is seen however narrow the picture is.
func (b *bar) wants() {
	width := float64(usual)
	if b.sure {
		width = narrowest
	}
	room := markRoom(b.label)
	if b.start > 0.5 && b.start+room/min(width, middling) > 1 {
		b.lead = room / width
	} else {
		b.room = room / width
	}
}

// doubled reports whether a mark says what a verdict says, too.
func (m *Mark) doubled() bool { return m.What == "suspected" }

// final reports whether a verdict ended something.
func (v *Verdict) final() bool { return v.What != "suspected" }

func verdictKind(v *Verdict) string {
	if v.final() {
		return "mark error"
	}
	return "mark warn"
}

// markKind is the class of a mark, and how much it wants to be seen.
func markKind(m *Mark) (string, int) {
	switch {
	case m.What == "undeclared_timeout": // a warning about the policy, which some agents give with every call
		return "mark debug", -1
	case m.Level == "ERROR":
		return "mark error", 3
	case m.Level == "WARN":
		return "mark warn", 2
	case m.Level == "DEBUG":
		return "mark debug", 0
	}
	return "mark info", 1
}
