package registry

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// family is a metric as a reader of the text format sees it.
type family struct {
	kind, help string
	samples    map[string]float64 // by its labels
}

var (
	sampleLine = regexp.MustCompile(`^([a-z][a-z0-9_]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`^([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\\\|\\n|\\")*)"(,|$)`)
)

// parse reads a page strictly: each family once, with HELP, TYPE and at least
// one sample, in that order; no label and no series twice.
func parse(t *testing.T, page string) map[string]*family {
	t.Helper()
	all := map[string]*family{}
	if !strings.HasSuffix(page, "\n") {
		t.Error("the last line has no end")
	}
	name := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(page, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			if f := all[name]; f != nil && len(f.samples) == 0 {
				t.Errorf("%s has no sample", name)
			}
			var help string
			name, help, _ = strings.Cut(rest, " ")
			if all[name] != nil || help == "" {
				t.Errorf("%q: twice, or without help", line)
			}
			all[name] = &family{help: help, samples: map[string]float64{}}
			continue
		}
		f := all[name]
		if f == nil {
			t.Fatalf("%q belongs to no family", line)
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "+name+" "); ok {
			if f.kind != "" || len(f.samples) > 0 || rest != "gauge" && rest != "counter" {
				t.Errorf("%q", line)
			}
			f.kind = rest
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || m[1] != name || f.kind == "" {
			t.Fatalf("%q is no sample of %s", line, name)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		labels := labelsOf(t, m[2])
		if _, twice := f.samples[labels]; err != nil || twice || math.IsNaN(v) {
			t.Errorf("%q: %v", line, err)
		}
		f.samples[labels] = v
	}
	return all
}

// labelsOf are the labels of a sample, unescaped and in order.
func labelsOf(t *testing.T, text string) string {
	t.Helper()
	labels := map[string]string{}
	for text != "" {
		m := labelPair.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%q are no labels", text)
		}
		if _, twice := labels[m[1]]; twice {
			t.Errorf("%s is there twice", m[1])
		}
		labels[m[1]] = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`).Replace(m[2])
		text = text[len(m[0]):]
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, k+"="+labels[k])
	}
	return strings.Join(list, "|")
}

// busy is a run in the middle of its work.
func busy() (Entry, Status) {
	at := time.UnixMilli(1770000100500)
	e := Entry{RunID: "3f2a", Version: "v1", Workspace: "/w\\x \"y\"\nz\xff"}
	s := Status{
		RunID: "3f2a", Session: "s-1", At: monitor.Millis{Time: at}, Started: monitor.Millis{Time: at.Add(-100 * time.Second)},
		State: Working, Phase: "tools", Turn: 2, Restarts: 1, Paused: monitor.Millis{Time: at},
		Counts: Counts{Lines: 10, Bytes: 12345678901, Calls: 3, Stderr: 5, Hangs: 1, LostLogs: 2},
		Tree:   Usage{Processes: 4, CPU: tree.Span(1500 * time.Millisecond), Percent: 150, Memory: 1 << 30},
		Self:   Usage{Processes: 2, CPU: tree.Span(20 * time.Millisecond), Percent: 0.1, Memory: 15 << 20},
		Reason: &monitor.Reason{
			At:      monitor.Millis{Time: at}, // which stands still in a pause
			Silence: monitor.Span(2500 * time.Millisecond), Limit: monitor.Span(time.Minute), Deadline: monitor.Millis{Time: at.Add(-1500 * time.Millisecond)},
			OpenCalls: []monitor.Call{
				{Tool: "shell", Argument: "make secret", Elapsed: monitor.Span(5 * time.Second)},
				{Tool: "shell", Argument: "sleep", Elapsed: monitor.Span(7 * time.Second)},
				{Tool: "grep", Elapsed: monitor.Span(time.Second)},
			},
			Background: []monitor.Call{{}},
		},
	}
	return e, s
}

