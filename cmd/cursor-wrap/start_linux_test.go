package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/tmux"
)

// room is a tmux server of a test alone, and a home.
type room struct {
	*testing.T
	home, state, socket string
	env                 []string
	mark                string
}

// called is what a call came to.
type called struct {
	*testing.T
	code     int
	out, err string
}

func newRoom(t *testing.T, scenario string, env ...string) *room {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	short, err := os.MkdirTemp("", "cw") // the names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	home := t.TempDir()
	r := &room{T: t, home: home, state: filepath.Join(home, ".cursor-wrap"), socket: filepath.Join(short, "s"), mark: "CW_TEST_MARK=" + rand.Text()}
	p := &program{T: t, dir: home}
	r.env = append(p.environment(call{scenario: scenario}), "CURSOR_WRAP_TMUX_SOCKET="+r.socket, "CURSOR_WRAP_AGENT_BIN="+built.fakeagent,
		"SHELL=/bin/sh", "ENV=", "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TMUX=", r.mark)
	r.env = append(r.env, env...)
	t.Cleanup(r.close)
	return r
}

// close ends the server, and finds nobody left who was started here.
func (r *room) close() {
	_ = exec.Command("tmux", "-S", r.socket, "kill-server").Run() // it may have ended with its last session
	r.until("nobody is left", func() bool { return len(r.marked()) == 0 })
}

func (r *room) marked() (who []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && bytes.Contains(env, []byte(r.mark)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			who = append(who, string(line))
		}
	}
	return who
}

func (r *room) until(what string, fact func() bool) {
	r.Helper()
	for late := time.Now().Add(patience); !fact(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			r.Fatalf("not in time: %s; there are %q", what, r.marked())
		}
	}
}

func (r *room) command(args ...string) *exec.Cmd {
	cmd := exec.Command(built.wrap, args...)
	cmd.Env, cmd.Dir = r.env, r.home
	return cmd
}

func (r *room) calls(args ...string) called { r.Helper(); return r.callsWith("", args...) }

func (r *room) callsWith(stdin string, args ...string) called {
	r.Helper()
	cmd := r.command(args...)
	var out, err bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &err
	if e := cmd.Run(); e != nil && cmd.ProcessState == nil {
		r.Fatal(e)
	}
	return called{r.T, cmd.ProcessState.ExitCode(), out.String(), err.String()}
}

func (s called) wants(code int, parts ...string) called {
	s.Helper()
	if s.code != code {
		s.Errorf("exit code %d, not %d: %s%s", s.code, code, s.out, s.err)
	}
	for _, p := range parts {
		if !strings.Contains(s.out+s.err, p) {
			s.Errorf("%q is not said: %s%s", p, s.out, s.err)
		}
	}
	return s
}

// tmux has the server do something.
func (r *room) tmux(args ...string) string {
	r.Helper()
	cmd := exec.Command("tmux", slices.Concat([]string{"-u", "-f", "/dev/null", "-S", r.socket}, args)...)
	cmd.Env = slices.DeleteFunc(slices.Clone(r.env), func(v string) bool { return strings.HasPrefix(v, "CURSOR_") || strings.HasPrefix(v, "SHIM_") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("tmux %q: %s", args, out)
	}
	return string(out)
}

func (r *room) record(name string) tmux.Record {
	r.Helper()
	rec, err := tmux.Find(r.state, name)
	if err != nil {
		r.Fatal(err)
	}
	return rec
}

// ends waits until the run of the session has ended.
func (r *room) ends(name string) int {
	r.Helper()
	r.until("the run has ended", func() bool { return r.record(name).Exit != nil })
	return *r.record(name).Exit
}

func (r *room) shows(name, text string) {
	r.Helper()
	pane := r.record(name).Pane
	r.until("the screen shows "+text, func() bool { return strings.Contains(r.tmux("capture-pane", "-p", "-t", pane), text) })
}

// is looks at a session.
func (r *room) is(name string, state registry.State, exit int) {
	r.Helper()
	l, err := tmux.New(r.socket).Look(context.Background(), r.state, name, tmux.Options{At: time.Now(), Pause: func(context.Context, time.Duration) {}})
	got := -1
	if l.Exit != nil {
		got = *l.Exit
	}
	if err != nil || l.State != state || got != exit {
		r.Errorf("%s is %s, because %s, exit %d, %v; it should be %s, exit %d", name, l.State, l.Why, got, err, state, exit)
	}
}

func (r *room) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(r.home, name)) // none is empty
	return string(text)
}

// hanging is an agent with a deaf child, which stays.
var hanging = lines("init", "user", "spawn setsid 90s node server.js", "touch $DIR/there", "linger")

