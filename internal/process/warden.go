package process

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// freezeTime bounds the search for a fixpoint of stopped processes: a
	// parent in vfork is in uninterruptible sleep and a traced process in a
	// state of its own, so not everybody ever says T.
	freezeTime = 300 * time.Millisecond

	// slowest is the longest pause between two looks at the tree.
	slowest = 50 * time.Millisecond
)

// world is the door to the processes of this machine, so that a test can put
// made-up ones behind it.
type world struct {
	// tree lists the descendants of this process, zombies included.
	tree func() ([]Proc, error)
	// children lists the pids of its own children, zombies included.
	children func() ([]int, error)
	// identify is a child's row in the table.
	identify func(pid int) Proc
	// command is the argv of a process.
	command func(pid int) string
	// signal reaches exactly that process with each of the signals, or says
	// ESRCH.
	signal func(Proc, ...syscall.Signal) error
	// kill reaches a child of our own, whose pid cannot be anybody else's
	// before it is reaped.
	kill func(pid int, sig syscall.Signal) error
	// reap takes the next child that has ended; EAGAIN where none has, ECHILD
	// where there are no children.
	reap func() (dead, error)
	// proof says that a wait without children means that nobody is left: so it
	// is in a subreaper.
	proof bool
}

// dead is a child that was reaped.
type dead struct {
	Proc
	status syscall.WaitStatus
	usage  syscall.Rusage
}

// reapChild is world.reap for real children. The child is named while it still
// is there to be looked at.
func reapChild() (d dead, err error) {
	for {
		pid, err := waitPeek()
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return d, err
		case pid == 0:
			return d, unix.EAGAIN
		}
		d.Proc = identify(pid)
		if _, err := syscall.Wait4(pid, &d.status, syscall.WNOHANG|waitAll, &d.usage); err == nil {
			return d, nil
		}
	}
}

// warden ends the tree below this process: in the guard, and in the front when
// the guard is dead. One goroutine owns it.
type warden struct {
	world   world
	leaf    *leaf           // nil without a cgroup
	spare   []string        // parts of the command lines of processes that are left alone
	sparing bool            // somebody was spared: the cgroup as a whole is not killed
	ignore  map[procID]bool // children that were here before the agent; what they start is theirs, too

	// strangers says that the members of session were here before, or descend
	// from such: the guard and all below it are in others. The session is 0
	// where its leader is outside of our pid namespace (getsid(2)).
	strangers bool
	session   int

	agent  Proc
	chld   <-chan struct{} // says that a child may have ended, once until reap has asked for more
	more   func()
	told   bool
	onReap func(dead)

	blind  bool // there is no process table to read
	reaped bool // the agent has been
	alone  bool // the last wait said that there are no children
	known  map[procID]*Ended
	alive  map[procID]bool
	stuck  []Ended // in the leaf, and not to be got rid of
}

// reap collects every child that has ended.
func (w *warden) reap() {
	defer func() {
		if w.told {
			w.told = false
			w.more()
		}
	}()
	for {
		d, err := w.world.reap()
		w.alone = errors.Is(err, unix.ECHILD)
		if err != nil {
			return
		}
		if e, ok := w.known[d.id()]; ok && d.status.Signaled() {
			e.How = unix.SignalName(d.status.Signal())
		}
		w.reaped = w.reaped || d.PID == w.agent.PID
		if w.onReap != nil {
			w.onReap(d)
		}
	}
}

// end runs the ladder and says what it came to. A value on hurry leaves the
// present wait. Nobody but a child that was here before the agent is left when
// it returns, or the report says who.
func (w *warden) end(l Ladder, hurry <-chan struct{}) Teardown {
	began := time.Now()
	w.known = map[procID]*Ended{}
	for i, step := range l {
		if w.empty() {
			break
		}
		if last := i == len(l)-1; last {
			w.destroy(step.Wait)
			break
		}
		w.tell(w.look(), step.Signals)
		w.tellBlindly(step.Signals)
		w.thaw()
		w.wait(step.Wait, hurry, step.Signals)
	}
	w.clearLeaf()
	return w.report(time.Since(began))
}

// thaw lets a tree that was paused act on what it was told.
func (w *warden) thaw() {
	if w.leaf != nil {
		_ = w.leaf.freeze(false) // the frozen can still be killed
	}
}

// empty reports whether nobody is left. Where orphans come to us, the proof is
// a wait that finds no child; elsewhere it is a look at what is known.
func (w *warden) empty() bool {
	w.reap()
	if w.world.proof && (w.alone || len(w.ignore) == 0) {
		return w.alone
	}
	for range 2 { // one look is a hint
		if !w.unseen() || w.sparing {
			return false
		}
	}
	return true
}