func TestMetrics(t *testing.T) {
	e, s := busy()
	page := string(appendMetrics(nil, e, &s))
	all := parse(t, page)
	want := map[string]float64{
		"info run_id=3f2a|session_id=s-1|version=v1|workspace=/w\\x \"y\"\nz�": 1,
		"up": 1, "start_time_seconds": 1770000000.5, "paused": 1, "held": 0, "status status=working": 1, "status status=idle": 0,
		"turns_total": 2, "restarts_total": 1, "hangs_total": 1, "lines_total": 10, "bytes_total": 12345678901, "stderr_bytes_total": 5,
		"tool_calls_total": 3, "log_records_lost_total": 2, "open_tool_calls": 3, "background_tasks": 1,
		"silence_seconds": 2.5, "silence_limit_seconds": 60, "deadline_seconds": -1.5,
		"open_tool_call_longest_seconds tool=shell": 7, "open_tool_call_longest_seconds tool=grep": 1,
		"agent_processes": 4, "agent_cpu_seconds_total": 1.5, "agent_cpu_ratio": 1.5, "agent_memory_bytes": 1 << 30,
		"wrapper_processes": 2, "wrapper_cpu_seconds_total": 0.02, "wrapper_cpu_ratio": 0.001, "wrapper_memory_bytes": 15 << 20,
	}
	for _, p := range phases {
		want["phase phase="+p] = number(p == "tools")
	}
	got := map[string]float64{}
	for name, f := range all {
		short, ours := strings.CutPrefix(name, "cursor_wrap_")
		if !ours || (f.kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, f.kind)
		}
		for labels, v := range f.samples {
			got[strings.TrimSpace(short+" "+labels)] = v
		}
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || math.Abs(g-v) > 1e-9 {
			t.Errorf("%s is %v, %v; want %v", name, g, ok, v)
		}
		delete(got, name)
	}
	if len(got) > 0 || strings.Contains(page, "secret") {
		t.Errorf("too much: %v", got)
	}
}

// TestMetricsUnknown: what is not known is left out, and is not 0.
func TestMetricsUnknown(t *testing.T) {
	e, s := busy()
	s.Tree = Usage{Processes: tree.Unknown, CPU: tree.Unknown, Percent: tree.Unknown, Memory: tree.Unknown}
	s.Reason.Deadline, s.Reason.Limit = monitor.Millis{}, 0
	s.Phase = "new"
	all := parse(t, string(appendMetrics(nil, e, &s)))
	for _, name := range []string{"agent_processes", "agent_cpu_seconds_total", "agent_cpu_ratio", "agent_memory_bytes", "deadline_seconds", "silence_limit_seconds"} {
		if all["cursor_wrap_"+name] != nil {
			t.Errorf("%s is there", name)
		}
	}
	if f := all["cursor_wrap_phase"]; f.samples["phase=new"] != 1 || len(f.samples) != len(phases)+1 {
		t.Errorf("%v", f.samples)
	}
	s.Reason = nil
	all = parse(t, string(appendMetrics(nil, e, &s)))
	if f := all["cursor_wrap_open_tool_calls"]; f == nil || f.samples[""] != 0 || all["cursor_wrap_silence_seconds"] != nil {
		t.Error("between turns nothing is open, and nobody is silent")
	}
}

// TestMetricsAreBounded: an agent cannot make as many series as it likes, nor
// as long ones.
func TestMetricsAreBounded(t *testing.T) {
	e, s := busy()
	s.Reason.OpenCalls = nil
	for i := range 1000 {
		s.Reason.OpenCalls = append(s.Reason.OpenCalls, monitor.Call{Tool: fmt.Sprint(i, strings.Repeat("ü", 1000))})
	}
	f := parse(t, string(appendMetrics(nil, e, &s)))["cursor_wrap_open_tool_call_longest_seconds"]
	if len(f.samples) != toolsMax {
		t.Errorf("%d series", len(f.samples))
	}
	for labels := range f.samples {
		if n := len([]rune(labels)); n != len("tool=")+labelMax || !strings.HasSuffix(labels, "…") {
			t.Errorf("%d runes: %s", n, labels)
		}
	}
}

func TestMetricsType(t *testing.T) {
	s := serve(t, &fake{}, nil)
	resp, body := s.ask(t, "GET", "/metrics")
	if got := resp.Header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(got)
	}
	if parse(t, body)["cursor_wrap_info"] == nil {
		t.Error(body)
	}
}
