package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A chart is drawn on a sheet of its own that is stretched to the width of the
// timeline; its lines keep their breadth.
const (
	sheetWide = 20000
	sheetHigh = 100
)

// point is one of a curve: a share of the width, and a height from 0 to 1.
type point struct{ x, y float64 }

// charts draws what changed all the time: how much time was left, and what the
// processes did.
func (d *drawing) charts() {
	d.timeLeft()
	if len(d.Samples) == 0 {
		return
	}
	most := func(of func(*Sample) float64) float64 {
		top := 0.0
		for i := range d.Samples {
			top = max(top, of(&d.Samples[i]))
		}
		return top
	}
	curve := func(name, kind, top string, of func(*Sample) float64) {
		if m := most(of); m > 0 {
			d.chartLane(name, "max "+top, fmt.Sprintf("%s, at most %s", name, top), curved(kind, d.sampled(of, m)))
		}
	}
	cpu := func(s *Sample) float64 { return s.Percent }
	alive := func(s *Sample) float64 { return float64(s.Alive) }
	received := func(s *Sample) float64 { return float64(s.Received) }
	disk := func(s *Sample) float64 { return float64(s.Disk) }
	curve("CPU", "cpu", percent(most(cpu)), cpu)
	curve("Processes", "alive", count(int64(most(alive))), alive)
	curve("Received", "net", bytesOf(int64(most(received))), received)
	curve("Disk", "disk", bytesOf(int64(most(disk))), disk)
}

// sampled is the curve of one value. Of samples that fall on the same place the
// highest counts.
func (d *drawing) sampled(of func(*Sample) float64, top float64) []point {
	var all []point
	for i := range d.Samples {
		x, y := d.share(d.Samples[i].At.Time), max(of(&d.Samples[i]), 0)/top
		if n := len(all); n > 0 && x-all[n-1].x < hair {
			all[n-1].y = max(all[n-1].y, y)
			continue
		}
		all = append(all, point{x, y})
	}
	return all
}

// chartLane draws something of its own height below its name.
func (d *drawing) chartLane(name, more, said string, drawn part) {
	d.y += laneGap
	y := d.y
	d.names = append(d.names,
		el("line", class("edge"), attr{"x2", "100%"}, num("y1", y-3), num("y2", y-3)),
		el("text", num("x", 0), num("y", y+15), text(name)),
		el("text", class("faint"), num("x", 0), num("y", y+30), text(more)))
	d.back = append(d.back, el("line", class("edge"), attr{"x2", "100%"}, num("y1", y-3), num("y2", y-3)))
	d.tracks = append(d.tracks, el("svg", class("chart"), num("y", y), attr{"width", "100%"}, num("height", chartHeight),
		attr{"viewBox", fmt.Sprintf("0 -4 %d %d", sheetWide, sheetHigh+8)}, attr{"preserveAspectRatio", "none"},
		attr{"role", "img"}, attr{"aria-label", said},
		el("title", text(said)), drawn))
	d.y = y + chartHeight
}

// curved are curves with the area below them.
func curved(kind string, curves ...[]point) part {
	var area, line strings.Builder
	for _, points := range curves {
		first, last := points[0].x*sheetWide, points[len(points)-1].x*sheetWide
		one := polyline(points)
		line.WriteString(one)
		fmt.Fprintf(&area, "%sL%.0f %dL%.0f %dZ", one, last, sheetHigh, first, sheetHigh)
	}
	return el("g", class(kind),
		el("path", class("area"), attr{"d", area.String()}),
		el("path", class("line"), attr{"d", line.String()}))
}

func polyline(points []point) string {
	var b strings.Builder
	for i, p := range points {
		b.WriteByte("ML"[min(i, 1)])
		b.WriteString(strconv.FormatFloat(p.x*sheetWide, 'f', 0, 64))
		b.WriteByte(' ')
		b.WriteString(strconv.FormatFloat((1-p.y)*sheetHigh, 'f', 1, 64))
	}
	return b.String()
}

// timeLeft draws the deadlines as they moved: full when a wait began, empty from
// the deadline on. Where there was none the curve has a gap.
func (d *drawing) timeLeft() {
	left := d.left()
	if len(left.curves) == 0 {
		return
	}
	var late parts
	for _, one := range left.late {
		late = append(late, el("rect", class("late"), attr{"x", sheet(one.from)}, attr{"width", sheet(one.to - one.from)}, num("y", 0), num("height", sheetHigh)))
	}
	d.chartLane("Time left", "to deadline",
		"Time left until the deadline, as a part of what there was: "+many(len(d.Deadlines), "deadline")+" one after the other",
		parts{late, curved("left", left.curves...)})
}

// sheet is a share of the width on the sheet of a chart.
func sheet(x float64) string { return strconv.FormatFloat(x*sheetWide, 'f', 0, 64) }

// remaining is how much time was left: curves with gaps between them, and where
// it was waited for after the deadline.
type remaining struct {
	curves [][]point
	late   []stretch
}

// stretch is a part of the width.
type stretch struct{ from, to float64 }

// left goes through the deadlines. The same one may be told of several times.
func (d *drawing) left() *remaining {
	r := &remaining{}
	var since, until time.Time
	for i := range d.Deadlines {
		one := &d.Deadlines[i]
		if one.Until.IsZero() {
			until = time.Time{}
			continue
		}
		if !one.Until.Equal(until) {
			since, until = one.At.Time, one.Until.Time
		}
		part := func(at time.Time) float64 {
			whole := until.Sub(since)
			if whole <= 0 {
				return 0
			}
			return min(max(float64(until.Sub(at))/float64(whole), 0), 1)
		}
		from, end := one.At.Time, d.counted(i)
		r.begin(d.share(from), part(from))
		if until.After(from) && until.Before(end) {
			r.add(d.share(until), 0)
		}
		r.add(d.share(end), part(end))
		if until.Before(end) {
			r.waited(d.share(later(from, until)), d.share(end))
		}
	}
	return r
}

// counted is until when a deadline did.
func (d *drawing) counted(i int) time.Time {
	switch {
	case i+1 < len(d.Deadlines):
		return d.Deadlines[i+1].At.Time
	case !d.Run.End.IsZero():
		return d.Run.End.Time
	}
	return d.start.Add(d.span)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// begin goes on with the last curve, or begins another where a gap can be seen.
func (r *remaining) begin(x, y float64) {
	if n := len(r.curves); n > 0 {
		if last := r.curves[n-1]; x-last[len(last)-1].x < hair {
			r.add(x, y)
			return
		}
	}
	r.curves = append(r.curves, []point{{x, y}})
}

// add puts a point on the last curve. Of those that fall on the same place the
// lowest counts.
func (r *remaining) add(x, y float64) {
	curve := &r.curves[len(r.curves)-1]
	if n := len(*curve); n > 2 && x-(*curve)[n-2].x < hair/2 {
		(*curve)[n-2].y = min((*curve)[n-2].y, (*curve)[n-1].y)
		(*curve)[n-1] = point{x, y}
		return
	}
	*curve = append(*curve, point{x, y})
}

// waited notes a time past the deadline.
func (r *remaining) waited(from, to float64) {
	if n := len(r.late); n > 0 && from-r.late[n-1].to < hair {
		r.late[n-1].to = to
		return
	}
	r.late = append(r.late, stretch{from, to})
}
