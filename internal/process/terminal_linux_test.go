package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// terminals says which of its standard files is a terminal, and what
	// /dev/tty is.
	parts["terminals"] = func([]string) { fmt.Println(describeTerminals()) }
	// resized says the size of its terminal, and again whenever it is told of
	// another one.
	parts["resized"] = func([]string) {
		winch := make(chan os.Signal, 1)
		ossignal.Notify(winch, syscall.SIGWINCH)
		for {
			fmt.Println(sizeOf(2))
			<-winch
		}
	}
	// speaker writes to its stderr, all of it in one go.
	parts["speaker"] = func(texts []string) { _, _ = os.Stderr.WriteString(strings.Join(texts, " ")) }
	// talker never stops to.
	parts["talker"] = func([]string) {
		ossignal.Ignore(syscall.SIGHUP)
		ready("talker")
		for {
			if _, err := os.Stderr.WriteString(strings.Repeat("bla", 99) + "\n"); err != nil {
				forever()
			}
		}
	}
	// asker asks on the terminal, as git and ssh do.
	parts["asker"] = func([]string) {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			fmt.Println("cannot ask:", err)
			return
		}
		fmt.Fprint(tty, "Username: ")
		answer, err := bufio.NewReader(tty).ReadString('\n')
		fmt.Printf("answered %q %v\n", answer, err)
	}
	// job starts a part as a shell does a background job, says how it comes to
	// its end, or to a stop, and stays: without it a stopped one is hung up.
	parts["job"] = func(words []string) {
		pid := fork(os.Environ(), &syscall.SysProcAttr{Setpgid: true}, words...)
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		fmt.Println("exited", status.Exited(), "stopped", status.Stopped())
		forever()
	}
}

func describeTerminals() string {
	var b strings.Builder
	for fd := range 3 {
		fmt.Fprintf(&b, "%t ", isTerminal(fd))
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return b.String() + err.Error()
	}
	session, _ := unix.IoctlGetInt(2, unix.TIOCGSID)
	group, _ := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	fmt.Fprintf(&b, "leads %t, in front %t, %s", session == os.Getpid(), group == os.Getpid(), sizeOf(int(tty.Fd())))
	return b.String()
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

func sizeOf(fd int) Size {
	w, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return Size{}
	}
	return Size{w.Row, w.Col}
}

