package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The same small tree in each containment.
func TestContainments(t *testing.T) {
	for _, row := range []struct {
		containment Containment
		held        string // how what holds it begins
		leaf        bool
		stderr      Mode
	}{
		{Tree, "tree: two subreapers", false, StderrPipe},
		{Cgroup, "cgroup ", true, StderrPipe},
		{Auto, "cgroup ", true, StderrDiscard},
		{"", "cgroup ", true, ""},
		{PIDNS, "pid namespace", false, StderrPipe},
		{Tree, "tree: two subreapers", false, StderrPTY},
		{Cgroup, "cgroup ", true, StderrPTY},
		{PIDNS, "pid namespace", false, StderrPTY},
	} {
		t.Run("containment "+string(row.containment)+" "+string(row.stderr), func(t *testing.T) {
			if why := noLeaf(); row.leaf && why != "" {
				t.Skip("no leaf can be made here: ", why)
			}
			s := spec(t, "parent", "setsid:wait", "daemon:deaf", "setsid:reaper,deaf", "stopped:halt")
			s.Containment, s.Stderr = row.containment, row.stderr
			a, err := Start(s)
			if err != nil && row.containment == PIDNS {
				t.Skip("no pid namespace can be made here: ", err)
			} else if err != nil {
				t.Fatal(err)
			}
			st := adopt(t, a)
			if !strings.HasPrefix(a.Held, row.held) {
				t.Errorf("held by %q, want %q", a.Held, row.held)
			}
			st.ready(6)
			if p := identify(a.PID()); p.PPID != a.GuardPID() || p.Session == 0 && row.containment != PIDNS {
				t.Errorf("agent %+v, guard %d", p, a.GuardPID())
			}
			if row.leaf != inLeaf(cgroupOf(t, a.PID())) {
				t.Errorf("the agent is in %s", cgroupOf(t, a.PID()))
			}
			td := st.over(short)
			st.silent(soon())
			if !td.Proof || td.By != "guard" || len(td.Ended) != 6 || td.Exit.Signal != syscall.SIGTERM {
				t.Errorf("%+v", td)
			}
			if dir := a.leaf; dir != nil && exists(dir.path) {
				t.Errorf("%s is there", dir.path)
			}
		})
	}
}

func inLeaf(cgroup string) bool { return strings.HasPrefix(filepath.Base(cgroup), leafPrefix) }

// A process that never was anywhere else: its cgroup is seen by itself, too.
func TestBornInTheLeaf(t *testing.T) {
	if why := noLeaf(); why != "" {
		t.Skip("no leaf can be made here: ", why)
	}
	a := launchSpec(t, Spec{Path: "/bin/grep", Args: []string{"0::", "/proc/self/cgroup"}, Env: bare, ID: "abc", Containment: Cgroup})
	got := a.hear()
	want := leafPrefix + strconv.FormatUint(must(pidNamespace()), 10) + "." + strconv.Itoa(os.Getpid()) + "." +
		strconv.FormatUint(identify(os.Getpid()).Start, 10) + ".abc"
	if filepath.Base(got) != want || a.Held != "cgroup "+a.leaf.path || filepath.Base(a.leaf.path) != want {
		t.Errorf("the agent is born in %s, held by %s, want %s", got, a.Held, want)
	}
	a.over(none)
	if exists(a.leaf.path) {
		t.Errorf("%s is there", a.leaf.path)
	}
}

// Cgroups that the tree has made for itself, one of them frozen, go with it.
func TestNestedCgroups(t *testing.T) {
	if why := noLeaf(); why != "" {
		t.Skip("no leaf can be made here: ", why)
	}
	for name, end := range map[string]func(*started){
		"asked":            func(a *started) { a.over(short) },
		"killed":           func(a *started) { a.over(none) },
		"the guard killed": func(a *started) { _ = unix.Kill(a.GuardPID(), unix.SIGKILL); a.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t, "parent", "daemon:nest", "deaf")
			s.Containment = Cgroup
			a := launchSpec(t, s)
			a.ready(3)
			if !exists(a.leaf.path + "/a/b") {
				t.Fatal("it has made no cgroups in ", a.leaf.path)
			}
			end(a)
			a.silent(soon())
			if exists(a.leaf.path) {
				t.Errorf("%s is there", a.leaf.path)
			}
		})
	}
}

// Who moves out of the leaf is still below us.
func TestMovedOutOfTheLeaf(t *testing.T) {
	if why := noLeaf(); why != "" {
		t.Skip("no leaf can be made here: ", why)
	}
	s := spec(t, "parent", "daemon:deaf", "setsid:reaper,deaf")
	s.Containment = Cgroup
	a := launchSpec(t, s)
	for _, pid := range a.ready(4) {
		a.leaf.expel(pid)
		if inLeaf(cgroupOf(t, pid)) {
			t.Fatal("it could not be moved")
		}
	}
	td := a.over(short)
	a.silent(soon())
	if !td.Proof || len(td.Ended) != 4 {
		t.Errorf("%+v", td)
	}
}

// Each turn has a leaf of its own, of the same name.
func TestManyTurnsOneAfterTheOther(t *testing.T) {
	for range 5 {
		a := launch(t, "parent", "daemon:wait")
		a.ready(2)
		td := a.over(NewLadder(partLife))
		a.silent(soon())
		if !td.Proof || len(td.Ended) != 2 {
			t.Errorf("%+v", td)
		}
	}
}

// A pid namespace loses nothing: the exit is told, and its record is complete.
func TestExitInANamespace(t *testing.T) {
	s := spec(t, "exit", "7")
	s.Containment = PIDNS
	a, err := Start(s)
	if err != nil {
		t.Skip("no pid namespace can be made here: ", err)
	}
	st := adopt(t, a)
	<-a.Exited()
	if td := st.over(NewLadder(time.Second)); td.Exit.Code != 7 || !td.Proof {
		t.Errorf("%+v", td)
	}
}

// In its namespace the agent sees its own pids in /proc, and no stranger.
func TestNamespaceHasItsOwnProc(t *testing.T) {
	a, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", `echo /proc/[0-9]* $$`}, Env: bare, ID: "test", Containment: PIDNS})
	if err != nil {
		t.Skip("no pid namespace can be made here: ", err)
	}
	st := adopt(t, a)
	// The guard's threads have taken the numbers between.
	got := strings.Fields(st.hear())
	if len(got) != 3 || got[0] != "/proc/1" || got[1] != "/proc/"+got[2] {
		t.Errorf("it sees %q", got)
	}
	st.over(none)
}
