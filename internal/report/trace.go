package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// traceEvent is one of the Trace Event Format. Times are microseconds since the
// start of the run.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	At    int64          `json:"ts"`
	Took  *int64         `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    string         `json:"id,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// lanes are the groups of tracks, from top to bottom.
var lanes = []Lane{"turn", Assistant, Thinking, Tool, Background, Silence, Held, Paused, Ladder}

// tracksMost is how many items of a lane stand side by side on tracks of their
// own; what is beyond is told as asynchronous, which may overlap.
const tracksMost = 100

// tracer writes a trace, event by event.
type tracer struct {
	w     io.Writer
	start time.Time
	begun bool
	err   error
}

// Trace writes the story as Trace Event JSON, for ui.perfetto.dev and
// chrome://tracing. Items that run side by side have tracks of their own.
func Trace(w io.Writer, s *Story) error {
	t := &tracer{w: w, start: s.Run.Start.Time}
	t.print(`{"displayTimeUnit":"ms","traceEvents":[`)
	name := "cursor-wrap"
	if s.Run.ID != "" {
		name += " " + s.Run.ID
	}
	t.put(&traceEvent{Name: "process_name", Phase: "M", PID: 1, Args: map[string]any{"name": name}})
	t.items(s)
	t.counters(s)
	t.moments(s)
	t.print("\n]}\n")
	return t.err
}

func (t *tracer) print(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

func (t *tracer) put(e *traceEvent) {
	if t.err != nil {
		return
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.err = err
		return
	}
	if t.begun {
		t.print(",\n")
	} else {
		t.print("\n")
	}
	t.begun = true
	if t.err == nil {
		_, t.err = t.w.Write(b)
	}
}

func (t *tracer) micros(at time.Time) int64 { return max(at.Sub(t.start).Microseconds(), 0) }

// items writes what has a beginning and an end, lane by lane.
func (t *tracer) items(s *Story) {
	byLane := map[Lane][]Item{}
	for i := range s.Turns {
		turn := &s.Turns[i]
		byLane["turn"] = append(byLane["turn"], Item{Lane: "turn", Start: turn.Start, End: turn.End, Title: title(turn.Prompt),
			Status: turn.Outcome, Detail: turn.Message, Turn: i})
	}
	for i := range s.Items {
		byLane[s.Items[i].Lane] = append(byLane[s.Items[i].Lane], s.Items[i])
	}
	for n, lane := range lanes {
		t.lane(lane, (n+1)*1000, byLane[lane])
	}
}

// lane puts each item on the first track that is free.
func (t *tracer) lane(lane Lane, base int, items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(t.micros(a.Start.Time), t.micros(b.Start.Time)), cmp.Compare(t.micros(b.End.Time), t.micros(a.End.Time)))
	})
	var free []int64 // by track, from when on
	for i := range items {
		item := &items[i]
		from := t.micros(item.Start.Time)
		to := max(t.micros(item.End.Time), from)
		track := slices.IndexFunc(free, func(end int64) bool { return end <= from })
		if track < 0 && len(free) < tracksMost {
			track, free = len(free), append(free, 0)
			t.track(lane, base+track, track)
		}
		e := &traceEvent{Name: item.name(), Cat: string(lane), Phase: "X", At: from, PID: 1, TID: base + track, Args: item.args()}
		if track < 0 {
			t.async(e, base, i, to)
			continue
		}
		took := to - from
		e.Took, free[track] = &took, to
		t.put(e)
	}
}

func (t *tracer) track(lane Lane, tid, n int) {
	name := string(lane)
	if n > 0 {
		name += fmt.Sprintf(" %d", n+1)
	}
	t.put(&traceEvent{Name: "thread_name", Phase: "M", PID: 1, TID: tid, Args: map[string]any{"name": name}})
	t.put(&traceEvent{Name: "thread_sort_index", Phase: "M", PID: 1, TID: tid, Args: map[string]any{"sort_index": tid}})
}

// async writes an item for which there is no track.
func (t *tracer) async(e *traceEvent, base, i int, to int64) {
	e.Phase, e.TID, e.ID = "b", base, fmt.Sprintf("%d-%d", base, i)
	t.put(e)
	t.put(&traceEvent{Name: e.Name, Cat: e.Cat, Phase: "e", At: to, PID: 1, TID: base, ID: e.ID})
}

func (i *Item) name() string {
	name := i.Title
	if i.Tool != "" && i.Tool != name {
		name = i.Tool + " " + name
	}
	if name == "" {
		name = string(i.Lane)
	}
	return name
}

func (i *Item) args() map[string]any {
	args := map[string]any{}
	for key, value := range map[string]string{"status": i.Status, "call": i.Call, "detail": firstRunes(i.Detail, 1000)} {
		if value != "" {
			args[key] = value
		}
	}
	if i.Exit != nil {
		args["exit"] = *i.Exit
	}
	if i.Declared > 0 {
		args["declared"] = i.Declared.String()
	}
	args["turn"] = i.Turn + 1
	return args
}

// counters writes what was sampled.
func (t *tracer) counters(s *Story) {
	for i := range s.Samples {
		sample := &s.Samples[i]
		at := t.micros(sample.At.Time)
		put := func(name, unit string, value any) {
			t.put(&traceEvent{Name: name, Phase: "C", At: at, PID: 1, Args: map[string]any{unit: value}})
		}
		if sample.Percent >= 0 {
			put("CPU", "% of a core", sample.Percent)
		}
		put("processes", "alive", sample.Alive)
		if sample.Received >= 0 {
			put("received", "bytes", sample.Received)
		}
		if sample.Disk >= 0 {
			put("disk", "bytes", sample.Disk)
		}
	}
}

// moments writes marks and verdicts.
func (t *tracer) moments(s *Story) {
	for i := range s.Marks {
		m := &s.Marks[i]
		t.put(&traceEvent{Name: m.What, Cat: "mark", Phase: "i", Scope: "p", At: t.micros(m.At.Time), PID: 1, TID: 1000,
			Args: map[string]any{"text": m.Text, "level": m.Level}})
	}
	for i := range s.Verdicts {
		if v := &s.Verdicts[i]; v.What != "suspected" {
			t.put(&traceEvent{Name: v.What, Cat: "verdict", Phase: "i", Scope: "g", At: t.micros(v.At.Time), PID: 1, TID: 1000,
				Args: map[string]any{"summary": v.Reason.Summary, "kind": string(v.Reason.Kind), "reason": v.Reason}})
		}
	}
}
