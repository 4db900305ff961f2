package process

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// view is what the looks at /proc keep from one to the next.
type view struct {
	snap   *tree.Snapshot // the one that is being taken
	here   []*watched     // who is in its rows, by the same index
	uptime time.Duration  // of the machine, at the present one

	guard *watched
	known map[int]*watched // the members, by pid
	table bool             // there are no children files, only the whole table

	reader
	tcp sockets
}

// watched is a process and what is known of it.
type watched struct {
	id    tree.ID
	dir   string // its folder of /proc
	below string // in that folder, the file of its first thread's children
	uid   int
	name  string
	argv  []string
	reads int // of the command line, since it was born or changed its name
	scans int // of its descriptors, likewise
	code  int // the exit code of its stat, which of the stopped is the signal

	stat, io, children kept

	held    []uint64 // inodes of the sockets that it held at the last scan
	hidden  bool     // its descriptors cannot be read
	foreign bool     // it is in another network namespace
}

func newWatched(pid int) *watched {
	name := itoa(pid) + "/"
	return &watched{id: tree.ID{PID: pid}, dir: "/proc/" + name, below: "task/" + name + "children"}
}

func (s *Sampler) look(snap *tree.Snapshot, full, explain bool) {
	s.begin(snap)
	defer func() { s.snap = nil }()
	var guard statLine
	if err := s.readGuard(&guard); err != nil {
		snap.Blind = err.Error()
		return
	}
	snap.Reaped = guard.waited()
	if s.leaf != nil {
		snap.CPU = s.usage()
	}
	s.again()
	if s.leaf != nil {
		s.members()
	}
	if s.leaf == nil || full {
		s.walk()
	}
	if full || s.leaf == nil && s.table {
		snap.Full = s.pass()
	}
	snap.Sockets = s.lookUpSockets()
	if explain {
		s.explain()
	}
}

func (s *Sampler) begin(snap *tree.Snapshot) {
	if s.known == nil {
		s.known = map[int]*watched{}
		s.guard = newWatched(s.root)
		s.reader.init()
	}
	s.snap, s.here = snap, s.here[:0]
	snap.Rows = make([]tree.Row, 0, len(s.known)+len(s.known)/8+4)
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // every kernel has it
	s.uptime = time.Duration(now.Nano())
}

// readGuard says why nothing can be seen, where it cannot.
func (s *Sampler) readGuard(st *statLine) error {
	err := s.readStat(s.guard, st)
	if err == nil && (st.state == 'Z' || st.state == 'X') && st.threads < 2 {
		err = errors.New("it has ended")
	}
	if err == nil {
		return nil
	}
	if _, own := readFile("/proc/self/stat"); own != nil {
		return fmt.Errorf("/proc cannot be read: %w", own)
	}
	return fmt.Errorf("the guard, process %d, cannot be seen: %w", s.root, err)
}

// again takes the rows of those who were there before and live. Who once was
// below the guard stays so, because every orphan comes to it; a look of its own
// could miss them, because the children files skip entries while a child exits.
func (s *Sampler) again() {
	for pid, w := range s.known {
		if !s.row(w) {
			delete(s.known, pid)
			s.drop(w)
		}
	}
}

// sight takes the row of a process that was found, if it is a new one.
func (s *Sampler) sight(pid int, member func(*tree.Row) bool) {
	if pid == s.root || s.known[pid] != nil {
		return
	}
	w := newWatched(pid)
	w.uid = uidOf(pid)
	if !s.row(w) {
		s.drop(w)
		return
	}
	if last := len(s.here) - 1; !member(&s.snap.Rows[last]) {
		s.snap.Rows, s.here = s.snap.Rows[:last], s.here[:last]
		s.drop(w)
		return
	}
	s.known[pid] = w
}

// below tells whether a process that was found by its parent is of the tree. If
// its pid has changed hands meanwhile, it is a stranger.
func (s *Sampler) below(r *tree.Row) bool { return r.PPID == s.root || s.known[r.PPID] != nil }

// listed is for whom the kernel counts in our cgroup.
func listed(*tree.Row) bool { return true }

// members finds who is in the cgroup, or in one that the tree has made in it.
func (s *Sampler) members() {
	var st unix.Stat_t
	if unix.Stat(s.leaf.path, &st) != nil {
		return // it is removed
	}
	if st.Nlink != 2 { // a folder has a link more for each folder in it
		for _, pid := range s.leaf.members() {
			s.sight(pid, listed)
		}
		return
	}
	b, err := s.readPath(s.leaf.path + "/cgroup.procs")
	if err != nil {
		return
	}
	s.found = appendNumbers(s.found[:0], b)
	for _, pid := range s.found {
		s.sight(pid, listed)
	}
}

