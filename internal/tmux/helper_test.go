package tmux

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/process"
	"cursor-wrap/internal/registry"
)

// patience is how long a fact may take; nothing waits for it to pass.
const patience = 40 * time.Second

// markEnv is in the environment of whatever runs in a test's server.
const markEnv = "TMUX_TEST_MARK"

// rig is a tmux server of a test alone, and a state directory.
type rig struct {
	*testing.T
	*Server
	dir  string
	mark string
	now  time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	short, err := os.MkdirTemp("", "cw") // the names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	r := &rig{T: t, Server: New(filepath.Join(short, "s")), dir: t.TempDir(), mark: markEnv + "=" + rand.Text(), now: time.Unix(1e9, 0)}
	cmd := exec.Command("tmux", slices.Concat(r.args, []string{"-f", "/dev/null", "start-server", ";", "set-option", "-g", "exit-empty", "off",
		";", "set-option", "-g", "default-shell", "/bin/sh"})...)
	cmd.Env = append(os.Environ(), r.mark, "PS1=$ ", "HOME="+r.dir, "SHELL=/bin/sh", "ENV=", "LC_ALL=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(r.end)
	return r
}

// end closes the server, and finds nobody left of it.
func (r *rig) end() {
	if _, err := r.ask(context.Background(), "kill-server"); err != nil {
		r.Error(err)
	}
	r.until("nobody of the server is left", func() bool { return len(r.marked()) == 0 })
}

// marked are the processes that were started in the server, where it can be
// seen.
func (r *rig) marked() (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && bytes.Contains(env, []byte(r.mark)) {
			pids = append(pids, f)
		}
	}
	return pids
}

func (r *rig) until(what string, fact func() bool) {
	r.Helper()
	for late := time.Now().Add(patience); !fact(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			r.Fatalf("not in time: %s", what)
		}
	}
}

// tmux has the server do something.
func (r *rig) tmux(words ...string) string {
	r.Helper()
	out, err := r.ask(r.Context(), words...)
	if err != nil {
		r.Fatal(err)
	}
	return strings.TrimRight(out, "\n ")
}

// session makes a session, of which the pane runs the words.
func (r *rig) session(name string, words ...string) {
	r.Helper()
	r.tmux(append([]string{"new-session", "-d", "-x", "80", "-y", "24", "-s", name}, words...)...)
	if len(words) == 1 && strings.HasPrefix(words[0], "sleep ") {
		r.runs(name, 1) // the shell that tmux starts for it has become that
	}
}

// types sends a line to the session.
func (r *rig) types(name, line string) {
	r.Helper()
	r.tmux("send-keys", "-t", r.pane(name), "-l", line, then, "send-keys", "-t", r.pane(name), "Enter")
}

func (r *rig) pane(name string) string {
	r.Helper()
	all, err := r.Sessions(r.Context())
	s := Named(all, name)
	if err != nil || s == nil {
		r.Fatalf("no session %q: %v", name, err)
	}
	return s.Pane
}

// shows waits until the screen has the text.
func (r *rig) shows(name, text string) {
	r.Helper()
	pane := r.pane(name)
	r.until("the screen shows "+text, func() bool { return strings.Contains(r.tmux("capture-pane", "-p", "-t", pane), text) })
}

// runs waits until so many processes run in the pane.
func (r *rig) runs(name string, n int) {
	r.Helper()
	r.until("what runs", func() bool { return r.running(name) == n })
}

// interrupts ends what runs in the pane. A command that its shell has not yet
// put into the foreground does not get the key.
func (r *rig) interrupts(name string) {
	r.Helper()
	r.until("what was interrupted", func() bool {
		if r.running(name) == 0 {
			return true
		}
		r.tmux("send-keys", "-t", r.pane(name), "C-c")
		return false
	})
}

// running is how many processes run in the pane; -1 unknown.
func (r *rig) running(name string) int {
	all, _ := r.Sessions(r.Context())
	p, err := process.Find(Named(all, name).PanePID)
	if err != nil {
		return -1
	}
	now, err := running(p)
	if err != nil {
		return -1
	}
	return len(now)
}

func (r *rig) exists(path string) {
	r.Helper()
	r.until(path+" is there", func() bool { _, err := os.Stat(path); return err == nil })
}

// quiet is a pause in which nothing happens.
func quiet(context.Context, time.Duration) {}

// looks is the session's look, a second after the last one.
func (r *rig) looks(name string, o Options) Look {
	r.Helper()
	r.now = r.now.Add(time.Second)
	o.At = r.now
	if o.Pause == nil {
		o.Pause = quiet
	}
	l, err := r.Look(r.Context(), r.dir, name, o)
	if err != nil {
		r.Fatal(err)
	}
	return l
}

// is checks a look against the table.
func (l Look) is(t *testing.T, state registry.State, why string, exit int) {
	t.Helper()
	got := -1
	if l.Exit != nil {
		got = *l.Exit
	}
	if l.State != state || !strings.Contains(l.Why, why) || got != exit {
		t.Errorf("%s: %s, because %s, exit %d; it should be %s, because %s, exit %d; note %q", l.Name, l.State, l.Why, got, state, why, exit, l.Note)
	}
}

// unknown is the exit status that is not known.
const unknown = -1

// The words of the table.
const (
	closed    = "session is closed"
	dead      = "shell is dead"
	childless = "no child"
	changed   = "output has changed"
	unchanged = "output has not changed"
)
