package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// call is one call of the program.
type call struct {
	scenario string    // what the scripted agent plays: a file's name, or lines
	agent    string    // --agent-bin; the scripted agent where it is empty, none where it is "-"
	prompt   string    // on stdin; "-" for none
	args     []string  // -p and the folder of the logs come by themselves
	bare     bool      // nothing comes by itself
	env      []string  // beside a clean environment
	via      []string  // what starts the program, with its arguments
	reader   io.Reader // stdin, where it is not just a prompt
	stderr   *os.File  // where it is not just kept
	stdout   *os.File  // a terminal, which the test reads itself
	talks    bool      // -p does not come by itself
	leads    bool      // a session of its own, of which stdin is the terminal
}

// program is a started program, and all that came of it.
type program struct {
	*testing.T
	cmd    *exec.Cmd
	out    *os.File // its stdout, to be read by the test
	tree   *os.File // at its end when every process of the tree is gone
	dir    string   // of this call alone
	logs   string
	stderr bytes.Buffer
	spared []string // the flags that leave somebody alive
	read   []byte   // what the test has read of stdout so far
	exited chan struct{}
}

// lines makes a scenario of its own.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func start(t *testing.T, c call) *program {
	t.Helper()
	p := &program{T: t, dir: t.TempDir(), exited: make(chan struct{})}
	p.logs = filepath.Join(p.dir, "logs")
	p.cmd = exec.Command(built.wrap)
	if len(c.via) > 0 {
		p.cmd = exec.Command(c.via[0], append(c.via[1:], built.wrap)...)
	}
	p.cmd.Args = append(p.cmd.Args, p.arguments(c)...)
	p.cmd.Env = append(p.environment(c), c.env...)
	p.cmd.Stdin = c.stdin()

	var outEnd, treeEnd *os.File
	p.out, outEnd = pipe(t)
	p.tree, treeEnd = pipe(t)
	p.cmd.Stdout, p.cmd.Stderr = outEnd, &p.stderr
	if c.stderr != nil {
		p.cmd.Stderr = c.stderr
	}
	if c.stdout != nil {
		p.cmd.Stdout = c.stdout
	}
	// Inherited by every process of the tree, because nobody there knows of it: from the descriptor
	// on that the guard has no use of its own for.
	p.cmd.ExtraFiles = []*os.File{nil, nil, nil, nil, treeEnd}
	p.spared = slices.DeleteFunc(slices.Clone(c.args), func(a string) bool { return !strings.HasPrefix(a, "--spare") })
	p.cmd.WaitDelay = patience
	if c.leads {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	outEnd.Close()
	treeEnd.Close()
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the exit code is asked for by exit
	}()
	t.Cleanup(p.clean)
	return p
}

func (c call) stdin() io.Reader {
	switch {
	case c.reader != nil:
		return c.reader
	case c.prompt == "-":
		return nil
	case c.prompt == "":
		return strings.NewReader("fix it")
	}
	return strings.NewReader(c.prompt)
}

func (p *program) arguments(c call) []string {
	if c.bare {
		return c.args
	}
	agent := c.agent
	if agent == "" {
		agent = built.fakeagent
	}
	args := []string{"-p", "--log-dir", p.logs}
	if c.talks {
		args = args[1:]
	}
	if agent != "-" {
		args = append(args, "--agent-bin", agent)
	}
	return append(args, c.args...)
}

// environment is what a test's surroundings cannot change.
func (p *program) environment(c call) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "CURSOR_") || strings.HasPrefix(name, "FAKEAGENT_") ||
			strings.HasPrefix(name, "SHIM_") || strings.HasPrefix(name, "GITHUB_") || name == "HOME" || name == "GORACE"
	})
	scenario := c.scenario
	switch {
	case strings.Contains(scenario, "\n"):
		scenario = p.write("scenario.txt", scenario)
	case scenario != "":
		var err error
		if scenario, err = filepath.Abs(filepath.Join(scenarios, scenario)); err != nil {
			p.Fatal(err)
		}
	}
	return append(env, "HOME="+p.dir, "GORACE=atexit_sleep_ms=0",
		"SHIM_DIR="+p.dir, "SHIM_AGENT="+built.fakeagent, "DIR="+p.dir,
		"FAKEAGENT_SCENARIO="+scenario, "FAKEAGENT_PIDS="+p.dir+"/pids")
}

func (p *program) write(name, text string) string {
	p.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
	return file
}

func (p *program) file(name string) string {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	_ = r.SetReadDeadline(time.Now().Add(patience)) // pipes have deadlines
	return r, w
}

// readUntil reads stdout up to the first occurrence of mark.
func (p *program) readUntil(mark string) {
	p.Helper()
	for one := make([]byte, 1); !bytes.HasSuffix(p.read, []byte(mark)); p.read = append(p.read, one[0]) {
		if _, err := p.out.Read(one); err != nil {
			p.Fatalf("stdout ended without %q: %v; it was %q; stderr %q", mark, err, p.read, &p.stderr)
		}
	}
}

func (p *program) signal(sig syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.Fatal(err)
	}
}

// finish reads stdout to its end and waits for the exit.
func (p *program) finish() *ran {
	p.Helper()
	rest, err := io.ReadAll(p.out)
	p.read = append(p.read, rest...)
	if err != nil {
		p.Fatalf("read stdout: %v; it was %.2000q", err, p.read)
	}
	return p.exit()
}

// exit waits for the program and for everybody that it had to end.
func (p *program) exit() *ran {
	p.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.Fatal("the program does not end")
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	r := &ran{program: p, code: status.ExitStatus(), stdout: p.read, said: p.stderr.String()}
	if status.Signaled() {
		p.Errorf("the program itself was killed by %v", status.Signal())
	}
	p.nobodyLeft()
	r.replays()
	return r
}

// nobodyLeft: the kernel closes the pipe that every process of the tree has inherited when the last
// of them is gone.
func (p *program) nobodyLeft() {
	p.Helper()
	if len(p.spared) > 0 {
		p.endStrays()
	}
	if _, err := io.Copy(io.Discard, p.tree); err != nil {
		p.Errorf("processes of the agent's tree are left: %v", err)
	}
}

// clean ends what a failed test has left running.
func (p *program) clean() {
	for range 2 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which is best
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
	}
	p.endStrays()
}

// escapes are the kinds of children that leave the agent's group.
var escapes = []string{"setsid", "daemon", "holder", "busy", "writer"}

// endStrays kills the children that the agent has put into sessions of their own.
func (p *program) endStrays() {
	p.Helper()
	text, _ := os.ReadFile(filepath.Join(p.dir, "pids")) // none: nobody was spawned
	for line := range strings.Lines(string(text)) {
		kind, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if err != nil || pid < 2 {
			p.Errorf("the list of children has the line %q", line)
			continue
		}
		if slices.Contains(escapes, kind) {
			kill(pid)
		}
	}
}

// kill ends a child of the scripted agent. The handle is taken before the look, so that what is
// looked at is what is killed.
func kill(pid int) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if strings.Contains(commandLine(pid), "__fakeagent-child") {
		_ = handle.Kill() // it may have ended by itself
	}
}

func commandLine(pid int) string {
	if line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil {
		return string(line)
	}
	line, _ := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return string(line)
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}