// unseen looks for the tree and finds nobody but the spared. Who hangs on a process that dies
// while it is looked at has left its list and is not yet seen in ours, so ours
// is read once more behind it.
func (w *warden) unseen() bool {
	if len(w.look()) > 0 {
		return false
	}
	pids, err := w.world.children()
	return err == nil && !slices.ContainsFunc(pids, func(pid int) bool {
		p := w.world.identify(pid)
		e := w.known[p.id()]
		return !w.ignore[p.id()] && !w.stranger(p) && !p.gone() && (e == nil || !e.Spared)
	})
}

// onlySpared reports whether the spared are all that is left.
func (w *warden) onlySpared() bool {
	for range 2 {
		if !w.unseen() || !w.sparing {
			return false
		}
	}
	return true
}

// clearLeaf ends whoever is in the leaf and no longer below us: somebody who
// entered another pid namespace is orphaned to its init.
func (w *warden) clearLeaf() {
	if w.leaf == nil || len(w.spare) > 0 || !w.leaf.populated() {
		return
	}
	for _, pid := range w.leaf.members() {
		if p := identify(pid); p.Start != 0 && !p.gone() {
			e := w.remember(p)
			e.Found, e.Signal = "cgroup", "SIGKILL"
		}
	}
	w.leaf.kill()
	for over := time.Now().Add(time.Second); w.leaf.populated() && time.Now().Before(over); time.Sleep(time.Millisecond) {
		w.leaf.killMembers()
		w.reap()
	}
	if !w.leaf.populated() {
		return
	}
	for _, pid := range w.leaf.members() {
		if p := identify(pid); p.Start != 0 && !p.gone() {
			w.stuck = append(w.stuck, *w.remember(p))
		}
	}
}

// look lists the living of the tree and remembers them all.
func (w *warden) look() []*Ended {
	rows, err := w.world.tree()
	if err != nil {
		rows, w.blind = nil, true
	}
	rows = w.without(rows)
	w.alive = map[procID]bool{}
	w.sparing = false
	var alive []*Ended
	for _, p := range rows {
		if p.gone() {
			continue
		}
		w.alive[p.id()] = true
		e := w.remember(p)
		if e.Spared {
			w.sparing = true
			continue
		}
		alive = append(alive, e)
	}
	return alive
}

func (w *warden) remember(p Proc) *Ended {
	e, ok := w.known[p.id()]
	if !ok {
		e = &Ended{Proc: p, Found: w.found(p)}
		w.known[p.id()] = e
	}
	e.State, e.PPID = p.State, p.PPID
	if e.sights++; e.sights > 2 {
		return e
	}
	// At the first sight it may have been on its way from fork to exec, under
	// the name of its parent.
	if command := w.world.command(p.PID); command != "" {
		e.Spared = p.id() != w.agent.id() && slices.ContainsFunc(w.spare, func(part string) bool { return strings.Contains(command, part) })
		e.Command = clip(command)
	}
	return e
}

// commandMost is how much of a command line is kept for the record, in bytes: a
// program given as an argument may be a hundred kilobytes.
const commandMost = 500

func clip(command string) string {
	if len(command) <= commandMost {
		return command
	}
	return strings.ToValidUTF8(command[:commandMost], "") + "…"
}

// found says how a process came into the list.
func (w *warden) found(p Proc) string {
	switch {
	case p.id() == w.agent.id():
		return "agent"
	case p.PPID == os.Getpid():
		return "adopted"
	}
	return "child"
}

// without leaves out the processes that were here before the agent, and
// whatever they started.
func (w *warden) without(rows []Proc) []Proc {
	if len(w.ignore) == 0 {
		return rows
	}
	byPID := map[int]Proc{}
	for _, p := range rows {
		byPID[p.PID] = p
	}
	return slices.DeleteFunc(rows, func(p Proc) bool {
		for range len(byPID) { // the table may have changed while it was read: no circles
			if w.ignore[p.id()] || w.stranger(p) {
				return true
			}
			parent, ok := byPID[p.PPID]
			if !ok {
				return false
			}
			p = parent
		}
		return false
	})
}

// stranger reports whether a process is in the session of the front, in which
// nothing of the tree can be.
func (w *warden) stranger(p Proc) bool {
	return w.strangers && p.Start != 0 && p.Session == w.session
}

// tell sends the signals to each of them.
func (w *warden) tell(alive []*Ended, signals []syscall.Signal) {
	for _, e := range alive {
		e.Error = ""
		if err := w.world.signal(e.Proc, signals...); err != nil && !errors.Is(err, unix.ESRCH) {
			e.Error = err.Error()
		}
		for _, sig := range signals {
			if sig != syscall.SIGCONT && sig != syscall.SIGSTOP {
				e.Signal = unix.SignalName(sig)
			}
		}
	}
}

