package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/display"
	"cursor-wrap/internal/process"
)

// agentProbes look at the agent without starting a run of it.
type agentProbes struct {
	*options
	ctx  context.Context
	path string // that was found
}

// binary finds the agent as a run does, and has as long for it as for one
// stranger on the way.
func (a *agentProbes) binary() process.Finding {
	ctx, cancel := context.WithTimeout(a.ctx, versionTimeout)
	defer cancel()
	path := os.Getenv("PATH")
	var file string
	var looked []string
	var err error
	if a.agentBin != "" {
		file, err = findAgent(ctx, a.agentBin, path)
	} else {
		self, _ := selfInfo() // without it a name that leads to us is taken, as by a run
		if file, looked = searchAgent(ctx, path, self); file == "" {
			err = noAgent(looked, path)
		}
	}
	if err != nil {
		msg, advice := splitAdvice(err.Error())
		return process.Finding{Status: process.Broken, Found: msg, Advice: advice}
	}
	a.path = file
	f := process.Finding{Status: process.Fine, Found: file}
	if to, err := filepath.EvalSymlinks(file); err == nil && to != file {
		f.Found += " -> " + to
	}
	if len(looked) > 0 {
		f.Found += "; passed over " + strings.Join(looked, ", ")
	}
	return f
}

// splitAdvice takes what to try from the end of a message.
func splitAdvice(msg string) (said, advice string) {
	i := strings.LastIndex(msg, "; ")
	if i < 0 {
		return msg, ""
	}
	return msg[:i], msg[i+2:]
}

// version asks the agent which one it is.
func (a *agentProbes) version() process.Finding {
	if a.path == "" {
		return process.Finding{Status: process.Doubtful, Found: "no agent to ask"}
	}
	out, err := askVersion(a.ctx, a.path, "--version")
	first, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	said := display.Cut(display.Line(string(first), " "), 60, "...")
	switch {
	case cursorVersion.Match(out):
		return process.Finding{Status: process.Fine, Found: said}
	case err != nil:
		return process.Finding{Status: process.Broken, Found: strings.TrimSuffix(fmt.Sprintf("--version: %v: %s", err, said), ": "),
			Advice: "run " + a.path + " --version by hand; install the agent again, or name another one with --agent-bin"}
	}
	return process.Finding{Status: process.Doubtful, Found: fmt.Sprintf("--version says %q, which is not how Cursor names its builds", said),
		Advice: "is this Cursor's agent? Name it with --agent-bin if not"}
}

// login looks for what the agent would log in with. Whether that is still good
// only Cursor can say.
func (a *agentProbes) login() process.Finding {
	const unsure = "; whether it is still good only a run can tell"
	var found []string
	for _, name := range []string{"CURSOR_API_KEY", "CURSOR_AUTH_TOKEN", envName("api-key"), envName("auth-token")} {
		switch v, set := os.LookupEnv(name); {
		case v != "":
			found = append(found, name+" is set")
		case set && !strings.HasPrefix(name, envPrefix):
			return process.Finding{Status: process.Doubtful, Found: name + " is set, but empty, which can be worse than not at all", Advice: "unset it, or give it a value"}
		}
	}
	for _, file := range loginFiles() {
		switch is, err := hasLogin(file); {
		case is:
			found = append(found, "there is a login in "+file)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return process.Finding{Status: process.Doubtful, Found: err.Error(), Advice: "make it readable for this user, or set CURSOR_API_KEY"}
		}
	}
	if len(found) > 0 {
		return process.Finding{Status: process.Fine, Found: strings.Join(found, ", ") + unsure}
	}
	where := "none in the environment, nor in the files where Cursor keeps one"
	if runtime.GOOS == "darwin" {
		where += "; the keychain cannot be seen from here"
	}
	return process.Finding{Status: process.Doubtful, Found: where,
		Advice: "log in with " + cmp.Or(a.path, "cursor-agent") + " login, or set CURSOR_API_KEY"}
}

