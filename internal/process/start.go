package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is asked for on the agent's stdout, in bytes. The pipe is the queue
// that fills while a batch is synced; a Node agent writes to it synchronously
// and stops when it is full. 1 MiB is what Linux allows everybody.
const pipeSize = 1 << 20

// guardLate is how much longer than its ladder the guard may take.
const guardLate = 2 * time.Second

// Containment chooses how the tree is held together.
type Containment string

// The containments. The two subreapers are always there. A cgroup counts and
// proves, and is found by a later start; only a pid namespace holds when the
// front and the guard are killed in the same instant.
const (
	Auto   Containment = "auto"   // a cgroup where one can be made
	Cgroup Containment = "cgroup" // a cgroup, or an error
	Tree   Containment = "tree"   // the two subreapers alone
	PIDNS  Containment = "pidns"  // a pid namespace, or an error; as root or with user namespaces
)

// Spec says what to start. The directory is the caller's own.
type Spec struct {
	Path        string   // of the binary, as resolved
	Args        []string // without argv[0]
	Env         []string // the whole environment
	ID          string   // of the run; names its cgroup
	Containment Containment
	Limits      Limits
	Stderr      Mode
	Size        Size        // of the terminal, if it has one
	Spare       []string    // parts of the command lines of processes that are left alone
	Adopted     func(Ended) // told of every orphan that has ended; may be nil
}

// Agent is a started agent, below its guard: the leader of a session and of a
// process group of its own.
type Agent struct {
	Stdin  *os.File
	Stdout *Pipe
	Stderr *Pipe // at its end at once where what the agent says there does not come to us

	// Held says how the tree is held together, and why not better.
	Held string

	terminal *Terminal // nil without one
	leader   Proc
	guard    int
	line     *line
	leaf     *leaf
	spec     Spec
	ignore   map[procID]bool
	ending   atomic.Bool // End was called
	pausing  sync.Mutex
	frozen   bool            // by Pause
	paused   map[procID]Proc // who was stopped by it, one by one
	exit     Exit            // set before exited is closed
	exited   chan struct{}   // the agent's process has ended
	torn     chan Teardown   // what came of the end, once
	limit    chan Exceeded   // a limit that was reached, at most once
	gone     chan struct{}   // the guard has ended, and what it left is ended too
}

// Prepared is a guard that is there and waits to be told what to start. It
// takes as long to come to itself as we do, so whoever knows early that there
// will be a run saves half of that.
type Prepared struct {
	files  *files
	guard  int
	line   *line
	stderr Mode
	ignore map[procID]bool
}

// Prepare starts a guard with what must be known before it is born: the
// agent's whole environment, the containment, the kind of stderr and the size.
// Start or Discard must follow.
func Prepare(s Spec) (*Prepared, error) {
	_ = becomeReaper() // the guard's death must not lose us the tree; where it cannot be, nothing is lost beside that
	p := &Prepared{stderr: s.Stderr, ignore: map[procID]bool{}}
	if pids, err := children(); err == nil {
		for _, pid := range pids { // of the program that we were before exec
			p.ignore[identify(pid).id()] = true
		}
	}
	var err error
	if p.files, err = openFiles(s.Stderr, s.Size); err != nil {
		return nil, err
	}
	if p.guard, err = p.files.fork(s.Env, s.Containment); err != nil {
		p.files.closeOurs()
		p.files.closeTheirs()
		return nil, err
	}
	p.files.closeTheirs()
	p.line = newLine(p.files.control)
	return p, nil
}

// Discard lets the guard go.
func (p *Prepared) Discard() {
	p.files.closeOurs()
	_, _ = syscall.Wait4(p.guard, nil, 0, nil) // it ends because its line is closed
}

