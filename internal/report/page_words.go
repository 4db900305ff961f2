package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// axis is the time that the page is about.
type axis struct {
	zero  time.Time     // what is counted from
	start time.Time     // of the picture: a little earlier
	span  time.Duration // of the picture
}

// newAxis reaches from the first to the last moment that is told of. The log of
// a killed run ends anywhere.
func newAxis(s *Story) axis {
	first, last := s.Run.Start.Time, s.Run.End.Time
	reach := func(at monitor.Millis) {
		if at.IsZero() {
			return
		}
		if first.IsZero() || at.Before(first) {
			first = at.Time
		}
		if at.After(last) {
			last = at.Time
		}
	}
	for i := range s.Items {
		reach(s.Items[i].Start)
		reach(s.Items[i].End)
	}
	for i := range s.Turns {
		reach(s.Turns[i].Start)
		reach(s.Turns[i].End)
	}
	for i := range s.Verdicts {
		reach(s.Verdicts[i].At)
	}
	for i := range s.Marks {
		reach(s.Marks[i].At)
	}
	for i := range s.Teardowns {
		reach(s.Teardowns[i].At)
	}
	// Room at both ends, so that what is there can be seen.
	span := max(last.Sub(first), 10*time.Millisecond)
	return axis{zero: first, start: first.Add(-span / 120), span: span + span/60}
}

// share is where a moment lies, from 0 to 1.
func (a axis) share(at time.Time) float64 {
	return min(max(float64(at.Sub(a.start))/float64(a.span), 0), 1)
}

// rel is a moment as it is told: how long after the start.
func (a axis) rel(at monitor.Millis) string {
	if at.IsZero() {
		return "none"
	}
	d := at.Sub(a.zero)
	if d < 0 {
		return "-" + tree.Span(-d).String()
	}
	return "+" + tree.Span(d).String()
}

// clock is the time of day, to the millisecond.
func clock(at monitor.Millis) string { return at.UTC().Format("15:04:05.000") }

// date is a moment in full.
func date(at monitor.Millis) string {
	if at.IsZero() {
		return "unknown"
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// length is what lies between two moments.
func length(from, to monitor.Millis) string { return tree.Span(max(to.Sub(from.Time), 0)).String() }

// brief is a span without what is zero: 0, 30s, 1m30s, 2h.
func brief(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// count is a number with its thousands apart.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// many is a number of something.
func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "process"); ok {
		what = stem + "processe"
	}
	return count(int64(n)) + " " + what + "s"
}

// bytesOf is a size for a person.
func bytesOf(n int64) string {
	switch {
	case n == tree.Unknown:
		return "unknown"
	case n < 1<<10:
		return many(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// percent is a part of one core.
func percent(p float64) string {
	if p == tree.Unknown {
		return "unknown"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}

// short is the beginning of a text, in one line. The lengths that it is asked
// for are those of labels, where a few columns matter.
func short(s string, columns int) string {
	if len(s) > 8*columns {
		s = strings.ToValidUTF8(s[:8*columns], "") + "…"
	}
	return display.Cut(strings.TrimSpace(display.Line(s, " ")), columns, "…")
}