// usage is the CPU time of all who ever were in the cgroup.
func (s *Sampler) usage() time.Duration {
	b, err := s.readPath(s.leaf.path + "/cpu.stat")
	if err != nil {
		return tree.Unknown
	}
	us, ok := numberAfter(b, "usage_usec ")
	if !ok {
		return tree.Unknown
	}
	return time.Duration(us) * time.Microsecond
}

// walk finds who is below the guard and below the rows by the children files
// of every thread, because a child belongs to the thread that forked it.
func (s *Sampler) walk() {
	if s.table {
		return
	}
	if s.readChildren(s.guard, 2) != nil { // it is a Go program and has threads
		s.table = true
		return
	}
	s.sightFound()
	for i := 0; i < len(s.here); i++ { // it grows
		if s.readChildren(s.here[i], s.snap.Rows[i].Threads) == nil {
			s.sightFound()
		}
	}
}

func (s *Sampler) sightFound() {
	for _, pid := range s.found {
		s.sight(pid, s.below)
	}
}

// readChildren leaves the children of a process in found. It fails where the
// kernel was built without CONFIG_PROC_CHILDREN, or the process has gone.
func (s *Sampler) readChildren(w *watched, threads int) error {
	s.found = s.found[:0]
	if threads < 2 {
		b, err := s.read(&w.children, w.dir, w.below)
		if err == nil {
			s.found = appendNumbers(s.found, b)
		}
		return err
	}
	tids, err := s.list(s.tids[:0], w.dir+"task")
	s.tids = tids
	if err != nil {
		return err
	}
	err = fs.ErrNotExist
	for _, tid := range tids {
		b, e := s.readPath(w.dir + "task/" + itoa(tid) + "/children")
		if e == nil { // else the thread has ended, or there are no such files at all
			s.found, err = appendNumbers(s.found, b), nil
		}
	}
	return err
}

// pass finds who is below the guard by reading the whole process table. It
// reports whether all of it could be read. A process whose parent was gone when
// its turn came, but not when its own came, is asked again.
func (s *Sampler) pass() bool {
	pids, err := s.list(nil, "/proc")
	if err != nil {
		return false
	}
	whole := true
	parents := make(map[int]int, len(pids))
	ask := func(pid int) {
		b, err := s.readPath("/proc/" + itoa(pid) + "/stat")
		var st statLine
		switch {
		case err == nil && st.parse(b):
			parents[pid] = st.ppid
		case errors.Is(err, fs.ErrPermission):
			whole = false
			fallthrough
		default:
			delete(parents, pid)
		}
	}
	for _, pid := range pids {
		ask(pid)
	}
	for pid, parent := range maps.Clone(parents) {
		if _, ok := parents[parent]; !ok && parent != 0 {
			ask(pid)
		}
	}
	if _, ok := parents[1]; !ok {
		whole = false // who hides init hides others, too (hidepid of proc(5))
	}
	children := make(map[int][]int, len(parents))
	for pid, parent := range parents {
		children[parent] = append(children[parent], pid)
	}
	queue := []int{s.root}
	for i := 0; i < len(queue); i++ {
		for _, pid := range children[queue[i]] {
			s.sight(pid, s.below)
			queue = append(queue, pid)
		}
		delete(children, queue[i]) // no circles, in a table that changed while it was read
	}
	return whole
}

func (s *Sampler) close() {
	for _, w := range s.known {
		s.drop(w)
	}
	if s.guard != nil {
		s.drop(s.guard)
	}
	s.tcp.close(&s.reader)
	s.view = view{}
}

// row takes the row of a process that is there, and is the one it was.
func (s *Sampler) row(w *watched) bool {
	var st statLine
	if s.readStat(w, &st) != nil || w.id.Start != 0 && w.id.Start != st.start {
		return false
	}
	w.id.Start, w.code = st.start, st.code
	if w.name != string(st.name) { // it is new, or another program by now
		w.name, w.reads, w.scans = string(st.name), 0, 0
	}
	if w.reads < sights && st.state != 'D' && st.state != 'Z' { // whoever maps memory in D holds up who reads it
		if argv := s.readArgv(w); argv != nil { // else it is in the middle of its exec
			w.argv = argv
			w.reads++
		}
	}
	s.here = append(s.here, w)
	s.snap.Rows = append(s.snap.Rows, tree.Row{
		ID: w.id, PPID: st.ppid, PGID: st.pgid, Session: st.session, State: st.state, Threads: st.threads, UID: w.uid,
		Age: s.uptime - time.Duration(st.start)*tick, Name: w.name, Argv: w.argv,
		CPU: st.own(), Waited: st.waited(), Disk: s.readDisk(w), Memory: st.pages * int64(unix.Getpagesize()),
	})
	return true
}
