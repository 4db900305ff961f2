package supervise

import (
	"context"
	"io"
	"log/slog"
	"syscall"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/format"
	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/tree"
)

const (
	// drainGrace is how long after the agent's exit a result may still come
	// through pipes that somebody else holds: a launcher's child was seen to
	// write its last event 0.2 to 0.4 s after the launcher was gone.
	drainGrace = time.Second

	// lateFloor is how late the owner must be woken to conclude that the
	// machine, and not the agent, stood still.
	lateFloor = time.Second

	// secondLook is how long after a verdict, and with nothing read in between,
	// it is acted on: a line may have been read, and not yet be anybody's.
	secondLook = 25 * time.Millisecond

	// abandonAfter is how long a reader who does not read holds us once we
	// were told to stop.
	abandonAfter = time.Second
)

// Log is the session log as the turn uses it. Record never blocks.
type Log interface {
	Recorder
	Record(at time.Time, level slog.Level, msg string, attrs ...slog.Attr)
	Flush()
	SetSession(id string) error
}

// Agent is a started agent and the tree below it.
type Agent interface {
	PID() int
	Exited() <-chan struct{}
	Limit() <-chan process.Exceeded
	End(l process.Ladder, hurry <-chan struct{}) process.Teardown
	Close() // waits for what helped to watch the tree
}

// Child is an agent with our ends of its pipes. Run closes them.
type Child struct {
	Agent
	Stdin          io.WriteCloser
	Stdout, Stderr interface {
		Source
		io.Closer
	}
	// Sample looks at the agent's tree; nil where that cannot be. One goroutine
	// at a time calls it, which it may hold up for long: what reads about a
	// process may wait for it. Full means that who is not found is not there,
	// explain asks what each one waits for.
	Sample func(at time.Time, full, explain bool) tree.Snapshot
	// Sampled is called when nobody will look any more; may be nil.
	Sampled func()
	// Pause freezes the tree and Resume lets it go on; nil where that cannot be.
	Pause, Resume func() error
}

// Config is what a turn is run with.
type Config struct {
	Launch    func(context.Context) (Child, error) // gives up when the context is cancelled
	Prompt    []byte
	Policy    monitor.Policy
	Tick      time.Duration // the longest sleep of the owner
	KillGrace time.Duration
	SessionID string // to name in a failure before the agent named its own

	Log    Log
	Out    format.Output
	Silent bool             // no synthetic lines
	Stderr io.Writer        // takes the agent's stderr; must not block
	Say    func(msg string) // takes what a person should read; must not block
	Stop   <-chan syscall.Signal
	Now    func() time.Time // a clock that never runs backwards, in milliseconds

	// GoesOn is asked when a turn has failed without a result, and says whether
	// the stream goes on after it: the subtype of the wrapper's own line that
	// then stands there, and its message. Empty is no. May be nil.
	GoesOn func(*Report) (note, message string)

	// Show takes what a person may see of a turn under way: after what has
	// happened, at most every showEvery, and once a second while time is all
	// that changes. Nil is for nobody; it must not block.
	Show func(*monitor.Reason)
	// Asks is told who is blocked reading the terminal that is the agent's
	// stderr, whenever that has changed. Nil where it has none.
	Asks func([]tree.Proc)

	// Control is for others who want to look at the turn; nil for nobody.
	Control *Control

	// Slept is how long the machine has been suspended so far; nil where
	// nobody can tell. Now stands still meanwhile.
	Slept func() time.Duration
}

// turn is the owner's state.
type turn struct {
	Config
	began time.Time
	mon   *monitor.Monitor
	child Child
	pump  *pump
	drain *drain
	timer *time.Timer
	awake time.Time // when the owner last woke
	armed time.Time // when it went to sleep again
	due   time.Time // when the timer was meant to wake it
	rest  time.Time // nothing is judged before: the pump has something to do first

	exited   <-chan struct{} // nil once seen
	gone     bool            // the agent's process has ended
	eof      bool            // the stream has ended
	endDue   time.Time       // when the other one of exit and end of stream is waited for no longer
	torn     chan process.Teardown
	ladder   bool // it was started
	teardown *process.Teardown
	hurry    chan struct{}
	abandon  <-chan time.Time

	cause     *cause
	result    *events.Ended
	phase     monitor.Phase
	judged    time.Time // when a verdict was reached that waits to be acted on; zero while none does
	seen      time.Time // when the newest batch that was told was received
	held      time.Time // up to which held time was told
	echoed    bool      // the prompt's echo was seen
	signals   int       // that told us to stop
	outErr    error     // of stdout
	delivered bool      // the result was forwarded before that
	leftover  bool      // the pump was left behind in a write
	report    Report

	watch   tree.Watch
	looks   chan tree.Snapshot
	looking bool            // somebody looks at the tree
	silent  int             // in which silence it set out
	doubt   monitor.Finding // what was last said of a deadline that has passed
	doubts  int             // how often something was
	stopped time.Time       // since when the agent or its tools were seen to be stopped; zero while they are not
	rested  time.Duration   // for how long they were, so far
	slept   time.Duration   // up to which suspensions were told

	sleptBefore time.Duration // of them, what was before the turn

	paused   time.Time // since when the tree is frozen on somebody's word; zero while it is not
	pausedBy int       // the uid of who asked for it
	pausing  bool      // it is being frozen, or let go on

	shown  time.Time // when something was shown last
	stale  bool      // something has happened since
	askDue time.Time // when to look whether somebody asks; zero for not at all
	asking string    // who does, as it was told
}

