package process

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestGuardStandsBetween(t *testing.T) {
	a := launch(t, "parent", "daemon:wait")
	a.ready(2)
	g := identify(a.GuardPID())
	if g.PPID != os.Getpid() || g.Session != g.PID || g.PGID != g.PID {
		t.Errorf("guard %+v, want a child of ours in a session of its own", g)
	}
	if p := identify(a.PID()); p.PPID != g.PID || p.Session != p.PID {
		t.Errorf("agent %+v, want a child of %d in a session of its own", p, g.PID)
	}
	a.over(none)
	if err := unix.Kill(g.PID, 0); err == nil {
		t.Error("the guard is there after Close")
	}
}

func TestOrphansComeToTheNearestReaper(t *testing.T) {
	a := launch(t, "parent", "daemon:wait", "setsid:reaper,deaf")
	who := map[string]int{}
	for range 4 {
		name, pid := a.named()
		who[name] = pid
	}
	if p := identify(who["wait"]); p.PPID != a.GuardPID() {
		t.Errorf("the daemon %+v is not the guard's", p)
	}
	if p := identify(who["deaf"]); p.PPID != who["reaper"] {
		t.Errorf("%+v is not the inner reaper's", p)
	}
	a.ends(a.over(none), "adopted SIGKILL, agent SIGKILL, child SIGKILL, child SIGKILL")
}

// Orphans that end by themselves are reaped and told of.
func TestAdoptedExitsAreTold(t *testing.T) {
	told := make(chan Ended, 8)
	s := spec(t, "parent", "orphan,exit,7", "orphan,die,9")
	s.Adopted = func(e Ended) { told <- e }
	a := launchSpec(t, s)
	pids := map[int]bool{}
	for range 3 {
		name, pid := a.named()
		pids[pid] = name == "orphan"
	}
	how := []string{}
	for len(how) < 2 {
		select {
		case e := <-told:
			if !pids[e.PID] { // the agent's own child is not adopted
				t.Errorf("told of %+v", e)
			}
			if e.Found != "adopted" || e.Start == 0 {
				t.Errorf("%+v", e)
			}
			how = append(how, e.How)
		case <-time.After(partLife):
			t.Fatal("nobody told of it")
		}
	}
	if slices.Sort(how); !slices.Equal(how, []string{"", "SIGKILL"}) {
		t.Errorf("ended by %q", how)
	}
	a.over(none)
}

// INT, TERM, HUP and QUIT to the guard change nothing: the front decides.
func TestGuardIsDeafToPoliteSignals(t *testing.T) {
	a := launch(t, "wait")
	a.ready(1)
	guard := identify(a.GuardPID())
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := signalProc(guard, sig); err != nil {
			t.Fatal(err)
		}
	}
	pending := func() bool { return !strings.Contains(status(t, guard.PID, "ShdPnd"), "0000000000000000") }
	until(t, soon(), "the signals are taken", func() bool { return !pending() })
	if !alive(a.PID()) {
		t.Fatal("the agent is gone")
	}
	a.ends(a.over(NewLadder(partLife)), "agent SIGTERM")
}

// status is a row of /proc/<pid>/status; empty when it is gone.
func status(t *testing.T, pid int, key string) string {
	t.Helper()
	b, err := readFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return ""
	}
	for row := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(row, key+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Whatever the front was started with ignored, the agent has its defaults; a
// Node agent does not undo a nohup by itself.
func TestAgentsSignalsAreDefault(t *testing.T) {
	for _, containment := range []Containment{Tree, Auto} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		st := stage{containment: containment, via: append([]string{self}, command(t, "ignorer")...)}
		f := st.open(t, "/bin/grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status")
		f.tell("copy")
		for _, want := range []string{"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"} {
			if got := f.hear(); got != want {
				t.Errorf("the agent starts with %q, want %q", got, want)
			}
		}
		f.tell("end 1s")
		f.teardown()
	}
}

// What the front was started with blocked would make the agent deaf; the Go
// runtime lets these through.
func TestAgentsSignalsAreNotBlocked(t *testing.T) {
	st := stage{via: append([]string{must(os.Executable())}, command(t, "blocker")...)}
	f := st.open(t, "/bin/grep", "-E", "^SigBlk", "/proc/self/status")
	f.tell("copy")
	if got := f.hear(); got != "SigBlk:\t0000000000000000" {
		t.Errorf("the agent starts with %q", got)
	}
}

// Nothing of ours but the three files reaches the agent: not the control line,
// whose end would never come, nor the leaf.
func TestAgentGetsThreeDescriptors(t *testing.T) {
	for _, containment := range []Containment{Tree, Auto} {
		a := launchSpec(t, Spec{Path: "/bin/sh", Args: []string{"-c", "ls /proc/$$/fd"}, Env: bare, ID: "test", Containment: containment})
		out, err := io.ReadAll(a.Stdout)
		if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("%s: the agent has %q (%v)", containment, got, err)
		}
		a.over(none)
	}
}

func TestAgentsEnvironmentIsTheSpecs(t *testing.T) {
	env := []string{"CURSOR_API_KEY=k", "CURSOR_WRAP_RUN=r", quick, "ODD=a=b c"}
	a := launchSpec(t, Spec{Path: "/usr/bin/env", Env: env, ID: "test"})
	out, err := io.ReadAll(a.Stdout)
	if got := strings.TrimSpace(string(out)); err != nil || got != strings.Join(env, "\n") {
		t.Errorf("the agent has %q (%v)", got, err)
	}
	a.over(none)
}

// Arguments are the agent's own, whatever they look like.
func TestAgentsArguments(t *testing.T) {
	args := []string{"--print", "", "a b", "-", GuardArg, "ü\n"}
	a := launchSpec(t, Spec{Path: "/usr/bin/printf", Args: append([]string{`[%s]`}, args...), Env: bare, ID: "test"})
	out, err := io.ReadAll(a.Stdout)
	if want := "[" + strings.Join(args, "][") + "]"; err != nil || string(out) != want {
		t.Errorf("%q (%v), want %q", out, err, want)
	}
	a.over(none)
}
