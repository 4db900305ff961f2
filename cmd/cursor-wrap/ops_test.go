package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/registry"
	"cursor-wrap/internal/tree"
)

// host is a state folder that several runs share, and the subcommands that look
// at them.
type host struct {
	*testing.T
	state string
}

func newHost(t *testing.T) *host {
	t.Helper()
	return &host{t, filepath.Join(t.TempDir(), "state")}
}

// start starts a run, and waits until it is registered and its agent has said
// the first word.
func (h *host) start(c call) *program {
	h.Helper()
	c.args = append(c.args, "--state-dir", h.state)
	return start(h.T, c)
}

// answer is what a subcommand came to.
type answer struct {
	*host
	code        int
	out, stderr string
}

// command is a subcommand that is about to be run.
func (h *host) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	h.Cleanup(cancel)
	c := exec.CommandContext(ctx, built.wrap, append(args, "--state-dir", h.state)...)
	c.Env = append(os.Environ(), "HOME="+h.state, "GORACE=atexit_sleep_ms=0")
	return c
}

func (h *host) ask(args ...string) *answer {
	h.Helper()
	return h.run(h.command(args...))
}

func (h *host) run(c *exec.Cmd) *answer {
	h.Helper()
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		h.Fatal(err)
	}
	return &answer{h, c.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// wants checks the exit code.
func (a *answer) wants(code int) *answer {
	a.Helper()
	if a.code != code {
		a.Errorf("exit code %d, want %d; stdout %.1000q, stderr %.1000q", a.code, code, a.out, a.stderr)
	}
	return a
}

// has checks that stdout has all of these.
func (a *answer) has(parts ...string) *answer {
	a.Helper()
	for _, part := range parts {
		if !strings.Contains(a.out, part) {
			a.Errorf("stdout lacks %q: %.3000s", part, a.out)
		}
	}
	return a
}

// complains checks that stderr has all of these.
func (a *answer) complains(parts ...string) *answer {
	a.Helper()
	for _, part := range parts {
		if !strings.Contains(a.stderr, part) {
			a.Errorf("stderr lacks %q: %.3000s", part, a.stderr)
		}
	}
	return a
}

func (a *answer) json(into any) {
	a.Helper()
	if err := json.Unmarshal([]byte(a.out), into); err != nil {
		a.Fatalf("%v: %.1000s; stderr %.1000s", err, a.out, a.stderr)
	}
}

// ps is every run that lives.
func (h *host) ps(names ...string) (rows []row) {
	h.Helper()
	h.ask(append([]string{"ps", "--json"}, names...)...).wants(0).json(&rows)
	return rows
}

// until asks ps for one run until it is as it should be.
func (h *host) until(is func(*row) bool) row {
	h.Helper()
	var last []row
	for over := time.Now().Add(patience); time.Now().Before(over); {
		last = h.ps()
		if i := slices.IndexFunc(last, func(r row) bool { return is(&r) }); i >= 0 {
			return last[i]
		}
	}
	h.Fatalf("it never came to that: %+v", last)
	return row{}
}

// inspected is a run in full.
func (h *host) inspected(id string) (i inspected) {
	h.Helper()
	h.ask("inspect", "--json", id).wants(0).json(&i)
	return i
}

// asleep is an agent that waits for a shell that waits.
var asleep = lines("init", "user", "tool start echo shell 600000 sleep 1000", "spawn setsid 60s bash -c sleep 1000", "linger")

func working(r *row) bool { return r.Phase == string(monitor.Tools) }

func TestFiveAgentsOfFiveKindsAreFoundAndExplained(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.start(call{scenario: lines("stdin ignore", "linger"), prompt: "one"})
	h.start(call{scenario: asleep, prompt: "two"})
	h.start(call{scenario: lines("init", "user", "tool start b background npm run dev", "spawn setsid 60s npm run dev", "tool background b 233697 last", "say On it.", "linger"), prompt: "three"})
	h.start(call{scenario: lines("init", "user", "reconnecting 1", "retrying 1", "linger"), prompt: "four"})
	talker, keyboard := pipe(t)
	defer keyboard.Close()
	p := h.start(call{scenario: chat, talks: true, reader: talker})
	if _, err := keyboard.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	p.readUntil("Done.")
	want := map[string]func(*row) bool{
		"starting": func(r *row) bool { return r.Phase == "starting" && r.Processes >= 1 },
		"tools": func(r *row) bool {
			return r.Phase == "tools" && len(r.Calls) == 1 && r.Calls[0].Argument == "sleep 1000" && r.Calls[0].Declared == monitor.Span(600*time.Second) && r.Processes >= 2 && r.Left > monitor.Span(10*time.Minute)
		},
		"background":   func(r *row) bool { return r.Phase == "background" && r.Left > monitor.Span(29*time.Minute) },
		"reconnecting": func(r *row) bool { return r.Phase == "reconnecting" },
		"prompt":       func(r *row) bool { return r.Phase == "prompt" && r.Status == registry.Idle },
	}
	for phase, is := range want {
		r := h.until(is)
		if r.Session == "" && phase != "starting" || r.Workspace == "" || r.Age <= 0 || r.PID == 0 || r.Log == "" {
			t.Errorf("%s: %+v", phase, r)
		}
		h.ask("inspect", r.ID).wants(0).has(r.ID, "workspace", r.Log)
	}
	if rows := h.ps(); len(rows) != 5 {
		t.Errorf("%d runs, want 5", len(rows))
	}
	h.ask("ps").wants(0).has("ID", "STATUS", "OPEN CALL", "sleep 1000", "starting", "reconnecting", "background", "prompt")
	var all []string
	for _, r := range h.ps() {
		all = append(all, r.ID)
	}
	h.ask(append([]string{"kill"}, all...)...).wants(0)
	h.ask("ps").wants(0).has("no agent runs")
}

func TestInspectLinksCallsToProcesses(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(call{scenario: asleep})
	r := h.until(working)
	var i inspected
	for over := time.Now().Add(patience); time.Now().Before(over); { // the child follows the line that tells of it
		i = h.inspected(r.ID)
		if i.Activity != nil && len(i.Activity.Runners) == 1 && i.Activity.Runners[0].Fate == tree.Alive {
			break
		}
	}
	if i.Activity == nil || len(i.Activity.Runners) != 1 || i.Activity.Runners[0].Fate != tree.Alive {
		t.Fatalf("nobody runs the call: %+v", i.Activity)
	}
	if i.Entry.Prompt != "fix it" || i.Guard.PID == 0 || i.Containment == "" || i.Entry.Agent.PID == 0 {
		t.Errorf("%+v", i)
	}
	text := h.ask("inspect", r.ID[:6]).wants(0)
	text.has("open calls", `shell sleep 1000`, "declared 10m", "run by", "processes", "└─ ", `runs shell "sleep 1000"`, "asleep", "deadline", "held by")
	h.ask("kill", r.ID).wants(0).has("signal, exit code 143")
	p.finish().wants(143)
}

func TestKillEndsTheTreeAndSaysHow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps string
		args  []string
		log   string
	}{
		"asked":  {"think Hm.", nil, `"now":false`},
		"at all": {"on TERM say no", []string{"--now"}, `"now":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			p := h.start(call{scenario: lines("init", "user", tt.steps, "spawn daemon 60s node mcp.js", "linger"), args: []string{"--kill-grace", "30s"}})
			r := h.until(func(r *row) bool { return r.Phase == "thinking" && r.Processes > 1 })
			h.ask(append([]string{"kill", "--json", r.ID}, tt.args...)...).wants(0).has(`"outcome": "signal"`, `"exit_code": 143`)
			ended := p.finish().wants(143).says("told to end by uid " + strconv.Itoa(os.Getuid()))
			if k := ended.all("killed"); len(k) != 1 || !strings.Contains(string(k[0].line), tt.log) {
				t.Errorf("killed records: %v", k)
			}
			h.nothingLeft()
		})
	}
}

// nothingLeft checks that no run has left a trace.
func (h *host) nothingLeft() {
	h.Helper()
	entries, err := os.ReadDir(filepath.Join(h.state, "run"))
	if err != nil && !os.IsNotExist(err) {
		h.Error(err)
	}
	for _, e := range entries {
		h.Errorf("%s is left", e.Name())
	}
}

// TestPause: while it is frozen nothing moves, and no deadline comes closer.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, held := range []string{"auto", "tree"} {
		t.Run(held, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			p := h.start(call{
				scenario: lines("init", "user", "spawn busy 60s node spin.js", "linger"),
				args:     []string{"--containment", held, "--idle-timeout", "3s", "--confirm", "off", "--tick-interval", "100ms"},
			})
			r := h.until(func(r *row) bool { return r.Phase == "thinking" && r.Processes > 1 })
			h.ask("pause", r.ID).wants(0).has("paused")
			h.ask("pause", r.ID).wants(1).complains("paused already")
			first := h.inspected(r.ID)
			then := first
			for due := first.Reason.Deadline; !then.At.After(due.Time); then = h.inspected(r.ID) { // until it would have passed
				if rows := h.ps(); len(rows) != 1 || !rows[0].Paused || rows[0].Status != registry.Idle {
					t.Fatalf("%+v", rows)
				}
			}
			if first.Reason.Silence != then.Reason.Silence || first.Tree.Tree.CPU != then.Tree.Tree.CPU {
				t.Errorf("silence %s, then %s; CPU time %s, then %s", first.Reason.Silence, then.Reason.Silence, first.Tree.Tree.CPU, then.Tree.Tree.CPU)
			}
			h.ask("inspect", r.ID).wants(0).has("paused", "cursor-wrap unpause")
			h.ask("unpause", r.ID).wants(0).has("goes on")
			h.ask("unpause", r.ID).complains("not paused").wants(1)
			ended := p.finish().wants(2).says("paused by uid", "goes on")
			for _, msg := range []string{"paused", "unpaused"} {
				if n := len(ended.all(msg)); n != 1 {
					t.Errorf("%d %s records", n, msg)
				}
			}
		})
	}
}

func TestAPausedRunCanBeKilled(t *testing.T) {
	t.Parallel()
	for _, held := range []string{"auto", "tree"} {
		h := newHost(t)
		p := h.start(call{scenario: asleep, args: []string{"--containment", held}})
		r := h.until(working)
		h.ask("pause", r.ID).wants(0)
		h.ask("kill", r.ID).wants(0)
		p.finish().wants(143)
	}
}

// TestAPausedRunWhoseWrapperIsKilled: the guard thaws what it ends.
func TestAPausedRunWhoseWrapperIsKilled(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(call{scenario: asleep})
	r := h.until(working)
	h.ask("pause", r.ID).wants(0)
	p.signal(syscall.SIGKILL)
	<-p.exited
	p.nobodyLeft()
	h.ask("ps").wants(0).has("no agent runs")
	h.ask("gc").wants(0)
	h.nothingLeft()
	h.ask("logs", "--flagged", "--log-dir", p.logs).wants(0).has("killed")
	h.ask("ps", "--all", "--log-dir", p.logs).wants(0).has(r.ID, "failed", "killed")
}

func TestWaitExitsAsTheRunDid(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(call{scenario: lines("init", "user", "linger")})
	r := h.until(func(r *row) bool { return r.Phase == "thinking" })
	h.ask("wait", "--timeout", "50ms", r.ID).wants(1).complains("is not over")
	waiting := h.command("wait", r.ID)
	var out bytes.Buffer
	waiting.Stdout = &out
	before := h.sockets(r.PID)
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	for over := time.Now().Add(patience); h.sockets(r.PID) <= before; { // until it is connected
		if time.Now().After(over) {
			t.Fatal("nobody waits")
		}
	}
	p.signal(syscall.SIGINT)
	p.finish().wants(130)
	_ = waiting.Wait() // its exit code is what is asked
	if code := waiting.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), "signal, exit code 130") {
		t.Errorf("exit code %d, %q", code, &out)
	}
}

// sockets is how many sockets a process has open.
func (h *host) sockets(pid int) (n int) {
	h.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	fds, err := os.ReadDir(dir)
	if err != nil {
		h.Skip("nobody can see who is connected:", err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(dir + fd.Name()); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

func TestTailFollowsToTheEnd(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(call{scenario: lines("init", "user", "say-midturn I shall look.", "tool start a shell 30000 make", "wait-file $DIR/go", "tool done a 0 built", "say All is well.", "result")})
	r := h.until(working)
	h.ask("tail", "--no-follow", "--from-start", r.ID).wants(0).has("I shall look.", "make")
	text, records := h.command("tail", r.ID, "--from-start"), h.command("tail", r.ID, "--json")
	var outs [2]bytes.Buffer
	for i, c := range []*exec.Cmd{text, records} {
		c.Stdout = &outs[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	h.followed(r.ID, 2)
	p.write("go", "")
	p.finish().wants(0)
	for _, c := range []*exec.Cmd{text, records} {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"I shall look.", "make", "exit 0", "All is well.", "success, exit code 0"} {
		if !strings.Contains(outs[0].String(), want) {
			t.Errorf("the text lacks %q: %s", want, &outs[0])
		}
	}
	if got := outs[1].String(); strings.Contains(got, `"text":"I shall look."`) || !strings.Contains(got, "All is well.") || !strings.Contains(got, `"msg":"run_end"`) {
		t.Errorf("from now on: %s", got)
	}
	for line := range strings.Lines(outs[1].String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a record: %s", line)
		}
	}
}

// followed waits until that many follow the log: each has it open.
func (h *host) followed(id string, most int) {
	h.Helper()
	r := h.ps(id)[0]
	for over := time.Now().Add(patience); time.Now().Before(over); {
		open := 0
		fds, err := os.ReadDir("/proc/" + strconv.Itoa(r.PID) + "/fd")
		if err != nil {
			h.Skip("nobody can see who follows:", err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/" + strconv.Itoa(r.PID) + "/fd/" + fd.Name()); err == nil && to == r.Log {
				open++
			}
		}
		if open > most { // and the log itself
			return
		}
	}
	h.Fatal("nobody follows")
}

func TestIDs(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const session = "5e551017-aaaa-4000-8000-000000000000"
	p := h.start(call{scenario: asleep, env: []string{"FAKEAGENT_SESSION=" + session}})
	r := h.until(working)
	for _, id := range []string{r.ID, r.ID[:4], session, session[:9]} {
		if rows := h.ps(id); len(rows) != 1 || rows[0].ID != r.ID {
			t.Errorf("%s: %+v", id, rows)
		}
	}
	for _, c := range []string{"inspect", "kill", "pause", "unpause", "wait", "tail"} {
		h.ask(c).wants(64).complains("wants the id of a run", "cursor-wrap ps")
		h.ask(c, "nobody").wants(1).complains("nobody", "cursor-wrap ps")
	}
	h.run(exec.Command(built.wrap, "__complete", "kill", "--state-dir", h.state, "")).wants(0).has(r.ID, session)
	h.ask("ps", "extra", r.ID).wants(1).complains("extra")
	h.ask("kill", r.ID).wants(0)
	p.finish().wants(143)
	h.ask("inspect", r.ID).wants(1).complains("cursor-wrap logs")
	h.ask("wait", r.ID, "--log-dir", p.logs).wants(143).has("signal, exit code 143")
	h.ask("tail", r.ID[:5], "--log-dir", p.logs).wants(0).has("sleep 1000", "signal, exit code 143")
	h.ask("replay", r.ID, "--log-dir", p.logs).wants(0).has("end")
	h.ask("ps", "-a", "--log-dir", p.logs).wants(0).has(r.ID, "failed", "exit code 143")
}

// TestAWrapperThatDoesNotAnswer: it is told apart, and --now ends it.
func TestAWrapperThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(call{scenario: asleep})
	r := h.until(working)
	p.signal(syscall.SIGSTOP)
	if rows := h.ps(); len(rows) != 1 || rows[0].Error == "" {
		t.Errorf("%+v", rows)
	}
	h.ask("inspect", r.ID).wants(1).complains("does not answer", strconv.Itoa(r.PID))
	h.ask("kill", "--now", r.ID).wants(0).has("killed")
	<-p.exited
	p.nobodyLeft()
	h.nothingLeft()
}

// TestAnotherUser can neither see nor end a run.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	asRoot(t)
	h := newHost(t)
	p := h.start(call{scenario: asleep})
	r := h.until(working)
	for _, args := range [][]string{{"ps"}, {"ps", r.ID}, {"inspect", r.ID}, {"kill", "--now", r.ID}, {"tail", r.ID}} {
		c := h.command(args...)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		c.Path, c.Dir = h.readable(), "/"
		if a := h.run(c); a.code == 0 || strings.Contains(a.out, "sleep 1000") {
			t.Errorf("%v: exit code %d, %s", args, a.code, a.out)
		}
	}
	if rows := h.ps(); len(rows) != 1 {
		t.Errorf("%+v", rows)
	}
	h.ask("kill", r.ID).wants(0)
	p.finish().wants(143)
}

// readable is the program where another user can run it; the folders above the
// state are open, too, so that what refuses is ours.
func (h *host) readable() string {
	h.Helper()
	for dir := h.state; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if dir != h.state {
			_ = os.Chmod(dir, 0o755) // our own test's folder
		}
	}
	path := filepath.Join(filepath.Dir(h.state), "cursor-wrap")
	if err := exec.Command("cp", built.wrap, path).Run(); err != nil { // by somebody who has it open no longer than that
		h.Fatal(err)
	}
	return path
}

// TestManyRunsAtOnceDoNotMeet: each is found, each ends alone.
func TestManyRunsAtOnceDoNotMeet(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	var all []*program
	for range 10 {
		all = append(all, h.start(call{scenario: lines("init", "user", "wait-file $DIR/go", "say Done.", "result")}))
	}
	for over := time.Now().Add(patience); len(h.ps()) < len(all) && time.Now().Before(over); {
	}
	seen := map[string]bool{}
	for _, r := range h.ps() {
		seen[r.ID] = true
	}
	if len(seen) != len(all) {
		t.Errorf("%d ids for %d runs", len(seen), len(all))
	}
	for _, p := range all {
		p.write("go", "")
		p.finish().wants(0)
	}
	h.nothingLeft()
}

func TestPSOnATerminal(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.ask("ps").wants(0).has("no agent runs")
	h.ask("ps", "--interval", "soon").wants(64)
	p := h.start(call{scenario: asleep})
	r := h.until(working)
	watching := h.command("ps", "--watch", "--interval", "100ms")
	out, err := watching.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for s := bufio.NewScanner(out); pictures < 3 && s.Scan(); {
		if strings.HasPrefix(s.Text(), r.ID) {
			pictures++
		}
	}
	if err := watching.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_, _ = bufio.NewReader(out).ReadString(0) // to its end
	if err := watching.Wait(); err != nil || pictures != 3 {
		t.Errorf("%v after %d pictures", err, pictures)
	}
	h.ask("kill", r.ID).wants(0)
	p.finish().wants(143)
}

// TestARunThatNobodyReads: no deadline will ever end it, so ps has to say so.
func TestARunThatNobodyReads(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(call{scenario: lines("init", "user", "fill 8M", "say Done.", "result")})
	r := h.until(func(r *row) bool { return r.Held })
	if r.Status != registry.Idle {
		t.Errorf("it is %s", r.Status)
	}
	h.ask("ps").wants(0).has("held")
	h.ask("inspect", r.ID).wants(0).has("nobody has read our stdout")
	p.finish().wants(0)
	if out := h.ask("ps", "--json").wants(0).out; out != "[]\n" {
		t.Errorf("nobody runs: %q", out)
	}
}

// TestPastItsDeadline: inspect says why it is waited for, and for how long.
func TestPastItsDeadline(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(call{
		scenario: lines("init", "user", "spawn busy 60s node spin.js", "linger"),
		args:     []string{"--idle-timeout", "1s", "--tick-interval", "200ms", "--confirm-window", "600ms"},
	})
	r := h.until(func(r *row) bool { return r.Left < 0 && r.Status == registry.Working })
	h.ask("inspect", r.ID).wants(0).has("waited for, at most", "at work:")
	h.ask("kill", r.ID).wants(0).has("ended by uid " + strconv.Itoa(os.Getuid()) + " with cursor-wrap kill")
	ended := p.finish().wants(143).end()
	if !strings.Contains(ended.Message, "with cursor-wrap kill") {
		t.Errorf("the log says %q", ended.Message)
	}
}
