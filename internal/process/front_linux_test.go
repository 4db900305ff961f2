package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nobodyUID is an ordinary user.
const nobodyUID = 65534

// front is a front in a process of its own, so that it can be killed.
type front struct {
	*player       // its own words
	tree    *said // what its tree says
	agent   int
	guard   int
	held    string
}

// stage is how a front is started.
type stage struct {
	containment Containment
	stderr      Mode
	via         []string // what execs it, with its arguments
	attr        *syscall.SysProcAttr
	env         []string
	path        string // of the binary; this one's where it is empty
}

// open starts a front and, below it, an agent; only a pid namespace may be
// refused.
func (st stage) open(t *testing.T, words ...string) *front {
	t.Helper()
	f := &front{}
	fifo, tree := newFIFO(t)
	f.tree = tree
	s := spec(t, append([]string{"front", fifo}, words...)...)
	if st.path != "" {
		s.Path = st.path
	}
	argv := append(append(st.via, s.Path), s.Args...)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = "/"
	c.Env = append(append(s.Env, "CONTAINMENT="+string(st.containment), "STDERR="+string(st.stderr)), st.env...)
	c.SysProcAttr = st.attr
	t.Cleanup(func() { // behind the front's own end
		// Whoever is left gives up by itself, but not today.
		until(t, soon(), "nobody is left below us", func() bool { return len(strays()) == 0 })
		nobody(t)
	})
	f.player = perform(t, c)
	line := f.hear()
	if _, err := fmt.Sscan(line, &f.agent, &f.guard); err != nil {
		if st.containment != PIDNS {
			t.Fatal("the front cannot start: ", line)
		}
		t.Skip("no pid namespace can be made here: ", line)
	}
	f.held = strings.SplitN(line, " ", 3)[2]
	return f
}

// newFIFO is a pipe with a name, at its end when nobody holds it any more.
func newFIFO(t *testing.T) (path string, s *said) {
	t.Helper()
	publicCopy(t)
	dir, err := os.MkdirTemp(public.dir, "says")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "fifo")
	if err := errors.Join(os.Chmod(dir, 0o755), unix.Mkfifo(path, 0o600), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(path, os.O_WRONLY, 0) // until somebody has said something
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return path, newSaid(t, &opened{File: r, w: w})
}

// opened is the FIFO with a writer, so that it does not end before it begins.
type opened struct {
	*os.File
	w *os.File
}

func (o *opened) Read(b []byte) (int, error) {
	n, err := o.File.Read(b)
	if n > 0 && o.w != nil {
		_ = o.w.Close()
		o.w = nil
	}
	return n, err
}

func (f *front) tell(words string) {
	f.t.Helper()
	if _, err := io.WriteString(f.in, words+"\n"); err != nil {
		f.t.Fatal(err)
	}
}

// leaf is the folder of its cgroup; empty without one.
func (f *front) leaf() string {
	path, ok := strings.CutPrefix(f.held, "cgroup ")
	if !ok {
		return ""
	}
	return path
}

// kill kills the front and says when.
func (f *front) kill() time.Time {
	f.t.Helper()
	if err := f.cmd.Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
	_ = f.cmd.Wait()
	return time.Now()
}

// vanishes fails unless the tree, the guard and the leaf are gone by then.
func (f *front) vanishes(by time.Time) {
	f.t.Helper()
	f.tree.silent(by)
	until(f.t, by, "the guard has left", func() bool { return !alive(f.guard) })
	f.leafless(by)
}

func (f *front) leafless(by time.Time) {
	f.t.Helper()
	if dir := f.leaf(); dir != "" {
		until(f.t, by, "the leaf is removed", func() bool { return !exists(dir) })
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// teardown is what the front says about the end that it was told to bring.
func (f *front) teardown() (td Teardown) {
	f.t.Helper()
	decode(f.t, f.hear(), &td)
	return td
}

// containments are those that hold here; the others are said to be left out.
func containments(t *testing.T) []Containment {
	t.Helper()
	if why := noLeaf(); why != "" {
		t.Log("not run with a cgroup: " + why)
		return []Containment{Tree}
	}
	return []Containment{Tree, Cgroup}
}

// ways are the containments that hold here, each with a pipe and with a
// terminal for the agent's stderr.
func ways(t *testing.T) (all []stage) {
	t.Helper()
	for _, c := range containments(t) {
		all = append(all, stage{containment: c, stderr: StderrPipe}, stage{containment: c, stderr: StderrPTY})
	}
	return all
}

func (st stage) String() string { return string(st.containment) + " " + string(st.stderr) }

// noLeaf says why no leaf can be made here.
func noLeaf() string {
	l, err := newLeaf("probe")
	if err != nil {
		return err.Error()
	}
	_ = l.remove(0)
	return ""
}

// cgroupOf is a process's place in the version 2 hierarchy.
func cgroupOf(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(row), "0::"); ok {
			return path
		}
	}
	return ""
}