// wait returns as soon as nobody is left, and after d at the latest. Who is
// born meanwhile is told, too.
func (w *warden) wait(d time.Duration, hurry <-chan struct{}, signals []syscall.Signal) {
	over := time.NewTimer(d)
	defer over.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, slowest) {
		select {
		case <-w.chld:
			w.told = true
		case <-time.After(pause):
		case <-hurry:
			return
		case <-over.C:
			return
		}
		if w.empty() {
			return
		}
		alive := w.look()
		if len(alive) == 0 && w.onlySpared() {
			return
		}
		w.tell(slices.DeleteFunc(alive, func(e *Ended) bool { return e.Signal != "" }), signals)
	}
}

// destroy ends whoever is left, for certain: the cgroup in one stroke, then
// stop to a fixpoint and one sweep, then every child as it comes to us, until
// the kernel says that there is none.
func (w *warden) destroy(settle time.Duration) {
	over := time.Now().Add(settle)
	alive := w.look()
	if w.leaf != nil && len(w.spare) == 0 { // a look may miss whom the stroke would not
		w.leaf.kill()
		for _, e := range alive {
			e.Signal = "SIGKILL"
		}
	}
	if w.empty() {
		return
	}
	w.tell(w.freeze(), []syscall.Signal{syscall.SIGKILL})
	for pause := time.Millisecond; time.Now().Before(over); pause = min(2*pause, slowest) {
		w.killChildren()
		if w.empty() {
			return
		}
		select {
		case <-w.chld:
			w.told = true
			pause = time.Millisecond
		case <-time.After(pause):
			// Nobody came to us: somebody deeper may hold them up.
			alive := w.look()
			if len(alive) == 0 && w.onlySpared() {
				return
			}
			w.tell(alive, []syscall.Signal{syscall.SIGKILL})
		}
	}
}

// tellBlindly reaches the agent and its process group where no process can be
// listed. Their id is the agent's as long as it has not been reaped.
func (w *warden) tellBlindly(signals []syscall.Signal) {
	if !w.blind || w.reaped || w.agent.PID == 0 {
		return
	}
	for _, sig := range signals {
		_ = w.world.kill(-w.agent.PID, sig) // who is missed keeps the wait from saying that nobody is left
	}
}

// freeze stops the tree until two looks find nobody new, so that processes
// that replace each other cannot do so while they are killed. It ends with the
// list of the living; nobody is continued, because SIGKILL needs no CONT.
func (w *warden) freeze() []*Ended {
	stopped := map[procID]bool{}
	over := time.Now().Add(freezeTime)
	for quiet := 0; ; {
		alive := w.look()
		fresh := slices.DeleteFunc(slices.Clone(alive), func(e *Ended) bool { return stopped[e.id()] })
		if len(fresh) == 0 {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 2 || time.Now().After(over) {
			return alive
		}
		w.tell(fresh, []syscall.Signal{syscall.SIGSTOP})
		for _, e := range fresh {
			stopped[e.id()] = true
		}
	}
}

// killChildren kills our own children. What is orphaned by it comes to us and
// is next.
func (w *warden) killChildren() {
	pids, err := w.world.children()
	if err != nil {
		w.blind = true
		w.tellBlindly([]syscall.Signal{syscall.SIGKILL})
		return
	}
	for _, pid := range pids {
		p := w.world.identify(pid)
		if w.ignore[p.id()] || w.stranger(p) || p.gone() {
			continue
		}
		e := w.remember(p)
		if e.Spared {
			w.sparing = true
			continue
		}
		e.Error = ""
		if err := w.world.kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			e.Error = err.Error()
		}
		e.Signal = "SIGKILL"
	}
}

// report sorts the known into gone and left.
func (w *warden) report(took time.Duration) Teardown {
	t := Teardown{Took: took, Proof: w.alone && w.world.proof, Ended: []Ended{}, Left: []Ended{}, Spared: []Ended{}}
	w.alive = nil
	if !w.alone {
		w.look()
	}
	if w.leaf != nil {
		t.Cgroup = "populated 0"
		if w.leaf.populated() {
			t.Cgroup, t.Proof = "populated 1", false
		}
	}
	for _, e := range w.stuck {
		if !w.alive[e.id()] {
			delete(w.known, e.id())
			e.UID = uidOf(e.PID)
			t.Left = append(t.Left, e)
		}
	}
	for id, e := range w.known {
		switch {
		case !w.alive[id]:
			t.Ended = append(t.Ended, *e)
		case e.Spared:
			t.Spared = append(t.Spared, *e)
			if w.leaf != nil {
				w.leaf.expel(e.PID)
			}
		default:
			e.UID = uidOf(e.PID)
			t.Left = append(t.Left, *e)
		}
	}
	if w.blind && !w.alone && len(t.Left)+len(t.Spared) == 0 {
		t.Left = append(t.Left, Ended{Proc: Proc{Command: "somebody", UID: -1}, Found: "child", Error: "the process table cannot be read"})
	}
	byPID := func(a, b Ended) int { return cmp.Compare(a.PID, b.PID) }
	slices.SortFunc(t.Ended, byPID)
	slices.SortFunc(t.Left, byPID)
	slices.SortFunc(t.Spared, byPID)
	return t
}
