package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/session"
	"cursor-wrap/internal/supervise"
	"cursor-wrap/internal/tree"
)

const (
	// answerTime is how long the owner of a turn, and a look at its processes,
	// are waited for.
	answerTime = 2 * time.Second
	// lookApart is the least time between two looks for what happened between
	// them to say something; longAgo is the most.
	lookApart = 250 * time.Millisecond
	longAgo   = 15 * time.Second
	// lately is how old the last line of an agent may be that is at work.
	lately = 5 * time.Second
)

// desk answers for a run while it lives.
type desk struct {
	*job
	looks looks

	mu       sync.Mutex
	killer   string             // who has told the run to end through us; empty while nobody has
	session  string             // the agent's, once it is known
	control  *supervise.Control // of the turn under way; nil between turns
	agent    *process.Agent     // likewise
	turn     int                // from 1
	restarts int
	hangs    int64
	counts   supervise.Counts // of the turns before
}

// names: the agent has named its session.
func (d *desk) names(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = session
}

// begins: a turn is about to begin.
func (d *desk) begins(restart int) *supervise.Control {
	d.mu.Lock()
	defer d.mu.Unlock()
	if restart == 0 {
		d.turn++
	} else {
		d.restarts++
	}
	d.control = supervise.NewControl()
	return d.control
}

// works: its agent is there.
func (d *desk) works(a *process.Agent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agent = a
}

// ends: the turn is over.
func (d *desk) ends(r *supervise.Report) {
	d.mu.Lock()
	d.agent, d.control = nil, nil
	d.counts = d.counts.Plus(r.Counts)
	if r.Outcome == supervise.Hang {
		d.hangs++
	}
	d.mu.Unlock()
	d.looks.forget()
}

func (d *desk) present() (*supervise.Control, *process.Agent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.control, d.agent
}

// blame says who has ended a run that was stopped, if it was one of us.
func (d *desk) blame(r *session.Report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.killer != "" && r.Outcome == supervise.Stopped {
		r.Message = d.killer
	}
}

// Status is where the run stands.
func (d *desk) Status(ctx context.Context) (registry.Status, error) {
	s, _, _, err := d.ask(ctx, false)
	return s, err
}

// Tree is the run's tree, with what each process waits for.
func (d *desk) Tree(ctx context.Context) (registry.Tree, error) {
	s, seen, a, err := d.ask(ctx, true)
	t := registry.Tree{Status: s, Activity: seen}
	if a != nil {
		t.Guard = refTo(a.GuardPID())
		t.Containment, t.Leaf, t.Cgroup = a.Held, a.Leaf(), a.Counts()
	}
	return t, err
}

// ask asks the owner of the turn, and looks at its processes.
func (d *desk) ask(ctx context.Context, explain bool) (registry.Status, *tree.Activity, *process.Agent, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	s, control, agent := d.base()
	if control == nil {
		return s, nil, nil, nil
	}
	v, err := control.View(ctx)
	if errors.Is(err, supervise.ErrOver) {
		return s, nil, nil, nil
	}
	if err != nil {
		return s, nil, nil, err
	}
	s.Counts.Lines += v.Counts.Lines
	s.Counts.Bytes += v.Counts.Bytes
	s.Counts.Calls += v.Counts.Calls
	s.Reason, s.Phase = v.Progress, string(v.Progress.Phase)
	s.Paused, s.PausedBy = monitor.Millis{Time: v.Paused}, v.PausedBy
	s.Held = monitor.Millis{Time: v.Held}
	if v.Ending {
		s.Phase = "ending"
	}
	if agent == nil || v.Ending {
		s.State = state(&v, nil)
		return s, nil, agent, nil
	}
	seen, usage := d.looks.at(ctx, agent, d.now, v.Calls, explain)
	s.Tree, s.State = usage, state(&v, seen)
	if e := v.Progress.Evidence; e != nil && e.Samples > 1 {
		s.Tree.Percent = e.Percent // of a longer time than between two looks of ours
	}
	return s, seen, agent, nil
}

// base is what is known without asking anybody.
func (d *desk) base() (registry.Status, *supervise.Control, *process.Agent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost, _ := d.log.Lost()
	s := registry.Status{
		RunID: d.id, Session: cmp.Or(d.session, d.resume), At: monitor.Millis{Time: d.now()}, Started: monitor.Millis{Time: d.began},
		State: registry.Idle, Phase: "prompt", Turn: d.turn, Restarts: d.restarts,
		Counts: registry.Counts{
			Lines: d.counts.Lines, Bytes: d.counts.Bytes, Calls: d.counts.Calls, Stderr: d.counts.Stderr,
			Hangs: d.hangs, LostLogs: lost,
		},
		Self: selfUsage(), Log: d.log.Path(),
	}
	return s, d.control, d.agent
}

func selfUsage() registry.Usage {
	var self syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self) // cannot fail for ourselves
	return registry.Usage{
		Processes: 2, CPU: tree.Span(self.Utime.Nano() + self.Stime.Nano()), Percent: tree.Unknown, Memory: process.PeakMemory(),
	}
}

// state says whether something goes on.
func state(v *supervise.View, seen *tree.Activity) registry.State {
	r := v.Progress
	switch {
	case v.Ending:
		return registry.Working
	case !v.Paused.IsZero(), !v.Held.IsZero():
		return registry.Idle
	case r.Silence < monitor.Span(lately):
		return registry.Working
	case r.Evidence != nil && r.Evidence.Samples > 1:
		if len(r.Evidence.Why) > 0 {
			return registry.Working
		}
	case seen != nil && seen.Blind == "" && (seen.CPU*20 > seen.Span || seen.Disk > 0 || seen.Born+seen.Ended > 0):
		return registry.Working
	}
	return registry.Idle
}

