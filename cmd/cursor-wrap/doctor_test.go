package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/process"
)

// examined is what doctor --json says.
type examined struct {
	*ran
	Status process.Status
	Checks []process.Finding
}

// patient is a home folder in which nothing is missing but what the machine
// lacks, and the PATH that goes with it.
func patient(t *testing.T) (home, path string) {
	t.Helper()
	home = shortDir(t)
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	slug := strings.Trim(notInSlug.ReplaceAllString(real, "-"), "-")
	for name, text := range map[string]string{
		".config/cursor/auth.json":                         `{"accessToken":"hidden-token"}`,
		".cursor/projects/" + slug + "/.workspace-trusted": `{}`,
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tmux := script(t, "tmux", "echo tmux 3.9")
	return home, bin(t, map[string]string{"cursor-agent": built.stub, "tmux": tmux}) + ":/usr/bin:/bin"
}

// shortDir is a folder whose path leaves room for that of a socket, which a
// test's own, with its name in it, may not.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// script is a program of a few lines.
func script(t *testing.T, name string, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	syscall.ForkLock.RLock() // or somebody's fork holds it open, and it cannot be executed
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// examine runs doctor, in the home folder as the workspace.
func examine(t *testing.T, home string, env []string, via []string, words ...string) *examined {
	t.Helper()
	if via == nil {
		via = []string{"/usr/bin/env"}
	}
	e := &examined{}
	e.ran = run1(t, call{bare: true, prompt: "-", args: append([]string{"doctor", "--json", "--workspace", home}, words...),
		env: append([]string{"HOME=" + home, "XDG_CONFIG_HOME="}, env...), via: via})
	if err := json.Unmarshal(e.stdout, e); err != nil {
		t.Fatalf("%v: %.500q; stderr %s", err, e.stdout, e.said)
	}
	failed := slices.ContainsFunc(e.Checks, func(f process.Finding) bool { return f.Status == process.Broken })
	if failed != (e.Status == process.Broken) || failed != (e.code == 1) || e.code > 1 {
		t.Errorf("%s, exit code %d: %+v", e.Status, e.code, e.Checks)
	}
	if _, err := os.Stat(filepath.Join(e.dir, "argv")); err == nil {
		t.Error("the agent was started")
	}
	return e
}

// has checks one of the findings, and that a bad one comes with advice.
func (e *examined) has(name string, status process.Status, parts ...string) *examined {
	e.Helper()
	n := slices.IndexFunc(e.Checks, func(f process.Finding) bool { return f.Name == name })
	if n < 0 {
		e.Errorf("no check is called %s: %+v", name, e.Checks)
		return e
	}
	f := e.Checks[n]
	if f.Status != status || f.Found == "" || status == process.Broken && f.Advice == "" {
		e.Errorf("%+v, want %s", f, status)
	}
	for _, part := range parts {
		if !strings.Contains(f.Found+"\n"+f.Advice, part) {
			e.Errorf("%s lacks %q: %+v", name, part, f)
		}
	}
	return e
}

// files are all that is in a folder.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDoctorWhereAllIsWell(t *testing.T) {
	t.Parallel()
	home, path := patient(t)
	before := files(t, home)
	e := examine(t, home, []string{"PATH=" + path, "CURSOR_API_KEY=hidden-key", "CURSOR_WRAP_AUTH_TOKEN=hidden-too"}, nil).wantsAll(0)
	for _, name := range []string{"cursor-wrap", "agent", "version", "login", "trust", "logs", "state", "tmux"} {
		e.has(name, process.Fine)
	}
	e.has("agent", process.Fine, "cursor-agent", built.stub).has("version", process.Fine, "2026.01.28-fd13201").
		has("login", process.Fine, "CURSOR_API_KEY", "auth.json").has("tmux", process.Fine, "3.9")
	if strings.Contains(string(e.stdout)+e.said, "hidden") {
		t.Errorf("a secret is shown: %s", e.stdout)
	}
	if after := files(t, home); !slices.Equal(before, after) {
		t.Errorf("it left %q, there was %q", after, before)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*/cursor-wrap.*." + strconv.Itoa(e.cmd.Process.Pid) + ".*"); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

// wantsAll checks the exit code.
func (e *examined) wantsAll(code int) *examined {
	e.Helper()
	if e.code != code {
		e.Errorf("exit code %d, want %d: %s %s", e.code, code, e.stdout, e.said)
	}
	return e
}

func TestDoctorTable(t *testing.T) {
	t.Parallel()
	home, path := patient(t)
	r := run1(t, call{bare: true, prompt: "-", args: []string{"doctor"}, env: []string{"HOME=" + home, "PATH=" + path}}).wants(0)
	for line := range strings.Lines(string(r.stdout)) {
		known := strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "warn ") || strings.HasPrefix(line, "fail ")
		if !known && !strings.HasPrefix(line, "     ") && line != "\n" && !strings.Contains(line, " 0 failed") {
			t.Errorf("%q", line)
		}
	}
	if strings.Contains(string(r.stdout), "\x1b") {
		t.Errorf("%q", r.stdout)
	}
	run1(t, call{bare: true, prompt: "-", args: []string{"doctor", "me"}}).wants(64)
}

func TestDoctorLooksForTheAgent(t *testing.T) {
	t.Parallel()
	home, path := patient(t)
	other := bin(t, map[string]string{"agent": built.stranger})
	examine(t, home, []string{"PATH=" + other}, nil).wantsAll(1).has("agent", process.Broken, "passed over", other, "--agent-bin").has("version", process.Doubtful)
	both := bin(t, map[string]string{"cursor-agent": built.wrap}) + ":" + path
	examine(t, home, []string{"PATH=" + both}, nil).wantsAll(0).has("agent", process.Fine, "passed over", "itself")
	examine(t, home, []string{"PATH=" + path}, nil, "--agent-bin", "/nowhere").wantsAll(1).has("agent", process.Broken, "/nowhere")
	examine(t, home, []string{"PATH=" + path, "CURSOR_WRAP_AGENT_BIN=" + built.silent}, nil).wantsAll(0).has("agent", process.Fine, built.silent)
}

func TestDoctorAsksTheAgentForItsVersion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lines  []string
		status process.Status
		says   string
	}{
		"hangs":                    {[]string{"sleep 300 &", "trap '' TERM INT HUP", "while :; do sleep 60; done"}, process.Broken, "no answer within 10s"},
		"fails":                    {[]string{"echo broken", "exit 3"}, process.Broken, "exit status 3"},
		"says something else":      {[]string{`printf 'v1 \033[2J\377\n'`}, process.Doubtful, "v1"},
		"says nothing":             {[]string{":"}, process.Doubtful, `""`},
		"does not stop talking":    {[]string{"while :; do echo garbage || exit 1; done"}, process.Broken, "garbage"},
		"leaves somebody behind":   {[]string{"sleep 300 &", "echo 2026.01.28-fd13201"}, process.Fine, "2026.01.28-fd13201"},
		"is killed before it says": {[]string{"kill -9 $$"}, process.Broken, "killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, path := patient(t)
			code := 0
			if tt.status == process.Broken {
				code = 1
			}
			agent := script(t, "agent", append([]string{`[ "$1" = --version ] || : >"$SHIM_DIR/argv"`}, tt.lines...)...)
			began := time.Now()
			e := examine(t, home, []string{"PATH=" + path}, nil, "--agent-bin", agent).wantsAll(code).has("version", tt.status, tt.says)
			if took := time.Since(began); took > patience/2+versionTimeout {
				t.Errorf("it took %s", took)
			}
			if strings.Contains(string(e.stdout), "\x1b") || strings.Contains(string(e.stdout), "\xff") {
				t.Errorf("%q", e.stdout)
			}
		})
	}
}

