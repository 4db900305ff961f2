package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// suites is a JUnit report as its readers take it.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Tests   int      `xml:"tests,attr"`
	Suite   []struct {
		Name       string  `xml:"name,attr"`
		Tests      int     `xml:"tests,attr"`
		Failures   int     `xml:"failures,attr"`
		Errors     int     `xml:"errors,attr"`
		Time       float64 `xml:"time,attr"`
		Properties []struct {
			Name  string `xml:"name,attr"`
			Value string `xml:"value,attr"`
		} `xml:"properties>property"`
		Case []struct {
			Name    string   `xml:"name,attr"`
			Class   string   `xml:"classname,attr"`
			Time    float64  `xml:"time,attr"`
			Failure *problem `xml:"failure"`
			Error   *problem `xml:"error"`
			Out     string   `xml:"system-out"`
			Err     string   `xml:"system-err"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func junit(t *testing.T, s *Story) suites {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, "junit", s); err != nil {
		t.Fatal(err)
	}
	var got suites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if len(got.Suite) != 1 {
		t.Fatalf("%d suites", len(got.Suite))
	}
	failures, errs := 0, 0
	for _, c := range got.Suite[0].Case {
		if c.Failure != nil {
			failures++
		}
		if c.Error != nil {
			errs++
		}
	}
	if one := got.Suite[0]; one.Tests != len(one.Case) || one.Failures != failures || one.Errors != errs {
		t.Errorf("%d tests, %d failures, %d errors are counted, and are %d, %d, %d", one.Tests, one.Failures, one.Errors, len(one.Case), failures, errs)
	}
	return got
}

func TestJUnit(t *testing.T) {
	end := []slog.Attr{slog.String("exit", "exit 0")}
	for _, row := range []struct {
		name string
		tell func(*scribe)
		want string // of each case: name, time, kind and type
	}{
		{"a result", func(s *scribe) {
			s.line(1, `{"type":"user","message":{"content":[{"type":"text","text":"fix it\nplease"}]}}`)
			s.line(1, okLine)
			s.record(2, "teardown", end...)
			s.end(2, "success", 0, "")
		}, "fix it … 2.000"},
		{"a hang", func(s *scribe) {
			s.verdict("hang_detected", hangReason(40))
			s.record(41, "teardown", end...)
			s.end(41, "hang", 2, "idle")
		}, "turn 1 41.000 failure hang"},
		{"no start", func(s *scribe) {
			s.record(1, "spawn_failed", slog.String("error", "no such file"))
			s.end(1, "error", 1, "no such file")
		}, "turn 1 1.000 error error"},
		{"killed", func(s *scribe) { s.line(1, thinkLine) }, "turn 1 1.000 error killed"},
		{"a signal", func(s *scribe) {
			s.record(1, "signal", slog.String("signal", "SIGTERM"))
			s.end(2, "signal", 143, "stopped by SIGTERM")
		}, "turn 1 1.000 error signal"},
		{"a second attempt that went well", func(s *scribe) {
			s.verdict("hang_detected", hangReason(40))
			s.record(41, "teardown", end...)
			s.record(41, "restart", slog.Int("attempt", 1))
			s.record(42, "turn_start")
			s.line(44, okLine)
			s.record(45, "teardown", end...)
			s.end(45, "success", 0, "")
		}, "turn 1 44.000"},
		{"all well, and then the terminal was gone", func(s *scribe) {
			s.line(1, okLine)
			s.record(2, "teardown", end...)
			s.end(60, "signal", 129, "stopped by SIGHUP")
		}, "turn 1 2.000|the run 60.000 error signal"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, c := range junit(t, story(t, nil, func(s *scribe) { s.run(monitor.Default()); row.tell(s) })).Suite[0].Case {
				one := fmt.Sprintf("%s %.3f", c.Name, c.Time)
				if c.Failure != nil {
					one += " failure " + c.Failure.Type
				}
				if c.Error != nil {
					one += " error " + c.Error.Type
				}
				got = append(got, one)
			}
			if all := strings.Join(got, "|"); all != row.want {
				t.Errorf("%q, want %q", all, row.want)
			}
		})
	}
}

// breakers is text that would end an XML section, a table, a fence, a line.
const breakers = "a]]>b</testcase>&amp;\x00\x1b[31m\x08\xff\xfe\ufffe|\r\n```\n````\n# head\n| a | b |\n<script>alert(1)</script> [x](http://y) ![i](z) @user #1 $x$ ~~~ :smile:"

// hostile is a story all of whose texts are those.
func hostile() *Story {
	r := &monitor.Reason{Summary: breakers, LastEvent: breakers, OpenCalls: []monitor.Call{{Tool: breakers, Argument: breakers, Process: &tree.Runner{Fate: tree.Alive, Command: breakers}}},
		Evidence: &monitor.Evidence{Tree: &tree.Activity{Procs: []tree.Proc{{Command: breakers, Waits: breakers, State: breakers}}}}}
	at, end := monitor.Millis{Time: epoch}, monitor.Millis{Time: at(9)}
	return &Story{
		Run: Run{ID: breakers, Outcome: "error", Message: breakers, Sentence: breakers, Answer: breakers, Dir: breakers, Workspace: breakers,
			Model: breakers, Start: at, End: end},
		Turns:     []Turn{{Start: at, End: end, Prompt: breakers, Outcome: "error", Message: breakers}, {Start: at, End: end, Prompt: breakers, Outcome: "error"}},
		Items:     []Item{{Lane: Tool, Start: at, End: end, Title: breakers, Tool: breakers, Call: breakers, Detail: breakers, Status: breakers}},
		Marks:     []Mark{{At: at, What: breakers, Text: breakers}},
		Verdicts:  []Verdict{{At: at, What: "hang_detected", Reason: r}},
		Teardowns: []Teardown{{At: end, Left: []Fate{{Command: breakers, Error: breakers}}}},
		Stderr:    []Line{{At: at, Text: breakers}},
	}
}

func TestHostileTextInJUnit(t *testing.T) {
	got := junit(t, hostile())
	last := got.Suite[0].Case[1]
	for _, text := range []string{last.Failure.Text, last.Out, last.Err} {
		if !strings.Contains(text, "]]>b</testcase>&amp;") || !strings.Contains(text, "# head\n") {
			t.Errorf("%q", text)
		}
	}
}

// Nothing that is shown begins anything in Markdown.
func TestHostileTextInMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, "md", hostile()); err != nil {
		t.Fatal(err)
	}
	fence, columns := "", 0
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, "\n")
		if ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]; len(ticks) >= 3 && (fence == "" || len(ticks) >= len(fence)) {
			if fence == "" {
				fence = ticks
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		if n := strings.Count(line, "|"); strings.HasPrefix(line, "|") {
			if columns == 0 {
				columns = n
			}
			if n != columns {
				t.Errorf("a row of %d, not %d columns: %s", n, columns, line)
			}
		} else {
			columns = 0
		}
		for _, bad := range []string{"<", "](", "@user", "# head", "$x", "http:", ":smile", "\r", "\x1b"} {
			if strings.Contains(line, bad) {
				t.Errorf("%q in %s", bad, line)
			}
		}
	}
	if fence != "" {
		t.Error("a fence is not closed")
	}
}