func (r *room) there() {
	r.Helper()
	r.until("the agent is there", func() bool { _, err := os.Stat(filepath.Join(r.home, "there")); return err == nil })
}

func TestStartHandsAnyPromptOver(t *testing.T) {
	t.Parallel()
	prompts := map[string]string{
		"plain":   "fix it",
		"quotes":  `it's "quoted" and \back ` + "`x`" + ` $HOME $(touch trap) !! #{pane_id} #(touch trap) %d ~ *`,
		"lines":   "one\ntwo\n\n\tthree;",
		"unicode": "日本 ✓ ünïcode e\u0301 👩‍👩‍👧",
		"bytes":   "not \xff\xfe text",
		"10 KB":   strings.Repeat("0123456789", 1024),
		"a name":  "stop",
		"; ends":  `x;\;;`,
	}
	for name, prompt := range prompts {
		for _, stdin := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", stdin), func(t *testing.T) {
				t.Parallel()
				r := newRoom(t, "", "CURSOR_WRAP_AGENT_BIN="+built.stub)
				if stdin {
					r.callsWith(prompt, "start", "s", "-p").wants(0)
				} else {
					r.calls("start", "s", prompt).wants(0)
				}
				if code := r.ends("s"); code != 0 {
					t.Errorf("exit code %d", code)
				}
				if got := r.file("prompt"); got != prompt {
					t.Errorf("the agent's prompt is %.200q", got)
				}
			})
		}
	}
}

func TestStartHandsAHugePromptOver(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "", "CURSOR_WRAP_AGENT_BIN="+built.stub)
	prompt := strings.Repeat("a long story. ", 10<<20/14)
	r.callsWith(prompt, "start", "s", "-p").wants(0)
	r.ends("s")
	if r.file("prompt") != prompt {
		t.Error("it is another one")
	}
}

// What the caller has in the environment reaches a run whose server was there
// before; nothing of it, nor of the flags, stands on a command line or stays.
func TestStartKeepsSecrets(t *testing.T) {
	t.Parallel()
	r := newRoom(t, lines("init", "touch $DIR/there", "linger"), "SECRET_THING=from the caller", "CURSOR_API_KEY=sk-in-the-environment")
	r.tmux("new-session", "-d", "-s", "older", "sleep 1000")
	r.calls("start", "s", "--api-key", "sk-as-a-flag", "the secret prompt").wants(0)
	r.there()
	for _, line := range r.marked() {
		agents := strings.Contains(line, "fakeagent") || strings.Contains(line, "__guard")
		if strings.Contains(line, "sk-") && !agents || strings.Contains(line, "secret prompt") {
			t.Errorf("command line %q", line)
		}
	}
	if got := r.tmux("list-panes", "-a", "-F", "#{pane_start_command}") + r.tmux("show-environment", "-g"); strings.Contains(got, "sk-") || strings.Contains(got, "secret prompt") {
		t.Errorf("tmux knows %s", got)
	}
	rec := r.record("s")
	text, _ := json.Marshal(rec)
	if bytes.Contains(text, []byte("sk-")) || !bytes.Contains(text, []byte("--api-key")) {
		t.Errorf("record %s", text)
	}
	entries, _ := os.ReadDir(rec.Folder)
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 || e.Name() != "record.json" && e.Name() != "pane.sh" {
			t.Errorf("%s %v is left", e.Name(), info.Mode())
		}
	}
	if info, err := os.Stat(rec.Folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	r.calls("stop", "s").wants(0)

	r.env = append(r.env, "CURSOR_WRAP_AGENT_BIN="+built.stub)
	r.calls("start", "s", "x").wants(0)
	r.ends("s")
	env := r.file("env")
	for _, want := range []string{"SECRET_THING=from the caller\x00", "CURSOR_API_KEY=sk-in-the-environment\x00", "TMUX=" + r.socket} {
		if !strings.Contains(env, want) {
			t.Errorf("the agent's environment lacks %q", want)
		}
	}
}

