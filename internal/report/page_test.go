package report

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

var pages = flag.String("pages", "", "leave the pages of the tests in this folder, to be looked at")

// render makes the page of a story.
func render(t testing.TB, name string, s *Story) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, s); err != nil {
		t.Fatal(err)
	}
	if *pages != "" {
		if err := os.WriteFile(filepath.Join(*pages, name+".html"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func stories() map[string]*Story {
	return map[string]*Story{
		"hang": hangStory(), "good": goodStory(), "killed": killedStory(), "hostile": hostileStory(), "empty": {},
		"long": hugeStory(10_000, 2_000),
	}
}

// tag is one of a page, as the checker below reads it.
type tag struct {
	name  string
	end   bool
	attrs map[string]string
	after string // the text that follows it
}

var (
	tagShape  = regexp.MustCompile(`^<(/?)([a-zA-Z][a-zA-Z0-9]*)((?: [a-zA-Z][a-zA-Z0-9:-]*="[^"<>]*")*)>`)
	attrShape = regexp.MustCompile(` ([a-zA-Z][a-zA-Z0-9:-]*)="([^"<>]*)"`)
)

// parse reads a page strictly: each < begins a tag in the one form that we
// write, all are closed in order, and no element has an attribute twice. What is
// in scripts and styles is taken up to their end, as a browser does.
func parse(page string) ([]tag, error) {
	rest, ok := strings.CutPrefix(page, "<!DOCTYPE html>\n")
	if !ok {
		return nil, errors.New("no doctype")
	}
	var all []tag
	var open []string
	for {
		before, _, more := strings.Cut(rest, "<")
		if len(all) > 0 {
			all[len(all)-1].after = before
		}
		if !more {
			break
		}
		rest = rest[len(before):]
		m := tagShape.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("no tag: %.80q", rest)
		}
		rest = rest[len(m[0]):]
		one := tag{name: m[2], end: m[1] != "", attrs: map[string]string{}}
		for _, a := range attrShape.FindAllStringSubmatch(m[3], -1) {
			if _, twice := one.attrs[a[1]]; twice {
				return nil, fmt.Errorf("%s has %s twice: %.200s", one.name, a[1], m[0])
			}
			one.attrs[a[1]] = html.UnescapeString(a[2])
		}
		switch {
		case one.end && (len(open) == 0 || open[len(open)-1] != one.name):
			return nil, fmt.Errorf("</%s> where %v are open", one.name, open)
		case one.end:
			open = open[:len(open)-1]
		case !void[one.name]:
			open = append(open, one.name)
		}
		if !one.end && (one.name == "script" || one.name == "style") {
			end := strings.Index(rest, "</"+one.name)
			one.after, rest = rest[:end], rest[end:]
			all = append(all, one)
			all = append(all, tag{name: one.name, end: true})
			rest = rest[len("</"+one.name+">"):]
			open = open[:len(open)-1]
			continue
		}
		all = append(all, one)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("left open: %v", open)
	}
	return all, nil
}

// TestPageIsWhole: whatever the story says, the page is one document in the few
// forms that we write, says only our names of elements and attributes, loads
// nothing, and refers to nothing that is not there.
func TestPageIsWhole(t *testing.T) {
	reaches := []string{"src", "action", "formaction", "poster", "srcset", "style", "xlink:href", "background"}
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			tags, err := parse(render(t, name, s))
			if err != nil {
				t.Fatal(err)
			}
			ids := map[string]bool{}
			for _, one := range tags {
				if id := one.attrs["id"]; id != "" && ids[id] {
					t.Errorf("id %s twice", id)
				} else {
					ids[id] = true
				}
			}
			things := len(s.Items) + len(s.Marks) + len(s.Verdicts) + len(s.Turns)
			for _, one := range tags {
				for key, value := range one.attrs {
					if strings.HasPrefix(key, "on") || slices.Contains(reaches, key) {
						t.Errorf("%s has %s", one.name, key)
					}
					refers := key == "aria-labelledby" || key == "href" && value != "data:,"
					if refers && !ids[strings.TrimPrefix(value, "#")] {
						t.Errorf("%s refers to %q, which is not there", one.name, value)
					}
				}
				for _, n := range strings.Fields(one.attrs["data-things"]) {
					if i, err := strconv.Atoi(n); err != nil || i < 0 || i >= things {
						t.Errorf("a bar with thing %q of %d", n, things)
					}
				}
			}
		})
	}
}