// Run runs one turn to its end.
func Run(c Config) Report {
	t := &turn{
		Config: c,
		began:  c.Now(),
		torn:   make(chan process.Teardown, 1),
		hurry:  make(chan struct{}, 1),
		looks:  make(chan tree.Snapshot, 1),
		report: Report{SessionID: c.SessionID},
	}
	if t.Control == nil {
		t.Control = NewControl()
	}
	defer close(t.Control.over)
	if t.Slept != nil {
		t.slept = t.Slept()
		t.sleptBefore = t.slept
	}
	t.Log.Record(t.began, slog.LevelInfo, "turn_start")
	t.mon = monitor.New(c.Policy, t.began)
	t.phase = t.mon.Phase()
	t.held = t.began
	if err := t.start(); err != nil {
		if t.cause != nil {
			return t.finish()
		}
		t.cause = &cause{outcome: Failed, subtype: "exec_error", message: err.Error()}
		t.Log.Record(t.Now(), slog.LevelError, "spawn_failed", slog.String("error", err.Error()))
		return t.finish()
	}
	t.loop()
	if closed(t.exited) { // both may have come at the same time
		t.onExit()
	}
	t.join()
	defer t.child.Close() // the guard leaves while we say how it was
	return t.finish()
}

func (t *turn) start() error {
	buf, err := process.Reserve(bufSize)
	if err != nil {
		return err
	}
	child, err := t.launch()
	if err != nil {
		process.Release(buf)
		return err
	}
	t.child, t.exited, t.report.Started = child, child.Exited(), true
	t.pump = newPump(buf, child.Stdout, t.Log, t.Out, t.Now)
	t.drain = newDrain(child.Stderr, t.Log, t.Stderr, t.Now)
	if t.Asks != nil {
		t.drain.spoke = make(chan struct{}, 1)
	}
	go t.pump.run()
	go t.drain.run()
	go func() {
		// The agent may leave without reading it, or never read it: the pipe
		// breaks, or join closes it. Neither is an error of the run.
		_, _ = t.child.Stdin.Write(t.Prompt)
		_ = t.child.Stdin.Close()
	}()
	return nil
}

// launch starts the agent; a signal to stop meanwhile cancels it.
func (t *turn) launch() (child Child, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		child, err = t.Launch(ctx)
	}()
	for {
		select {
		case sig := <-t.Stop:
			cancel()
			t.told(sig)
			name := process.SignalName(sig)
			t.Log.Record(t.Now(), slog.LevelWarn, "signal", slog.String("signal", name), slog.Int("count", t.signals))
			t.cause = &cause{outcome: Stopped, message: "stopped by " + name, signal: sig}
		case answer := <-t.Control.asked:
			answer(t)
		case <-done:
			return child, err
		}
	}
}

// loop runs until nobody of the tree is left and the stream has been read.
func (t *turn) loop() {
	t.timer = time.NewTimer(t.Tick)
	defer t.timer.Stop()
	t.awake = t.Now()
	t.arm(t.awake)
	if t.cause != nil {
		t.end(t.cause)
		t.hasten()
	}
	batches := t.pump.batches
	for t.teardown == nil || !t.eof {
		select {
		case b, ok := <-batches:
			if !ok {
				batches = nil // a closed channel would be ready for ever
			}
			t.batch(b, ok)
			t.woke()
		case <-t.exited:
			t.woke()
			t.onExit()
		case td := <-t.torn:
			t.onTorn(td)
		case sig := <-t.Stop:
			t.woke()
			t.onSignal(sig)
		case x := <-t.child.Limit():
			t.woke()
			t.onLimit(x)
		case snap := <-t.looks:
			t.woke()
			t.onLook(&snap)
		case answer := <-t.Control.asked:
			t.woke()
			answer(t)
		case <-t.timer.C:
			t.woke()
			t.onTimer()
		case <-t.drain.spoke:
			t.askDue = t.Now().Add(askGrace)
		case <-t.abandon:
			t.leftover = true
			return
		}
		t.show()
		t.arm(t.Now())
	}
}

func (t *turn) onTimer() {
	now := t.Now()
	switch {
	case t.ladder, !t.paused.IsZero():
		return
	case !t.endDue.IsZero():
		if t.pumpHeld(now); !now.Before(t.endDue) {
			t.end(t.muteCause())
		}
		return
	}
	t.pumpHeld(now)
	if due := t.sampleDue(); !due.IsZero() && !now.Before(due) {
		t.look(now)
	}
	t.judge(now)
}

// closed reports whether the channel is; nil is one that was seen to be.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (t *turn) onExit() {
	t.exited, t.gone = nil, true
	now := t.Now()
	t.goOn(now)
	t.Log.Record(now, slog.LevelInfo, "agent_exit", slog.Int("pid", t.child.PID()))
	t.endDue = now.Add(drainGrace)
	if t.eof || t.result != nil {
		t.end(nil)
	}
}

// onEOF: a stream that has ended without a result will have none. The agent
// gets the time to leave that it would have after a result.
func (t *turn) onEOF() {
	t.eof = true
	if t.pump.crash != nil {
		t.stdoutFailed(t.pump.crash)
	}
	switch now := t.Now(); {
	case t.gone:
		t.end(nil)
	case t.result == nil && !t.ladder:
		t.Log.Record(now, slog.LevelWarn, "stdout_ended", slog.Int("pid", t.child.PID()))
		t.endDue = now.Add(t.Policy.ExitGrace)
	}
}

// muteCause is why an agent is ended that closed its stdout and stayed.
func (t *turn) muteCause() *cause {
	if t.gone {
		return nil
	}
	return &cause{
		outcome: Failed,
		subtype: "no_result",
		message: "the agent closed its stdout without a result and did not exit",
	}
}