// terminalOf is the number of a process's controlling terminal, 0 for none.
func terminalOf(pid int) int {
	stat := string(must(os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	return must(strconv.Atoi(fields[4]))
}

// withTerminal starts a part with a terminal.
func withTerminal(t *testing.T, words ...string) *started {
	t.Helper()
	s := spec(t, words...)
	s.Stderr = StderrPTY
	return launchSpec(t, s)
}

// seen reads the terminal up to a text.
func (s *started) seen(text string) {
	s.t.Helper()
	_ = s.Stderr.SetReadDeadline(time.Now().Add(partLife))
	var all []byte
	for one := make([]byte, 1); !bytes.HasSuffix(all, []byte(text)); all = append(all, one[0]) {
		if _, err := s.Stderr.Read(one); err != nil {
			s.t.Fatalf("the terminal says nothing more: %v after %q", err, all)
		}
	}
}

// all reads the terminal to its end.
func (s *started) all() string {
	s.t.Helper()
	_ = s.Stderr.SetReadDeadline(time.Now().Add(partLife))
	text, err := io.ReadAll(s.Stderr)
	if err != nil {
		s.t.Errorf("the end of the terminal: %v", err)
	}
	return string(text)
}

func TestStderrModes(t *testing.T) {
	none := "open /dev/tty: no such device or address"
	for _, row := range []struct {
		mode Mode
		want string
	}{
		{"", "false false false " + none},
		{StderrPipe, "false false false " + none},
		{StderrDiscard, "false false false " + none},
		{StderrPTY, "false false true leads true, in front true, 33x99"},
	} {
		t.Run("mode "+string(row.mode), func(t *testing.T) {
			s := spec(t, "terminals")
			s.Stderr, s.Size = row.mode, Size{33, 99}
			a := launchSpec(t, s)
			if got := a.hear(); got != row.want {
				t.Errorf("it sees %q, want %q", got, row.want)
			}
			if (a.Terminal() != nil) != (row.mode == StderrPTY) {
				t.Errorf("terminal %v", a.Terminal())
			}
			if got := a.all(); got != "" {
				t.Errorf("it said %q", got)
			}
			a.over(NewLadder(time.Second))
		})
	}
	if a, err := Start(Spec{Path: "/bin/true", Stderr: "tty", ID: "test"}); err == nil || !strings.Contains(err.Error(), `"tty"`) {
		t.Errorf("%v, %v", a, err)
	}
}

// What the agent says is read whole, and is no longer there in the modes in
// which it is not for us.
func TestSaidOnStderr(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 4000)
	for _, row := range []struct {
		mode       Mode
		text, want string
	}{
		{StderrPipe, long, long},
		{StderrPTY, long, strings.ReplaceAll(long, "\n", "\r\n")},
		{StderrPTY, "\x1b[31mred\x1b[0m \xff\xfe", "\x1b[31mred\x1b[0m \xff\xfe"},
		{StderrDiscard, long, ""},
	} {
		for range 5 { // the end must not overtake what was said before it
			s := spec(t, "speaker", row.text)
			s.Stderr = row.mode
			a := launchSpec(t, s)
			if got := a.all(); got != row.want {
				t.Errorf("%s: %d bytes, want %d: %.100q", row.mode, len(got), len(row.want), got)
			}
			a.over(NewLadder(time.Second))
		}
	}
}

// The agent's stderr is the front's own.
func TestInheritedStderr(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := spec(t, "front", "/dev/null", "speaker", "from the agent")
	c := exec.Command(s.Path, s.Args...)
	c.Env = append(s.Env, "STDERR=inherit")
	c.Stderr = w
	f := perform(t, c)
	_ = w.Close()
	_ = r.SetReadDeadline(time.Now().Add(partLife))
	said := make([]byte, len("from the agent"))
	if _, err := io.ReadFull(r, said); err != nil || string(said) != "from the agent" {
		t.Errorf("%q, %v", said, err)
	}
	_ = f.in.Close()
	_ = c.Process.Kill()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("then %q, %v", rest, err)
	}
	until(t, soon(), "nobody is left below us", func() bool { return len(strays()) == 0 })
}

// An agent does not expect EAGAIN from its terminal.
func TestBlockingTerminal(t *testing.T) {
	for _, mode := range []Mode{StderrPTY, StderrDiscard} {
		s := spec(t, "flags")
		s.Stderr = mode
		a := launchSpec(t, s)
		if got := a.hear(); got != "0 0 0" {
			t.Errorf("%s: O_NONBLOCK of stdin, stdout, stderr: %s", mode, got)
		}
		a.over(NewLadder(time.Second))
	}
}

// Neither the front nor the guard gets the terminal as its own, although both
// lead sessions without one.
func TestOnlyTheAgentHasTheTerminal(t *testing.T) {
	f := stage{stderr: StderrPTY, attr: &syscall.SysProcAttr{Setsid: true}}.open(t, "wait")
	f.tree.ready(1)
	f.tell("terminals")
	if n := f.numbers(); n[0] != 0 || n[1] != 0 || n[2] == 0 {
		t.Errorf("terminals of front, guard and agent: %v", n)
	}
	f.tell("end 1s")
	f.teardown()
}

func TestResize(t *testing.T) {
	a := withTerminal(t, "resized")
	hears := func(want string) {
		t.Helper()
		if got := a.hear(); got != want {
			t.Errorf("its terminal has %s, want %s", got, want)
		}
	}
	hears("24x80")
	for _, s := range []Size{{50, 132}, {1, 1}, {24, 80}} {
		if err := a.Terminal().Resize(s); err != nil {
			t.Fatal(err)
		}
		hears(s.String())
	}
	a.over(short)
	_ = a.Stderr.Close()
	if a.Terminal().Resize(Size{5, 5}) == nil {
		t.Error("no error of a terminal that is closed")
	}
}

