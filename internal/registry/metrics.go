package registry

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tree"
)

// metricsType is the text exposition format of Prometheus.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// phases are those that a run can be in: the monitor's, and those around a turn.
var phases = []string{
	"prompt", string(monitor.Starting), string(monitor.Thinking), string(monitor.Tools),
	string(monitor.Background), string(monitor.Reconnecting), string(monitor.Draining), "ending",
}

// toolsMax and labelMax bound what an agent can make of labels: each new value
// is a series that somebody keeps for weeks.
const (
	toolsMax = 16
	labelMax = 256 // runes
)

// exposition is a page of metrics.
type exposition []byte

// family begins a metric: its type, and what it says.
func (x *exposition) family(name, kind, help string) {
	*x = append(*x, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// sample adds a number; labels are names and values in turn.
func (x *exposition) sample(name string, v float64, labels ...string) {
	*x = append(*x, name...)
	sep := "{"
	for i := 0; i+1 < len(labels); i += 2 {
		*x = append(*x, sep...)
		sep = ","
		*x = append(*x, labels[i]+`="`+label(labels[i+1])+`"`...)
	}
	if len(labels) > 0 {
		*x = append(*x, '}')
	}
	*x = append(*x, ' ')
	*x = strconv.AppendFloat(*x, v, 'g', -1, 64)
	*x = append(*x, '\n')
}

// gauge and counter are families of one number. One that is not known is left
// out, which is not the same as 0.
func (x *exposition) gauge(name, help string, v float64) { x.one(name, "gauge", help, v) }

func (x *exposition) counter(name, help string, v float64) { x.one(name, "counter", help, v) }

func (x *exposition) one(name, kind, help string, v float64) {
	if math.IsNaN(v) {
		return
	}
	x.family(name, kind, help)
	x.sample(name, v)
}

var unknown = math.NaN()

// label is a value as it stands between quotes.
func label(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if runes := []rune(s); len(runes) > labelMax {
		s = string(runes[:labelMax-1]) + "…"
	}
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(s)
}

// appendMetrics writes a run's numbers as Prometheus reads them.
func appendMetrics(b []byte, e Entry, s *Status) []byte {
	x := exposition(b)
	x.family("cursor_wrap_info", "gauge", "Which run this is.")
	x.sample("cursor_wrap_info", 1, "run_id", e.RunID, "session_id", cmp.Or(s.Session, e.Session), "version", e.Version, "workspace", e.Workspace)
	x.gauge("cursor_wrap_up", "Whether the run answers.", 1)
	x.gauge("cursor_wrap_start_time_seconds", "When the run was started, in seconds since 1970.", seconds(s.Started.Time, time.Unix(0, 0)))
	x.states(s)
	x.counts(s)
	x.progress(s)
	x.usage("agent", "the agent's process tree", &s.Tree)
	x.usage("wrapper", "the wrapper", &s.Self)
	return x
}

// seconds lie between two moments; unknown where the later one is none.
func seconds(t, since time.Time) float64 {
	if t.IsZero() {
		return unknown
	}
	return float64(t.UnixMilli()-since.UnixMilli()) / 1000
}

func (x *exposition) states(s *Status) {
	x.family("cursor_wrap_phase", "gauge", "What the agent is doing: 1 for the phase that it is in.")
	all := phases
	if !slices.Contains(all, s.Phase) {
		all = append(slices.Clone(all), s.Phase)
	}
	for _, phase := range all {
		x.sample("cursor_wrap_phase", number(phase == s.Phase), "phase", phase)
	}
	x.family("cursor_wrap_status", "gauge", "Whether the run works or idles: 1 for what it does.")
	for _, state := range []State{Working, Idle} {
		x.sample("cursor_wrap_status", number(state == s.State), "status", string(state))
	}
	x.gauge("cursor_wrap_paused", "Whether the agent is frozen.", number(!s.Paused.IsZero()))
	x.gauge("cursor_wrap_held", "Whether nobody reads the run's standard output, or the log's disk stands still: no deadline ends such a run.", number(!s.Held.IsZero()))
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (x *exposition) counts(s *Status) {
	x.counter("cursor_wrap_turns_total", "Turns that were begun.", float64(s.Turn))
	x.counter("cursor_wrap_restarts_total", "Restarts of the agent.", float64(s.Restarts))
	x.counter("cursor_wrap_hangs_total", "Turns that were ended because they hung.", known(s.Counts.Hangs))
	x.counter("cursor_wrap_lines_total", "Lines that the agent wrote on its standard output.", known(s.Counts.Lines))
	x.counter("cursor_wrap_bytes_total", "Bytes that the agent wrote on its standard output.", known(s.Counts.Bytes))
	x.counter("cursor_wrap_stderr_bytes_total", "Bytes that the agent wrote on its standard error.", known(s.Counts.Stderr))
	x.counter("cursor_wrap_tool_calls_total", "Tool calls that the agent has begun.", known(s.Counts.Calls))
	x.counter("cursor_wrap_log_records_lost_total", "Records that the session log has lost.", known(s.Counts.LostLogs))
}

func known(n int64) float64 {
	if n == tree.Unknown {
		return unknown
	}
	return float64(n)
}

// progress is what a verdict would say. Between turns there is none, and
// nothing is open.
func (x *exposition) progress(s *Status) {
	r := s.Reason
	if r == nil {
		r = &monitor.Reason{}
	}
	x.gauge("cursor_wrap_open_tool_calls", "Tool calls that have not come back.", float64(len(r.OpenCalls)))
	x.gauge("cursor_wrap_background_tasks", "Pieces of work that go on in the background.", float64(len(r.Background)))
	if s.Reason == nil {
		return
	}
	x.gauge("cursor_wrap_silence_seconds", "Time since the agent's last line.", time.Duration(r.Silence).Seconds())
	if r.Limit > 0 {
		x.gauge("cursor_wrap_silence_limit_seconds", "How long the present phase may last.", time.Duration(r.Limit).Seconds())
	}
	x.gauge("cursor_wrap_deadline_seconds", "Time until the next deadline; negative once it has passed.", seconds(r.Deadline.Time, r.At.Time)) // in a pause its time stands still
	x.openCalls(r.OpenCalls)
}

// openCalls has one series for each tool and not for each call: a command as a
// label would be a new series with every call, and tell everybody who reads
// metrics what was run. GET /status tells it to who asks here.
func (x *exposition) openCalls(calls []monitor.Call) {
	longest := map[string]time.Duration{}
	var tools []string // in the order of the calls, the oldest first
	for _, c := range calls {
		if _, ok := longest[c.Tool]; !ok && len(tools) == toolsMax {
			continue
		} else if !ok {
			tools = append(tools, c.Tool)
		}
		longest[c.Tool] = max(longest[c.Tool], time.Duration(c.Elapsed))
	}
	if len(tools) == 0 {
		return
	}
	const name = "cursor_wrap_open_tool_call_longest_seconds"
	x.family(name, "gauge", "Age of the oldest open call of each tool.")
	slices.Sort(tools)
	for _, tool := range tools {
		x.sample(name, longest[tool].Seconds(), "tool", tool)
	}
}

// usage is what processes have and use.
func (x *exposition) usage(who, whose string, u *Usage) {
	name := "cursor_wrap_" + who + "_"
	x.gauge(name+"processes", "Processes of "+whose+".", known(int64(u.Processes)))
	cpu := unknown
	if u.CPU != tree.Unknown {
		cpu = time.Duration(u.CPU).Seconds()
	}
	x.counter(name+"cpu_seconds_total", "CPU time that was used by "+whose+".", cpu)
	ratio := unknown
	if u.Percent != tree.Unknown {
		ratio = u.Percent / 100
	}
	x.gauge(name+"cpu_ratio", "CPU that is used by "+whose+"; 1 is one core.", ratio)
	x.gauge(name+"memory_bytes", "Memory of "+whose+".", known(u.Memory))
}