func TestMarkdownIsBounded(t *testing.T) {
	s := hostile()
	s.Run.Answer = strings.Repeat("x", 64<<10)
	for _, most := range []int{100, 1000, 10_000, 100_000} {
		var b bytes.Buffer
		if err := Markdown(&b, s, most); err != nil || b.Len() > most {
			t.Errorf("%d bytes of at most %d (%v)", b.Len(), most, err)
		}
	}
}

// tracks reads a trace and checks that nothing overlaps on a track unless it is
// nested there; it returns the complete events by the track's name.
func tracks(t testing.TB, trace []byte) map[string][]string {
	t.Helper()
	var file struct {
		Events []struct {
			Name  string         `json:"name"`
			Phase string         `json:"ph"`
			At    *int64         `json:"ts"`
			Took  int64          `json:"dur"`
			PID   int            `json:"pid"`
			TID   int            `json:"tid"`
			Args  map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(trace, &file); err != nil {
		t.Fatal(err)
	}
	names, got := map[int]string{}, map[string][]string{}
	spans := map[int][][2]int64{}
	for _, e := range file.Events {
		if e.Phase == "M" && e.Name == "thread_name" {
			names[e.TID] = e.Args["name"].(string)
		}
		if e.At == nil || *e.At < 0 || e.Took < 0 {
			t.Errorf("%+v has no time", e)
		}
		if e.Phase == "X" {
			spans[e.TID] = append(spans[e.TID], [2]int64{*e.At, *e.At + e.Took})
			got[names[e.TID]] = append(got[names[e.TID]], e.Name)
		}
	}
	for tid, list := range spans {
		if names[tid] == "" {
			t.Errorf("track %d has no name", tid)
		}
		slices.SortFunc(list, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(b[1], a[1])) })
		for i := 1; i < len(list); i++ {
			if list[i][0] < list[i-1][1] && list[i][1] > list[i-1][1] {
				t.Errorf("%v and %v overlap on track %q", list[i-1], list[i], names[tid])
			}
		}
	}
	return got
}

func TestTrace(t *testing.T) {
	s := story(t, nil, func(s *scribe) {
		s.run(monitor.Default())
		for i := range 150 {
			s.line(1+float64(i)/100, callLine(fmt.Sprint(i), fmt.Sprint("make ", i), 900))
		}
		for i := range 150 {
			s.line(5+float64(i)/100, endLine(fmt.Sprint(i), `{"success":{}}`))
		}
		s.line(8, callLine("x", "after all", 900))
		s.line(9, endLine("x", `{"success":{}}`))
		s.record(9, "sample", slog.Int("span_ms", 1000), slog.Int("cpu_ms", 500), slog.Int("alive", 3), slog.Int("received_bytes", 5))
		s.record(9, "signal", slog.String("signal", "SIGINT"))
		s.verdict("hang_detected", hangReason(10))
	})
	var b bytes.Buffer
	if err := Write(&b, "trace", s); err != nil {
		t.Fatal(err)
	}
	got := tracks(t, b.Bytes())
	if !slices.Equal(got["tool"], []string{"shell make 0", "shell after all"}) || !slices.Equal(got["tool 100"], []string{"shell make 99"}) {
		t.Errorf("%q and %q", got["tool"], got["tool 100"])
	}
	for _, want := range []string{`"ph":"b"`, `"ph":"e"`, `"ph":"C"`, `{"% of a core":50}`, `"name":"signal"`, `"name":"hang_detected"`, "process_name"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if err := Write(&bytes.Buffer{}, "pdf", &Story{}); err == nil {
		t.Error("pdf is a format")
	}
}
