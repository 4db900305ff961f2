package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// seat is a person at a terminal, and the program there.
type seat struct {
	*program
	keyboard *os.File
	terminal *os.File
	found    unix.Termios // the modes before

	mu   sync.Mutex
	out  bytes.Buffer // all that was shown
	from int          // what of it was looked at
	news chan struct{}
	read chan struct{}
}

// sit starts the program at a terminal of 80 columns.
func sit(t *testing.T, c call) *seat {
	t.Helper()
	keyboard, terminal := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	s := &seat{terminal: terminal, found: modesOf(t, terminal), news: make(chan struct{}, 1), read: make(chan struct{})}
	s.keyboard = closable(t, keyboard)
	go s.look()
	c.reader, c.stderr, c.talks, c.leads = terminal, terminal, true, true
	if c.stdout == nil {
		c.stdout = terminal
	}
	c.env = append([]string{"TERM=xterm-256color", "LC_ALL=C.UTF-8", "FAKEAGENT_SESSION=" + chatID}, c.env...)
	s.program = start(t, c)
	return s
}

// closable is the same file, which can be closed while it is read.
func closable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	dup := os.NewFile(uintptr(fd), f.Name())
	t.Cleanup(func() { dup.Close() })
	return dup
}

func (s *seat) look() {
	defer close(s.read)
	buf := make([]byte, 4096)
	for {
		n, err := s.keyboard.Read(buf)
		s.mu.Lock()
		s.out.Write(buf[:n])
		s.mu.Unlock()
		select {
		case s.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func modesOf(t *testing.T, terminal *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func (s *seat) types(text string) {
	s.Helper()
	if _, err := io.WriteString(s.keyboard, text); err != nil {
		s.Fatal(err)
	}
}

// sees waits until the text is shown, after what was seen before, and returns
// what was shown up to its end.
func (s *seat) sees(text string) string {
	s.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		rest := s.out.String()[s.from:]
		i := strings.Index(rest, text)
		if i >= 0 {
			s.from += i + len(text)
		}
		s.mu.Unlock()
		if i >= 0 {
			return rest[:i+len(text)]
		}
		select {
		case <-s.news:
		case <-late:
			s.Fatalf("%q is not shown, but %q", text, rest)
		}
	}
}

// prompted waits for a prompt that takes keys.
func (s *seat) prompted() {
	s.Helper()
	s.sees("> ")
}

// leaves waits for the exit, and finds the modes as they were.
func (s *seat) leaves(code int) *ran {
	s.Helper()
	r := s.finish()
	if got := modesOf(s.T, s.keyboard); got != s.found {
		s.Errorf("the modes are %+v, not %+v", got, s.found)
	}
	if _, err := s.terminal.WriteString("the end"); err != nil { // behind all that the program wrote
		s.Fatal(err)
	}
	s.sees("the end")
	s.mu.Lock()
	r.said = s.out.String()
	s.mu.Unlock()
	return r.wants(code)
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
	quit  = "\x1c"
)

// at is an agent that tells a test how far it is.
var at = lines("init", "user",
	"when asked stay", "  spawn setsid 60s node server.js", "  touch $DIR/there", "  linger", "end",
	"when asked speak", "  say-midturn Half a", "  touch $DIR/there", "  linger", "end",
	"say Done.", "result")

func TestAConversationAtATerminal(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args    []string
		turns   int
		resumes []string
	}{
		"no argument":        {nil, 2, []string{"", chatID}},
		"an argument":        {[]string{"one"}, 3, []string{"", chatID, chatID}},
		"an earlier session": {args("--resume=" + chatID), 2, []string{chatID, chatID}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, call{scenario: at, args: row.args})
			if row.turns == 3 {
				s.sees("Done.")
			}
			for _, prompt := range []string{"two\r", "\x1b[200~three\nand a half\x1b[201~\r"} {
				s.prompted()
				s.types(prompt)
				s.sees("Done.")
			}
			s.prompted()
			s.types(ctrlD)
			r := s.leaves(0).resumes(row.resumes...).says("success", fmt.Sprintf("%d turns", row.turns))
			all := r.prompts()
			if len(all) != row.turns || all[len(all)-1] != "three\nand a half" {
				t.Errorf("the agent was asked %q", all)
			}
			if r.mode() != "pty" {
				t.Errorf("stderr is %s", r.mode())
			}
			r.historyHas(`"two"`, `"three\nand a half"`)
		})
	}
}

