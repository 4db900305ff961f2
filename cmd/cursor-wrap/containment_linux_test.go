package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/process"
)

func TestContainmentFlag(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ flag, held string }{
		{"auto", ""},
		{"tree", "tree: two subreapers"},
		{"cgroup", "cgroup "},
		{"pidns", "pid namespace"},
	} {
		t.Run(row.flag, func(t *testing.T) {
			t.Parallel()
			c := contain(t, call{scenario: lines(append(crowd, "say Done.", "result")...), args: args(brief + " --containment=" + row.flag)})
			<-c.exited
			if row.flag == "cgroup" || row.flag == "pidns" {
				if r := c.finish(); r.code == 1 && len(r.all("spawn_failed")) == 1 {
					t.Skipf("it cannot be made here: %s", r.said)
				}
			}
			r := c.over(0)
			r.result()
			s := c.spawn()
			if !strings.HasPrefix(s.Containment, row.held) || s.Containment == "" {
				t.Errorf("held by %q", s.Containment)
			}
			if td := r.teardown(); td.By != "guard" || !td.Proof || len(td.Ended) < 5 {
				t.Errorf("%+v", td)
			}
			if dir := s.leaf(); strings.HasPrefix(dir, "/") {
				if _, err := os.Stat(dir); err == nil {
					t.Errorf("%s is there", dir)
				}
			}
		})
	}
}

func TestBothKilledInAPIDNamespace(t *testing.T) {
	t.Parallel()
	asRoot(t)
	c := contain(t, call{scenario: lines(append(crowd, "linger")...), args: args("--containment=pidns")})
	c.awaitFile("there")
	c.killBoth(c.spawn())
	c.empty(time.Now().Add(prompt))
}

// killBoth kills wrapper and guard so that neither sees the other's end.
func (c *contained) killBoth(s spawned) {
	c.Helper()
	both := []int{c.cmd.Process.Pid, s.Guard}
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, pid := range both {
			if err := syscall.Kill(pid, sig); err != nil {
				c.Fatal(err)
			}
		}
		for _, pid := range both {
			for sig == syscall.SIGSTOP && !standsStill(pid) {
				time.Sleep(time.Millisecond) // the kernel tells only the parent
			}
		}
	}
	<-c.exited
}

// standsStill reports whether every thread of a process is stopped, or it is gone: one that still
// runs would see the other one's end.
func standsStill(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		if _, state, ok := strings.Cut(string(text), ") "); ok && state[0] != 'T' && state[0] != 'Z' {
			return false
		}
	}
	return true
}

// yard makes a cgroup of the test's own, so that only its own calls clear up in
// it, and says how to start a program there.
func yard(t *testing.T) (dir string, via []string) {
	t.Helper()
	asRoot(t)
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(table)) {
		if fields := strings.Fields(row); strings.Contains(row, " - cgroup2 ") {
			dir = filepath.Join(fields[4], "cursor-wrap-test."+strconv.Itoa(os.Getpid())+"."+t.Name())
		}
	}
	if dir == "" {
		t.Skip("no cgroup2")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0)
		for deadline := time.Now().Add(prompt); ; time.Sleep(time.Millisecond) {
			err := os.Remove(dir)
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Error(err)
				return
			}
		}
	})
	return dir, []string{"/bin/sh", "-c", `echo $$ >"` + dir + `/cgroup.procs" || exit 98; exec "$@"`, "sh"}
}

// registered waits until the run has its entry, with its agent.
func (c *contained) registered() {
	c.Helper()
	for over := time.Now().Add(patience); time.Now().Before(over); time.Sleep(time.Millisecond) {
		found, _ := filepath.Glob(c.dir + "/.cursor-wrap/run/*/run.json")
		if len(found) == 1 {
			if text, err := os.ReadFile(found[0]); err == nil && !strings.Contains(string(text), `"agent":{"pid":0`) {
				return
			}
		}
	}
	c.Fatal("the run has no entry")
}

