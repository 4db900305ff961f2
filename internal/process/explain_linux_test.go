package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// waitOf samples until the process waits in that call, and is what is told of
// it.
func waitOf(t *testing.T, s *Sampler, pid int, calls ...string) (w tree.Wait, snap tree.Snapshot) {
	t.Helper()
	until(t, soon(), fmt.Sprint(pid, " waits in ", calls), func() bool {
		snap = s.Sample(time.Now(), false, true)
		r := rowOf(snap, pid)
		if r == nil || r.Wait == nil {
			return false
		}
		w = *r.Wait
		return slices.Contains(calls, w.Call) && w.Channel != "" // it sleeps
	})
	if t.Failed() {
		t.Logf("it waits in %+v", w)
	}
	return w, snap
}

// blocked starts a process whose first thread waits in a way.
func blocked(t *testing.T, words ...string) (pid int, p *player) {
	t.Helper()
	p = start(t, append([]string{"blocked"}, words...)...)
	return p.ready(1)[0], p
}

func TestSampledWaits(t *testing.T) {
	held := filepath.Join(t.TempDir(), "lock")
	f := must(os.Create(held))
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		words   []string
		calls   []string
		fd      bool
		file    string // how it begins
		holders func(pid int) int
	}{
		{words: []string{"read"}, calls: []string{"read"}, fd: true, file: "pipe:[", holders: func(int) int { return os.Getpid() }},
		{words: []string{"write"}, calls: []string{"write"}, fd: true, file: "pipe:[", holders: func(pid int) int { return pid }},
		{words: []string{"lock", held}, calls: []string{"flock"}, fd: true, file: held},
		{words: []string{"futex"}, calls: []string{"futex"}},
		{words: []string{"sleep"}, calls: []string{"nanosleep", "clock_nanosleep"}},
		{words: []string{"epoll"}, calls: []string{"epoll_wait", "epoll_pwait"}},
	} {
		t.Run(row.words[0], func(t *testing.T) {
			s := ownSampler(t)
			pid, _ := blocked(t, row.words...)
			w, _ := waitOf(t, s, pid, row.calls...)
			if row.fd != (w.FD != tree.Unknown) || !strings.HasPrefix(w.File, row.file) || row.file == "" && w.File != "" {
				t.Errorf("%+v", w)
			}
			var holders []int
			if row.holders != nil {
				holders = []int{row.holders(pid)}
			}
			if !slices.Equal(w.Holders, holders) || w.Signal != "" || w.Child != 0 {
				t.Errorf("%+v, holders want %v", w, holders)
			}
		})
	}
}

// A pipe is held by whoever of the tree can write to it.
func TestSampledPipeBetweenMembers(t *testing.T) {
	s := ownSampler(t)
	r, w := must2(os.Pipe())
	sleep := exec.Command("/bin/sleep", "60")
	sleep.Stdout = w
	run(t, sleep)
	cat := exec.Command("/bin/cat")
	cat.Stdin = r
	run(t, cat)
	_, _ = r.Close(), w.Close()
	wait, _ := waitOf(t, s, cat.Process.Pid, "read")
	if wait.FD != 0 || !slices.Equal(wait.Holders, []int{sleep.Process.Pid}) {
		t.Errorf("%+v, want %d", wait, sleep.Process.Pid)
	}
}

func TestSampledWaitForChildren(t *testing.T) {
	for how, row := range map[string]struct {
		call  string
		named bool
	}{"child": {"wait4", true}, "children": {"wait4", false}, "pidfd": {"waitid", true}} {
		t.Run(how, func(t *testing.T) {
			s := ownSampler(t)
			pid, _ := blocked(t, how)
			waitOf(t, s, pid, row.call)
			w, snap := waitOf(t, s, pid, row.call) // now that its child is there
			child := 0
			for _, r := range snap.Rows {
				if r.PPID == pid && row.named {
					child = r.PID
				}
			}
			if w.Child != child || row.named && child == 0 || w.FD != tree.Unknown {
				t.Errorf("%+v, want child %d", w, child)
			}
		})
	}
}

