package process

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostile is an agent whose children do not leave by themselves: in sessions
// of their own, deaf, orphaned without an environment, stopped.
var hostile = []string{"parent", "deaf", "setsid:deaf", "daemon:deaf", "stopped:halt"}

func TestFrontKilled(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(way.String(), func(t *testing.T) {
			f := way.open(t, hostile...)
			f.tree.ready(5)
			f.vanishes(f.kill().Add(prompt))
		})
	}
}

// The tree has been asked to leave and has an hour for it; then the front is
// killed. Who is asked is in a session of its own: a terminal hangs up the
// agent's group when the agent leaves.
func TestFrontKilledInItsTeardown(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(way.String(), func(t *testing.T) {
			f := way.open(t, "parent", "setsid:asked", "daemon:deaf", "stopped:halt")
			f.tree.ready(4)
			f.tell("end 1h")
			for !strings.HasPrefix(f.tree.hear(), "term ") {
				t.Log("not yet")
			}
			f.vanishes(f.kill().Add(prompt))
		})
	}
}

// The whole group of the front is killed, as by a shell's kill -9 %1.
func TestFrontsGroupKilled(t *testing.T) {
	f := stage{containment: Tree, attr: &syscall.SysProcAttr{Setpgid: true}}.open(t, hostile...)
	f.tree.ready(5)
	if err := unix.Kill(-f.cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.vanishes(f.kill().Add(prompt))
}

func TestGuardKilled(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(way.String(), func(t *testing.T) {
			f := way.open(t, hostile...)
			pids := f.tree.ready(5)
			if err := unix.Kill(f.guard, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			by := soon()
			f.vanishes(by)
			for _, pid := range append(pids, f.guard) {
				until(t, by, fmt.Sprint(pid, " is reaped"), func() bool { return unix.Kill(pid, 0) != nil })
			}
			f.tell("end 1h")
			td := f.teardown()
			if td.By != "front" || !td.Proof || len(td.Left) > 0 || td.Exit.Signal != syscall.SIGKILL {
				t.Errorf("%+v, want everybody ended by the front, the agent by SIGKILL", td)
			}
		})
	}
}

// The guard is killed while it ends the tree.
func TestGuardKilledInItsTeardown(t *testing.T) {
	f := stage{}.open(t, "parent", "asked", "daemon:asked", "setsid:deaf")
	f.tree.ready(4)
	f.tell("end 1h")
	for range 2 { // all are asked before the next look
		for !strings.HasPrefix(f.tree.hear(), "term ") {
			t.Log("not yet")
		}
	}
	if err := unix.Kill(f.guard, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.vanishes(soon())
	if td := f.teardown(); td.By != "front" || !td.Proof || len(td.Left) > 0 {
		t.Errorf("%+v", td)
	}
}

// Any other signal that ends the guard is no different.
func TestGuardDiesOfAnotherSignal(t *testing.T) {
	f := stage{}.open(t, hostile...)
	f.tree.ready(5)
	if err := unix.Kill(f.guard, unix.SIGABRT); err != nil {
		t.Fatal(err)
	}
	f.vanishes(soon())
	f.tell("end 1h")
	if td := f.teardown(); td.By != "front" || !td.Proof {
		t.Errorf("%+v", td)
	}
}

// Whoever survives an agent that was killed has a moment, whatever the grace.
func TestAgentKilled(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(way.String(), func(t *testing.T) {
			s := spec(t, hostile...)
			s.Containment, s.Stderr = way.containment, way.stderr
			a := launchSpec(t, s)
			a.ready(5)
			if err := unix.Kill(a.PID(), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			by := soon()
			<-a.Exited()
			td := a.over(NewLadder(time.Hour))
			a.silent(by)
			if td.By != "guard" || !td.Proof || td.Exit.Signal != syscall.SIGKILL || td.Took < crashGrace/2 {
				t.Errorf("%+v", td)
			}
		})
	}
}

// An agent that exits by itself, or that was told to, leaves the whole grace
// to the others.
func TestAgentsExitLeavesTheGrace(t *testing.T) {
	a := launch(t, "parent", "daemon:asked")
	a.ready(2)
	_ = a.Stdin.Close()
	<-a.Exited()
	hurry := make(chan struct{}, 1)
	done := make(chan Teardown)
	go func() { done <- a.End(NewLadder(time.Hour), hurry) }()
	if got := a.hear(); !strings.HasPrefix(got, "term ") {
		t.Fatalf("it said %q", got)
	}
	select {
	case td := <-done:
		t.Errorf("over after %s", td.Took)
	case <-time.After(crashGrace + 200*time.Millisecond):
		hurry <- struct{}{}
		<-done
	}
}

// Without a guard nobody is told of the end of the agent; the front learns of
// it all the same.
func TestExitedIsClosedAfterTheGuardsDeath(t *testing.T) {
	a := launch(t, "wait")
	a.ready(1)
	if err := unix.Kill(a.GuardPID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-a.Exited()
	a.silent(soon())
	if td := a.over(NewLadder(time.Hour)); td.By != "front" || td.Exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", td)
	}
}

// Both are killed in the same instant: only a pid namespace holds.
func TestBothKilled(t *testing.T) {
	for _, stderr := range []Mode{StderrPipe, StderrPTY} {
		t.Run(string(stderr), func(t *testing.T) { bothKilled(t, stderr) })
	}
}

func bothKilled(t *testing.T, stderr Mode) {
	t.Helper()
	f := stage{containment: PIDNS, stderr: stderr}.open(t, hostile...)
	f.tree.ready(5)
	for _, pid := range []int{f.cmd.Process.Pid, f.guard} { // stopped, neither sees the other's end
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Kill(f.guard, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.vanishes(f.kill().Add(prompt))
}