// gc runs the subcommand.
func (c *contained) gc(via []string, args ...string) string {
	c.Helper()
	argv := slices.Concat(via, []string{built.wrap, "gc"}, args)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(c.environment(call{}), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		c.Errorf("gc %v: %v", args, err)
	}
	return string(out)
}

func TestGCEndsWhatAKilledPairHasLeft(t *testing.T) {
	dir, via := yard(t)
	for _, asJSON := range []bool{false, true} {
		c := contain(t, call{scenario: lines(append(crowd, "linger")...), via: via, args: args("--containment=cgroup")})
		c.awaitFile("there")
		s := c.spawn()
		c.killBoth(s)
		if asJSON {
			var found struct {
				Cgroups []process.Leftover
				Marked  []process.Proc
			}
			if err := json.Unmarshal([]byte(c.gc(via, "--json")), &found); err != nil {
				t.Fatal(err)
			}
			if len(found.Cgroups) != 1 || found.Cgroups[0].Cgroup != s.leaf() || len(found.Cgroups[0].Ended) < 5 || found.Cgroups[0].Error != "" {
				t.Errorf("%+v, want %s", found, s.leaf())
			}
		} else if out := c.gc(via); !strings.Contains(out, s.leaf()) || !strings.Contains(out, "is removed") || !strings.Contains(out, "__fakeagent-child") {
			t.Errorf("gc said %q", out)
		}
		c.empty(time.Now().Add(100 * time.Millisecond))
		if left, _ := filepath.Glob(dir + "/cursor-wrap.*"); len(left) != 0 {
			t.Errorf("there are %v", left)
		}
		if out := c.gc(via); strings.Contains(out, s.leaf()) {
			t.Errorf("again: %q", out)
		}
	}
}

func TestGCLeavesALivingRunAlone(t *testing.T) {
	_, via := yard(t)
	c := contain(t, call{scenario: lines(append(crowd, "wait-file $DIR/go", "say Done.", "result")...), via: via, args: args(brief)})
	c.awaitFile("there")
	s := c.spawn()
	if out := c.gc(via); strings.Contains(out, s.leaf()) || strings.Contains(out, fmt.Sprint(s.PID)) {
		t.Errorf("gc said %q", out)
	}
	c.write("go", "")
	c.over(0).result()
}

// Without a cgroup the marked are named, by gc and by the next run, and live.
func TestTheMarkedAreNamedAndLive(t *testing.T) {
	_, via := yard(t)
	c := contain(t, call{scenario: lines("init", "spawn daemon 60s node mcp.js", "touch $DIR/there", "linger"), via: via, args: args("--containment=tree")})
	c.awaitFile("there")
	c.registered()
	c.killBoth(c.spawn())
	var daemon int
	for pid := range c.crowd() {
		daemon = pid
	}
	next := run1(t, call{scenario: "good.txt", via: via, args: []string{"--state-dir", c.dir + "/.cursor-wrap"}}).wants(0)
	next.says("not ended", fmt.Sprintf("%d ", daemon))
	if out := c.gc(via); !strings.Contains(out, fmt.Sprintf("%d ", daemon)) || !strings.Contains(out, "not ended") {
		t.Errorf("gc said %q, and not %d", out, daemon)
	}
	if !lives(daemon) {
		t.Error("it was ended for its mark")
	}
	kill(daemon)
	c.empty(time.Now().Add(prompt))
}

func TestTheNextRunClearsUp(t *testing.T) {
	_, via := yard(t)
	c := contain(t, call{scenario: lines(append(crowd, "linger")...), via: via, args: args("--containment=cgroup")})
	c.awaitFile("there")
	s := c.spawn()
	c.killBoth(s)
	next := run1(t, call{scenario: "good.txt", via: via}).wants(0).says(s.leaf())
	c.empty(time.Now().Add(100 * time.Millisecond))
	var leftover struct{ Leftover process.Leftover }
	next.one("leftover", &leftover)
	if leftover.Leftover.Cgroup != s.leaf() {
		t.Errorf("%+v", leftover)
	}
}