// TestOnlyOurElements: hostile text makes the same kinds of elements and of
// attributes as any other.
func TestOnlyOurElements(t *testing.T) {
	kinds := func(s *Story) map[string]bool {
		tags, err := parse(render(t, "kinds", s))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, one := range tags {
			all[one.name] = true
			for key := range one.attrs {
				all[one.name+" "+key] = true
			}
		}
		return all
	}
	ours := kinds(hangStory())
	for name := range kinds(&Story{}) {
		ours[name] = true
	}
	for name := range kinds(hostileStory()) {
		if !ours[name] && name != "p" { // what is left alive and what speaks against it is told in a p
			t.Errorf("%s is only in the hostile page", name)
		}
	}
}

// TestNothingUnseen: what could reorder, hide or repaint text is shown.
func TestNothingUnseen(t *testing.T) {
	page := render(t, "hostile", hostileStory())
	if !utf8.ValidString(page) {
		t.Error("the page is not UTF-8")
	}
	for _, bad := range []string{"\x00", "\x1b", "\x07", "\u202e", "\u202c", "\u2066", "\u2069", "\u2028", "\ufeff"} {
		if strings.Contains(page, bad) {
			t.Errorf("%+q is in the page", bad)
		}
	}
	for _, shown := range []string{`\u202eesrever\u202c`, "a^@b", `\xff\xfe`, "&lt;/script&gt;"} {
		if !strings.Contains(page, shown) {
			t.Errorf("%q is not in the page", shown)
		}
	}
}

// TestPolicy: the browser is told to run and to load nothing but what is ours.
func TestPolicy(t *testing.T) {
	tags, err := parse(render(t, "good", goodStory()))
	if err != nil {
		t.Fatal(err)
	}
	var policy string
	for _, one := range tags {
		if one.attrs["http-equiv"] == "Content-Security-Policy" {
			policy = one.attrs["content"]
		}
		if runs := one.name == "script" && !one.end && one.attrs["type"] == "" || one.name == "style" && !one.end; runs && !strings.Contains(policy, hash(one.after)) {
			t.Errorf("a %s that the policy does not know: %.60q", one.name, one.after)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("policy: %s", policy)
	}
	for _, file := range []string{styleSheet, themeScript, pageScript} {
		if strings.Contains(file, "</") {
			t.Error("one of our files would end its element")
		}
		for _, bad := range []string{"http://", "https://", "url(http", "@import", "innerHTML", "eval(", "fetch("} {
			if strings.Contains(file, bad) {
				t.Errorf("one of our files has %s", bad)
			}
		}
	}
}

// unpackStore reads the records of a store back out of a page.
func unpackStore(t *testing.T, page, name string) [][]byte {
	t.Helper()
	tags, err := parse(page)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, one := range tags {
		if one.attrs["data-store"] != name {
			continue
		}
		if one.attrs["data-first"] != strconv.Itoa(len(all)) {
			t.Fatalf("a block begins with %s, after %d records", one.attrs["data-first"], len(all))
		}
		z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(one.after)))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(z)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			all = append(all, slices.Clone(lines.Bytes()))
		}
		if lines.Err() != nil {
			t.Fatal(lines.Err())
		}
	}
	return all
}

// TestEventsComeBack: every event is in the page, byte for byte where it is
// text, and says how much of it is not.
func TestEventsComeBack(t *testing.T) {
	for name, s := range stories() {
		got := unpackStore(t, render(t, name, s), "events")
		if len(got) != len(s.Events) {
			t.Fatalf("%s: %d events, want %d", name, len(got), len(s.Events))
		}
		for i, line := range got {
			var r record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			e := &s.Events[i]
			if want := strings.NewReplacer("\xff", `\xff`, "\xfe", `\xfe`).Replace(string(e.Raw)); r.Raw != want {
				t.Fatalf("%s: event %d is %.200q, want %.200q", name, i, r.Raw, want)
			}
			if (r.More != "") != (e.Size > len(e.Raw)) {
				t.Errorf("%s: event %d has %d of %d bytes and says %q", name, i, len(e.Raw), e.Size, r.More)
			}
		}
	}
}

// TestThingsAreNumbered: what a bar points at is what it shows.
func TestThingsAreNumbered(t *testing.T) {
	s := hangStory()
	s.Items[3].Lane = "unheard of" // it is drawn all the same
	page := render(t, "hang", s)
	got := unpackStore(t, page, "things")
	tags, err := parse(page)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for i, one := range tags {
		things := strings.Fields(one.attrs["data-things"])
		if len(things) != 1 || one.name == "button" || tags[i+1].name != "title" {
			continue
		}
		n, _ := strconv.Atoi(things[0])
		seen[n] = true
		var th thing
		if err := json.Unmarshal(got[n], &th); err != nil {
			t.Fatal(err)
		}
		title := html.UnescapeString(tags[i+1].after)
		if th.Kind != "Moment" && th.Kind != "Verdict" && !strings.HasPrefix(title, th.Kind) {
			t.Errorf("the bar %q leads to %s", title, got[n])
		}
		if th.Kind == "Moment" && !strings.HasPrefix(title, short(th.Text, 44)) {
			t.Errorf("the mark %q leads to %s", title, got[n])
		}
	}
	want := len(s.Items) + len(s.Marks) + len(s.Verdicts) + len(s.Turns)
	if len(seen) != want-1 || len(got) != want { // a suspicion is a mark and a verdict
		t.Errorf("%d bars and %d things for %d things of the story", len(seen), len(got), want)
	}
}

