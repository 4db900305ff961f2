package monitor

import (
	"fmt"
	"slices"
	"time"

	"cursor-wrap/internal/tree"
)

// Below these bounds a tree counts as quiet.
//
// quietShare is the part of one core that it may use on average. Four idle
// agents of Node and Bun, launcher and child together, were measured while a
// model never answered: no one averaged 4 % of a core over any 30 s (0.3 to
// 26 ms a second, the most in Bun), although garbage collections took 60 to
// 345 ms within one second, up to four times in the first 40 s. So what is over
// the bound in the window, 15 s by default, must be so over twice the window,
// too. Work is far above it: an agent that prepares a tool call takes a whole
// core, a busy loop on a loaded machine half of one.
//
// quietBytes and quietRate are what may arrive on, or leave by, the tree's
// sockets in one direction only. A keep-alive is answered in kind (the ping of
// HTTP/2 by its 17 bytes, 39 below TLS) and cancels out; a server that keeps a
// stream of events open sends a comment of some 50 bytes every 15 s, behind 200
// to 400 bytes of header, once. A token a second is 100 to 300 bytes a second,
// and the smallest of them, that stay below, are known by coming in nearly every
// sample of the window, more than a comment every five seconds would. What
// leaves is a question, a report to somebody, or an upload: only the last says
// that the agent works.
//
// quietDisk is storage in bytes a second: an idle agent wrote up to 8 KB in
// 30 s to its own log.
const (
	quietShare = 0.05
	measured   = 30 * time.Second       // what the share was measured over
	oneBurst   = 345 * time.Millisecond // the longest garbage collection seen
	quietBytes = 64                     // bytes
	quietRate  = 30                     // bytes a second
	quietDisk  = 1024                   // bytes a second
	quietFile  = 16 << 10
	tinyRate   = 10       // bytes a second
	quietSent  = 64 << 10 // bytes
	trickle    = 3        // samples that a row of arrivals takes
)

// fewest is how many samples evidence needs: what happened lies between two.
const fewest = 2

// Finding is what the tree says to a passed deadline.
type Finding string

// The findings. Waiting is none yet.
const (
	Waiting    Finding = ""
	Confirmed  Finding = "confirmed"  // the tree is quiet
	Busy       Finding = "busy"       // it works, or data arrives: without progress, if it goes on
	Stopped    Finding = "stopped"    // the agent or its tools are stopped, which is no hang
	Unverified Finding = "unverified" // nothing could be seen: the stream alone decides
	Unasked    Finding = "unasked"    // Policy.Confirm is off, likewise
)

// witness is what was seen of the tree since the last line.
type witness struct {
	samples []sample
	last    *tree.Activity // the newest, with all that it says
	at      time.Time      // of last
	silence int            // how often was begun anew
}

// sample is what has to be kept of an Activity to judge by.
type sample struct {
	at       time.Time
	span     time.Duration
	cpu      time.Duration // Unknown
	own      time.Duration // of it, by the agent's own session
	disk     int64         // Unknown
	received int64         // Unknown
	sent     int64         // Unknown
	oneWay   int64         // Unknown
	born     int
	ended    int
	runnable bool
}

func (w *witness) forget() {
	w.samples, w.last, w.at = w.samples[:0], nil, time.Time{}
	w.silence++
}

// Silence numbers the silences: a look belongs to the one it set out in.
func (m *Monitor) Silence() int { return m.tree.silence }

// lookTime is what a look gets to come back, at least.
const lookTime = time.Second

// another is when a sample after the last one must have come.
func (m *Monitor) another() time.Time {
	return m.tree.at.Add(m.policy.Tick + max(m.policy.Tick, lookTime))
}

// runner is the process that runs a call; nil where the tree was not asked.
func (w *witness) runner(call string) *tree.Runner {
	if w.last == nil {
		return nil
	}
	for i := range w.last.Runners {
		if r := w.last.Runners[i]; r.Call == call {
			return &r
		}
	}
	return nil
}

// Calls lists the open calls and the background work, for whoever looks for
// their processes at the given moment.
func (m *Monitor) Calls(at time.Time) []tree.Call {
	var list []tree.Call
	for _, c := range m.calls() {
		list = append(list, tree.Call{ID: c.ID, Tool: c.Tool, Command: c.Argument, Age: Span(at.Sub(c.told))})
	}
	for _, t := range m.tasks() {
		list = append(list, tree.Call{ID: t.ID, Tool: t.Tool, Command: t.Argument, PID: t.PID, Behind: true, Age: Span(at.Sub(t.told))})
	}
	return list
}