// As pid 1 everybody's orphans are ours to reap, and none of it costs the run
// anything.
func TestAsTheInitOfANamespace(t *testing.T) {
	t.Parallel()
	asRoot(t)
	if err := exec.Command("unshare", "-p", "-f", "--mount-proc", "true").Run(); err != nil {
		t.Skip("no pid namespace can be made here: ", err)
	}
	// A child from before, and one that is orphaned to us: both wait for the
	// test and leave a zombie.
	script := `mkfifo "$DIR/go1" "$DIR/go2"
(read x <"$DIR/go1"; exit 3) &
(sh -c 'read x <"$DIR/go2"; exit 4' stranger &)
exec "$@"`
	c := contain(t, call{scenario: lines(append(crowd, "touch $DIR/there", "wait-file $DIR/end", "say Done.", "result")...),
		via: []string{"unshare", "-p", "-f", "--mount-proc", "--kill-child", "/bin/sh", "-c", script, "sh"}, args: args(brief)})
	c.awaitFile("there")
	init := onlyChild(t, c.cmd.Process.Pid)
	if len(childrenOf(t, init)) != 3 { // the guard and the two
		t.Errorf("pid 1 has the children %v", childrenOf(t, init))
	}
	c.write("go1", "\n")
	c.write("go2", "\n")
	c.gone("the strangers are reaped", time.Now().Add(prompt), func() bool { return len(childrenOf(t, init)) == 1 })
	c.write("end", "")
	r := c.over(0)
	r.result()
	if td := r.teardown(); td.By != "guard" || !td.Proof || td.Exit != "exit 0" {
		t.Errorf("%+v", td)
	}
	same(t, "replay --raw", r.replay("--raw"), r.stdout)
}

func childrenOf(t *testing.T, pid int) (pids []int) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

func onlyChild(t *testing.T, pid int) int {
	t.Helper()
	pids := childrenOf(t, pid)
	if len(pids) != 1 {
		t.Fatalf("%d has the children %v", pid, pids)
	}
	return pids[0]
}

// A process in a frozen cgroup of version 1 does not die before it thaws: the
// result stands, and the exit code tells.
func TestSurvivorsOfASuccessAreExitThree(t *testing.T) {
	t.Parallel()
	asRoot(t)
	ice := filepath.Join("/sys/fs/cgroup/freezer", "cursor-wrap-test."+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(ice, 0o755); err != nil {
		t.Skip("no freezer of version 1: ", err)
	}
	thaw := func() { _ = os.WriteFile(ice+"/freezer.state", []byte("THAWED"), 0) }
	t.Cleanup(func() {
		thaw()
		for deadline := time.Now().Add(prompt); os.Remove(ice) != nil; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("the freezer is not empty")
				return
			}
		}
	})
	c := contain(t, call{args: args("--kill-grace=100ms"), env: []string{"ICE=" + ice}},
		`sleep 60 >/dev/null 2>&1 &`, `echo $! >"$ICE/cgroup.procs"`, `echo FROZEN >"$ICE/freezer.state"`,
		`until grep -q FROZEN "$ICE/freezer.state"; do :; done`,
		`echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s"}'`)
	<-c.exited
	thaw()
	c.empty(time.Now().Add(prompt))
	r := c.over(3).says("sleep 60", "survivors")
	r.result()
	td := r.teardown()
	if td.Proof || len(td.Left) != 1 || td.Left[0].Command != "sleep 60" || td.Left[0].Signal != "SIGKILL" {
		t.Errorf("%+v", td)
	}
	if e := r.end(); e.Outcome != "survivors" {
		t.Errorf("%+v", e)
	}
}