func TestDoctorSeesLoginAndTrust(t *testing.T) {
	t.Parallel()
	home, path := patient(t)
	if err := os.RemoveAll(filepath.Join(home, ".config")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(home, ".cursor")); err != nil {
		t.Fatal(err)
	}
	examine(t, home, []string{"PATH=" + path}, nil).wantsAll(0).has("login", process.Doubtful, "CURSOR_API_KEY").has("trust", process.Doubtful, "--trust")
	examine(t, home, []string{"PATH=" + path, "CURSOR_API_KEY="}, nil).has("login", process.Doubtful, "empty")
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	write(".cursor/cli-config.json", `{"authInfo":{}}`)
	write(".cursor/projects/short/.workspace-trusted", `{"workspacePath":"/elsewhere"}`)
	examine(t, home, []string{"PATH=" + path}, nil).has("login", process.Doubtful).has("trust", process.Doubtful)
	write(".cursor/cli-config.json", `{"authInfo":{"email":"hidden"}}`)
	write(".cursor/projects/short/.workspace-trusted", `{"workspacePath":"`+real+`"}`)
	examine(t, home, []string{"PATH=" + path}, nil).has("login", process.Fine, "cli-config.json").has("trust", process.Fine, "short")
	examine(t, home, []string{"PATH=" + path}, nil, "--workspace", "/nowhere/at/all").wantsAll(1).has("trust", process.Broken, "/nowhere")
}

