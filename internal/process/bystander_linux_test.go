package process

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// before starts a part in a shell that then becomes the front, whose child it
// is from birth.
func before(t *testing.T, words string) (st stage, b *said) {
	t.Helper()
	fifo, b := newFIFO(t)
	command(t, strings.Fields(words)...)
	self := must(os.Executable())
	return stage{
		via: []string{"/bin/sh", "-c", saysEnv + "=" + fifo + " " + self + " " + partArg + " " + words + ` & exec "$@"`, "sh"},
	}, b
}

// losesGuard kills the guard: the tree is the front's then.
func (f *front) losesGuard() {
	f.t.Helper()
	if err := unix.Kill(f.guard, unix.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	f.vanishes(soon())
}

// What a script has started before it became the front is not the agent's: it
// lives when the front has to end the tree.
func TestChildrenFromBeforeLive(t *testing.T) {
	st, b := before(t, "reaper wait")
	f := st.open(t, hostile...)
	f.tree.ready(5)
	pids := b.ready(2)
	f.losesGuard()
	f.tell("end 1s")
	if td := f.teardown(); td.By != "front" || len(td.Left) > 0 {
		t.Errorf("%+v", td)
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("%d was ended", pid)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	b.silent(soon())
}

// The same beside a chain that is always one process ahead of a look.
func TestChainOfForksBesideChildrenFromBefore(t *testing.T) {
	until := strconv.FormatInt(time.Now().Add(20*time.Second).UnixMilli(), 10)
	st, b := before(t, "wait")
	st.containment = Tree
	f := st.open(t, "parent", "hopper,"+until+",sid", "daemon:hopper,"+until+",group", "setsid:deaf")
	f.tree.ready(4)
	pid := b.ready(1)[0]
	f.losesGuard()
	f.tell("end 1s")
	if td := f.teardown(); td.By != "front" || len(td.Left) > 0 {
		t.Errorf("%+v", td)
	}
	if !alive(pid) {
		t.Errorf("%d was ended", pid)
	}
	_ = unix.Kill(pid, unix.SIGKILL)
}

// All of the tree hangs on the agent, which dies with its guard while the front
// takes its look: whoever is on the way up must not be missed.
func TestTreeOnTheMoveBesideChildrenFromBefore(t *testing.T) {
	for range 40 {
		treeOnTheMove(t)
	}
}

func treeOnTheMove(t *testing.T) {
	t.Helper()
	st, b := before(t, "wait")
	st.containment = Tree
	f := st.open(t, "parent", "deaf", "setsid:deaf")
	f.tree.ready(3)
	pid := b.ready(1)[0]
	f.losesGuard()
	f.tell("end 1s")
	if td := f.teardown(); td.By != "front" || len(td.Left) > 0 {
		t.Errorf("%+v", td)
	}
	_ = unix.Kill(pid, unix.SIGKILL)
}

// When such a child ends, the front reaps it, agent and guard untouched.
func TestChildrenFromBeforeAreReaped(t *testing.T) {
	st, b := before(t, "wait")
	f := st.open(t, "deaf")
	f.tree.ready(1)
	pid := b.ready(1)[0]
	if p := identify(pid); p.PPID != f.cmd.Process.Pid {
		t.Fatalf("%+v is no child of %d", p, f.cmd.Process.Pid)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, soon(), "it is reaped", func() bool { return unix.Kill(pid, 0) != nil })
	f.tell("end 10ms")
	if td := f.teardown(); td.By != "guard" || td.Exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", td)
	}
	f.vanishes(soon())
}

// What such a child has started comes to the front when it ends.
func TestGrandchildrenFromBeforeLive(t *testing.T) {
	st, b := before(t, "threads")
	f := st.open(t, "deaf")
	f.tree.ready(1)
	pids := b.ready(4)
	parent := identify(pids[0]).PPID
	if err := unix.Kill(parent, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, soon(), "they have come to the front", func() bool { return identify(pids[3]).PPID == f.cmd.Process.Pid })
	f.losesGuard()
	f.tell("end 1s")
	f.teardown()
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("%d was ended", pid)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	b.silent(soon())
}

// In a container that was entered from outside, the session of the front has
// its leader there and is 0: the same must hold.
func TestGrandchildrenFromBeforeLiveInSessionZero(t *testing.T) {
	const unshare = "unshare"
	if err := exec.Command(unshare, "-p", "-f", "--mount-proc", "true").Run(); err != nil {
		t.Skip("no pid namespace can be made here: ", err)
	}
	if id, err := unix.Getsid(0); err != nil || id == os.Getpid() {
		t.Skip("needs a session whose leader is another process, to be outside of the namespace")
	}
	out, err := exec.Command(unshare, "-p", "-f", "--mount-proc", must(os.Executable()),
		"-test.run=^TestGrandchildrenFromBeforeLive$", "-test.v").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestGrandchildrenFromBeforeLive") {
		t.Errorf("%v\n%s", err, out)
	}
}

// In the group of whoever calls the front, another one of the same name and
// arguments lives on, whoever is killed.
func TestBystandersInTheCallersGroup(t *testing.T) {
	for _, victim := range []string{"front", "guard"} {
		t.Run(victim, func(t *testing.T) {
			bystander := stranger(t, "deaf")
			f := stage{}.open(t, "parent", "deaf", "daemon:deaf")
			f.tree.ready(3)
			if got := identify(f.cmd.Process.Pid).PGID; got != bystander.PGID {
				t.Fatalf("the front is in group %d, the bystander in %d", got, bystander.PGID)
			}
			if victim == "guard" {
				if err := unix.Kill(f.guard, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				f.vanishes(soon())
			} else {
				f.vanishes(f.kill().Add(prompt))
			}
			if !alive(bystander.PID) {
				t.Error("a stranger was killed")
			}
		})
	}
}