// Sampled tells what the tree did up to the given moment. It copies what it
// keeps.
func (m *Monitor) Sampled(at time.Time, a *tree.Activity) {
	last := *a
	m.tree.last, m.tree.at = &last, at
	if a.Blind != "" {
		return
	}
	m.tree.samples = append(m.tree.samples, sample{
		at: at, span: time.Duration(a.Span), cpu: time.Duration(a.CPU), own: time.Duration(a.OwnCPU), disk: a.Disk,
		received: a.Received, sent: a.Sent, oneWay: a.OneWay,
		born: a.Born, ended: a.Ended, runnable: a.Runnable > 0,
	})
	longest := 2*m.policy.Window + 2*m.policy.Tick
	m.tree.samples = slices.DeleteFunc(m.tree.samples, func(s sample) bool { return at.Sub(s.at) > longest })
}

// Samples is how many looks at the tree this silence has had so far.
func (m *Monitor) Samples() int { return len(m.tree.samples) }

// Sample is when the tree should be looked at next; zero when it need not be.
// While lines come nobody looks; from one interval of silence on there is a
// sample an interval, so that at the deadline the evidence is there already,
// and one at the deadline.
func (m *Monitor) Sample() time.Time {
	kind, deadline := m.first()
	if !m.policy.Confirm || m.policy.Tick <= 0 || kind == None || deadline.IsZero() {
		return time.Time{}
	}
	next := m.lastEvent.Add(m.interval())
	if !m.tree.at.IsZero() {
		next = m.tree.at.Add(m.interval())
	}
	if next.After(deadline) && m.tree.at.Before(deadline) {
		next = deadline
	}
	return next
}

// interval is the tick, or less where a silence is too short to hold a few.
func (m *Monitor) interval() time.Duration {
	const several, least = 4, 20 * time.Millisecond
	if d := time.Duration(m.limit(m.first())) / several; d > 0 && d < m.policy.Tick {
		return max(d, least)
	}
	return m.policy.Tick
}

// enough is how much of the silence the evidence has to cover, if that can be
// had within a tick of the deadline.
func (m *Monitor) enough() time.Duration {
	return min(m.policy.Window, time.Duration(m.limit(m.first()))/2)
}

// decided reports whether the finding makes a hang of a passed deadline.
func (m *Monitor) decided(at, deadline time.Time, f Finding) bool {
	switch f {
	case Busy, Stopped:
		return !at.Before(deadline.Add(m.policy.Busy))
	case Waiting:
		return false
	}
	return true
}

// finding is what the tree says at the given moment.
func (m *Monitor) finding(at time.Time, kind Kind, deadline time.Time) Finding {
	w := &m.tree
	patience := !at.Before(deadline.Add(m.policy.Tick))
	switch {
	case !m.policy.Confirm:
		return Unasked
	case w.last == nil || w.at.Before(deadline):
		switch {
		case !patience:
			return Waiting
		case len(w.samples) >= fewest && len(m.why(kind)) > 0:
			return Busy // whoever looks has not come back, but what was seen last was work
		}
		return Unverified
	case w.last.Blind != "":
		return Unverified
	case len(w.last.Stopped) > 0:
		return Stopped
	case len(w.samples) < fewest:
		if patience && !at.Before(m.another()) {
			return Unverified
		}
		return Waiting
	}
	t := w.over(m.policy.Window)
	asked := kind == Tool && len(w.last.Asking) > 0 // nothing will come but an answer
	if t.span < m.enough() && at.Before(deadline.Add(m.enough()+2*m.policy.Tick)) && !asked {
		return Waiting
	}
	switch why := m.why(kind); {
	case len(why) > 0 && !asked:
		return Busy
	case t.cpu == tree.Unknown:
		return Unverified
	case !w.last.Full && !patience: // who was not seen may be there all the same
		return Waiting
	}
	return Confirmed
}