// historyHas checks the one history file, and that nobody else may read it.
func (r *ran) historyHas(lines ...string) {
	r.Helper()
	files, _ := filepath.Glob(filepath.Join(r.dir, ".cursor-wrap", "history", "*"))
	if len(files) != 1 {
		r.Fatalf("histories: %q", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || string(text) != strings.Join(lines, "\n")+"\n" {
		r.Errorf("the history is %q, %v", text, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		r.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func TestPrintAtATerminalIsOneTurn(t *testing.T) {
	t.Parallel()
	s := sit(t, call{scenario: at, args: []string{"-p", "one", "--output-format=text"}})
	s.leaves(0).asked("one").says("Done.")
	sit(t, call{scenario: at, args: args("-p")}).leaves(64).says("no prompt")
}

func TestAnInterruptEndsTheTurnAndASecondOneEndsItHard(t *testing.T) {
	t.Parallel()
	s := sit(t, call{scenario: at, args: args("--kill-grace=10m")})
	s.prompted()
	s.types("stay\r")
	s.awaitFile("there")
	s.types(ctrlC)
	s.sees("interrupted")
	s.prompted()
	s.types(ctrlC)
	s.sees("Ctrl-D or /quit leaves")
	s.prompted()
	s.types("half a pro" + ctrlC)
	s.sees("^C")
	s.types("two\r")
	s.sees("Done.")
	s.prompted()
	s.types(ctrlD)
	r := s.leaves(0).resumes("", chatID).asked("stay", "two")
	if n := len(r.all("signal")); n != 1 {
		t.Errorf("%d signals in the log", n)
	}

	s = sit(t, call{scenario: lines("on TERM touch $DIR/asked", "init", "spawn deaf 80s node mcp.js", "touch $DIR/there", "linger"),
		args: []string{"one", "--kill-grace=10m"}})
	s.awaitFile("there")
	s.types(ctrlC)
	s.awaitFile("asked")
	s.types(ctrlC)
	s.sees("interrupted")
	s.prompted()
	s.types("/quit\r")
	s.leaves(0)
}

// Text that has not ended its line is not written over by what comes next.
func TestAnInterruptInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	s := sit(t, call{scenario: at, args: args("--plain")})
	s.prompted()
	s.types("speak\r")
	s.sees("Half a")
	s.awaitFile("there")
	s.types(ctrlC)
	if shown := s.sees("cursor-wrap: interrupted"); !strings.Contains(shown, "\n") {
		t.Errorf("shown: %q", shown)
	}
	s.prompted()
	s.types(ctrlD)
	s.leaves(0)
}

func TestEveryWayOutRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	signal := func(sig syscall.Signal) func(*seat) { return func(s *seat) { s.signal(sig) } }
	types := func(keys string) func(*seat) { return func(s *seat) { s.types(keys) } }
	for name, row := range map[string]struct {
		out    func(*seat)
		prompt bool // at a prompt, and not in a turn
		code   int
	}{
		"Ctrl-D":           {types(ctrlD), true, 0},
		"/quit":            {types("/quit\r"), true, 0},
		"quit at a prompt": {types(quit), true, 131},
		"TERM at a prompt": {signal(syscall.SIGTERM), true, 143},
		"HUP at a prompt":  {signal(syscall.SIGHUP), true, 129},
		"quit in a turn":   {types(quit), false, 131},
		"TERM in a turn":   {signal(syscall.SIGTERM), false, 143},
		"HUP in a turn":    {signal(syscall.SIGHUP), false, 129},
	} {
		for _, term := range []string{"xterm", "dumb"} {
			t.Run(name+" "+term, func(t *testing.T) {
				t.Parallel()
				s := sit(t, call{scenario: at, env: []string{"TERM=" + term}})
				s.prompted()
				if term == "dumb" {
					s.types("first\n")
				} else {
					s.types("first\r")
				}
				s.sees("Done.")
				s.prompted()
				if !row.prompt {
					s.types("stay\r")
					s.awaitFile("there")
				}
				row.out(s)
				s.leaves(row.code)
			})
		}
	}
}

func TestAHangUpEndsEverything(t *testing.T) {
	t.Parallel()
	for _, prompt := range []bool{true, false} {
		s := sit(t, call{scenario: at})
		s.prompted()
		if !prompt {
			s.types("stay\r")
			s.awaitFile("there")
		}
		s.keyboard.Close()
		<-s.read
		s.finish().wants(129)
	}
}

// inShell starts the program as a job of a shell, which goes on with it a
// moment after it has stopped, and a line was typed.
func inShell(t *testing.T, c call) *seat {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash, whose job control is wanted here")
	}
	c.via = []string{bash, "--norc", "--noprofile", "-c",
		`set -m; "$@"; echo "stopped: $?"; read line; sleep 1.5; fg >/dev/null`, "sh"}
	return sit(t, c)
}

func TestSuspendPausesTheTreeAndNoDeadlineCounts(t *testing.T) {
	t.Parallel()
	s := inShell(t, call{scenario: lines("init", "user", "spawn setsid 80s node server.js", "spawn plain 80s cat", "touch $DIR/there",
		"wait-file $DIR/go", "say Done.", "result"), args: args("--containment=tree --idle-timeout=1s --tick-interval=100ms --kill-grace=500ms")})
	s.prompted()
	s.types("stay\r")
	s.awaitFile("there")
	s.types(ctrlZ)
	s.sees("stopped: 148\r\n")
	if got := modesOf(t, s.keyboard); got != s.found {
		t.Errorf("while it is stopped, the modes are %+v, not %+v", got, s.found)
	}
	pids := s.children()
	if len(pids) != 2 {
		t.Fatalf("children %v", pids)
	}
	for _, pid := range append(pids, s.agent()) {
		if state := stateOf(t, pid); state != "T" {
			t.Errorf("%d is in state %s", pid, state)
		}
	}
	s.types("\n")
	s.write("go", "")
	s.sees("Done.")
	s.prompted()
	s.types(ctrlD)
	r := s.leaves(0)
	r.judged("", "")
}

func TestSuspendAtAPromptKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	s := inShell(t, call{scenario: at})
	s.prompted()
	s.types("half a pro")
	s.sees("half a pro")
	s.types(ctrlZ)
	s.sees("stopped: 148\r\n")
	s.types("\n")
	s.sees("half a pro")
	s.types("mpt\r")
	s.sees("Done.")
	s.prompted()
	s.types(ctrlD)
	s.leaves(0).asked("half a prompt")
}

// children are those that the agent has spawned.
func (p *program) children() (pids []int) {
	p.Helper()
	for line := range strings.Lines(p.file("pids")) {
		_, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			p.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// agent is the pid that the log has of the agent.
func (p *program) agent() int {
	p.Helper()
	var pid int
	p.awaitLog("spawn", func(log []byte) bool {
		_, rest, ok := bytes.Cut(log, []byte(`"msg":"spawn"`))
		if ok {
			_, rest, ok = bytes.Cut(rest, []byte(`"pid":`))
		}
		if !ok {
			return false
		}
		pid, _ = strconv.Atoi(string(rest[:bytes.IndexByte(rest, ',')]))
		return pid > 0
	})
	return pid
}

func stateOf(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return string(rest[:1])
}

func TestWhoeverAsksOnTheTerminalIsShownAndAnswered(t *testing.T) {
	t.Parallel()
	s := sit(t, call{scenario: "h10-waits-for-input.txt", args: []string{"one"}})
	s.sees("Username for")
	s.sees("what you type goes to it")
	s.types("joe\r")
	s.sees("Pushed.")
	s.prompted()
	s.types(ctrlD)
	s.leaves(0)
}

func TestStatusTellsOfTheSessionAndTheTree(t *testing.T) {
	t.Parallel()
	s := sit(t, call{scenario: at})
	s.prompted()
	s.types("/status\r")
	s.sees("none yet")
	s.sees("not running")
	s.prompted()
	s.types("/help\r")
	s.sees("Ctrl-D")
	s.prompted()
	s.types("stay\r")
	s.awaitFile("there")
	s.sees("thinking") // it has read the first lines
	s.types("/status\r")
	s.sees(chatID)
	s.sees("__fakeagent-ch") // the server
	s.types("for later" + ctrlC)
	s.sees("interrupted")
	s.sees("for later")
	s.types("\r")
	s.sees("Done.")
	s.prompted()
	s.types(ctrlD)
	s.leaves(0).asked("stay", "for later")
}

func TestTheStatusLineIsForTerminalsThatCanShowIt(t *testing.T) {
	t.Parallel()
	const dim = "\x1b[2m"
	for name, row := range map[string]struct {
		env         []string
		shown, lack string
	}{
		"":         {nil, dim + "thinking", ""},
		"NO_COLOR": {[]string{"NO_COLOR=1"}, "thinking", dim},
		"dumb":     {[]string{"TERM=dumb"}, "", "\x1b"},
		"C":        {[]string{"LC_ALL=C"}, "thinking", "·"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, call{scenario: at, env: row.env, args: args("--tick-interval=100ms --idle-timeout=6s")})
			s.prompted()
			s.types("stay\r")
			s.awaitFile("there")
			if row.shown != "" {
				s.sees(row.shown)
				s.sees("silent 2s of 6s")
			}
			s.types(ctrlC)
			s.sees("interrupted")
			s.prompted()
			s.types(ctrlD)
			if r := s.leaves(0); row.lack != "" && strings.Contains(r.said, row.lack) {
				t.Errorf("shown: %q", r.said)
			}
		})
	}
}

// With stdout in a pipe the conversation is held on stderr, and the pipe has
// the text alone.
func TestAPipeOnStdoutGetsNothingOfTheTerminal(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	s := sit(t, call{scenario: at, stdout: w})
	w.Close()
	s.prompted()
	s.types("one\r")
	said := make([]byte, len("Done.\n\n"))
	if _, err := io.ReadFull(r, said); err != nil {
		t.Fatal(err)
	}
	s.sees("\r\n")
	s.prompted()
	s.types(ctrlD)
	s.leaves(0)
	rest, err := io.ReadAll(r)
	if text := string(append(said, rest...)); err != nil || text != "Done.\n\n" {
		t.Errorf("stdout %q, %v", text, err)
	}
}