// Someone who waits for a child by its pid in a namespace of their own.
func TestSampledWaitInANamespace(t *testing.T) {
	sp := spec(t, "blocked", "child")
	sp.Containment = PIDNS
	a, err := Start(sp)
	if err != nil {
		t.Skip("no pid namespace can be made here: ", err)
	}
	st := adopt(t, a)
	st.ready(1)
	s := a.Sampler()
	defer s.Close()
	waitOf(t, s, a.PID(), "wait4")
	w, snap := waitOf(t, s, a.PID(), "wait4") // now that its child is there
	if r := rowOf(snap, w.Child); len(snap.Rows) != 2 || r == nil || r.PPID != a.PID() {
		t.Errorf("%+v in %+v", w, snap.Rows)
	}
	st.over(none)
}

func TestSampledWaitForTheTerminal(t *testing.T) {
	master := must(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0))
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("/dev/pts/", must(unix.IoctlGetInt(master, unix.TIOCGPTN)))
	s := ownSampler(t)
	pid, _ := blocked(t, "terminal", name)
	if w, _ := waitOf(t, s, pid, "read"); w.File != name || w.FD < 3 {
		t.Errorf("%+v", w)
	}
}

// Which signal has stopped a process, and that none has any more.
func TestSampledStops(t *testing.T) {
	s := ownSampler(t)
	c := exec.Command("/bin/sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // else, without a parent outside of its group, it would ignore all but SIGSTOP
	run(t, c)
	pid := c.Process.Pid
	waitOf(t, s, pid, "nanosleep", "clock_nanosleep")
	for _, sig := range []syscall.Signal{unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
		_ = unix.Kill(pid, sig)
		var r *tree.Row
		until(t, soon(), "it is stopped", func() bool {
			r = rowOf(s.Sample(time.Now(), false, true), pid)
			return r.State == 'T'
		})
		if r.Wait.Signal != unix.SignalName(sig) {
			t.Errorf("%s: %+v", unix.SignalName(sig), r.Wait)
		}
		_ = unix.Kill(pid, unix.SIGCONT)
		until(t, soon(), "it goes on", func() bool {
			r = rowOf(s.Sample(time.Now(), false, true), pid)
			return r.State == 'S' && r.Wait.Signal == ""
		})
	}
}

// A process that cannot start its child because somebody has a lease on the
// program sits in uninterruptible sleep; the child, not yet another program,
// waits for the lease.
func TestSampledUninterruptible(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	text := must(os.ReadFile("/bin/sleep"))
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	lease := must(unix.Open(program, unix.O_RDONLY|unix.O_CLOEXEC, 0))
	if _, err := unix.FcntlInt(uintptr(lease), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("no leases here: ", err)
	}
	if _, err := unix.FcntlInt(uintptr(lease), unix.F_SETSIG, int(unix.SIGURG)); err != nil { // Go leaves that one alone
		t.Fatal(err)
	}
	s := ownSampler(t)
	pid, p := blocked(t, "vfork", program, "60")
	var snap tree.Snapshot
	until(t, soon(), "it is in state D", func() bool {
		snap = s.Sample(time.Now(), false, true)
		r := rowOf(snap, pid)
		return r.State == 'D' && r.Wait.Channel != ""
	})
	if w := rowOf(snap, pid).Wait; w.Call != "clone" && w.Call != "clone3" && w.Call != "vfork" {
		t.Errorf("%+v", w)
	}
	_ = unix.Close(lease)
	if line := p.hear(); line != "forked <nil>" {
		t.Error(line)
	}
	for _, r := range s.glance().Rows {
		if r.PPID == pid {
			_ = unix.Kill(r.PID, unix.SIGKILL)
		}
	}
}

// Explaining many is bounded; nobody is left out of the rows.
func TestSampledWaitsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	s := ownSampler(t)
	for range explainMax + 1 {
		sleeper(t)
	}
	explained := 0
	snap := s.Sample(time.Now(), false, true)
	for _, r := range snap.Rows {
		if r.Wait != nil {
			explained++
		}
	}
	if len(snap.Rows) != explainMax+1 || explained != explainMax {
		t.Errorf("%d of %d", explained, len(snap.Rows))
	}
}

func TestParseCall(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "",
		"running\n":          "running",
		"-1 0x7ffd 0x7f12\n": "",
		fmt.Sprint(unix.SYS_READ, " 0x3 0x0 0x1 0x0 0x0 0x0 0x7ffd 0x7f12\n"): "read",
		"9999 0x3 0x0 0x1 0x0 0x0 0x0 0x7ffd 0x7f12\n":                        "syscall 9999",
		"rubbish": "",
	} {
		call, args := parseCall([]byte(text))
		if call.name != want || want == "read" && args[0] != 3 {
			t.Errorf("%q: %+v %v", text, call, args)
		}
	}
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}
