package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// ownSampler looks at the children of the test itself.
func ownSampler(t *testing.T) *Sampler {
	t.Helper()
	s := newSampler(os.Getpid(), Proc{}, nil)
	t.Cleanup(s.Close)
	return s
}

// glance is a plain sample.
func (s *Sampler) glance() tree.Snapshot { return s.Sample(time.Now(), false, false) }

// rowOf is the row of a process; nil without one.
func rowOf(snap tree.Snapshot, pid int) *tree.Row {
	i := slices.IndexFunc(snap.Rows, func(r tree.Row) bool { return r.PID == pid })
	if i < 0 {
		return nil
	}
	return &snap.Rows[i]
}

// start plays a part as a child of the test. Whoever it has started ends with
// it.
func start(t *testing.T, words ...string) *player {
	t.Helper()
	leaveNobody(t)
	s := spec(t, words...)
	c := exec.Command(s.Path, s.Args...)
	c.Env = s.Env
	return perform(t, c)
}

func leaveNobody(t *testing.T) {
	t.Cleanup(func() { until(t, soon(), "nobody is left below us", func() bool { return len(strays()) == 0 }) })
}

// sleeper is a cheap child of the test.
func sleeper(t testing.TB) *exec.Cmd {
	t.Helper()
	c := exec.Command("/bin/sleep", "60")
	run(t, c)
	return c
}

// run starts a command that has its files, and ends it with the test.
func run(t testing.TB, c *exec.Cmd) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ours[c.Process.Pid] = true
	t.Cleanup(func() { finish(c) })
}

func finish(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait() // an error if it was waited for before
	delete(ours, c.Process.Pid)
}

// Everybody is seen, wherever they have gone; and by one pass over the whole
// table as well, alone where there are no children files.
func TestSampledTree(t *testing.T) {
	for _, c := range containments(t) {
		t.Run(string(c), func(t *testing.T) {
			sp := spec(t, "parent", "setsid:wait", "daemon:deaf", "setsid:reaper,deaf", "threads", "beheaded", "stopped:halt", "zombies")
			sp.Containment = c
			a := launchSpec(t, sp)
			pids := a.ready(11)
			s := a.Sampler()
			defer s.Close()
			tabled := a.Sampler()
			tabled.table = true
			defer tabled.Close()
			for _, look := range []struct {
				name string
				s    *Sampler
				full bool
			}{{"first", s, false}, {"second", s, false}, {"full", s, true}, {"table", tabled, c == Tree}} {
				snap := look.s.Sample(time.Now(), look.full, false)
				if snap.Blind != "" || snap.Full != look.full || snap.Agent.PID != a.PID() || snap.Root != a.GuardPID() {
					t.Errorf("%s: %+v", look.name, snap)
				}
				if (snap.CPU > 0) != (c == Cgroup) || snap.Reaped < 0 {
					t.Errorf("%s: cpu %v, reaped %v", look.name, snap.CPU, snap.Reaped)
				}
				if rowOf(snap, a.GuardPID()) != nil {
					t.Errorf("%s: the guard is in it", look.name)
				}
				for _, pid := range pids {
					if rowOf(snap, pid) == nil {
						t.Errorf("%s: %d is not in it", look.name, pid)
					}
				}
			}
			plain(t, a, s)
			s.drainTo(t, a)
		})
	}
}