func TestDoctorLooksAtTheFolders(t *testing.T) {
	t.Parallel()
	home, path := patient(t)
	env := []string{"PATH=" + path}
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("logs below a file", func(t *testing.T) {
		t.Parallel()
		examine(t, home, env, nil, "--log-dir", file+"/logs").wantsAll(1).has("logs", process.Broken, "--log-dir").has("state", process.Fine)
		examine(t, home, env, nil, "--log-dir", file).wantsAll(1).has("logs", process.Broken)
	})
	t.Run("flagged logs", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		putLog(t, folder, 1, "aa", "s", "error", true)
		putLog(t, folder, 2, "bb", "s", "success", false)
		examine(t, home, env, nil, "--log-dir", folder).wantsAll(0).has("logs", process.Fine, "2 logs, 1 flagged", "logs --flagged")
	})
	t.Run("no home", func(t *testing.T) {
		t.Parallel()
		without := []string{"/usr/bin/env", "-u", "HOME"}
		examine(t, home, env, without).wantsAll(1).has("logs", process.Broken, "HOME").has("state", process.Doubtful, "HOME")
		examine(t, home, env, without, "--log-dir", t.TempDir()).wantsAll(0).has("logs", process.Fine)
	})
	t.Run("a state folder for all", func(t *testing.T) {
		t.Parallel()
		open, path := patient(t)
		state := filepath.Join(open, ".cursor-wrap", "run")
		if err := os.MkdirAll(state, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(state, 0o755); err != nil {
			t.Fatal(err)
		}
		examine(t, open, []string{"PATH=" + path}, nil).wantsAll(0).has("state", process.Doubtful, "open to others", "chmod 700")
	})
	t.Run("no state folder can be made", func(t *testing.T) {
		t.Parallel()
		barred, path := patient(t)
		if err := os.WriteFile(filepath.Join(barred, ".cursor-wrap"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		examine(t, barred, []string{"PATH=" + path}, nil, "--log-dir", t.TempDir()).wantsAll(0).has("logs", process.Fine).has("state", process.Doubtful, "not a directory", "ps")
	})
	t.Run("a path that is too long for a socket", func(t *testing.T) {
		t.Parallel()
		long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
		if err := os.Mkdir(long, 0o700); err != nil {
			t.Fatal(err)
		}
		examine(t, long, env, nil).wantsAll(0).has("state", process.Fine, "too long")
		if left := files(t, long); len(left) != 1 {
			t.Errorf("it left %q", left)
		}
	})
	t.Run("no tmux", func(t *testing.T) {
		t.Parallel()
		only := bin(t, map[string]string{"cursor-agent": built.stub})
		examine(t, home, []string{"PATH=" + only}, nil).wantsAll(0).has("tmux", process.Doubtful, "start")
	})
}

// Root may write everywhere, so somebody else has to try.
func TestDoctorAsSomebodyElse(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become nobody")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("no setpriv to become nobody with")
	}
	nobody := []string{setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"}
	home, path := patient(t)
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	before := files(t, home)
	examine(t, home, []string{"PATH=" + path}, nobody).wantsAll(1).
		has("logs", process.Broken, "permission denied", "--log-dir").has("state", process.Doubtful, "permission denied", "ps").
		has("login", process.Doubtful, "permission denied")
	if after := files(t, home); !slices.Equal(before, after) {
		t.Errorf("it left %q, there was %q", after, before)
	}
}
