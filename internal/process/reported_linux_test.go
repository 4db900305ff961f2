package process

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The agent's pid is somebody else's by the time that one ends.
func TestReusedAgentPID(t *testing.T) {
	ours, theirs, err := socketpair()
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{line: newLine(theirs)}
	g.agent = Proc{PID: 7, Start: 1}
	g.reaped(dead{Proc: Proc{PID: 7, Start: 1}})
	g.reaped(dead{Proc: Proc{PID: 7, Start: 2}})
	g.line.flush(time.Second)
	_ = theirs.Close()
	text, err := io.ReadAll(ours)
	if n := bytes.Count(text, []byte("exit ")); n != 1 || err != nil {
		t.Errorf("%d exits in %q (%v)", n, text, err)
	}
}

// A leaf that is populated still is no clean end, whatever wait says.
func TestPopulatedLeafIsNoProof(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.events"), []byte("populated 1\nfrozen 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := warden{world: realWorld(Proc{}), leaf: &leaf{path: dir}, more: func() {}}
	w.world.reap = func() (dead, error) { return dead{}, unix.ECHILD }
	if td := w.end(none, nil); td.Proof || !strings.Contains(td.Cgroup, "populated 1") {
		t.Errorf("%+v, want no proof and what the leaf says", td)
	}
}

func TestTeardownTellsOfTheLeaf(t *testing.T) {
	if why := noLeaf(); why != "" {
		t.Skip("no leaf can be made here: ", why)
	}
	a := launch(t, "parent", "deaf")
	a.ready(2)
	if td := a.over(none); !strings.Contains(td.Cgroup, "populated 0") {
		t.Errorf("the leaf said %q", td.Cgroup)
	}
}

// Somebody has stopped the guard: every run ends all the same.
func TestStoppedGuard(t *testing.T) {
	a := launch(t, "parent", "deaf")
	a.ready(2)
	if err := unix.Kill(a.GuardPID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	done := make(chan Teardown)
	go func() { done <- a.End(Ladder{{Wait: time.Second}}, nil) }()
	select {
	case td := <-done:
		if !td.Proof {
			t.Errorf("%+v", td)
		}
	case <-time.After(5 * time.Second):
		t.Error("the end of a second takes more than five")
		_ = unix.Kill(a.GuardPID(), unix.SIGCONT)
		<-done
	}
	a.silent(soon())
}

// The front stands still, as after Ctrl-Z; the guard reaps and does not wait.
func TestGuardDoesNotWaitForAStoppedFront(t *testing.T) {
	f := stage{containment: Tree}.open(t, "/bin/sh", "-c", `i=0; while [ $i -lt 3000 ]; do (true &); i=$((i+1)); done; exec sleep 60`)
	if err := unix.Kill(f.cmd.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, time.Now().Add(40*time.Second), "all are started", func() bool { return realWorld(Proc{}).command(f.agent) == "sleep 60" })
	until(t, soon(), "all are reaped", func() bool {
		pids, err := childrenOf(strconv.Itoa(f.guard))
		return err == nil && len(pids) == 1
	})
	f.kill()
	until(t, soon(), "the guard has left", func() bool { return !alive(f.guard) })
}

// One look misses everybody, as one can while parents die: nobody is taken for
// gone because of it.
func TestALookThatMissesThem(t *testing.T) {
	m := newMade(t)
	before := m.add(self, actor{})
	m.add(m.add(self, actor{}).PID, actor{deaf: true})
	w := m.warden()
	w.ignore = map[procID]bool{before.id(): true}
	tree, looks := w.world.tree, 0
	w.world.tree = func() ([]Proc, error) {
		if looks++; looks == 1 {
			return []Proc{before.Proc}, nil
		}
		return tree()
	}
	if td := w.end(none, nil); len(m.procs) != 1 || len(td.Left) != 0 {
		t.Errorf("%d live, %+v", len(m.procs), td)
	}
}

// The same with somebody to spare: the leaf as a whole is not killed.
func TestALookThatMissesTheSpared(t *testing.T) {
	dir := t.TempDir()
	kill := filepath.Join(dir, "cgroup.kill")
	if err := os.WriteFile(kill, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMade(t)
	m.add(self, actor{Proc: Proc{Command: "worker-server"}})
	w := m.warden()
	w.leaf, w.spare = &leaf{path: dir}, []string{"worker-server"}
	tree, looks := w.world.tree, 0
	w.world.tree = func() ([]Proc, error) {
		if looks++; looks == 1 {
			return nil, nil
		}
		return tree()
	}
	td := w.end(none, nil)
	if b, err := os.ReadFile(kill); len(b) != 0 || err != nil || len(td.Spared) != 1 {
		t.Errorf("cgroup.kill says %q (%v), %+v", b, err, td)
	}
}
