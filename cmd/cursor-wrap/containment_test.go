package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// prompt is how soon everybody must be gone after a sudden death.
const prompt = 2 * time.Second

// holder is an agent each process of whose tree holds a FIFO, so that its end
// tells that all of them are gone. What the program's caller has open does not
// do: the guard's own descriptors take its place.
const holder = `#!/bin/sh
exec 9>"$HOLD" || exit 97
unset HOLD
exec "$SHIM_AGENT" "$@"
`

// contained is a program under test and its agent's tree.
type contained struct {
	*program
	tree *os.File // at its end when every process of the tree is gone
}

// contain starts the program; the agent is a script where text is given.
func contain(t *testing.T, c call, text ...string) *contained {
	t.Helper()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "hold")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	c.agent = filepath.Join(dir, "agent")
	script := holder
	if len(text) > 0 {
		script = "#!/bin/sh\nexec 9>\"$HOLD\" || exit 97\n" + strings.Join(text, "\n") + "\n"
	}
	syscall.ForkLock.RLock() // or somebody's fork holds it open, and it cannot be executed
	err = os.WriteFile(c.agent, []byte(script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "HOLD="+fifo)
	return &contained{program: start(t, c), tree: tree}
}

// empty fails unless the tree is gone by then.
func (c *contained) empty(by time.Time) {
	c.Helper()
	_ = c.tree.SetReadDeadline(by)
	if _, err := io.Copy(io.Discard, c.tree); err != nil {
		c.Errorf("somebody of the tree lives: %v; stderr %.1000s", err, &c.stderr)
	}
}

// over waits for the program's own end, before which the tree's must be.
func (c *contained) over(code int) *ran {
	c.Helper()
	rest, err := io.ReadAll(c.out)
	if c.read = append(c.read, rest...); err != nil {
		c.Fatalf("read stdout: %v", err)
	}
	select {
	case <-c.exited:
	case <-time.After(patience):
		c.Fatal("the program does not end")
	}
	c.empty(time.Now().Add(100 * time.Millisecond))
	return c.exit().wants(code)
}

// spawned is the record of the agent's start.
type spawned struct {
	PID         int
	Guard       int `json:"guard_pid"`
	Containment string
}

func (s spawned) leaf() string {
	path, _ := strings.CutPrefix(s.Containment, "cgroup ")
	return path
}

// spawn waits for that record.
func (c *contained) spawn() (s spawned) {
	c.Helper()
	c.awaitLog("spawn", func(log []byte) bool {
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, `"msg":"spawn"`) && json.Unmarshal([]byte(line), &s) == nil {
				return true
			}
		}
		return false
	})
	return s
}

// torn is the record of the end.
type torn struct {
	Exit, By string
	TookMS   *int64 `json:"took_ms"`
	Proof    bool
	Ended    []member
	Left     []member
	Spared   []member
}

type member struct {
	PID     int
	Start   uint64
	Found   string
	Command string
	Signal  string
	How     string
	Error   string
}

func (r *ran) teardown() (td torn) {
	r.Helper()
	r.one("teardown", &td)
	if td.TookMS == nil || td.Ended == nil || td.Left == nil || td.Spared == nil {
		r.Errorf("the teardown record lacks something: %s", r.all("teardown")[0].line)
	}
	return td
}

func lives(pid int) bool { return syscall.Kill(pid, 0) == nil && commandLine(pid) != "" }

