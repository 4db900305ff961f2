package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ordinary makes the front an ordinary user's.
func ordinary(t *testing.T, c Containment) stage {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	return stage{containment: c, path: publicCopy(t), attr: &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID},
	}}
}

func TestOrdinaryUser(t *testing.T) {
	// Each says who ends the tree and will tell of it.
	ends := map[string]func(*front) string{
		"asked":        func(f *front) string { f.tell("end 100ms"); return "guard" },
		"killed front": func(f *front) string { f.kill(); return "" },
		"killed guard": func(f *front) string { _ = unix.Kill(f.guard, unix.SIGKILL); f.tell("end 1h"); return "front" },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			f := ordinary(t, Auto).open(t, "parent", "deaf", "setsid:reaper,deaf", "daemon:deaf", "stopped:halt", "beheaded")
			if !strings.HasPrefix(f.held, "tree: two subreapers; no cgroup: ") {
				t.Errorf("held by %q", f.held)
			}
			f.tree.ready(7)
			by := end(f)
			f.vanishes(soon())
			if by == "" {
				return
			}
			if td := f.teardown(); td.By != by || !td.Proof || len(td.Left) > 0 {
				t.Errorf("%+v", td)
			}
		})
	}
}

// delegate gives the cgroup to the ordinary user, all of it or the folder alone.
func (y *yard) delegate(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range append(files, "") {
		if err := os.Chown(filepath.Join(y.path, file), nobodyUID, nobodyUID); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOrdinaryUsersCgroup(t *testing.T) {
	st := ordinary(t, Cgroup)
	y := newYard(t)
	y.delegate(t, "cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
	st.attr.UseCgroupFD, st.attr.CgroupFD = true, y.fd()
	f := st.open(t, "parent", "deaf", "daemon:nest", "beheaded")
	f.tree.ready(4)
	if filepath.Dir(f.leaf()) != y.path || !inLeaf(cgroupOf(t, f.agent)) {
		t.Errorf("held by %s, agent in %s", f.held, cgroupOf(t, f.agent))
	}
	f.vanishes(f.kill().Add(prompt))
}

// The user may make cgroups but not move anybody into them: Auto does without.
func TestHalfDelegatedCgroup(t *testing.T) {
	st := ordinary(t, Auto)
	y := newYard(t)
	y.delegate(t)
	st.attr.UseCgroupFD, st.attr.CgroupFD = true, y.fd()
	f := st.open(t, "deaf")
	if !strings.HasPrefix(f.held, "tree: two subreapers; ") {
		t.Errorf("held by %q", f.held)
	}
	f.tree.ready(1)
	f.vanishes(f.kill().Add(prompt))
}

// usurper is a file that makes whoever runs it root.
func usurper(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(publicCopy(t)), "usurper")
	text, err := os.ReadFile(public.path)
	if err := errors.Join(err, os.WriteFile(path, text, 0o700), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	return path
}

// Who has become root cannot be signalled by an ordinary user's guard: it is
// named, and nobody says that all is well.
func TestWhoCannotBeSignalledIsLeft(t *testing.T) {
	st := ordinary(t, Tree)
	command(t, "usurper")
	f := st.open(t, usurper(t), partArg, "usurper")
	f.tree.ready(1)
	f.tell("end 10ms 200ms")
	td := f.teardown()
	if td.Proof || len(td.Left) != 1 || td.Left[0].PID != f.agent || !strings.HasPrefix(td.Left[0].Why(), unix.EPERM.Error()) {
		t.Errorf("%+v, want the agent left, for it cannot be signalled", td)
	}
	if !alive(f.agent) {
		t.Fatal("it has gone by itself; nothing is shown")
	}
	if err := unix.Kill(f.agent, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	f.vanishes(soon())
}

// In a cgroup of the user's own the kernel ends even that one.
func TestWhoCannotBeSignalledEndsWithItsCgroup(t *testing.T) {
	st := ordinary(t, Cgroup)
	y := newYard(t)
	y.delegate(t, "cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
	st.attr.UseCgroupFD, st.attr.CgroupFD = true, y.fd()
	f := st.open(t, usurper(t), partArg, "usurper")
	f.tree.ready(1)
	f.tell("end 10ms")
	if td := f.teardown(); !td.Proof || len(td.Left) > 0 || td.Exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", td)
	}
	f.vanishes(soon())
}
