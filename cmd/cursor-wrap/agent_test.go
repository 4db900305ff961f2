package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bin is a folder for a PATH, with these names leading to these files.
func bin(t *testing.T, links map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// looked runs the program with a PATH and no --agent-bin.
func looked(t *testing.T, path string, env ...string) *ran {
	t.Helper()
	return run1(t, call{agent: "-", env: append(env, "PATH="+path)})
}

// notStarted checks how a run ends whose agent could not be started.
func (r *ran) notStarted() *ran {
	r.Helper()
	r.wants(1)
	res := r.result()
	if res.Subtype != "exec_error" || !res.IsError || res.Wrapper == nil || res.Wrapper.Agent != nil {
		r.Errorf("%+v", res)
	}
	if n := strings.Count(string(r.stdout), "\n"); n != 2 {
		r.Errorf("stdout has %d lines: %s", n, r.stdout)
	}
	if e := r.end(); e.Outcome != "error" {
		r.Errorf("%+v", e)
	}
	return r
}

func TestTheAgentIsLookedForOnThePath(t *testing.T) {
	t.Parallel()
	const system = ":/usr/bin:/bin" // for what the stub needs
	t.Run("nothing there", func(t *testing.T) {
		t.Parallel()
		dir := bin(t, nil)
		r := looked(t, dir).notStarted().says(dir, "--agent-bin")
		if res := r.result(); !strings.Contains(res.Result, dir) {
			t.Errorf("the result does not say where it looked: %s", res.Result)
		}
	})
	t.Run("cursor-agent", func(t *testing.T) {
		t.Parallel()
		looked(t, bin(t, map[string]string{"cursor-agent": built.stub})+system).wants(0)
	})
	t.Run("agent of Cursor's version", func(t *testing.T) {
		t.Parallel()
		looked(t, bin(t, map[string]string{"agent": built.stub})+system).wants(0)
	})
	t.Run("cursor-agent before agent", func(t *testing.T) {
		t.Parallel()
		first, second := bin(t, map[string]string{"agent": built.stub}), bin(t, map[string]string{"cursor-agent": built.silent})
		looked(t, first+":"+second+system).wants(1)
	})
	t.Run("agent of another vendor", func(t *testing.T) {
		t.Parallel()
		dir := bin(t, map[string]string{"agent": built.stranger})
		looked(t, dir).notStarted().says(dir+"/agent", "--version")
	})
	t.Run("agent whose version only contains Cursor's", func(t *testing.T) {
		t.Parallel()
		looked(t, bin(t, map[string]string{"agent": built.stub}), "SHIM_VERSION=agent 2026.01.28-fd13201").notStarted()
	})
	t.Run("the stranger first", func(t *testing.T) {
		t.Parallel()
		first, second := bin(t, map[string]string{"agent": built.stranger}), bin(t, map[string]string{"agent": built.stub})
		looked(t, first+":"+second+system).wants(0)
	})
	t.Run("ourselves", func(t *testing.T) {
		t.Parallel()
		dir := bin(t, map[string]string{"cursor-agent": built.wrap, "agent": built.wrap})
		looked(t, dir).notStarted().says(dir+"/cursor-agent", "itself")
	})
	t.Run("ourselves first", func(t *testing.T) {
		t.Parallel()
		first, second := bin(t, map[string]string{"cursor-agent": built.wrap}), bin(t, map[string]string{"cursor-agent": built.stub})
		looked(t, first+":"+second+system).wants(0)
	})
	t.Run("a folder and a plain file in the way", func(t *testing.T) {
		t.Parallel()
		folder, file, last := t.TempDir(), t.TempDir(), bin(t, map[string]string{"cursor-agent": built.stub})
		if err := os.Mkdir(folder+"/cursor-agent", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+"/cursor-agent", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		looked(t, folder+":"+file+":"+last+system).wants(0)
		looked(t, folder+":"+file).notStarted().says("is a directory", "not executable")
	})
	t.Run("a broken link", func(t *testing.T) {
		t.Parallel()
		looked(t, bin(t, map[string]string{"cursor-agent": "/nowhere/at/all"})).notStarted()
	})
}

func TestAWrongAgentBinIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, tt := range []struct {
		name, agent string
		says        []string
	}{
		{"not there", dir + "/none", []string{dir + "/none", "no such file"}},
		{"not on the PATH", "no-such-agent-anywhere", []string{"no-such-agent-anywhere", "PATH"}},
		{"a directory", dir, []string{dir, "is a directory"}},
		{"not executable", write("plain", "#!/bin/sh\n", 0o644), []string{"plain", "not executable"}},
		{"no format", write("odd", "this is no program\n", 0o755), []string{"odd", "exec format error"}},
		{"no interpreter", write("orphan", "#!/nowhere/sh\n", 0o755), []string{"orphan", "no such file"}},
		{"ourselves", built.wrap, []string{"itself"}},
		{"a path through a file", built.stub + "/x", []string{"not a directory"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run1(t, call{agent: tt.agent}).notStarted().says(tt.says...)
		})
	}
}

func TestAnAgentWithoutASyntheticResultLeavesStdoutEmpty(t *testing.T) {
	t.Parallel()
	r := run1(t, call{agent: "/nowhere/agent", args: args("--synthetic-result=false")}).wants(1).says("/nowhere/agent")
	if len(r.stdout) != 0 {
		t.Errorf("stdout %q", r.stdout)
	}
}

func TestAgentBinByNameIsFoundOnThePath(t *testing.T) {
	t.Parallel()
	dir := bin(t, map[string]string{"my-agent": built.stub})
	run1(t, call{agent: "my-agent", env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}).wants(0)
}

func TestTheAgentsOwnFlagsArriveAsGiven(t *testing.T) {
	t.Parallel()
	const head = "--print --output-format stream-json"
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"none", nil, head + " --force"},
		{"ours that are the agent's", args("--model=m --workspace /w --resume id"), head + " --resume id --force --model m --workspace /w"},
		{"--force=false", args("--force=false"), head},
		{"-f", args("-f"), head + " --force"},
		{"--yolo=false", args("--yolo=false"), head},
		{"switches", args("--trust --approve-mcps --stream-partial-output"), head + " --force --trust --approve-mcps --stream-partial-output"},
		{"a switch off", args("--trust=false"), head + " --force"},
		{"values", args("--mode plan --sandbox=disabled"), head + " --force --mode plan --sandbox disabled"},
		{"in their order", args("--sandbox disabled --trust --mode plan"), head + " --force --sandbox disabled --trust --mode plan"},
		{"headers", []string{"-H", "A: b c", "-HD: e", "--header", "F: g"}, head + " --force -H A: b c -H D: e -H F: g"},
		{"a key", args("--api-key sk-1"), head + " --force --api-key sk-1"},
		{"after --", []string{"--", "--strange", "--x=1", "-q", "--api-key", "sk"}, head + " --force --strange --x=1 -q --api-key sk"},
		{"repeated", args("--add-dir a --add-dir b"), head + " --force --add-dir a --add-dir b"},
		{"an empty value", []string{"--mode", ""}, head + " --force --mode "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{agent: built.stub, args: tt.args}).wants(0)
			if got := r.argv(); got != tt.want {
				t.Errorf("the agent got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTheAgentsEnvironmentIsOursAndTheRunsName(t *testing.T) {
	t.Parallel()
	r := run1(t, call{agent: built.stub, env: []string{"CURSOR_API_KEY=sk-mine", "ODD=a=b\nc"}}).wants(0)
	env := strings.Split(r.file("env"), "\x00")
	var begun struct {
		RunID string `json:"run_id"`
	}
	r.one("run_start", &begun)
	for _, want := range []string{"CURSOR_WRAP_RUN=" + begun.RunID, "CURSOR_API_KEY=sk-mine", "ODD=a=b\nc"} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %q", want)
		}
	}
	if begun.RunID == "" {
		t.Error("the run has no id")
	}
}

func TestARunInsideARunHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	r := run1(t, call{agent: built.stub, env: []string{"CURSOR_WRAP_RUN=outer"}}).wants(0)
	var names []string
	for _, v := range strings.Split(r.file("env"), "\x00") {
		if strings.HasPrefix(v, "CURSOR_WRAP_RUN=") {
			names = append(names, v)
		}
	}
	if len(names) != 1 || names[0] == "CURSOR_WRAP_RUN=outer" {
		t.Errorf("the agent sees %q", names)
	}
}

// The secrets are in the agent's own command line, which is no secret to the system; they are in
// nothing that outlives it.
func TestSecretsAreInNothingThatIsLoggedOrPrinted(t *testing.T) {
	t.Parallel()
	const secret = "sk-do-not-show"
	ways := map[string][]string{
		"--api-key":            {"--api-key", secret},
		"--api-key=":           {"--api-key=" + secret},
		"--auth-token=":        {"--auth-token=" + secret},
		"-H":                   {"-H", "Authorization: Bearer " + secret},
		"-H joined":            {"-HAuthorization: Bearer " + secret},
		"--header=":            {"--header=Authorization: Bearer " + secret},
		"behind --":            {"--", "--api-key", secret},
		"behind --, joined":    {"--", "--api-key=" + secret},
		"behind --, header":    {"--", "-H", "X-Key: " + secret},
		"behind --, -Hjoined":  {"--", "-HX-Key: " + secret},
		"behind --, header=":   {"--", "--header=X-Key: " + secret},
		"behind --, the token": {"--", "--some-token", secret},
	}
	ends := map[string]call{
		"a success":  {agent: built.stub},
		"no start":   {agent: "/nowhere/agent"},
		"a hang":     {agent: built.sleeper, args: args("--idle-timeout=300ms")},
		"a leftover": {agent: built.sleeper, args: args("--exit-grace=100ms"), env: []string{`SHIM_SAY={"type":"result","subtype":"success","is_error":false}`}},
	}
	for way, flags := range ways {
		for end, c := range ends {
			t.Run(end+" "+way, func(t *testing.T) {
				t.Parallel()
				c.args = slices.Concat(c.args, flags)
				r := start(t, c).finish()
				text, err := os.ReadFile(r.logFile())
				if err != nil {
					t.Fatal(err)
				}
				for where, text := range map[string]string{"the log": string(text), "stdout": string(r.stdout), "stderr": r.said} {
					if i := strings.Index(text, secret); i >= 0 {
						t.Errorf("%s has it: …%s", where, text[max(0, i-200):i+len(secret)])
					}
				}
			})
		}
	}
}