// TestWriteFails: whoever writes to a full disk hears of it.
func TestWriteFails(t *testing.T) {
	full := errors.New("no space")
	if err := HTML(failing{full}, hangStory()); !errors.Is(err, full) {
		t.Errorf("HTML to a full disk returns %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestAllIsSaid: what ops ask for stands in the page itself, for whom no script
// runs.
func TestAllIsSaid(t *testing.T) {
	page := html.UnescapeString(render(t, "hang", hangStory()))
	for _, want := range []string{
		"git push waits for a user name", "exit code 2", "20260128-120000-4711", "9f0c2f6a-51de-4c0b-8f5e-2d1b6c7a8e90", "/home/dev/shop",
		"184,220", "in, 9,377 out", "v1.4.0", "cgroup", "idle timeout", "1m0s", "12m22s",
		"never ended", "declared 1m30s", "Hang in a tool call", "Suspicion in a tool call",
		"The tree is quiet: it confirms the hang.", "0.6 % of a core over 2m0s", "reads the terminal", "└─ ", "44.210.7.31:443",
		"SIGKILL", "Nobody is left, and that is proven.", "Username for 'https://git.example.org'", "All four suites pass",
		"zombie", "388.0 MiB", "max 420.0 %",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if regexp.MustCompile(`<td[^>]*>-1`).MatchString(page) {
		t.Error("an unknown value is shown as -1")
	}
}

// TestKilledSaysSo: a log without an end is no success.
func TestKilledSaysSo(t *testing.T) {
	page := html.UnescapeString(render(t, "killed", killedStory()))
	for _, want := range []string{"no end of its own", "1 line of the log could not be read", "12 records could not be written", ">killed<"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Contains(page, "exit code") {
		t.Error("a run without an end has an exit code")
	}
}

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

func TestPlanted(t *testing.T) {
	proc := func(pid, ppid int) tree.Proc { return tree.Proc{ID: tree.ID{PID: pid}, PPID: ppid} }
	var got []string
	for _, b := range planted([]tree.Proc{proc(5, 1), proc(7, 5), proc(6, 5), proc(9, 7), proc(20, 21), proc(21, 20), proc(3, 3)}) {
		got = append(got, b.branch+strconv.Itoa(b.PID))
	}
	want := []string{"5", "├─ 7", "│  └─ 9", "└─ 6", "3", "20", "└─ 21"}
	if !slices.Equal(got, want) {
		t.Errorf("planted %q, want %q", got, want)
	}
}

func TestWords(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1,000"}, {count(-1234567), "-1,234,567"},
		{many(1, "process"), "1 process"}, {many(2, "process"), "2 processes"}, {many(1200, "line"), "1,200 lines"},
		{bytesOf(tree.Unknown), "unknown"}, {bytesOf(1), "1 byte"}, {bytesOf(1536), "1.5 KiB"}, {percent(tree.Unknown), "unknown"},
		{brief(0), "0"}, {brief(90e9), "1m30s"}, {brief(3600e9), "1h"}, {brief(5400e9), "1h30m"}, {brief(5e8), "500ms"},
		{short("a\nb  ", 10), "a b"}, {short(strings.Repeat("ü", 400), 5), "üüüü…"},
	} {
		if row.got != row.want {
			t.Errorf("got %q, want %q", row.got, row.want)
		}
	}
}

func TestMarkup(t *testing.T) {
	for _, row := range []struct {
		part part
		want string
	}{
		{el("td", text("<b>"), class(`"x'`), nil), `<td class="&#34;x&#39;">&lt;b&gt;</td>`},
		{el("input", attr{"type", "checkbox"}), `<input type="checkbox">`},
		{el("p", when(false, text("no")), when(true, text("yes"))), `<p>yes</p>`},
		{el("rect", share("x", 0.123456789), share("width", 1)), `<rect x="12.3457%" width="100%"></rect>`},
		{parts{quoted("a"), nil, textf("%d", 3)}, `<bdi>a</bdi>3`},
	} {
		var b strings.Builder
		if err := writeTo(&b, row.part); err != nil || b.String() != row.want {
			t.Errorf("wrote %s, %v; want %s", b.String(), err, row.want)
		}
	}
}