// loginFiles are those in which builds of the agent have kept a login.
func loginFiles() []string {
	var dirs []string
	if dir := os.Getenv("CURSOR_CONFIG_DIR"); dir != "" {
		dirs = append(dirs, dir)
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	home, err := os.UserHomeDir()
	if config == "" && err == nil {
		config = filepath.Join(home, ".config")
	}
	if config != "" {
		dirs = append(dirs, filepath.Join(config, "cursor"))
	}
	if err == nil {
		dirs = append(dirs, filepath.Join(home, ".cursor"))
	}
	var files []string
	for _, dir := range dirs {
		files = append(files, filepath.Join(dir, "auth.json"), filepath.Join(dir, "cli-config.json"))
	}
	return files
}

// hasLogin reports whether a file holds a login, of which nothing is kept.
func hasLogin(file string) (bool, error) {
	b, err := readSmall(file)
	if err != nil {
		return false, err
	}
	var login struct {
		Access  string         `json:"accessToken"`
		Refresh string         `json:"refreshToken"`
		Key     string         `json:"apiKey"`
		Info    map[string]any `json:"authInfo"`
	}
	_ = json.Unmarshal(b, &login) // of another shape it is none
	return login.Access+login.Refresh+login.Key != "" || len(login.Info) > 0, nil
}

// smallMax is how much of a file is read that should be small, in bytes.
const smallMax = 1 << 20

// readSmall reads a regular file and waits for nothing else.
func readSmall(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", file)
	}
	return io.ReadAll(io.LimitReader(f, smallMax))
}

// trust looks whether the agent was told before that it may work here.
func (a *agentProbes) trust() process.Finding {
	const advice = "a run passes --force, which most builds take for trust; where one refuses, run it with --trust once, which the agent remembers"
	dir, err := filepath.Abs(a.workspaceDir())
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return process.Finding{Status: process.Broken, Found: "the workspace: " + err.Error(), Advice: "name another one with --workspace"}
	}
	data := os.Getenv("CURSOR_DATA_DIR")
	if home, err := os.UserHomeDir(); data == "" && err == nil {
		data = filepath.Join(home, ".cursor")
	}
	if mark := trustMark(data, dir); mark != "" {
		return process.Finding{Status: process.Fine, Found: dir + " is trusted, by " + mark}
	}
	return process.Finding{Status: process.Doubtful, Found: "no sign that " + dir + " is trusted; it cannot be seen without a run", Advice: advice}
}

// marksMax is how many projects are looked through for the mark.
const marksMax = 2000

// notInSlug is what the agent replaces in a path to name its project.
var notInSlug = regexp.MustCompile(`[^A-Za-z0-9]+`)

// trustMark is the file by which the agent remembers that it may work in dir;
// empty where there is none. It goes by its project's name or by what stands in
// the file, because long names are shortened.
func trustMark(data, dir string) string {
	const name = ".workspace-trusted"
	projects := filepath.Join(data, "projects")
	own := filepath.Join(projects, strings.Trim(notInSlug.ReplaceAllString(dir, "-"), "-"), name)
	if info, err := os.Stat(own); err == nil && info.Mode().IsRegular() {
		return own
	}
	entries, _ := os.ReadDir(projects) // without the folder there is no mark
	for _, e := range entries[:min(len(entries), marksMax)] {
		file := filepath.Join(projects, e.Name(), name)
		b, err := readSmall(file)
		if err != nil {
			continue
		}
		var mark struct {
			Path string `json:"workspacePath"`
		}
		if json.Unmarshal(b, &mark) == nil && mark.Path != "" && filepath.Clean(mark.Path) == dir {
			return file
		}
	}
	return ""
}

// probeTmux looks for what only start needs.
func probeTmux(ctx context.Context) process.Finding {
	const advice = "only cursor-wrap start, attach and stop need it; install it for them"
	file, err := lookIn(os.Getenv("PATH"), "tmux")
	if err != nil {
		return process.Finding{Status: process.Doubtful, Found: "not on the PATH", Advice: advice}
	}
	out, err := askVersion(ctx, file, "-V")
	if said := strings.TrimSpace(string(out)); err == nil && strings.HasPrefix(said, "tmux") {
		return process.Finding{Status: process.Fine, Found: said + ", " + file}
	}
	return process.Finding{Status: process.Doubtful, Found: fmt.Sprintf("%s -V: %v", file, cmp.Or(err, errors.New("it does not say its version"))), Advice: advice}
}