// A tool's question arrives, and the answer reaches it, echoed.
func TestQuestionAndAnswer(t *testing.T) {
	for name, words := range map[string][]string{"the agent": {"asker"}, "a tool": {"parent", "asker"}} {
		t.Run(name, func(t *testing.T) {
			a := withTerminal(t, words...)
			a.seen("Username: ")
			if len(words) > 1 {
				a.ready(1)
			}
			if _, err := a.Terminal().Write([]byte("jo\n")); err != nil {
				t.Fatal(err)
			}
			a.seen("jo\r\n")
			if got := a.hear(); got != `answered "jo\n" <nil>` {
				t.Errorf("it says %s", got)
			}
			a.over(short)
		})
	}
}

// Without a terminal, and in a session without it, who asks fails at once.
func TestNobodyToAsk(t *testing.T) {
	a := launch(t, "asker")
	if got := a.hear(); !strings.HasPrefix(got, "cannot ask: ") {
		t.Errorf("it says %s", got)
	}
	a.over(short)
	a = withTerminal(t, "parent", "setsid:asker")
	for range 2 {
		if got := a.hear(); !strings.HasPrefix(got, "cannot ask: ") && !strings.HasPrefix(got, "parent ") {
			t.Errorf("it says %s", got)
		}
	}
	a.over(short)
}

// A job in the background may write. One that reads is stopped by the
// terminal, and ended like everybody else.
func TestJobs(t *testing.T) {
	a := withTerminal(t, "job", "speaker", "done")
	a.seen("done")
	if got := a.hear(); got != "exited true stopped false" {
		t.Errorf("the writer %s", got)
	}
	a.over(short)
	a = withTerminal(t, "parent", "job,asker")
	for range 2 {
		if got := a.hear(); got != "exited false stopped true" && !strings.HasPrefix(got, "parent ") {
			t.Errorf("the reader %s", got)
		}
	}
	td := a.over(short)
	a.silent(soon())
	if !td.Proof || len(td.Ended) != 3 {
		t.Errorf("%+v", td)
	}
}

// The terminal is at its end when the last of the tree has closed it, and until
// then a read ends by its deadline.
func TestTheTerminalEndsWithTheTree(t *testing.T) {
	a := withTerminal(t, "parent", "setsid:deaf")
	a.ready(2)
	_ = a.Stdin.Close()
	<-a.Exited()
	_ = a.Stderr.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := a.Stderr.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with somebody alive: %v", err)
	}
	ended := make(chan error)
	go func() {
		_ = a.Stderr.SetReadDeadline(time.Time{})
		_, err := a.Stderr.Read(make([]byte, 1))
		ended <- err
	}()
	a.over(short)
	if err := <-ended; err != io.EOF {
		t.Errorf("with nobody alive: %v", err)
	}
	if n, err := a.Stderr.Buffered(); n != 0 && err == nil {
		t.Errorf("%d bytes behind the end", n)
	}
}

// What is on its way counts as there.
func TestBufferedOfATerminal(t *testing.T) {
	for range 50 {
		master, slave, err := openTerminal(Size{})
		if err != nil {
			t.Fatal(err)
		}
		p := &Pipe{master}
		_, _ = slave.WriteString("hello")
		if n, err := p.Buffered(); n != 5 || err != nil {
			t.Errorf("%d, %v, want 5", n, err)
		}
		closeAll(master, slave)
	}
}

// A terminal that is hung up early ends the agent, and that is not the ladder's
// doing. It is so where the front is killed: its files are closed by that.
func TestHangUp(t *testing.T) {
	a := withTerminal(t, "wait")
	a.ready(1)
	_ = a.Stderr.Close()
	<-a.Exited()
	td := a.over(short)
	a.silent(soon())
	if td.Exit.Signal != syscall.SIGHUP || len(td.Ended) != 0 {
		t.Errorf("%+v", td)
	}
}

// Somebody who writes to the terminal without end is ended by its hang-up or
// not at all; the front is killed meanwhile.
func TestFrontKilledWhileTheTerminalIsFull(t *testing.T) {
	for _, c := range containments(t) {
		t.Run(string(c), func(t *testing.T) {
			f := stage{containment: c, stderr: StderrPTY}.open(t, "parent", "talker", "setsid:talker", "daemon:talker", "deaf")
			f.tree.ready(5)
			f.vanishes(f.kill().Add(prompt))
		})
	}
}
