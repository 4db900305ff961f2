package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The agent under test is this test binary, started again.
const asAgent = "FAKEAGENT_TEST_AS_AGENT"

const scenarios = "../../testdata/scenarios"

// patience is how long a fact may take; nothing waits for it to pass.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
	}
	os.Exit(m.Run())
}

// subject is one started agent with all that it may leave behind.
type subject struct {
	*testing.T
	cmd    *exec.Cmd
	stdout *os.File // to be read by the test
	stderr bytes.Buffer
	tree   *os.File // at its end when every process of the tree has ended
	pids   string   // the file of "kind pid" lines
}

// script writes a scenario for one test.
func script(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario.txt")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// begin starts the agent on a scenario file. When the test ends, nobody of it is left.
func begin(t *testing.T, file string, stdin io.Reader, args ...string) *subject {
	t.Helper()
	return beginWith(t, stdin, append([]string{"-p", "--output-format", "stream-json", "--scenario", file}, args...)...)
}

func beginWith(t *testing.T, stdin io.Reader, args ...string) *subject {
	t.Helper()
	s := &subject{T: t, pids: filepath.Join(t.TempDir(), "pids")}
	stdout, stdoutEnd := pipe(t)
	tree, treeEnd := pipe(t)
	s.stdout, s.tree = stdout, tree

	s.cmd = exec.Command(os.Args[0], args...)
	s.cmd.Env = append(os.Environ(), asAgent+"=1", "FAKEAGENT_PIDS="+s.pids,
		"GORACE=atexit_sleep_ms=0") // under -race every process would end a second late
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = stdin, stdoutEnd, &s.stderr
	// The tree's pipe is inherited as descriptor 4 by every process of the tree, because nobody
	// there knows of it; descriptor 3 is the children's own.
	s.cmd.ExtraFiles = []*os.File{treeEnd, treeEnd}
	// A child that holds stderr's pipe or a prompt that is never read must not hold Wait.
	s.cmd.WaitDelay = patience
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdoutEnd.Close()
	treeEnd.Close()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		for _, pid := range s.children() {
			syscall.Kill(pid, syscall.SIGKILL) // the ones of long scenarios; most have ended
		}
		s.awaitTree()
	})
	return s
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	r.SetReadDeadline(time.Now().Add(patience))
	return r, w
}

// children is what the pid file names, by kind.
func (s *subject) children() map[string]int {
	pids := make(map[string]int)
	text, _ := os.ReadFile(s.pids) // none: nothing was spawned
	for line := range strings.Lines(string(text)) {
		kind, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(pid)
		if err != nil || n < 2 {
			s.Errorf("pid file has the line %q", line)
			continue
		}
		pids[kind] = n
	}
	return pids
}

// awaitTree waits until nobody of the tree is left.
func (s *subject) awaitTree() {
	s.Helper()
	if _, err := io.Copy(io.Discard, s.tree); err != nil {
		s.Errorf("processes are left: %v", err)
	}
}

// readUntil reads stdout up to the first occurrence of mark.
func (s *subject) readUntil(mark string) string {
	s.Helper()
	var read []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(read), mark); read = append(read, one[0]) {
		if _, err := s.stdout.Read(one); err != nil {
			s.Fatalf("stdout ended without %q: %v; it was %q", mark, err, read)
		}
	}
	return string(read)
}

// finish reads the rest of stdout and waits for the exit code; 128+n for a death by signal n.
func (s *subject) finish() (stdout string, code int) {
	s.Helper()
	out, err := io.ReadAll(s.stdout)
	if err != nil {
		s.Fatalf("read stdout: %v", err)
	}
	return string(out), s.exit()
}

func (s *subject) exit() int {
	s.Helper()
	s.cmd.Wait() // the error is the exit status, or that of copying stdin
	status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// play runs a scenario to its end.
func play(t *testing.T, file, prompt string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	s := begin(t, file, strings.NewReader(prompt), args...)
	stdout, code = s.finish()
	return stdout, s.stderr.String(), code
}

func (s *subject) signal(sig syscall.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