// Start starts a guard and, below it, the agent with pipes as its stdin and
// stdout. The error names the path and wraps the cause.
func Start(s Spec) (*Agent, error) {
	p, err := Prepare(s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	return p.Start(s)
}

// Start starts the agent below the prepared guard, which is gone if it fails.
// What was given to Prepare stands, whatever s says of it.
func (p *Prepared) Start(s Spec) (*Agent, error) {
	a := &Agent{
		spec: s, guard: p.guard, line: p.line, ignore: p.ignore,
		exited: make(chan struct{}), torn: make(chan Teardown, 1), limit: make(chan Exceeded, 1), gone: make(chan struct{}),
	}
	err := a.contain()
	if err == nil {
		a.line.send(a.order(p.stderr))
		err = a.await()
	}
	if err != nil {
		p.Discard()
		left := true // there is nobody to tell of the agent's exit
		a.inherit(&left)
		a.dropLeaf()
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	a.Stdin, a.Stdout, a.Stderr = p.files.ours[0], &Pipe{p.files.ours[1]}, &Pipe{p.files.ours[2]}
	if p.stderr == StderrPTY {
		a.terminal = &Terminal{p.files.ours[2]}
	}
	go a.listen()
	return a, nil
}

// order tells the guard what to start.
func (a *Agent) order(stderr Mode) *order {
	o := &order{Op: "start", Start: starting{
		Argv: append([]string{a.spec.Path}, a.spec.Args...), Spare: a.spec.Spare, Limits: a.spec.Limits, Terminal: stderr == StderrPTY,
	}}
	if a.leaf != nil {
		o.Start.Leaf = a.leaf.path
	}
	return o
}

// reapStrangers reaps what is orphaned to us and is not ours: as pid 1 of a
// container that is everybody's orphans, and after an exec in a shell that had
// children it is theirs. Their zombies would stay for ever. The guard is left
// to listen.
func (a *Agent) reapStrangers(stop <-chan struct{}) {
	chld := make(chan os.Signal, 1)
	signal.Notify(chld, syscall.SIGCHLD)
	defer signal.Stop(chld)
	for {
		select {
		case <-chld:
		case <-stop:
			return
		}
		pids, err := children()
		if err != nil {
			continue
		}
		for _, pid := range pids {
			if pid != a.guard && pid != a.leader.PID && identify(pid).gone() {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
		}
	}
}

// startReaping reaps strangers where there may be any, until stop returns.
func (a *Agent) startReaping() (stop func()) {
	if os.Getpid() != 1 && len(a.ignore) == 0 {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		a.reapStrangers(over)
	}()
	return func() { close(over); <-done }
}

// contain makes the leaf, where one is wanted and can be.
func (a *Agent) contain() error {
	a.Held = "tree: two subreapers"
	switch a.spec.Containment {
	case Tree:
		return nil
	case PIDNS:
		a.Held = "pid namespace"
		return nil
	}
	l, err := newLeaf(a.spec.ID)
	switch {
	case err == nil:
		l.limit(a.spec.Limits)
		a.leaf, a.Held = l, "cgroup "+l.path
	case a.spec.Containment == Cgroup:
		return fmt.Errorf("no cgroup: %w", err)
	default:
		a.Held += "; no cgroup: " + err.Error()
	}
	return nil
}

func (a *Agent) dropLeaf() {
	if a.leaf != nil {
		_ = a.leaf.remove(100 * time.Millisecond) // else the next start removes it
	}
}

// files are the agent's standard files and the control line: our ends and the
// guard's.
type files struct {
	ours, theirs   [3]*os.File
	control, other *os.File
	null           *os.File
}

func openFiles(stderr Mode, size Size) (*files, error) {
	f := &files{}
	err := func() (err error) {
		if f.theirs[0], f.ours[0], err = os.Pipe(); err != nil {
			return err
		}
		if f.ours[1], f.theirs[1], err = os.Pipe(); err != nil {
			return err
		}
		if err = f.stderr(stderr, size); err != nil {
			return err
		}
		enlarge(f.ours[1], pipeSize)
		if f.control, f.other, err = socketpair(); err != nil {
			return err
		}
		f.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
		return err
	}()
	if err != nil {
		f.closeOurs()
		f.closeTheirs()
	}
	return f, err
}

// closeTheirs may be called twice.
func (f *files) closeTheirs() { closeAll(f.theirs[0], f.theirs[1], f.theirs[2], f.other, f.null) }
func (f *files) closeOurs()   { closeAll(f.ours[0], f.ours[1], f.ours[2], f.control) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// fork starts the guard from the very file that we run, which an upgrade may
// have replaced on disk. Fd clears O_NONBLOCK, which neither the guard nor the
// agent expects to inherit.
func (f *files) fork(env []string, c Containment) (int, error) {
	exe, err := selfPath()
	if err != nil {
		return 0, err
	}
	null := f.null.Fd()
	return syscall.ForkExec(exe, []string{filepath.Base(os.Args[0]), GuardArg, string(c)}, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{null, null, null, f.other.Fd(), f.theirs[0].Fd(), f.theirs[1].Fd(), f.theirs[2].Fd()},
		Sys:   guardAttr(c),
	})
}

// await waits for the guard's first word: the agent runs, or why not.
func (a *Agent) await() error {
	var n news
	err := a.line.receive(&n)
	switch {
	case err != nil:
		err = errors.New("the guard died at its start")
	case n.What == "started":
		a.leader = n.Agent
		if a.spec.Containment == PIDNS {
			a.leader = outside(a.guard, n.Agent)
		}
		if n.Cgroup != "" {
			a.dropLeaf()
			a.leaf, a.Held = nil, "tree: two subreapers; not born in a cgroup: "+n.Cgroup
		}
		return nil
	case n.Errno != 0:
		err = syscall.Errno(n.Errno)
	default:
		err = errors.New(n.Error)
	}
	return err
}

// listen takes what the guard says until it ends. If it ends before its work
// is done, that is ours: its orphans have come to us.
func (a *Agent) listen() {
	defer close(a.gone)
	stop := a.startReaping()
	told, left := false, false
	for {
		var n news
		if err := a.line.receive(&n); err != nil {
			break
		}
		switch n.What {
		case "exit":
			a.exit, left = *n.Exit, true
			close(a.exited)
		case "adopted":
			if a.spec.Adopted != nil {
				a.spec.Adopted(*n.Adopted)
			}
		case "limit":
			a.limit <- *n.Limit
		case "torn":
			told = true
			a.torn <- *n.Teardown
		}
	}
	_ = a.line.f.Close()
	_, _ = syscall.Wait4(a.guard, nil, 0, nil) // by pid: the line is closed, so it ends or has ended
	stop()                                     // from here on whoever is ours to reap may be the tree's
	if !told {
		a.torn <- a.inherit(&left)
	}
	if !left {
		a.exit = Exit{Code: -1}
		close(a.exited)
	}
	if a.leaf != nil {
		_ = a.leaf.remove(time.Second)
	}
}

// inherit ends the tree in the guard's place, as far as there is one: a guard
// that died before it could say so may have started the agent.
func (a *Agent) inherit(left *bool) Teardown {
	w := warden{world: realWorld(a.leader), leaf: a.leaf, spare: a.spec.Spare, ignore: a.ignore, agent: a.leader}
	if session, err := unix.Getsid(0); err == nil {
		w.strangers, w.session = len(a.ignore) > 0, session
	}
	w.chld, w.more = watch()
	w.onReap = func(d dead) {
		if d.id() == a.leader.id() && !*left {
			a.exit, *left = exitOf(d.status, &d.usage), true
			close(a.exited)
		}
	}
	t := w.end(NewLadder(0)[1:], nil)
	t.By = "front"
	return t
}

// PID is the agent's pid, and the id of its session and process group.
func (a *Agent) PID() int { return a.leader.PID }

// Terminal is the agent's terminal, which it has as its stderr; nil without one.
func (a *Agent) Terminal() *Terminal { return a.terminal }

// Leaf is the path of the tree's cgroup; empty without one.
func (a *Agent) Leaf() string {
	if a.leaf == nil {
		return ""
	}
	return a.leaf.path
}

// GuardPID is the pid of the guard.
func (a *Agent) GuardPID() int { return a.guard }

// Exited is closed when the agent's own process has ended; its descendants may
// be alive, and its pipes open.
func (a *Agent) Exited() <-chan struct{} { return a.exited }

// Limit delivers the limit that the tree has reached, at most once.
func (a *Agent) Limit() <-chan Exceeded { return a.limit }

// End ends whoever is left of the tree. A value on hurry leaves the present
// wait and goes on to the next step, as far as the last. It blocks until the
// ladder is through; call it once.
func (a *Agent) End(l Ladder, hurry <-chan struct{}) Teardown {
	a.ending.Store(true)
	defer func() { _ = a.Resume() }() // whoever was spared, or cannot be ended, goes on
	a.line.send(&order{Op: "end", Ladder: l})
	patience := guardLate
	for _, step := range l {
		patience += step.Wait
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	var t Teardown
	for waiting := true; waiting; {
		select {
		case <-late.C:
			// It is stopped, perhaps by the tree. What it has is ours then; its
			// pid is its own, because only listen reaps it.
			_ = syscall.Kill(a.guard, syscall.SIGKILL)
		case t = <-a.torn:
			waiting = false
		case <-hurry:
			a.line.send(&order{Op: "hurry"})
		}
	}
	t.Exit = Exit{Code: -1}
	if a.hasExited() { // told before the end was, if it was
		t.Exit = a.exit
	}
	return t
}

func (a *Agent) hasExited() bool {
	select {
	case <-a.exited:
		return true
	default:
		return false
	}
}

// Close waits until the guard has left and its cgroup is removed.
func (a *Agent) Close() { <-a.gone }
