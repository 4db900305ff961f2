package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// yard is a cgroup of the test's own, so that no other run on this machine
// clears up in it. Who is started with its attr is born there.
type yard struct{ leaf }

func newYard(t *testing.T) *yard {
	t.Helper()
	parent, err := ownCgroup()
	if err != nil {
		t.Skip("no cgroups: ", err)
	}
	path := filepath.Join(parent, "process-test."+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{leaf{path: path, dir: dir}}
	t.Cleanup(func() {
		y.kill()
		until(t, soon(), "the yard is empty", func() bool { strays(); return !y.populated() })
		if err := y.remove(0); err != nil {
			t.Error(err)
		}
	})
	return y
}

func (y *yard) attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: y.fd()}
}

// leaves are the cgroups of ours in the yard.
func (y *yard) leaves() []string {
	all, _ := filepath.Glob(filepath.Join(y.path, leafPrefix+"*"))
	return all
}

// sweep is what a later start in the yard finds.
func (y *yard) sweep(t *testing.T, marker string) (left []Leftover, marked []Proc) {
	t.Helper()
	s := spec(t, "sweep", marker)
	c := exec.Command(s.Path, s.Args...)
	c.Env, c.SysProcAttr = s.Env, y.attr()
	p := perform(t, c)
	decode(t, p.hear(), &left)
	decode(t, p.hear(), &marked)
	return left, marked
}

// killBoth kills a front and its guard so that neither sees the other's end.
func (f *front) killBoth() {
	f.t.Helper()
	for _, sig := range []syscall.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range []int{f.cmd.Process.Pid, f.guard} {
			if err := unix.Kill(pid, sig); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	_ = f.cmd.Wait()
}

func TestSweepClearsADeadOwnersLeaf(t *testing.T) {
	y := newYard(t)
	f := stage{containment: Cgroup, attr: y.attr()}.open(t, "parent", "deaf", "daemon:nest", "stopped:halt", "beheaded")
	pids := f.tree.ready(5)
	f.killBoth()
	if !slices.Equal(y.leaves(), []string{f.leaf()}) {
		t.Fatalf("leaves %v, want %s", y.leaves(), f.leaf())
	}
	left, _ := y.sweep(t, "NO_SUCH_MARK")
	f.tree.silent(soon())
	if len(left) != 1 || left[0].Cgroup != f.leaf() || left[0].Error != "" {
		t.Fatalf("found %+v, want %s", left, f.leaf())
	}
	for _, p := range left[0].Ended {
		if p.Start == 0 || p.Command == "" || !strings.HasSuffix(p.Command, " still") && !slices.Contains(pids, p.PID) {
			t.Errorf("ended %+v, which is none of %v", p, pids)
		}
	}
	// The agent may have gone before: it dies with its guard's main thread.
	if n := len(left[0].Ended); n < 4 || n > 6 {
		t.Errorf("ended %d: %+v", n, left[0].Ended)
	}
	if exists(f.leaf()) {
		t.Error("the leaf is there")
	}
	if again, _ := y.sweep(t, "NO_SUCH_MARK"); len(again) != 0 {
		t.Errorf("found again: %+v", again)
	}
}

func TestSweepLeavesTheLivingAlone(t *testing.T) {
	y := newYard(t)
	f := stage{containment: Cgroup, attr: y.attr()}.open(t, hostile...)
	f.tree.ready(5)
	// Another pid namespace's, a name that is nearly ours, and a stranger's.
	ns := strconv.FormatUint(must(pidNamespace())+1, 10)
	for _, name := range []string{leafPrefix + ns + ".1.1.x", leafPrefix + "1", "cursor-wrapper.service"} {
		if err := os.Mkdir(filepath.Join(y.path, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := y.nested()
	if left, _ := y.sweep(t, "NO_SUCH_MARK"); len(left) != 0 {
		t.Errorf("found %+v", left)
	}
	if after := y.nested(); !slices.Equal(before, after) {
		t.Errorf("there are %v, there were %v", after, before)
	}
	if !alive(f.agent) {
		t.Error("the agent of a living run was ended")
	}
	f.vanishes(f.kill().Add(prompt))
}

// The owner's pid is another process's by now: the start time tells.
func TestSweepKnowsAReusedPID(t *testing.T) {
	y := newYard(t)
	self := identify(os.Getpid())
	name := leafPrefix + strconv.FormatUint(must(pidNamespace()), 10) + "." + strconv.Itoa(self.PID) + "."
	living, reused := name+strconv.FormatUint(self.Start, 10)+".x", name+strconv.FormatUint(self.Start+1, 10)+".x"
	for _, name := range []string{living, reused} {
		if err := os.Mkdir(filepath.Join(y.path, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	left, _ := y.sweep(t, "NO_SUCH_MARK")
	if len(left) != 1 || filepath.Base(left[0].Cgroup) != reused || len(left[0].Ended) != 0 {
		t.Errorf("found %+v, want %s", left, reused)
	}
	if exists(filepath.Join(y.path, reused)) || !exists(filepath.Join(y.path, living)) {
		t.Errorf("there are %v", y.leaves())
	}
}

// The owner is dead, but its parent has not reaped it.
func TestSweepClearsAZombiesLeaf(t *testing.T) {
	y := newYard(t)
	f := stage{containment: Cgroup, attr: y.attr()}.open(t, hostile...)
	f.tree.ready(5)
	for _, sig := range []syscall.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range []int{f.cmd.Process.Pid, f.guard} {
			_ = unix.Kill(pid, sig)
		}
	}
	until(t, soon(), "the front is dead", func() bool { return identify(f.cmd.Process.Pid).gone() })
	if left, _ := y.sweep(t, "NO_SUCH_MARK"); len(left) != 1 {
		t.Errorf("found %+v, want %s", left, f.leaf())
	}
}

// Who carries the mark of a dead run is listed and lives; the tree of a living
// one is not listed.
func TestMarkedAreListedAndLive(t *testing.T) {
	y := newYard(t)
	mark := "PROCESS_TEST_MARK_" + strconv.Itoa(os.Getpid())
	env := []string{mark + "=dead"}
	dead := stage{containment: Tree, attr: y.attr(), env: env}.open(t, "parent", "setsid:deaf", "setsid:reaper,wait")
	pids := dead.tree.ready(4)
	living := stage{containment: Cgroup, attr: y.attr(), env: env}.open(t, "parent", "setsid:deaf")
	living.tree.ready(2)
	dead.killBoth()
	until(t, soon(), "the dead run's agent is gone", func() bool { return !alive(dead.agent) })
	_, marked := y.sweep(t, mark)
	for _, pid := range pids {
		// Those with a bare environment cannot be told.
		want := alive(pid) && strings.Contains(string(must(os.ReadFile("/proc/"+strconv.Itoa(pid)+"/environ"))), mark)
		n := 0
		for _, p := range marked {
			if p.PID == pid {
				n++
			}
		}
		if want != (n == 1) {
			t.Errorf("%d is %d times in %s", pid, n, List(marked))
		}
	}
	if !slices.ContainsFunc(marked, func(p Proc) bool { return strings.HasSuffix(p.Command, partArg+" deaf") }) {
		t.Errorf("the deaf one was not found: %s", List(marked))
	}
	for _, p := range marked {
		if !alive(p.PID) {
			t.Errorf("%s was ended for its mark", p)
		}
		if p.PID == living.agent || p.PID == living.guard {
			t.Errorf("%s belongs to a living run", p)
		}
	}
	living.vanishes(living.kill().Add(prompt))
	y.kill()
}