func TestStartShowsTextAndKeepsTheSession(t *testing.T) {
	t.Parallel()
	r := newRoom(t, lines("init", "user", "say Well done.", "result"))
	r.calls("start", "two words ✓;", "x").wants(0, "cursor-wrap attach 'two words ✓;'", "cursor-wrap stop 'two words ✓;'")
	if code := r.ends("two words ✓;"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	r.shows("two words ✓;", "Well done.")
	r.shows("two words ✓;", "ended with exit code 0")
	r.is("two words ✓;", registry.Completed, 0)
	r.calls("start", "two words ✓;", "x").wants(1, "there already")
	r.calls("stop", "two words ✓;").wants(0, "had ended before, exit code 0")
	r.calls("stop", "two words ✓;").wants(1, "no such session")
}

func TestStartTellsOfARunThatFails(t *testing.T) {
	t.Parallel()
	r := newRoom(t, lines("init", "exit 3"))
	r.calls("start", "s", "--json", "x").wants(0, `"name":"s"`)
	if code := r.ends("s"); code != 1 {
		t.Errorf("exit code %d", code)
	}
	r.is("s", registry.Failed, 1)
}

func TestWrongStarts(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "good.txt")
	r.tmux("new-session", "-d", "-s", "foreign", "sleep 1000")
	for name, row := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no name":        {nil, 64, "needs a name"},
		"a dot":          {args("a.b"), 64, "tmux takes no name"},
		"empty":          {[]string{"", "x"}, 64, "empty"},
		"two prompts":    {args("s one two"), 64, "more than one prompt"},
		"an empty one":   {[]string{"s", " "}, 64, "prompt is empty"},
		"unknown flag":   {args("s --idel-timeout=3s x"), 64, "--idel-timeout"},
		"bad format":     {args("s --output-format=yaml x"), 64, "yaml"},
		"no agent":       {args("s --agent-bin=/nowhere x"), 1, "/nowhere"},
		"somebody's":     {args("foreign x"), 1, "cursor-wrap has not made"},
		"stop foreign":   {nil, 1, "start has not made"},
		"stop nothing":   {nil, 1, "no such session"},
		"attach nothing": {nil, 1, "no such session"},
	} {
		words := append([]string{"start"}, row.args...)
		switch name {
		case "stop foreign":
			words = args("stop foreign")
		case "stop nothing":
			words = args("stop foreig")
		case "attach nothing":
			words = args("attach foreig")
		}
		r.calls(words...).wants(row.code, row.says, "cursor-wrap: ")
	}
	if got := strings.TrimSpace(r.tmux("list-sessions", "-F", "#{session_name}")); got != "foreign" {
		t.Errorf("there are %s", got)
	}
	r.env = append(r.env, "PATH="+r.home)
	for _, words := range [][]string{args("start s x"), args("attach s")} {
		r.calls(words...).wants(1, "tmux is not on the PATH; install it")
	}
}

func TestStopEndsARun(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, args("--now"), args("--json")} {
		r := newRoom(t, hanging)
		r.calls("start", "work", "x").wants(0)
		r.there()
		r.is("work", registry.Idle, -1)
		r.calls("stop", "wor").wants(1, "no such session", "work")
		want := "work is stopped, exit code 143"
		if slices.Contains(flags, "--json") {
			want = `"exit_code":143`
		}
		r.calls(append(args("stop work"), flags...)...).wants(0, want)
		if who := r.marked(); len(who) > 0 && !strings.HasPrefix(who[0], "tmux") {
			t.Errorf("left are %q", who)
		}
		if _, err := os.Stat(tmux.Folder(r.state, "work")); err == nil {
			t.Error("its folder is left")
		}
		r.is("work", registry.Failed, -1)
	}
}

// A session that somebody else closes takes its run along, and leaves its name.
func TestASessionThatIsClosed(t *testing.T) {
	t.Parallel()
	r := newRoom(t, hanging)
	r.calls("start", "s", "x").wants(0)
	r.there()
	r.tmux("rename-session", "-t", "=s", "other")
	r.is("s", registry.Idle, -1)
	r.calls("start", "s", "x").wants(1, "there already")
	r.tmux("kill-session", "-t", "=other")
	r.ends("s")
	r.is("s", registry.Failed, 129)
	r.calls("attach", "s").wants(1, "closed, exit code 129")
	r.until("nobody is left", func() bool { return len(r.marked()) == 0 })
	r.calls("start", "s", "x").wants(0)
	r.calls("stop", "s").wants(0, "143")
}

func TestARunSurvivesItsTerminal(t *testing.T) {
	t.Parallel()
	r := newRoom(t, hanging)
	keyboard, terminal := openTerminal(t)
	cmd := exec.Command("/bin/sh", "-c", `"$1" start s x; echo started >there-too; exec sleep 1000`, "sh", built.wrap)
	cmd.Env, cmd.Dir = r.env, r.home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.there()
	r.until("it has returned", func() bool { return r.file("there-too") != "" })
	terminal.Close()
	keyboard.Close() // everybody there is hung up on
	_ = cmd.Wait()
	r.is("s", registry.Idle, -1)
	r.calls("stop", "s").wants(0, "is stopped, exit code 143")
}

func TestTenStartsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRoom(t, lines("init", "linger"))
	var same [10]called
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() { r.calls("start", fmt.Sprint("s", i), "x").wants(0) })
		wg.Go(func() { same[i] = r.calls("start", "same", "x") })
	}
	wg.Wait()
	won := 0
	for _, s := range same {
		if s.code == 0 {
			won++
		} else {
			s.wants(1, "there already")
		}
	}
	records, err := tmux.Started(r.state)
	if won != 1 || err != nil || len(records) != 11 {
		t.Errorf("%d got the name; %d sessions, %v", won, len(records), err)
	}
	for _, rec := range records {
		wg.Go(func() { r.calls("stop", "--now", rec.Name).wants(0, "exit code 143") })
	}
	wg.Wait()
}

// A conversation in the session; the keys of its terminal are the run's.
func TestStartHoldsAConversation(t *testing.T) {
	t.Parallel()
	r := newRoom(t, at)
	r.calls("start", "talk").wants(0)
	pane := r.record("talk").Pane
	r.shows("talk", ">")
	r.tmux("send-keys", "-t", pane, "-l", "one", ";", "send-keys", "-t", pane, "Enter")
	r.shows("talk", "Done.")
	r.until("it asks again", func() bool {
		return strings.HasSuffix(strings.TrimSpace(r.tmux("capture-pane", "-p", "-t", pane)), "\n>")
	})
	r.tmux("send-keys", "-t", pane, "C-d")
	if code := r.ends("talk"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	r.calls("stop", "talk").wants(0, "exit code 0")

	r.calls("start", "print", "stay").wants(0)
	r.there()
	r.tmux("send-keys", "-t", r.record("print").Pane, "C-c")
	if code := r.ends("print"); code != 130 {
		t.Errorf("exit code %d", code)
	}
	r.shows("print", "what follows is a shell")
}

func TestAttach(t *testing.T) {
	t.Parallel()
	r := newRoom(t, lines("init", "user", "say Hello.", "result"))
	r.calls("start", "s", "x").wants(0)
	r.calls("start", "s2", "x").wants(0)
	r.ends("s")
	s := sit(t, call{bare: true, args: args("attach s"), env: slices.DeleteFunc(slices.Clone(r.env), func(v string) bool { return strings.HasPrefix(v, "GORACE") })})
	s.sees("what follows is a shell")
	r.tmux("detach-client", "-s", "=s")
	s.sees("detached")
	s.finish().wants(0)
	r.is("s", registry.Completed, 0)

	// From within tmux it is the client that goes there.
	s = sit(t, call{bare: true, args: args("attach s"), env: r.env})
	s.sees("what follows is a shell")
	r.tmux("send-keys", "-t", r.record("s").Pane, "-l", built.wrap+" attach s2", ";", "send-keys", "-t", r.record("s").Pane, "Enter")
	r.until("it has gone there", func() bool { return strings.TrimSpace(r.tmux("list-clients", "-F", "#{client_session}")) == "s2" })
	r.tmux("detach-client", "-s", "=s2")
	s.finish().wants(0)
}

// A lock, or the end of a pipe, that the caller has open is not held by the
// server that start has started.
func TestStartKeepsTheCallersFilesToItself(t *testing.T) {
	t.Parallel()
	r := newRoom(t, lines("init", "linger"))
	end, mine := pipe(t)
	cmd := r.command("start", "s", "x")
	cmd.ExtraFiles = []*os.File{nil, mine}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mine.Close()
	if _, err := end.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("somebody has it: %v", err)
	}
	r.is("s", registry.Idle, -1)
	r.calls("stop", "s").wants(0, "143")
}

func TestHelpOfStart(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "")
	for _, words := range []string{"start --help", "help start", "__complete start x --"} {
		r.calls(strings.Fields(words)...).wants(0, "--tmux-socket", "--state-dir", "--idle-timeout", "--trust")
	}
	r.calls("stop", "--help").wants(0, "--now", "--timeout")
	r.calls("attach", "a", "b").wants(64, "one session")
}

// A person's settings of tmux may close what nobody looks at.
func TestADetachedSessionStaysWhateverTheSettings(t *testing.T) {
	t.Parallel()
	r := newRoom(t, lines("init", "linger"))
	r.tmux("start-server", ";", "set-option", "-g", "exit-empty", "off", ";", "set-option", "-g", "destroy-unattached", "on",
		";", "set-option", "-g", "base-index", "1", ";", "set-option", "-g", "default-command", "false")
	r.calls("start", "s", "x").wants(0)
	r.is("s", registry.Idle, -1)
	r.calls("stop", "s").wants(0, "143")
}
