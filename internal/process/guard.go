package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// GuardArg is the hidden first argument that makes this program the guard. It
// is looked at before any flag parsing.
const GuardArg = "__guard"

// The guard's descriptors, as the front passes them.
const (
	guardControl = 3 + iota
	guardStdin
	guardStdout
	guardStderr
)

const (
	// orphanGrace is how long the tree has to leave by itself when the front
	// has died without a word.
	orphanGrace = 500 * time.Millisecond

	// crashGrace is the most that the tree of an agent has that was killed by
	// a signal: nobody is left to tidy up, and all should be gone within 2 s.
	crashGrace = 500 * time.Millisecond

	// flushTime is how long the last word may take to reach the front.
	flushTime = time.Second

	// limitTick is how often the tree is counted where there are limits, and
	// looked at where orphans leave it.
	limitTick = time.Second
)

func init() {
	if IsGuard(os.Args) {
		// The parent-death signal counts the thread that forked (prctl(2),
		// PR_SET_PDEATHSIG), so the agent is started from the one thread that
		// lives as long as the guard: init still runs on it.
		runtime.LockOSThread()
	}
}

// IsGuard reports whether the command line is that of a guard.
func IsGuard(args []string) bool { return len(args) > 1 && args[1] == GuardArg }

// GuardMain is the guard: it stands between the front and the agent, adopts
// every orphan of the tree, and ends the tree on command or when the front is
// gone. It returns its exit code. Call it from main, when IsGuard says so.
func GuardMain(args []string) int {
	const usage = 64
	if _, err := syscall.Getsockname(guardControl); len(args) != 3 || err != nil {
		_, _ = os.Stderr.WriteString("cursor-wrap: " + GuardArg + " is for the program itself; see cursor-wrap --help\n")
		return usage
	}
	for fd := guardControl; fd <= guardStderr; fd++ {
		syscall.CloseOnExec(fd) // or the agent inherits the line, and its end is never seen
	}
	g := &guard{
		line: newLine(os.NewFile(guardControl, "control")),
		ends: make(chan Ladder, 1), hurry: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	if err := g.prepare(Containment(args[2])); err != nil {
		g.line.post(&news{What: "failed", Error: err.Error()})
		g.line.flush(flushTime)
		return 1
	}
	var o order
	if g.line.receive(&o) != nil || o.Op != "start" {
		return 0 // there is no run after all
	}
	if err := g.start(&o.Start); err != nil {
		g.line.post(&news{What: "failed", Error: err.Error(), Errno: errno(err)})
		g.line.flush(flushTime)
		return 1
	}
	g.chld, g.more = watch()
	go g.listen()
	// The main thread has done its part, which is to live; what runs on it
	// would pay for a change of threads at every step.
	done := make(chan int)
	go func() { done <- g.run() }()
	return <-done
}

// prepare is what can be done before there is an agent.
func (g *guard) prepare(c Containment) error {
	// Caught and dropped, because only the front decides when it is over. What
	// we inherited ignored is caught, too: a caught signal is the default one
	// again in the agent, and an ignored one would stay ignored.
	signal.Notify(make(chan os.Signal, 1), append(ignoredSignals(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)...)
	_ = becomeReaper() // without it, orphans are found as long as their parents live
	if c == PIDNS {
		if err := enterNamespace(); err != nil {
			return fmt.Errorf("pid namespace: %w", err)
		}
	}
	return nil
}

type guard struct {
	warden
	line  *line
	ends  chan Ladder   // the front's command
	hurry chan struct{} // and its second one
	gone  chan struct{} // closed when the front is

	limits  Limits
	crashed bool // a signal that was not ours has ended the agent
	ending  bool
}

// start starts the agent, in its leaf if that can be.
func (g *guard) start(s *starting) error {
	g.limits = s.Limits
	g.warden = warden{leaf: openLeaf(s.Leaf), spare: s.Spare, onReap: g.reaped}
	argv := s.Argv
	born := func() *syscall.SysProcAttr {
		sys := agentAttr(g.leaf)
		sys.Setctty, sys.Ctty = s.Terminal, 2 // as the agent numbers it; no session but its own gets it
		return sys
	}
	attr := &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{guardStdin, guardStdout, guardStderr},
		Sys:   born(),
	}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	why := ""
	if s.Leaf != "" && g.leaf == nil {
		why = "it is gone"
	}
	if err != nil && g.leaf != nil {
		// clone3 is refused in some sandboxes (ENOSYS), and a cgroup that could
		// be made may not take us after all (EACCES): the tree is watched all
		// the same. If it was the agent's own error, it comes again.
		why = err.Error()
		g.leaf = nil
		attr.Sys = born()
		pid, err = syscall.ForkExec(argv[0], argv, attr)
	}
	if err != nil {
		return err
	}
	for _, fd := range []int{guardStdin, guardStdout, guardStderr} {
		_ = syscall.Close(fd) // or the agent's end of its pipes, and of its terminal, would not be the last
	}
	g.agent = identify(pid)
	g.world = realWorld(g.agent)
	g.line.post(&news{What: "started", Agent: g.agent, Cgroup: why})
	return nil
}

// listen hands on what the front says. When the front is gone, whatever is
// under way is cut short.
func (g *guard) listen() {
	for {
		var o order
		if err := g.line.receive(&o); err != nil {
			close(g.gone)
			time.AfterFunc(orphanGrace, g.hasten)
			return
		}
		switch o.Op {
		case "end":
			g.ends <- o.Ladder
		case "hurry":
			g.hasten()
		}
	}
}

func (g *guard) hasten() {
	select {
	case g.hurry <- struct{}{}:
	default:
	}
}

// run reaps until it is told to end the tree, or the front is gone.
func (g *guard) run() int {
	ladder := NewLadder(orphanGrace)
	var tick <-chan time.Time
	if g.limits != (Limits{}) || !g.world.proof {
		t := time.NewTicker(limitTick)
		defer t.Stop()
		tick = t.C
	}
	told := false
	for waiting := true; waiting; {
		select {
		case <-tick:
			if !g.world.proof {
				_, _ = g.world.tree() // remembers who descends from us while the link is there to see
			}
			if x := g.limits.check(g.leaf, g.world.tree); x != nil && !told {
				told = true // once is enough: the front ends us
				g.line.post(&news{What: "limit", Limit: x})
			}
		case <-g.chld:
			g.told = true
			g.reap()
		case ladder = <-g.ends:
			waiting = false
		case <-g.gone:
			waiting = false
		}
	}
	g.ending = true
	if g.crashed && len(ladder) > 0 {
		ladder[0].Wait = min(ladder[0].Wait, crashGrace)
	}
	t := g.end(ladder, g.hurry)
	t.By = "guard"
	g.line.post(&news{What: "torn", Teardown: &t})
	if g.leaf != nil {
		_ = g.leaf.remove(time.Second) // the front tries again
	}
	g.line.flush(flushTime)
	if len(t.Left) > 0 {
		return 3
	}
	return 0
}

// reaped tells the front of the agent's exit and of every adopted process's.
func (g *guard) reaped(d dead) {
	exit := exitOf(d.status, &d.usage)
	if d.id() == g.agent.id() {
		g.crashed = exit.Signal != 0 && !g.ending
		g.line.post(&news{What: "exit", Exit: &exit})
		return
	}
	if g.ending {
		return // the teardown tells of them all
	}
	e := &Ended{Proc: d.Proc, Found: "adopted"}
	if exit.Signal != 0 {
		e.How = SignalName(exit.Signal)
	}
	g.line.post(&news{What: "adopted", Adopted: e, Exit: &exit})
}

func errno(err error) int {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return int(e)
	}
	return 0
}
