package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
)

// report is what a run found out.
type report struct {
	out  io.Writer
	name string    // of the section that is being reported
	rows []*figure // of that section

	Machine  machine   `json:"machine"`
	Quick    bool      `json:"quick"`
	Figures  []*figure `json:"figures"`
	Notes    []string  `json:"notes,omitempty"`
	Failures []string  `json:"failures,omitempty"`

	lingered map[string]leftover
}

// figure is one row: a median, where there is a peer its ratio to it, where
// there is a target whether it was reached.
type figure struct {
	Section   string  `json:"section"`
	What      string  `json:"what"`
	Contender string  `json:"contender"`
	Unit      string  `json:"unit"`
	Value     *spread `json:"value"` // null: unknown
	Ratio     *spread `json:"ratio,omitempty"`
	To        string  `json:"ratio_to,omitempty"`
	Target    *target `json:"target,omitempty"` // of the ratio if there is a peer
	Mark      string  `json:"mark,omitempty"`
}

// spread is what the rounds of one contender gave: the median, and the tenth
// and ninetieth percentile. Of few rounds those two are the least and the most;
// of a hundred they leave out the moments when the machine did something else.
type spread struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
}

func spreadOf(xs []float64) *spread {
	if len(xs) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(xs))
	mid := len(sorted) / 2
	median := sorted[mid]
	if len(sorted)%2 == 0 {
		median = (sorted[mid-1] + sorted[mid]) / 2
	}
	return &spread{Median: median, P10: percentile(sorted, 10), P90: percentile(sorted, 90)}
}

