package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// proc is what the kernel says about a process.
type proc struct {
	state                  string
	parent, group, session int
	ignored                uint64 // mask of ignored signals
	stdout                 string
}

func look(t *testing.T, pid int) proc {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var p proc
	_, fields, _ := strings.Cut(string(stat), ") ")
	fmt.Sscan(fields, &p.state, &p.parent, &p.group, &p.session)
	_, mask, _ := strings.Cut(string(status), "SigIgn:\t")
	p.ignored, _ = strconv.ParseUint(mask[:16], 16, 64)
	p.stdout, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/1", pid))
	return p
}

func (p proc) ignores(sig syscall.Signal) bool { return p.ignored&(1<<(sig-1)) != 0 }

func TestChildrenAreWhatTheirKindPromises(t *testing.T) {
	t.Parallel()
	var steps []string
	for name, k := range kinds {
		if !k.inner && name != "asker" { // without a terminal that one is gone at once
			steps = append(steps, "spawn "+name+" 60s some tool --port 80")
		}
	}
	s := begin(t, script(t, append(steps, "init", "linger")...), nil)
	s.readUntil("\n") // the init line comes after the last of them was ready
	agent := s.cmd.Process.Pid
	home := look(t, agent)
	pids := s.children()
	all := make(map[string]proc)
	for name, pid := range pids {
		all[name] = look(t, pid)
	}

	for name, p := range all {
		k := kinds[name]
		if want := k.session; (p.session != home.session) != want {
			t.Errorf("%s: own session is %v, want %v", name, !want, want)
		}
		if want := k.session || k.group; (p.group != home.group) != want {
			t.Errorf("%s: own group is %v, want %v", name, !want, want)
		}
		if want := k.stdout; (p.stdout == home.stdout) != want || !want && p.stdout != os.DevNull {
			t.Errorf("%s: stdout is %s, the agent's is %s", name, p.stdout, home.stdout)
		}
		if want := name == "deaf"; p.ignores(syscall.SIGTERM) != want || p.ignores(syscall.SIGINT) != want {
			t.Errorf("%s: ignores %x", name, p.ignored)
		}
		if want := name == "stopped"; (p.state == "T") != want {
			t.Errorf("%s: is in state %s", name, p.state)
		}
		if want := name != "daemon" && name != "launched"; (p.parent == agent) != want {
			t.Errorf("%s: parent is %d, the agent is %d", name, p.parent, agent)
		}
	}
	if p := all["launched"].parent; p != pids["launcher"] {
		t.Errorf("launched: parent is %d, the launcher is %d", p, pids["launcher"])
	}
	if len(all) != len(steps)+1 {
		t.Errorf("%d children for %d steps: %v", len(all), len(steps), pids)
	}
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pids["daemon"]))
	if want := "\x00some\x00tool\x00--port\x0080\x00"; err != nil || !strings.HasSuffix(string(argv), want) {
		t.Errorf("command line %q, %v", argv, err)
	}
}

func TestIgnoringIsNotInherited(t *testing.T) {
	t.Parallel()
	s := begin(t, script(t, "ignore TERM", "on INT exit 0", "spawn plain 60s", "init", "linger"), nil)
	s.readUntil("\n")
	if p := look(t, s.children()["plain"]); p.ignores(syscall.SIGTERM) || p.ignores(syscall.SIGINT) {
		t.Errorf("the child ignores %x", p.ignored)
	}
}
