package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
)

func TestMerge(t *testing.T) {
	at := func(starts ...float64) (all []bar) {
		for i, x := range starts {
			all = append(all, bar{start: x, end: x + hair/10, things: []int{i}})
		}
		return all
	}
	sizes := func(bars []bar) (all []int) {
		for i := range bars {
			all = append(all, len(bars[i].things))
		}
		return all
	}
	wide := func(b []bar, i int) []bar { b[i].end = b[i].start + 0.1; return b }
	alone := func(b []bar, i int) []bar { b[i].alone = true; return b }
	for _, row := range []struct {
		name string
		bars []bar
		want []int
	}{
		{"none", nil, nil},
		{"apart", at(0.1, 0.1+1.2*hair), []int{1, 1}},
		{"close", at(0.1, 0.1+0.5*hair, 0.1+hair), []int{3}},
		{"a wide one stays itself", wide(at(0.1, 0.1+0.5*hair), 1), []int{1, 1}},
		{"what runs beside a wide one", wide(at(0.1, 0.2, 0.2+0.5*hair), 0), []int{1, 2}},
		{"an open call stays itself", alone(at(0.1, 0.1+0.1*hair, 0.1+0.2*hair), 1), []int{2, 1}},
		{"a group does not grow for ever", at(0, 0.9*hair, 1.8*hair, 2.7*hair, 3.6*hair, 4.5*hair), []int{5, 1}},
	} {
		if got := sizes(merge(row.bars, hair)); !slices.Equal(got, row.want) {
			t.Errorf("%s: groups of %v, want %v", row.name, got, row.want)
		}
	}
}

// TestManyBars: no lane has more elements than a browser likes, and no item is
// lost.
func TestManyBars(t *testing.T) {
	s := hugeStory(100_000, 100_000)
	p := &page{Story: s, axis: newAxis(s)}
	items := 0
	for _, l := range p.lanes() {
		if len(l.bars) > maxBars || l.high > maxRows {
			t.Errorf("%s has %d bars in %d rows", l.name, len(l.bars), l.high)
		}
		for i := range l.bars {
			items += len(l.bars[i].things)
		}
	}
	if items != len(s.Items) {
		t.Errorf("%d items are drawn, want %d", items, len(s.Items))
	}
}

// TestOpenCallStandsAlone: the call that hangs is never one of several.
func TestOpenCallStandsAlone(t *testing.T) {
	s := hugeStory(10_000, 10_000)
	for i := range s.Items {
		if s.Items[i].Lane == Tool && i > 5000 {
			s.Items[i].Status, s.Items[i].End = "open", s.Items[i].Start
			break
		}
	}
	if page := render(t, "open", s); strings.Count(page, `class="bar open"`) != 1 || !strings.Contains(page, "never ended, at") {
		t.Error("the open call has no bar of its own")
	}
	p := &page{Story: s, axis: newAxis(s)}
	for _, l := range p.lanes() {
		for _, b := range l.bars {
			if b.kind == "open" && len(b.things) != 1 {
				t.Errorf("the open call shares its bar with %d others", len(b.things)-1)
			}
		}
	}
}

// TestFailureHasItsShare: a group looks like most of it, and the failed calls in
// it take as much of its bar as they are.
func TestFailureHasItsShare(t *testing.T) {
	ok, failed := bar{kind: "ok", things: []int{0}, noun: "call"}, bar{kind: "failed", failed: 1, things: []int{1}, noun: "call"}
	for _, row := range []struct {
		bars []bar
		kind string
		said string
		high string // of the red part; empty for none
	}{
		{[]bar{ok, ok, ok}, "ok", "3 calls", ""},
		{[]bar{failed, ok, ok, ok}, "ok", "4 calls, 1 failed", "5"},
		{[]bar{ok, failed}, "ok", "2 calls, 1 failed", "10"},
		{[]bar{failed, failed, ok}, "failed", "3 calls, 2 failed", "13"},
		{[]bar{failed, failed}, "failed", "2 calls, 2 failed", ""},
		{append(slices.Repeat([]bar{ok}, 99), failed), "ok", "100 calls, 1 failed", "2"},
	} {
		got := merge(row.bars, hair)
		if len(got) != 1 || got[0].kind != row.kind || got[0].several() != row.said {
			t.Errorf("%s: the group is %+v", row.said, got)
			continue
		}
		high := ""
		if e, _ := strip(&got[0], 0).(*element); e != nil {
			high = e.attrs[len(e.attrs)-1].value
		}
		if high != row.high {
			t.Errorf("%s: the red part is %q high, want %q", row.said, high, row.high)
		}
	}
}

// TestDeclaredWaitIsSeen: also of a call that took longer, and of one that never
// ended, whose bar lies over it.
func TestDeclaredWaitIsSeen(t *testing.T) {
	for _, row := range []struct {
		name          string
		bar           bar
		behind, front bool
	}{
		{"shorter than it said", bar{start: 0.1, end: 0.3, shade: 0.5}, true, false},
		{"longer than it said", bar{start: 0.1, end: 0.3, shade: 0.2}, false, true},
		{"it said nothing", bar{start: 0.1, end: 0.3}, false, false},
	} {
		if shade(&row.bar, 0) != nil != row.behind || within(&row.bar, 0) != nil != row.front {
			t.Errorf("%s: behind %v, before %v", row.name, shade(&row.bar, 0), within(&row.bar, 0))
		}
	}
	if page := render(t, "hang", hangStory()); strings.Count(page, `class="declared within"`) != 1 {
		t.Error("the wait of the open call is not shown")
	}
}