// Kill ends the run as a signal would.
func (d *desk) Kill(by int, now bool) error {
	d.log.Record(d.now(), slog.LevelWarn, "killed", slog.Int("by", by), slog.Bool("now", now))
	d.con.say(fmt.Sprintf("told to end by uid %d", by))
	d.mu.Lock()
	d.killer = fmt.Sprintf("ended by uid %d with cursor-wrap kill", by)
	d.mu.Unlock()
	for range 1 + count(now) {
		select {
		case d.stop <- syscall.SIGTERM:
		default: // enough of them wait already
		}
	}
	return nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// errNoTurn says that there is nothing to freeze.
var errNoTurn = errors.New("no turn is under way")

// Pause freezes the tree of the turn under way.
func (d *desk) Pause(ctx context.Context, by int) error {
	if control, _ := d.present(); control != nil {
		return over(control.Pause(ctx, by))
	}
	return errNoTurn
}

// Unpause lets it go on.
func (d *desk) Unpause(ctx context.Context, by int) error {
	if control, _ := d.present(); control != nil {
		return over(control.Unpause(ctx, by))
	}
	return errNoTurn
}

func over(err error) error {
	if errors.Is(err, supervise.ErrOver) {
		return errNoTurn
	}
	return err
}

// Grown is closed when the log has grown.
func (d *desk) Grown() <-chan struct{} { return d.log.Grown() }

func refTo(pid int) registry.Ref {
	start, _ := process.Identity(pid)
	return registry.Ref{PID: pid, Start: start}
}

// looks looks at the processes for whoever asks. It belongs to nobody's
// deadline: the owner of the turn has looks of its own. One look is under way at
// a time, and whoever asks meanwhile shares what it finds.
type looks struct {
	mu      sync.Mutex
	flights [2]*flight // under way, by whether it explains

	look    sync.Mutex     // held by whoever looks
	agent   *process.Agent // that the rest is about
	sampler *process.Sampler
	watch   tree.Watch
	last    time.Time
	found   sight
}

// sight is what a look found.
type sight struct {
	seen  tree.Activity
	usage registry.Usage
}

// flight is a look under way.
type flight struct {
	agent *process.Agent
	done  chan struct{}
	sight // set before done is closed
}

// unseen is what is used as far as nobody knows.
var unseen = registry.Usage{Processes: tree.Unknown, CPU: tree.Unknown, Percent: tree.Unknown, Memory: tree.Unknown}

// at looks at an agent's processes. Nil is for a look that did not come back in
// time: to read about a process can take as long as its disk.
func (l *looks) at(ctx context.Context, a *process.Agent, now func() time.Time, calls []tree.Call, explain bool) (*tree.Activity, registry.Usage) {
	f := l.join(a, now, calls, explain)
	select {
	case <-f.done:
		seen := f.seen
		return &seen, f.usage
	case <-ctx.Done():
		return nil, unseen
	}
}

// join is the look under way, or a new one.
func (l *looks) join(a *process.Agent, now func() time.Time, calls []tree.Call, explain bool) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	place := &l.flights[count(explain)]
	if *place != nil && (*place).agent == a {
		return *place
	}
	f := &flight{agent: a, done: make(chan struct{})}
	*place = f
	go func() {
		defer func() {
			if r := recover(); r != nil { // what only tells of a run must not end it
				f.sight = sight{tree.Activity{Blind: fmt.Sprint("internal error: ", r)}, unseen}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if *place == f {
				*place = nil
			}
			close(f.done)
		}()
		f.sight = l.take(a, now, calls, explain)
	}()
	return f
}

// take looks, twice where the last look is too old, or too young, to compare
// with.
func (l *looks) take(a *process.Agent, now func() time.Time, calls []tree.Call, explain bool) sight {
	l.look.Lock()
	defer l.look.Unlock()
	if l.agent != a {
		l.drop()
		l.agent, l.sampler = a, a.Sampler()
	}
	ago := now().Sub(l.last)
	if ago < lookApart && !explain {
		return l.found
	}
	if ago >= longAgo || ago < lookApart {
		l.watch.Reset()
		first := l.sampler.Sample(now(), false, false)
		l.watch.Next(&first, calls)
		time.Sleep(lookApart)
	}
	snap := l.sampler.Sample(now(), explain, explain)
	l.found.seen = l.watch.Next(&snap, calls)
	l.found.usage = usage(&snap, &l.found.seen)
	l.last = snap.At
	return l.found
}

// usage is what the tree has and uses.
func usage(snap *tree.Snapshot, seen *tree.Activity) registry.Usage {
	if seen.Blind != "" {
		return unseen
	}
	u := registry.Usage{Processes: seen.Alive, Percent: tree.Unknown}
	var sum time.Duration
	for i := range snap.Rows {
		r := &snap.Rows[i]
		if r.PID == snap.Root {
			continue
		}
		u.Memory += max(r.Memory, 0)
		sum += max(r.CPU, 0) + max(r.Waited, 0)
	}
	if u.CPU = tree.Span(sum); snap.CPU >= 0 {
		u.CPU = tree.Span(snap.CPU)
	}
	if seen.CPU >= 0 && seen.Span > 0 {
		u.Percent = float64(1000*seen.CPU/seen.Span) / 10
	}
	return u
}

// forget lets go of the files that are kept open, of an agent that has ended.
func (l *looks) forget() {
	go func() { // whoever still looks is not waited for
		l.look.Lock()
		defer l.look.Unlock()
		l.drop()
	}()
}

func (l *looks) drop() {
	if l.sampler != nil {
		l.sampler.Close()
	}
	l.agent, l.sampler, l.last, l.watch, l.found = nil, nil, time.Time{}, tree.Watch{}, sight{}
}
