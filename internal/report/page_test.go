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
	"unicode/utf8"

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
