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
			d.chartLane(name, kind, "max "+top, d.sampled(of, m), fmt.Sprintf("%s, at most %s", name, top))
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

// chartLane draws an area below a curve.
func (d *drawing) chartLane(name, kind, top string, points []point, said string) {
	d.y += laneGap
	y := d.y
	d.names = append(d.names,
		el("line", class("edge"), attr{"x2", "100%"}, num("y1", y-3), num("y2", y-3)),
		el("text", num("x", 0), num("y", y+15), text(name)),
		el("text", class("faint"), num("x", 0), num("y", y+30), text(top)))
	d.back = append(d.back, el("line", class("edge"), attr{"x2", "100%"}, num("y1", y-3), num("y2", y-3)))
	line := polyline(points)
	first, last := points[0].x*sheetWide, points[len(points)-1].x*sheetWide
	area := fmt.Sprintf("%sL%.0f %dL%.0f %dZ", line, last, sheetHigh, first, sheetHigh)
	d.tracks = append(d.tracks, el("svg", class("chart "+kind), num("y", y), attr{"width", "100%"}, num("height", chartHeight),
		attr{"viewBox", fmt.Sprintf("0 -4 %d %d", sheetWide, sheetHigh+8)}, attr{"preserveAspectRatio", "none"},
		attr{"role", "img"}, attr{"aria-label", said},
		el("title", text(said)),
		el("path", class("area"), attr{"d", area}),
		el("path", class("line"), attr{"d", line})))
	d.y = y + chartHeight
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

// timeLeft draws the deadlines as they moved: full when a wait began, empty when
// it was over. Where there was none the curve lies at the bottom.
func (d *drawing) timeLeft() {
	points := d.left()
	if len(points) > 1 {
		d.chartLane("Time left", "left", "to deadline", points,
			"Time left until the deadline, as a part of what there was: "+many(len(d.Deadlines), "deadline")+" one after the other")
	}
}

// left are the points of that curve. Of those that fall on the same place the
// lowest counts.
func (d *drawing) left() []point {
	var all []point
	add := func(at time.Time, y float64) {
		x, n := d.share(at), len(all)
		if n > 2 && x-all[n-2].x < hair/2 {
			all[n-2].y, all[n-1] = min(all[n-2].y, all[n-1].y), point{x, y}
			return
		}
		all = append(all, point{x, y})
	}
	var since, until time.Time
	for i := range d.Deadlines {
		one := &d.Deadlines[i]
		end := d.start.Add(d.span)
		if i+1 < len(d.Deadlines) {
			end = d.Deadlines[i+1].At.Time
		} else if !d.Run.End.IsZero() {
			end = d.Run.End.Time
		}
		if one.Until.IsZero() {
			add(one.At.Time, 0)
			add(end, 0)
			until = time.Time{}
			continue
		}
		if !one.Until.Equal(until) { // the same one as before goes on
			since, until = one.At.Time, one.Until.Time
		}
		part := func(at time.Time) float64 {
			whole := until.Sub(since)
			if whole <= 0 {
				return 0
			}
			return min(max(float64(until.Sub(at))/float64(whole), 0), 1)
		}
		add(one.At.Time, part(one.At.Time))
		add(end, part(end))
	}
	return all
}