// percentile is the nearest rank of sorted values.
func percentile(sorted []float64, p float64) float64 {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// byRound combines two contenders' values of the same rounds. Without the
// peer's there is nothing to say.
func byRound(xs, base []float64, f func(x, b float64) float64) []float64 {
	if len(xs) != len(base) {
		return nil
	}
	out := make([]float64, len(xs))
	for i := range xs {
		out[i] = f(xs[i], base[i])
	}
	return out
}

func over(x, b float64) float64  { return x / b }
func minus(x, b float64) float64 { return x - b }

// target is a bound that must hold, and one that a good day reaches (0: none).
type target struct {
	Must  float64 `json:"must"`
	Aim   float64 `json:"aim,omitempty"`
	Bound string  `json:"bound"` // "≥" or "≤"
}

func atLeast(must, aim float64) *target { return &target{must, aim, "≥"} }
func atMost(must, aim float64) *target  { return &target{must, aim, "≤"} }

// mark judges the median.
func (t *target) mark(s *spread) string {
	switch {
	case t == nil:
		return ""
	case s == nil:
		return "?"
	case t.Bound == "≥" && s.Median >= t.Must, t.Bound == "≤" && s.Median <= t.Must:
		return "ok"
	}
	return "MISSED"
}

func (t *target) String() string {
	switch {
	case t == nil:
		return ""
	case t.Aim == 0:
		return fmt.Sprintf("%s %v", t.Bound, t.Must)
	}
	return fmt.Sprintf("%s %v (%v)", t.Bound, t.Must, t.Aim)
}

// section begins a table.
func (r *report) section(name, about string) {
	r.name = name
	fmt.Fprintf(r.out, "\n%s: %s\n", name, about)
}

// value adds a row whose own value is judged.
func (r *report) value(what, contender, unit string, xs []float64, t *target) {
	s := spreadOf(xs)
	r.add(&figure{What: what, Contender: contender, Unit: unit, Value: s, Target: t, Mark: t.mark(s)})
}

// ratio adds a row that is judged beside a peer, round by round.
func (r *report) ratio(what, contender, unit string, xs []float64, to string, base []float64, t *target) {
	s := spreadOf(byRound(xs, base, over))
	r.add(&figure{What: what, Contender: contender, Unit: unit, Value: spreadOf(xs), Ratio: s, To: to, Target: t, Mark: t.mark(s)})
}

func (r *report) add(f *figure) {
	f.Section = r.name
	r.rows = append(r.rows, f)
	r.Figures = append(r.Figures, f)
}

// flush prints the section's table.
func (r *report) flush() {
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  what\tcontender\tmedian\tp10 … p90\tratio\tp10 … p90\ttarget (aim)\t")
	what := ""
	for _, f := range r.rows {
		name := f.What
		if name == what {
			name = "" // said once for a block of rows
		}
		what = f.What
		ratio := ""
		if f.Ratio != nil {
			ratio = short(f.Ratio.Median) + " × " + f.To
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, f.Contender,
			f.Value.of(f.Unit), f.Value.span(), ratio, f.Ratio.span(), f.Target, f.Mark)
	}
	w.Flush()
	r.rows = nil
}

func (s *spread) of(unit string) string {
	if s == nil {
		return "unknown"
	}
	return short(s.Median) + " " + unit
}

func (s *spread) span() string {
	if s == nil {
		return ""
	}
	return short(s.P10) + " … " + short(s.P90)
}

// short is three significant digits, more or less.
func short(x float64) string {
	switch a := math.Abs(x); {
	case a == 0:
		return "0"
	case a >= 100:
		return fmt.Sprintf("%.0f", x)
	case a >= 10:
		return fmt.Sprintf("%.1f", x)
	case a < 0.1:
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// note says once what a reader of the figures should know.
func (r *report) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.Notes, s) {
		r.Notes = append(r.Notes, s)
	}
}

// fail records what did not work.
func (r *report) fail(format string, args ...any) {
	r.Failures = append(r.Failures, fmt.Sprintf(format, args...))
}

// outlived remembers the worst that a contender left behind after its exit.
func (r *report) outlived(contender string, left leftover) {
	if left.count == 0 {
		return
	}
	if r.lingered == nil {
		r.lingered = make(map[string]leftover)
	}
	worst := r.lingered[contender]
	r.lingered[contender] = leftover{max(worst.count, left.count), max(worst.took, left.took)}
}

// finish prints how to read the figures, what to know, and what failed.
func (r *report) finish() {
	for name, left := range r.lingered {
		r.note("%s: when it had exited, up to %d of its processes had not; the last was gone after %.1f ms",
			name, left.count, left.took.Seconds()*1e3)
	}
	slices.SortFunc(r.Notes, cmp.Compare)
	fmt.Fprintln(r.out, "\n"+legend)
	for _, n := range r.Notes {
		fmt.Fprintln(r.out, "note:", n)
	}
	for _, f := range r.Failures {
		fmt.Fprintln(r.out, "FAILED:", f)
	}
}

const legend = `Medians over rounds in which the contenders took turns; a ratio is taken within its round. Every pipe
of the bench holds 1 MiB (on Linux), for all alike; a wrapper makes its agent's pipe itself. The sink is
the bench, which reads and counts. Throughput runs from the first start to the contender's exit. CPU is
user + system of all that the contender started, orphans included, without the source's own. Memory is
the contender's own process, read while it lives; idle adds the guard. The log lies beside the input. MB is
10^6 bytes. Teardown: a tree holds a line open that nobody else holds, so that the kernel tells its last
death. Half deaf: every other child is in a session of its own and ignores TERM; cursor-wrap is run with
--kill-grace=0s, so that its time, from the signal on, is the way to the kill step and the step itself.
Obedient: an agent that exits by itself after its result. Idle: the scheduler's own count of CPU time; a
wake-up is a switch by a thread's own will. Sample: a loop of looks, so memory and caches are warm; CPU is
all of the process's, its collection of garbage included; gopsutil walk is Processes, then Ppid, Times, Status
and IOCounters of each, as it comes, gopsutil members the same of the known ones, its boot time cached. Hang:
from the deadline in the log, so to a millisecond; one tick of 5 s is what the worst is held to.`

func (r *report) save(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