// gone polls for the end of somebody who is no child of ours.
func (c *contained) gone(what string, by time.Time, is func() bool) {
	c.Helper()
	for !is() {
		if time.Now().After(by) {
			c.Errorf("not in time: %s", what)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// crowd is a tree of every kind of child that the scripted agent has.
var crowd = []string{"init", "user", "spawn plain 60s a", "spawn setsid 60s b", "spawn daemon 60s c",
	"spawn deaf 60s d", "spawn stopped 60s e", "spawn launcher 60s f", "touch $DIR/there"}

func (p *program) crowd() map[int]string {
	p.Helper()
	kinds := map[int]string{}
	for line := range strings.Lines(p.file("pids")) {
		var kind string
		var pid int
		if _, err := fmt.Sscan(line, &kind, &pid); err != nil {
			p.Fatal(err)
		}
		kinds[pid] = kind
	}
	return kinds
}

func TestEveryEndingLeavesNobody(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		then string
		args string
		sig  syscall.Signal
		code int
	}{
		"a result":       {then: "result", code: 0},
		"it lingers":     {then: "result\nlinger", args: "--exit-grace=100ms", code: 0},
		"no result":      {then: "exit 1", code: 1},
		"a hang":         {then: "linger", args: "--idle-timeout=300ms", code: 2},
		"its time is up": {then: "linger", args: "--max-duration=600ms", code: 124},
		"INT":            {then: "linger", sig: syscall.SIGINT, code: 130},
		"TERM":           {then: "linger", sig: syscall.SIGTERM, code: 143},
		"HUP":            {then: "linger", sig: syscall.SIGHUP, code: 129},
		"QUIT":           {then: "linger", sig: syscall.SIGQUIT, code: 131},
	} {
		for _, containment := range []string{"tree", "auto"} {
			t.Run(name+" "+containment, func(t *testing.T) {
				t.Parallel()
				c := contain(t, call{scenario: lines(append(crowd, row.then)...),
					args: append(args("--kill-grace=200ms --containment="+containment), args(row.args)...)})
				c.awaitFile("there")
				if row.sig != 0 {
					c.signal(row.sig)
				}
				r := c.over(row.code)
				td := r.teardown()
				if td.By != "guard" || !td.Proof || len(td.Left)+len(td.Spared) != 0 {
					t.Errorf("%+v", td)
				}
				kinds := r.crowd()
				for _, m := range td.Ended {
					want := "child"
					if kinds[m.PID] == "daemon" || row.code < 2 && row.args == "" { // the agent has left before them
						want = "adopted"
					}
					if kind, ok := kinds[m.PID]; ok && m.Found != want && kind != "launched" && kind != "stopped" || m.Start == 0 || m.Signal == "" || m.Command == "" {
						t.Errorf("%s: %+v", kind, m)
					}
					delete(kinds, m.PID)
				}
				for pid, kind := range kinds {
					if kind != "stopped" { // hung up by the kernel when the agent leaves
						t.Errorf("%s %d is not in the record %+v", kind, pid, td.Ended)
					}
				}
			})
		}
	}
}

func TestKilledWrapperLeavesNobody(t *testing.T) {
	t.Parallel()
	for _, containment := range []string{"tree", "auto", "auto --stderr=pty"} {
		for name, after := range map[string]time.Duration{"KILL": -1, "TERM, then KILL": 30 * time.Millisecond} {
			t.Run(name+" "+containment, func(t *testing.T) {
				t.Parallel()
				c := contain(t, call{scenario: lines(append(crowd, "linger")...), args: args("--containment=" + containment)})
				c.awaitFile("there")
				s := c.spawn()
				if after >= 0 {
					c.signal(syscall.SIGTERM)
					time.Sleep(after) // as the ending's name says
				}
				c.signal(syscall.SIGKILL)
				by := time.Now().Add(prompt)
				c.empty(by)
				c.gone("the guard has left", by, func() bool { return !lives(s.Guard) })
				if dir := s.leaf(); dir != "" {
					c.gone("the cgroup is removed", by, func() bool { _, err := os.Stat(dir); return err != nil })
				}
			})
		}
	}
}

func TestKilledGuardLeavesNobody(t *testing.T) {
	t.Parallel()
	c := contain(t, call{scenario: lines(append(crowd, "linger")...)})
	c.awaitFile("there")
	if err := syscall.Kill(c.spawn().Guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.empty(time.Now().Add(prompt))
	r := c.over(1)
	if td := r.teardown(); td.By != "front" || !td.Proof || len(td.Left) != 0 || td.Exit != "killed by SIGKILL" {
		t.Errorf("%+v", td)
	}
	if res := r.result(); res.Subtype != "no_result" || res.Wrapper.Agent.Signal != "SIGKILL" {
		t.Errorf("%+v", res)
	}
}

func TestKilledAgentLeavesNobody(t *testing.T) {
	t.Parallel()
	c := contain(t, call{scenario: lines(append(crowd, "linger")...), args: args("--kill-grace=1h")})
	c.awaitFile("there")
	if err := syscall.Kill(c.spawn().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.empty(time.Now().Add(prompt))
	c.over(1)
}

// A daemon that holds the stdout of an agent that was killed costs a second's
// wait for a late result, and its grace comes on top of it.
func TestKilledAgentWhoseDaemonHoldsStdout(t *testing.T) {
	t.Parallel()
	c := contain(t, call{}, `(trap '' TERM; exec setsid sleep 60) &`, `: >"$DIR/there"`, `wait`)
	c.awaitFile("there")
	if err := syscall.Kill(c.spawn().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.empty(time.Now().Add(prompt))
	c.over(1)
}

func TestSparedProcessesAreNamedAndLive(t *testing.T) {
	t.Parallel()
	c := contain(t, call{scenario: lines("init", "user", "spawn setsid 60s node index.js worker-server", "spawn daemon 60s node mcp.js", "say Done.", "result"),
		args: args("--spare=worker-server --spare nothing-like-it")})
	s := c.spawn()
	<-c.exited
	living := map[string]bool{}
	for pid, kind := range c.crowd() {
		living[kind] = lives(pid)
	}
	if !living["setsid"] || living["daemon"] {
		t.Errorf("alive behind the run: %v, want the spared one alone", living)
	}
	r := c.finish().wants(0) // and here it ends
	r.result()
	td := r.teardown()
	if td.Proof || len(td.Spared) != 1 || !strings.Contains(td.Spared[0].Command, "worker-server") || td.Spared[0].Signal != "" || len(td.Ended) != 1 {
		t.Fatalf("%+v", td)
	}
	if _, err := os.Stat(s.leaf()); s.leaf() != "" && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup is there: %v", err)
	}
}

func TestLimitsEndTheRun(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]struct {
		what  string
		limit float64
	}{
		"--max-procs=3":     {"procs", 3},
		"--max-memory=1MiB": {"memory", 1 << 20},
	} {
		t.Run(want.what, func(t *testing.T) {
			t.Parallel()
			c := contain(t, call{scenario: lines(append(crowd, "linger")...), args: args(brief + " " + flag)})
			r := c.over(1).says("limit")
			var stdout struct {
				Subtype string
				Wrapper struct{ Reason map[string]any }
			}
			all := strings.Split(strings.TrimSpace(string(r.stdout)), "\n")
			if err := json.Unmarshal([]byte(all[len(all)-1]), &stdout); err != nil {
				t.Fatal(err)
			}
			var record map[string]any
			r.one("limit_exceeded", &record)
			for _, reason := range []map[string]any{stdout.Wrapper.Reason, record} {
				measured, _ := reason["measured"].(float64)
				if reason["kind"] != "limit" || reason["what"] != want.what || reason["limit"] != want.limit || measured <= 0 {
					t.Errorf("%v", reason)
				}
			}
			if e := r.end(); e.Outcome != "error" || stdout.Subtype != "no_result" {
				t.Errorf("%+v, result %s", e, stdout.Subtype)
			}
		})
	}
}

func TestLimitsThatAreNotReached(t *testing.T) {
	t.Parallel()
	c := contain(t, call{scenario: lines("init", "user", "spawn plain 60s a", "sleep 1500ms", "result"), args: args("--max-procs=3 --max-memory=8GiB")})
	r := c.over(0)
	if n := len(r.all("limit_exceeded")); n != 0 {
		t.Errorf("%d limits exceeded", n)
	}
}