// TestMomentsSayThingsOnce: a suspicion has one moment and one line through the
// lanes; that a call declared no wait has no line.
func TestMomentsSayThingsOnce(t *testing.T) {
	s := hangStory()
	p := &page{Story: s, axis: newAxis(s)}
	suspicions, least := 0, 10
	for _, b := range p.markBars() {
		if strings.Contains(strings.ToLower(b.label), "suspi") || strings.Contains(b.label, "suspected") {
			suspicions++
		}
		if !strings.HasPrefix(undeclared, strings.TrimSuffix(b.label, "…")) {
			least = min(least, b.rank)
			continue
		}
		if b.rank >= 0 || b.alone {
			t.Errorf("a call without a declared wait is as important as %d", b.rank)
		}
	}
	if suspicions != 1 || least < 0 {
		t.Errorf("%d moments tell of the suspicion; the least of the others has %d", suspicions, least)
	}
	pillars := 2 // verdicts
	for i := range s.Marks {
		if m := &s.Marks[i]; m.Level == "WARN" && m.What != "suspected" && m.What != "undeclared_timeout" {
			pillars++
		}
	}
	if got := strings.Count(render(t, "hang", s), ` pillar"`); got != pillars {
		t.Errorf("%d lines through the lanes, want %d", got, pillars)
	}
}

func TestStack(t *testing.T) {
	bars := []bar{{start: 0, end: 0.5}, {start: 0.1, end: 0.2}, {start: 0.2, end: 0.3, shade: 0.9, deadline: 0.95}, {start: 0.6, end: 0.7}, {start: 0.4, end: 0.5}}
	rows := stack(bars[:4])
	if rows != 2 || bars[0].row != 0 || bars[1].row != 1 || bars[2].row != 1 || bars[3].row != 0 {
		t.Errorf("%d rows: %+v", rows, bars)
	}
	if bars[2].shade != 0.9 || bars[2].deadline != 0.95 {
		t.Errorf("the shade ends at %v though nothing follows", bars[2].shade)
	}
	bars = []bar{{start: 0, end: 0.1, shade: 0.9, deadline: 0.95}, {start: 0.3, end: 0.4}}
	if stack(bars); bars[0].shade != 0.3 || bars[0].deadline != 0 {
		t.Errorf("the shade goes on below the next bar: %+v", bars[0])
	}
}

// TestMomentIsSeen: what took no time has a bar that a browser draws.
func TestMomentIsSeen(t *testing.T) {
	s := &Story{Run: Run{Start: millis(0), End: millis(100)}, Items: []Item{{Lane: Assistant, Start: millis(50), End: millis(50), First: -1, Last: -1}}}
	if page := render(t, "moment", s); !regexp.MustCompile(`class="bar assistant"[^>]* width="0\.[0-9]+%"`).MatchString(page) || strings.Contains(page, `width="0%"`) {
		t.Error("the item has no bar that is seen")
	}
}

// TestTimeLeft: the time left is nothing from the deadline on, and without one
// there is none.
func TestTimeLeft(t *testing.T) {
	none := monitor.Millis{}
	for _, row := range []struct {
		name      string
		deadlines []Deadline
		want      string // moments and parts of curves, then what was waited past them
	}{
		{"they move, and end", []Deadline{
			{millis(0), millis(60), monitor.Starting}, {millis(30), millis(90), monitor.Thinking},
			{millis(60), millis(90), monitor.Thinking}, {millis(90), none, monitor.Draining},
		}, "0:1.00 30:0.50 30:1.00 60:0.50 60:0.50 90:0.00"},
		{"one is passed by half", []Deadline{{millis(0), millis(30), monitor.Thinking}, {millis(60), none, monitor.Draining}},
			"0:1.00 30:0.00 60:0.00 late 30-60"},
		{"passed, and told again", []Deadline{{millis(0), millis(30), monitor.Thinking}, {millis(40), millis(30), monitor.Thinking}, {millis(60), millis(90), monitor.Thinking}},
			"0:1.00 30:0.00 40:0.00 40:0.00 60:0.00 60:1.00 90:0.00 100:0.00 late 30-60 late 90-100"},
		{"none for a while", []Deadline{{millis(0), millis(40), monitor.Thinking}, {millis(20), none, monitor.Tools}, {millis(50), millis(150), monitor.Thinking}},
			"0:1.00 20:0.50 | 50:1.00 100:0.50"},
		{"never one", []Deadline{{millis(0), none, monitor.Tools}}, ""},
	} {
		s := &Story{Run: Run{Start: millis(0), End: millis(100)}, Deadlines: row.deadlines}
		d := &drawing{page: &page{Story: s, axis: newAxis(s)}}
		left := d.left()
		when := func(x float64) string {
			return fmt.Sprintf("%.0f", (d.start.Sub(d.zero) + time.Duration(x*float64(d.span))).Seconds())
		}
		var got []string
		for i, curve := range left.curves {
			if i > 0 {
				got = append(got, "|")
			}
			for _, one := range curve {
				got = append(got, fmt.Sprintf("%s:%.2f", when(one.x), one.y))
			}
		}
		for _, one := range left.late {
			got = append(got, "late "+when(one.from)+"-"+when(one.to))
		}
		if got := strings.Join(got, " "); got != row.want {
			t.Errorf("%s: left: %s, want %s", row.name, got, row.want)
		}
	}
}
