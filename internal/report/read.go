package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/monitor"
)

// What is kept of a log, whatever its size.
const (
	rawMost    = 16 << 10 // of a line
	rawTotal   = 64 << 20 // of all lines; later ones are kept as far as rawLeast
	rawLeast   = 256
	textMost   = 16 << 10 // of what was said in one go
	textTotal  = 32 << 20 // of all of that; later texts are kept as far as rawLeast
	answerMost = 64 << 10
	promptMost = 4 << 10
	titleMost  = 200
	stderrKept = 200 // lines
	stderrMost = 2 << 10
	marksMost  = 5000
)

// ErrNoLog says that what was to be read is no session log.
var ErrNoLog = errors.New("not a session log")

// Read makes the story of one session log, which it reads once, from the
// beginning to the end. A log whose end is missing tells of a run that was
// killed, or still goes on; what is torn or missing within is counted. What is
// shown is masked; nil masks what gives itself away as a secret.
func Read(log io.Reader, m *Mask) (*Story, error) {
	if m == nil {
		m = &Mask{}
	}
	r := &reader{mask: m, policy: monitor.Default(), names: map[string]string{}, story: &Story{
		Turns: []Turn{}, Items: []Item{}, Samples: []Sample{}, Deadlines: []Deadline{}, Marks: []Mark{},
		Verdicts: []Verdict{}, Teardowns: []Teardown{}, Stderr: []Line{},
	}}
	read := false
	for rec, err := range journal.Read(log) {
		read = true
		if err == nil {
			r.record(&rec)
			continue
		}
		if _, torn := errors.AsType[*journal.TornError](err); !torn {
			return nil, err
		}
		r.story.Torn++
	}
	switch {
	case !read:
		return nil, fmt.Errorf("%w: it is empty", ErrNoLog)
	case !r.known:
		return nil, fmt.Errorf("%w: no record of one is in it", ErrNoLog)
	}
	r.finish()
	return r.story, nil
}

// reader is what is known of a log so far.
type reader struct {
	story  *Story
	mask   *Mask
	policy monitor.Policy
	known  bool // a record of ours was seen

	lines   pieces
	names   map[string]string // of events, as they are shown
	raw     int               // bytes that are kept of lines
	said    int               // bytes that are kept of texts
	turn    *turn
	attempt int // that the next turn is

	bytes, calls int64
	phases       []Deadline // as they were recorded, for a log without lines
	held         []Item
	paused       *Item
	silences     []Item
	ending       *ending
}

// record takes the next record.
func (r *reader) record(rec *journal.Record) {
	at := rec.At
	if rec.IsRaw() {
		at = rec.Recv
	}
	at = r.moment(at)
	if rec.IsRaw() {
		r.known = true
		r.line(at, rec)
		return
	}
	r.decision(at, rec)
}

// moment is a time of the log, which does not lie before its start.
func (r *reader) moment(at time.Time) time.Time {
	run := &r.story.Run
	if run.Start.IsZero() {
		run.Start.Time, run.End.Time = at, at
	}
	if at.Before(run.Start.Time) {
		return run.Start.Time
	}
	if at.After(run.End.Time) {
		run.End.Time = at
	}
	return at
}

// line takes a line of the agent, or a piece of one.
func (r *reader) line(at time.Time, rec *journal.Record) {
	t := r.present(at)
	ev, line, size, whole := r.lines.take(rec)
	t.heard(at, &ev)
	if !whole {
		return
	}
	r.bytes += int64(size + len(rec.EOL))
	most := rawMost
	if r.raw >= rawTotal {
		most = rawLeast
	}
	kept := r.mask.raw(line, most)
	r.raw += len(kept)
	index := len(r.story.Events)
	r.story.Events = append(r.story.Events, Event{At: monitor.Millis{Time: at}, Name: r.name(&ev), Raw: kept, Size: size})
	t.tell(at, &ev, line, index)
	r.identify(&ev, line)
}

// name is an event's name as it may be shown. There are few of them.
func (r *reader) name(ev *events.Event) string {
	const most = 1000
	name := ev.Name()
	shown, ok := r.names[name]
	if !ok {
		shown = r.mask.text(name, titleMost)
		if len(r.names) < most {
			r.names[name] = shown
		}
	}
	return shown
}

// identify notes what the agent says of itself.
func (r *reader) identify(ev *events.Event, line []byte) {
	run := &r.story.Run
	if ev.SessionID != "" {
		run.Session = ev.SessionID
	}
	if ev.Kind != events.Init {
		return
	}
	var f struct{ Model string }
	if json.Unmarshal(line, &f) == nil && f.Model != "" {
		run.Model = f.Model
	}
}

// present is the turn that is under way. A log whose beginning is lost begins
// within one.
func (r *reader) present(at time.Time) *turn {
	if r.turn == nil {
		r.begin(at)
	}
	return r.turn
}

func (r *reader) begin(at time.Time) {
	r.close()
	r.lines.drop()
	r.story.Turns = append(r.story.Turns, Turn{Start: monitor.Millis{Time: at}, End: monitor.Millis{Time: at}, Restart: r.attempt})
	r.attempt = 0
	r.turn = newTurn(r, at, len(r.story.Turns)-1)
}

// close ends the present turn, if there is one.
func (r *reader) close() {
	if r.turn != nil {
		r.turn.finish()
		r.turn = nil
	}
}

