package report

import (
	"slices"
)

// bar is one thing that is drawn in a lane: an item, or several that lie too
// close to be told apart.
type bar struct {
	start, end float64 // shares of the axis
	things     []int   // what is behind it
	row        int
	kind       string // a class of the style sheet
	rank       int    // of several, the kind with the highest stands for all; among equals, that of the most
	alone      bool   // too important to be one of several

	noun   string         // what it is one of
	failed int            // how many of its things did
	tally  map[string]int // how many of its things are of a kind; none while it is but one

	label   string
	title   string
	lead    float64 // that the label of a moment wants before it
	room    float64 // or behind it
	crowded bool    // it did not get that
	sure    bool    // its label is seen at every width

	shade    float64 // where its declared wait ends; 0 if it has none
	deadline float64 // 0 if it has none, or none that is on the axis
}

// A lane of a hundred thousand calls is not drawn call by call: nobody could see
// them, and the browser would be busy for many seconds.
const (
	hair    = 1.0 / 2000 // of the width: less than a pixel on most screens
	maxBars = 2000
	maxRows = 12
)

// thin merges bars, which are sorted by their start, until a lane can have them.
func thin(bars []bar) []bar {
	for width := hair; ; width *= 2 {
		if all := merge(bars, width); len(all) <= maxBars || width > 1 {
			return all
		}
	}
}

// merge joins bars that are narrower than width with their neighbour, where less
// than that lies between them. No group gets wider than a few: a busy lane is to
// look like many calls, not like one long one.
func merge(bars []bar, width float64) []bar {
	var all []bar
	open := -1 // the group that may still grow
	for _, b := range bars {
		narrow := b.end-b.start < width && !b.alone
		if narrow && open >= 0 && b.start-all[open].end < width && b.end-all[open].start <= 4*width {
			all[open].join(&b)
			continue
		}
		b.things = slices.Clone(b.things)
		all = append(all, b)
		if narrow {
			open = len(all) - 1
		}
	}
	return all
}

func (b *bar) join(other *bar) {
	b.things = append(b.things, other.things...)
	b.end = max(b.end, other.end)
	b.shade, b.deadline = 0, 0
	b.failed += other.failed
	if b.tally == nil {
		b.tally = map[string]int{b.kind: 1}
	}
	b.tally[other.kind]++
	more := other.rank == b.rank && b.tally[other.kind] > b.tally[b.kind]
	if other.rank > b.rank || more {
		b.kind, b.rank = other.kind, other.rank
	}
}

// several says of how many a bar is, and how many of them failed.
func (b *bar) several() string {
	s := many(len(b.things), b.noun)
	if b.failed > 0 {
		s += ", " + count(int64(b.failed)) + " failed"
	}
	return s
}

// stack puts bars that overlap into rows of their own and returns how many there
// are. Who finds no free row among the first ones shares the last.
func stack(bars []bar) int {
	var ends []float64
	for i := range bars {
		b := &bars[i]
		b.row = slices.IndexFunc(ends, func(end float64) bool { return end <= b.start })
		if b.row < 0 && len(ends) < maxRows {
			b.row = len(ends)
			ends = append(ends, 0)
		} else if b.row < 0 {
			b.row = maxRows - 1
		}
		ends[b.row] = max(ends[b.row], b.end)
	}
	clip(bars, len(ends))
	return len(ends)
}

// maxMarkRows is how many rows moments may take: they are to stand above the
// picture, not to push it down.
const maxMarkRows = 5

// place puts moments and their labels side by side into few rows, those first
// that matter most.
func place(bars []bar) int {
	order := make([]int, len(bars))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bars[b].rank - bars[a].rank })
	var rows [maxMarkRows][]*bar
	high := 1
	for _, i := range order {
		b := &bars[i]
		free := func(row []*bar) bool {
			return !slices.ContainsFunc(row, func(o *bar) bool {
				return b.start-b.lead < o.end+o.room && o.start-o.lead < b.end+b.room
			})
		}
		b.row = slices.IndexFunc(rows[:], free)
		if b.crowded = b.row < 0; b.crowded {
			b.row = maxMarkRows - 1
		} else {
			rows[b.row] = append(rows[b.row], b)
		}
		high = max(high, b.row+1)
	}
	return high
}

// clip ends the shade of a declared wait where the next bar of its row begins:
// twenty calls one after the other that may each take ten minutes would bury
// each other.
func clip(bars []bar, rows int) {
	next := make([]float64, rows)
	for row := range next {
		next[row] = 1
	}
	for i := len(bars) - 1; i >= 0; i-- {
		b := &bars[i]
		b.shade = min(b.shade, max(next[b.row], b.end))
		if b.deadline > next[b.row] {
			b.deadline = 0
		}
		next[b.row] = b.start
	}
}
