package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The looks are one after another, as they are for, and beside no other test:
// a trial takes children of ours for its own.
func TestProbes(t *testing.T) {
	before, err := children()
	if err != nil {
		t.Skip("our children cannot be listed here:", err)
	}
	seen := map[string]Finding{}
	for _, p := range Probes(Trial{Path: "/bin/true"}) {
		f := p.Look()
		seen[p.Name] = f
		switch {
		case f.Found == "" || !slices.Contains([]Status{Fine, Doubtful, Broken}, f.Status):
			t.Errorf("%s: %+v", p.Name, f)
		case f.Status != Fine && f.Advice == "":
			t.Errorf("%s: %+v has no advice", p.Name, f)
		}
	}
	for _, name := range []string{"kernel", "pid 1", "containment", "pid namespace", "orphans", "limits", "pipe", "/proc", "sockets", "terminal", "clock"} {
		if _, ok := seen[name]; !ok {
			t.Errorf("nobody looks at the %s", name)
		}
	}
	l, err := newLeaf("probe")
	if err == nil {
		_ = l.remove(time.Second)
	}
	if f := seen["containment"]; (err == nil) != (f.Status == Fine) || f.Status == Broken {
		t.Errorf("a cgroup: %v; it says %+v", err, f)
	}
	nobodyIsLeft(t, before)
}

// nobodyIsLeft: neither a process nor a cgroup.
func nobodyIsLeft(t *testing.T, before []int) {
	t.Helper()
	after, err := children()
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("children %v, before it were %v; %v", after, before, err)
	}
	if parent, err := ownCgroup(); err == nil {
		if left, _ := filepath.Glob(filepath.Join(parent, leafPrefix+"*."+strconv.Itoa(os.Getpid())+".*.doctor")); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	}
}

func TestATrialThatCannotBeStarted(t *testing.T) {
	before, err := children()
	if err != nil {
		t.Skip("our children cannot be listed here:", err)
	}
	if f := probeAuto(Trial{Path: "/nowhere/at/all"}); f.Status != Broken || !strings.Contains(f.Found, "no such file") {
		t.Errorf("%+v", f)
	}
	nobodyIsLeft(t, before)
}

// A trial that does not end by itself is ended.
func TestATrialIsEnded(t *testing.T) {
	before, err := children()
	if err != nil {
		t.Skip("our children cannot be listed here:", err)
	}
	if _, err := (Trial{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; while :; do sleep 60; done"}}).run(Auto); err != nil {
		t.Error(err)
	}
	nobodyIsLeft(t, before)
}

func TestAwaitExitLeavesTheChildToBeReaped(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exit 7")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	AwaitExit(cmd.Process.Pid)
	if p := identify(cmd.Process.Pid); p.State != "Z" {
		t.Errorf("%+v", p)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v", err)
	}
	AwaitExit(cmd.Process.Pid) // there is no such child any more
}

func TestLimitText(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 1024: "1024", unix.RLIM_INFINITY: "unlimited"} {
		if got := limitText(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