// keep is a text as long as it may be kept.
func (r *reader) keep(s string) string {
	most := textMost
	if r.said >= textTotal {
		most = rawLeast
	}
	s = r.mask.text(s, most)
	r.said += len(s)
	return s
}

func (r *reader) finish() {
	s := r.story
	r.close()
	r.count()
	r.pauses()
	s.Items = append(append(s.Items, r.held...), r.silent()...)
	r.outcome()
	slices.SortStableFunc(s.Items, func(a, b Item) int { return a.Start.Compare(b.Start.Time) })
	slices.SortStableFunc(s.Samples, func(a, b Sample) int { return a.At.Compare(b.At.Time) })
	slices.SortStableFunc(s.Verdicts, func(a, b Verdict) int { return a.At.Compare(b.At.Time) })
	slices.SortStableFunc(s.Marks, func(a, b Mark) int { return a.At.Compare(b.At.Time) })
	if n := len(s.Stderr); n > stderrKept {
		s.Stderr = slices.Clone(s.Stderr[n-stderrKept:])
	}
	s.Run.Sentence = sentence(s)
	r.mask.all(reflect.ValueOf(s))
}

// count fills in what a log without an end does not say.
func (r *reader) count() {
	s, run := r.story, &r.story.Run
	if r.ending == nil {
		run.Lines, run.Bytes, run.Calls = int64(len(s.Events)), r.bytes, r.calls
		for i := range r.silences {
			run.Silence = max(run.Silence, monitor.Span(r.silences[i].End.Sub(r.silences[i].Start.Time)))
		}
	}
	if len(s.Events) > 0 || run.Lines == 0 && len(r.phases) == 0 {
		return
	}
	s.Deadlines = append(s.Deadlines, r.phases...)
	slices.SortStableFunc(s.Deadlines, func(a, b Deadline) int { return a.At.Compare(b.At.Time) })
	s.Marks = append(s.Marks, Mark{At: run.Start, What: "no_raw_events", Level: "WARN",
		Text: "the log was kept without the agent's lines (--log-level info or higher): what it said and called is not known"})
}

// pauses makes one item of a pause that was recorded, and of the held time that
// was recorded for it, too.
func (r *reader) pauses() {
	if r.paused != nil {
		r.paused.End = r.story.Run.End
		r.story.Items = append(r.story.Items, *r.paused)
	}
	var known []Item
	for i := range r.story.Items {
		if r.story.Items[i].Lane == Paused {
			known = append(known, r.story.Items[i])
		}
	}
	r.held = slices.DeleteFunc(r.held, func(h Item) bool { // pauses do not overlap, and stand in order
		if h.Lane != Paused {
			return false
		}
		i, _ := slices.BinarySearchFunc(known, h.Start.Time, func(p Item, at time.Time) int { return cmp.Or(p.End.Compare(at), -1) })
		return i < len(known) && known[i].Start.Before(h.End.Time)
	})
}

// silent are the silences without the time in which nobody listened or the agent
// could not speak.
func (r *reader) silent() []Item {
	deaf := slices.Clone(r.held)
	for i := range r.story.Items {
		if r.story.Items[i].Lane == Paused {
			deaf = append(deaf, r.story.Items[i])
		}
	}
	slices.SortFunc(deaf, func(a, b Item) int { return cmp.Or(a.End.Compare(b.End.Time), a.Start.Compare(b.Start.Time)) })
	var all []Item
	for _, s := range r.silences {
		first, _ := slices.BinarySearchFunc(deaf, s.Start.Time, func(d Item, at time.Time) int { return d.End.Compare(at) })
		for i := first; i < len(deaf) && deaf[i].Start.Before(s.End.Time); i++ {
			before := s
			before.End = deaf[i].Start
			all = appendSilence(all, before)
			if deaf[i].End.After(s.Start.Time) {
				s.Start = deaf[i].End
			}
		}
		all = appendSilence(all, s)
	}
	return all
}

// appendSilence adds what is left of a silence, if that is one.
func appendSilence(all []Item, s Item) []Item {
	took := s.End.Sub(s.Start.Time)
	if took <= 0 || took < time.Duration(s.Declared) {
		return all
	}
	s.Declared = 0 // held the length from which it is one
	s.Title = "silent for " + monitor.Span(took).String()
	return append(all, s)
}

// pieces joins the pieces in which a long line stands in a log.
type pieces struct {
	joined []byte
	size   int
}

// take returns the event that a record is, and of one that ends a line the line,
// as far as it was kept, and its length.
func (p *pieces) take(rec *journal.Record) (ev events.Event, line []byte, size int, whole bool) {
	if rec.Msg == "raw_event" {
		p.drop() // the end of those pieces was lost
		return events.Parse(rec.Raw), rec.Raw, len(rec.Raw), true
	}
	p.joined = append(p.joined, rec.Raw[:min(len(rec.Raw), max(0, events.MaxLine+1-len(p.joined)))]...)
	p.size += len(rec.Raw)
	if !rec.End {
		return events.Event{Kind: events.Partial}, nil, 0, false
	}
	line, size = p.joined, p.size
	p.drop()
	if size > events.MaxLine {
		return events.ParseHead(line[:headMost]), line, size, true
	}
	return events.Parse(line), line, size, true
}

// headMost is how much of a line is looked at that is too long to be held.
const headMost = 64 << 10

func (p *pieces) drop() {
	p.joined, p.size = p.joined[:0], 0
	if cap(p.joined) > 1<<20 {
		p.joined = nil
	}
}
