package process

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parent starts a shell that says the pid of its last child and stays.
func parent(t *testing.T, script string) (shell *exec.Cmd, child int) {
	t.Helper()
	shell = exec.Command("/bin/sh", "-c", script+"\necho $!; read _; wait")
	in := must(shell.StdinPipe())
	out := must(shell.StdoutPipe())
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = shell.Wait() // it ends by what the test has done
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child = must(strconv.Atoi(strings.TrimSpace(line)))
	return shell, child
}

func TestChildrenOfAnyProcess(t *testing.T) {
	shell, child := parent(t, "sleep 60 >/dev/null & sleep 60 >/dev/null &")
	kids, err := ChildrenOf(shell.Process.Pid)
	if err != nil || len(kids) != 2 || kids[1].PID != child || kids[0].PPID != shell.Process.Pid {
		t.Errorf("%v %v", kids, err)
	}
	table, err := inTable(shell.Process.Pid)
	if slices.Sort(table); err != nil || len(table) != 2 || table[1] != child {
		t.Errorf("by the table they are %v, %v", table, err)
	}
	for _, p := range kids {
		if !Alive(p.PID, p.Start) || Alive(p.PID, p.Start+1) {
			t.Errorf("%v is not told from another one of its pid", p)
		}
		if err := Signal(p.PID, p.Start+1, syscall.SIGKILL); err != syscall.ESRCH {
			t.Errorf("another one of its pid: %v", err)
		}
		if err := Signal(p.PID, p.Start, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

func TestAZombieIsNoChild(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // that it was killed is known
	mine := func() bool {
		kids := must(ChildrenOf(os.Getpid()))
		return slices.ContainsFunc(kids, func(p Proc) bool { return p.PID == cmd.Process.Pid })
	}
	p := must(Find(cmd.Process.Pid))
	if !mine() {
		t.Error("a living child is not listed")
	}
	if err := Signal(p.PID, p.Start, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, time.Now().Add(prompt), "the child is a zombie", func() bool { return must(Find(p.PID)).State == "Z" })
	if mine() {
		t.Error("a zombie is listed")
	}
	if Alive(p.PID, p.Start) {
		t.Error("it is said to live")
	}
}

func TestArgv(t *testing.T) {
	if got := Argv(os.Getpid()); !slices.Equal(got, os.Args) {
		t.Errorf("%q", got)
	}
	if got := Argv(1 << 30); got != nil {
		t.Errorf("nobody: %q", got)
	}
}