// why lists what speaks against a hang, the most telling first.
func (m *Monitor) why(kind Kind) []string {
	w := &m.tree
	var why []string
	window, worked := w.over(m.policy.Window), m.worked(kind)
	if worked.busy() {
		why = append(why, fmt.Sprintf("%.1f %% of a core over %s", worked.percent(), Span(worked.span)))
	} else if window.starved() {
		why = append(why, fmt.Sprintf("%.1f %% of a core over %s, and more was wanted in every look", window.percent(), Span(window.span)))
	}
	if kind != Reconnect && window.flows() { // an attempt to reconnect is bytes, and no progress
		why = append(why, fmt.Sprintf("%s received and %s sent in %s", size(window.received), size(window.sent), Span(window.span)))
	}
	if window.disk > int64(quietDisk*window.span.Seconds()) && window.disk > quietFile {
		why = append(why, fmt.Sprintf("%s read or written in %s", size(window.disk), Span(window.span)))
	}
	if window.born+window.ended > 0 {
		why = append(why, fmt.Sprintf("%d born and %d ended among the tools in %s", window.born, window.ended, Span(window.span)))
	}
	return why
}

// worked is what the tree did lately: over the window, or over twice that but no
// more than the silence may be, whichever is less. Garbage is collected in
// bursts, and work goes on. Where processes of
// its own run all open calls, what the agent itself does is not the calls' work.
func (m *Monitor) worked(kind Kind) total {
	double := min(2*m.policy.Window, max(time.Duration(m.limit(m.first())), 2*m.policy.Tick))
	window, other := m.tree.over(m.policy.Window), m.tree.over(double)
	if kind == Tool && m.allRun() {
		window, other = window.without(), other.without()
	}
	if other.percent() <= window.percent() {
		return other
	}
	return window
}

// allRun reports whether each open call has a live process of its own.
func (m *Monitor) allRun() bool {
	for id := range m.open {
		if r := m.tree.runner(id); r == nil || r.Fate != tree.Alive {
			return false
		}
	}
	return len(m.open) > 0
}

// total is what the tree did over the end of a silence.
type total struct {
	sample
	count    int
	arriving int           // samples in which something went one way
	known    time.Duration // of the span, that in which cpu is known
}

// over adds up the last samples, as many as cover d, all if they do not.
func (w *witness) over(d time.Duration) total {
	t := total{sample: sample{cpu: tree.Unknown, disk: tree.Unknown, received: tree.Unknown, sent: tree.Unknown, oneWay: tree.Unknown, runnable: true}}
	for i := len(w.samples) - 1; i >= 0 && (t.span < d || t.count == 0); i-- {
		s := &w.samples[i]
		if s.span == 0 {
			break // the first look: nothing can be said to have happened before it
		}
		t.span += s.span
		t.count++
		t.born += s.born
		t.ended += s.ended
		t.runnable = t.runnable && s.runnable
		if s.cpu != tree.Unknown {
			t.known += s.span
		}
		add(&t.cpu, s.cpu)
		t.own += s.own
		add(&t.disk, s.disk)
		add(&t.received, s.received)
		add(&t.sent, s.sent)
		add(&t.oneWay, s.oneWay)
		if s.oneWay > 0 {
			t.arriving++
		}
	}
	t.runnable = t.runnable && t.count >= fewest
	return t
}

// add adds what is known to what is known.
func add[T time.Duration | int64](sum *T, n T) {
	switch {
	case n == tree.Unknown:
	case *sum == tree.Unknown:
		*sum = n
	default:
		*sum += n
	}
}

func (t *total) busy() bool {
	spare := time.Duration(0)
	if t.known < measured { // too short for bursts to be averaged away
		spare = min(oneBurst, t.known/20)
	}
	return t.cpu != tree.Unknown && t.cpu.Seconds() >= quietShare*t.known.Seconds()+spare.Seconds() && t.known > 0
}

func (t *total) percent() float64 {
	if t.cpu == tree.Unknown || t.known <= 0 {
		return tree.Unknown
	}
	return float64(int(1000*t.cpu.Seconds()/t.known.Seconds()+0.5)) / 10
}

// without is the same without the agent's own session.
func (t total) without() total {
	if t.cpu != tree.Unknown {
		t.cpu = max(0, t.cpu-t.own)
	}
	return t
}

// starved reports whether somebody wanted a processor in every look and got
// some of one. It is not enough to want: a timer that fires as often as is
// looked was met by chance up to seven times in a row.
func (t *total) starved() bool {
	return t.runnable && t.count >= trickle && t.cpu.Seconds() >= quietShare/2*t.span.Seconds()
}

// flows reports whether more went one way than keep-alives make.
func (t *total) flows() bool {
	seconds := t.span.Seconds()
	return t.oneWay > quietBytes+int64(quietRate*seconds) || t.sent > quietSent ||
		t.count >= trickle && 3*t.arriving >= 2*t.count && t.oneWay > int64(tinyRate*seconds)
}