// plain checks the agent's own row.
func plain(t *testing.T, a *started, s *Sampler) {
	t.Helper()
	snap := s.glance()
	r := rowOf(snap, a.PID())
	if r == nil {
		t.Fatal("no row of the agent")
	}
	want := identify(a.PID())
	if r.Start != want.Start || r.PPID != a.GuardPID() || r.PGID != r.PID || r.Session != r.PID || r.State != 'S' && r.State != 'R' || r.Threads < 2 ||
		r.UID != os.Geteuid() || r.Name != want.Command || r.Memory < 1<<20 || r.Disk < 0 || r.CPU < 0 || r.Waited < 0 {
		t.Errorf("%+v, want %+v", r, want)
	}
	if len(r.Argv) < 4 || r.Argv[1] != partArg || r.Argv[2] != "parent" {
		t.Errorf("argv %q", r.Argv)
	}
	if r.Age <= 0 || r.Age > time.Minute {
		t.Errorf("age %v", r.Age)
	}
	headless := slices.IndexFunc(snap.Rows, func(r tree.Row) bool { return r.State == 'Z' && r.Threads > 1 })
	if headless < 0 {
		t.Error("the one whose first thread has ended is not seen")
	}
}

// drainTo ends the tree and sees it gone.
func (s *Sampler) drainTo(t *testing.T, a *started) {
	t.Helper()
	a.over(none)
	a.silent(soon())
	if snap := s.Sample(time.Now(), true, false); len(snap.Rows) > 0 || snap.Blind == "" || snap.Full {
		t.Errorf("the guard has gone: %+v", snap)
	}
}

func TestSampledBirthsAndDeaths(t *testing.T) {
	s := ownSampler(t)
	a, b := sleeper(t), sleeper(t)
	for range 2 {
		snap := s.glance()
		if len(snap.Rows) != 2 || rowOf(snap, a.Process.Pid) == nil || rowOf(snap, b.Process.Pid) == nil {
			t.Fatalf("%+v", snap.Rows)
		}
	}
	first := rowOf(s.glance(), b.Process.Pid).ID
	finish(a)
	c := sleeper(t)
	snap := s.glance()
	if len(snap.Rows) != 2 || rowOf(snap, c.Process.Pid) == nil || rowOf(snap, b.Process.Pid).ID != first {
		t.Errorf("%+v", snap.Rows)
	}
	_ = b.Process.Kill()
	until(t, soon(), "it is a zombie", func() bool {
		r := rowOf(s.glance(), b.Process.Pid)
		return r != nil && r.State == 'Z' && r.ID == first && slices.Equal(r.Argv, []string{"/bin/sleep", "60"})
	})
	_ = b.Wait()
	if snap := s.glance(); rowOf(snap, b.Process.Pid) != nil {
		t.Errorf("%+v", snap.Rows)
	}
}

// A pid that has changed hands is another process, whether its file was kept
// open or not.
func TestSampledReusedPID(t *testing.T) {
	dead, alive := sleeper(t), sleeper(t)
	for _, most := range []int{0, keptMax} {
		s := ownSampler(t)
		s.glance()
		s.most = most
		w := s.known[alive.Process.Pid]
		w.argv = []string{"somebody", "else"}
		if most == 0 {
			s.drop(w)
			w.id.Start--
		} else {
			gone := s.known[dead.Process.Pid]
			s.let(&w.stat)
			w.stat, gone.stat = gone.stat, 0
			finish(dead)
		}
		r := rowOf(s.glance(), alive.Process.Pid)
		if r == nil || r.Start != identify(alive.Process.Pid).Start || r.Argv[0] != "/bin/sleep" {
			t.Errorf("%d kept: %+v", most, r)
		}
	}
}

// A shell that becomes another program has another name then, and another
// command line.
func TestSampledExec(t *testing.T) {
	s := ownSampler(t)
	c := exec.Command("/bin/sh", "-c", "echo ready; read line; exec sleep 60")
	p := perform(t, c)
	p.hear()
	for range 3 {
		if r := rowOf(s.glance(), c.Process.Pid); r == nil || r.Name != "sh" || len(r.Argv) != 3 {
			t.Fatalf("%+v", r)
		}
	}
	p.tell("\n")
	until(t, soon(), "it is seen as sleep", func() bool {
		r := rowOf(s.glance(), c.Process.Pid)
		return r.Name == "sleep" && slices.Equal(r.Argv, []string{"sleep", "60"})
	})
}

func (p *player) tell(text string) {
	p.t.Helper()
	if _, err := p.in.Write([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// Secrets are not shown, and a long command line not whole.
func TestSampledArgv(t *testing.T) {
	s := ownSampler(t)
	long := strings.Repeat("x", argvMax)
	c := exec.Command("/bin/sh", "-c", "echo ready; read line", "sh", "--api-key", "hunter2", "--token=hunter2", long)
	perform(t, c).hear()
	r := rowOf(s.glance(), c.Process.Pid)
	all := strings.Join(r.Argv, "")
	if len(r.Argv) != 8 || strings.Contains(all, "hunter") || len(all) > argvMax || len(all) < argvMax/2 {
		t.Errorf("%d %q", len(all), r.Argv)
	}
}

func TestSampledCPU(t *testing.T) {
	const burnt = 40 * time.Millisecond // of 50, in whole ticks for user and system time each
	s := ownSampler(t)
	itself, child := start(t, "burnt", "itself"), start(t, "burnt", "child")
	itself.ready(1)
	child.ready(1)
	command(t, "burn")
	snap := s.glance()
	if r := rowOf(snap, itself.cmd.Process.Pid); r.CPU < burnt || r.Waited != 0 {
		t.Errorf("itself: %v, waited %v", r.CPU, r.Waited)
	}
	if r := rowOf(snap, child.cmd.Process.Pid); r.Waited < burnt || r.CPU >= r.Waited {
		t.Errorf("by a child: %v, waited %v", r.CPU, r.Waited)
	}
}

// What an orphan has used is the guard's to tell once it has reaped it.
func TestSampledOrphansCPU(t *testing.T) {
	for _, c := range containments(t) {
		adopted := make(chan Ended, 1)
		sp := spec(t, "parent", "daemon:burn")
		sp.Containment, sp.Adopted = c, func(e Ended) { adopted <- e }
		a := launchSpec(t, sp)
		a.ready(1)
		s := a.Sampler()
		select {
		case <-adopted:
		case <-time.After(partLife):
			t.Fatal("the orphan was not adopted")
		}
		snap := s.glance()
		if snap.Reaped < 40*time.Millisecond || c == Cgroup && snap.CPU < 50*time.Millisecond {
			t.Errorf("%s: reaped %v, all %v", c, snap.Reaped, snap.CPU)
		}
		s.Close()
		a.over(none)
	}
}

func TestSampledDisk(t *testing.T) {
	const size = 1 << 20
	dir, err := os.MkdirTemp(".", "sample") // not on tmpfs, as the usual place may be
	if err != nil {
		t.Skip("no disk to write to: ", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
		t.Skip("no disk")
	}
	s := ownSampler(t)
	w := start(t, "writer", filepath.Join(dir, "file"), strconv.Itoa(size))
	w.ready(1)
	if r := rowOf(s.glance(), w.cmd.Process.Pid); r.Disk < size || r.Disk > 64*size { // it reads itself, too
		t.Errorf("%d bytes, want %d", r.Disk, size)
	}
}

// A few files are kept open, and none is left open.
func TestSampledFilesAreBounded(t *testing.T) {
	open := func() int { return len(must(os.ReadDir("/proc/self/fd"))) }
	before := open()
	s := newSampler(os.Getpid(), Proc{}, nil)
	s.glance()
	s.most = s.open + 4
	var all []*exec.Cmd
	for range 4 {
		all = append(all, sleeper(t))
	}
	for range 3 {
		if snap := s.glance(); len(snap.Rows) != 4 || s.open > s.most {
			t.Errorf("%d rows, %d files", len(snap.Rows), s.open)
		}
	}
	for _, c := range all {
		finish(c)
	}
	s.glance()
	s.Close()
	until(t, soon(), "all files are closed", func() bool { return open() <= before+2 }) // exec.Cmd's
	if s.open != 0 {
		t.Error(s.open)
	}
}

// An environment that redirects others does not redirect us.
func TestSampledHostProc(t *testing.T) {
	t.Setenv("HOST_PROC", t.TempDir())
	c := sleeper(t)
	if r := rowOf(ownSampler(t).glance(), c.Process.Pid); r == nil {
		t.Error("nobody is seen")
	}
}

// peep is what somebody sees who may not do much.
func peep(t *testing.T, how string, attr *syscall.SysProcAttr) tree.Snapshot {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	leaveNobody(t)
	s := spec(t, "peeper", how)
	c := exec.Command(s.Path, s.Args...)
	c.Env, c.SysProcAttr = s.Env, attr
	p := perform(t, c)
	var snap tree.Snapshot
	decode(t, p.hear(), &snap)
	for _, r := range ownSampler(t).glance().Rows { // its child: it may have no right to end it, and does not reap it
		if r.PPID == c.Process.Pid {
			_ = unix.Kill(r.PID, unix.SIGKILL)
		}
	}
	return snap
}

// vague is by how much the kernel's count of resident memory may be out: each
// processor keeps back a batch of pages, of three kinds (percpu_counter).
func vague() int64 {
	n := runtime.NumCPU()
	return int64(3 * n * max(32, 2*n) * os.Getpagesize())
}

// What root's process does is unknown to an ordinary user, and never nothing.
func TestSampledAnotherUsers(t *testing.T) {
	snap := peep(t, "ordinary", nil)
	if len(snap.Rows) != 1 || snap.Sockets || !snap.Full || snap.Blind != "" {
		t.Fatalf("%+v", snap)
	}
	r := snap.Rows[0]
	if r.UID != 0 || r.Disk != tree.Unknown || r.CPU < 0 || r.Memory < 0 || len(r.Argv) == 0 {
		t.Errorf("%+v", r)
	}
	if r.Wait == nil || r.Wait.Call != "" || r.Wait.FD != tree.Unknown || r.Wait.File != "" || r.Wait.Holders != nil {
		t.Errorf("%+v", r.Wait)
	}
}

func TestSampledWithoutProc(t *testing.T) {
	snap := peep(t, "procless", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	if !strings.HasPrefix(snap.Blind, "/proc cannot be read") || snap.Full || snap.Sockets || len(snap.Rows) > 0 || snap.Reaped != tree.Unknown {
		t.Errorf("%+v", snap)
	}
}

// A table that hides others' processes is not the whole one.
func TestSampledHiddenProcesses(t *testing.T) {
	snap := peep(t, "hidden", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	if snap.Blind != "" || snap.Full || len(snap.Rows) > 0 {
		t.Errorf("%+v", snap)
	}
}

func TestParseStat(t *testing.T) {
	rest := strings.Repeat("1 ", 30)
	for text, want := range map[string]statLine{
		"7 (a) R 1 2 3 0 -1 0 0 0 0 0 4 5 6 7 20 0 8 0 9 10 11 " + rest[:54] + "19\n":                           {name: []byte("a"), state: 'R', ppid: 1, pgid: 2, session: 3, utime: 4, stime: 5, cutime: 6, cstime: 7, threads: 8, start: 9, pages: 11, code: 19},
		"7 (b) S 4 (c) T 1 -1 3 0 -1 0 0 0 0 0 4 5 6 7 20 0 8 0 9 10 18446744073709551615 " + rest[:54] + "0\n": {name: []byte("b) S 4 (c"), state: 'T', ppid: 1, pgid: -1, session: 3, utime: 4, stime: 5, cutime: 6, cstime: 7, threads: 8, start: 9, pages: -1},
	} {
		var got statLine
		if !got.parse([]byte(text)) {
			t.Errorf("%q does not parse", text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, text := range []string{"", "7", "7 (", "7 )(", "7 (a)", "7 (a) R", "7 (a) R 1 2 3", "7 (a) R ", "7 (a) R  -"} {
		if (&statLine{}).parse([]byte(text)) {
			t.Errorf("%q parses", text)
		}
	}
}
