package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestFlagsAndPromptComeInAnyOrder(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"flags first":           {"-p", "--model", "m1", "PROMPT"},
		"prompt first":          {"PROMPT", "-p", "--model", "m1"},
		"prompt between":        {"-p", "PROMPT", "--model=m1"},
		"flags behind run":      {"run", "-p", "PROMPT", "--model=m1"},
		"--print":               {"--print", "--model", "m1", "PROMPT"},
		"agent flags after --":  {"-p", "PROMPT", "--model", "m1", "--", "--strange"},
		"agent flags, no model": {"-p", "PROMPT", "--", "--model", "m1", "--strange"},
	}
	for _, prompt := range []string{"fix it", "ps", "run", "replay", "version", "help", "-", "ünïcode \"quoted\"", "two\nlines"} {
		for name, args := range tests {
			t.Run(name+" "+prompt, func(t *testing.T) {
				t.Parallel()
				if prompt != "fix it" && args[0] == "PROMPT" {
					t.Skip("a subcommand's name in the first place is the subcommand")
				}
				r := stubbed(t, args, prompt).wants(0)
				if got := r.file("prompt"); got != prompt {
					t.Errorf("the agent's prompt is %q", got)
				}
				if got := r.argv(); !strings.Contains(got, "--model m1") {
					t.Errorf("the agent got %s", got)
				}
			})
		}
	}
}

// stubbed runs the stub with exactly these arguments; the rest comes from the environment.
func stubbed(t *testing.T, args []string, prompt string, env ...string) *ran {
	t.Helper()
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = strings.ReplaceAll(a, "PROMPT", prompt)
	}
	logs := t.TempDir()
	p := start(t, call{bare: true, args: words, prompt: "from stdin",
		env: append(env, "CURSOR_WRAP_AGENT_BIN="+built.stub, "CURSOR_WRAP_LOG_DIR="+logs)})
	p.logs = logs
	return p.finish()
}

// argv is what the stub was called with, in one line.
func (r *ran) argv() string {
	r.Helper()
	return strings.ReplaceAll(strings.TrimSuffix(r.file("argv"), "\x00"), "\x00", " ")
}

func TestAPromptOnStdinIsTakenWhereNoneIsGiven(t *testing.T) {
	t.Parallel()
	r := stubbed(t, []string{"-p"}, "").wants(0)
	if got := r.file("prompt"); got != "from stdin" {
		t.Errorf("the agent's prompt is %q", got)
	}
}

func TestWrongCallsExit64WithAHintAndStartNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		says []string
	}{
		{"unknown flag", []string{"-p", "--idel-timeout=3s", "x"}, []string{"--idel-timeout", "--help", "go after --"}},
		{"unknown short flag", []string{"-p", "-Z", "x"}, []string{"-Z", "--help"}},
		{"a value is missing", []string{"x", "-p", "--idle-timeout"}, []string{"--idle-timeout"}},
		{"no prompt", []string{"-p"}, []string{"prompt", "stdin"}},
		{"empty prompt", []string{"-p", ""}, []string{"prompt is empty"}},
		{"blank prompt", []string{"-p", " \n\t"}, []string{"prompt is empty"}},
		{"two prompts", []string{"-p", "fix", "it"}, []string{`"fix" and "it"`, "quote it"}},
		{"unknown format", []string{"-p", "--output-format=yaml", "x"}, []string{"yaml", "stream-json", "text"}},
		{"nothing to talk about", nil, []string{"no prompt", "stdin"}},
		{"two prompts to begin with", []string{"fix", "it"}, []string{`"fix" and "it"`, "quote it"}},
		{"negative restarts", []string{"--max-restarts=-2", "x"}, []string{"--max-restarts"}},
		{"bad duration", []string{"-p", "--idle-timeout=soon", "x"}, []string{"soon", "--idle-timeout", "90s"}},
		{"a number alone", []string{"-p", "--idle-timeout=60", "x"}, []string{"60", "--idle-timeout", "90s"}},
		{"negative duration", []string{"-p", "--idle-timeout=-3s", "x"}, []string{"negative"}},
		{"no tick", []string{"-p", "--tick-interval=0", "x"}, []string{"--tick-interval"}},
		{"bad level", []string{"-p", "--log-level=loud", "x"}, []string{"loud", "debug"}},
		{"bad sync", []string{"-p", "--log-sync=sometimes", "x"}, []string{"sometimes", "written"}},
		{"bad stderr", []string{"-p", "--stderr=tty", "x"}, []string{"tty", "pty", "inherit"}},
		{"bad bool", []string{"-p", "--force=maybe", "x"}, []string{"maybe"}},
		{"bad bool of the agent's", []string{"-p", "--trust=maybe", "x"}, []string{"maybe"}},
		{"replay of nothing", []string{"replay"}, []string{"one session log"}},
		{"replay of two", []string{"replay", "a", "b"}, []string{"one session log"}},
		{"replay, unknown flag", []string{"replay", "--force", "a"}, []string{"--force"}},
		{"report of nothing", []string{"report"}, []string{"one session log"}},
		{"report of two", []string{"report", "a", "b"}, []string{"one session log"}},
		{"report, unknown format", []string{"report", "--format=pdf", "a"}, []string{"pdf", "junit"}},
		{"report into no folder", []string{"report", "-o", "/no/such/x.html", "a"}, []string{"-o", "/no/such"}},
		{"report onto a folder", []string{"report", "-o", "/tmp", "a"}, []string{"-o", "folder"}},
		{"no folder for a JUnit report", []string{"-p", "--junit=/no/such/x.xml", "x"}, []string{"--junit", "/no/such"}},
		{"a folder as a report", []string{"-p", "--report=/tmp", "x"}, []string{"--report", "folder"}},
		{"version of what", []string{"version", "x"}, []string{"x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, call{bare: true, args: tt.args, prompt: "-", env: []string{"CURSOR_WRAP_AGENT_BIN=" + built.stub}})
			r := p.finish().wants(64).says(append(tt.says, "cursor-wrap: ")...)
			if len(r.stdout) != 0 {
				t.Errorf("stdout %q", r.stdout)
			}
			if strings.Count(strings.TrimSpace(r.ownWords()), "\n") > 2 {
				t.Errorf("more than a line and a hint: %s", r.said)
			}
			if _, err := os.Stat(r.dir + "/argv"); err == nil {
				t.Error("the agent was started")
			}
		})
	}
}

func TestAnEmptyStdinIsNoPrompt(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{"-", "\n", "  \n\t\n"} {
		run1(t, call{agent: built.stub, prompt: prompt}).wants(64).says("prompt")
	}
}

func TestEveryFlagCanComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	policy := func(t *testing.T, r *ran, key string) int64 {
		t.Helper()
		var begun struct{ Policy map[string]any }
		r.one("run_start", &begun)
		n, _ := begun.Policy[key].(float64)
		return int64(n)
	}
	t.Run("it counts", func(t *testing.T) {
		t.Parallel()
		r := stubbed(t, []string{"x"}, "", "CURSOR_WRAP_PRINT=true", "CURSOR_WRAP_IDLE_TIMEOUT=7d", "CURSOR_WRAP_FORCE=false",
			"CURSOR_WRAP_MODEL=m2", "CURSOR_WRAP_TRUST=1", "CURSOR_WRAP_SANDBOX=disabled", "CURSOR_WRAP_NO_SUCH_FLAG=x").wants(0)
		if got := policy(t, r, "idle_timeout_ms"); got != 7*24*3600*1000 {
			t.Errorf("idle timeout %d", got)
		}
		got := r.argv()
		for _, want := range []string{"--model m2", "--trust", "--sandbox disabled"} {
			if !strings.Contains(got, want) {
				t.Errorf("the agent got %s", got)
			}
		}
		if strings.Contains(got, "--force") {
			t.Errorf("the agent got %s", got)
		}
	})
	t.Run("a flag wins", func(t *testing.T) {
		t.Parallel()
		r := stubbed(t, []string{"-p", "x", "--idle-timeout=1h30m"}, "", "CURSOR_WRAP_IDLE_TIMEOUT=5s").wants(0)
		if got := policy(t, r, "idle_timeout_ms"); got != 5400_000 {
			t.Errorf("idle timeout %d", got)
		}
	})
	t.Run("a flag wins in the explicit form", func(t *testing.T) {
		t.Parallel()
		r := stubbed(t, []string{"run", "-p", "x", "--idle-timeout=90s"}, "", "CURSOR_WRAP_IDLE_TIMEOUT=5s", "CURSOR_WRAP_TOOL_GRACE=6s").wants(0)
		if a, b := policy(t, r, "idle_timeout_ms"), policy(t, r, "tool_grace_ms"); a != 90_000 || b != 6000 {
			t.Errorf("idle timeout %d, tool grace %d", a, b)
		}
	})
	t.Run("--yolo=false wins over CURSOR_WRAP_FORCE", func(t *testing.T) {
		t.Parallel()
		r := stubbed(t, []string{"-p", "x", "--yolo=false"}, "", "CURSOR_WRAP_FORCE=true").wants(0)
		if got := r.argv(); strings.Contains(got, "--force") {
			t.Errorf("the agent got %s", got)
		}
	})
	t.Run("an empty one counts for nothing", func(t *testing.T) {
		t.Parallel()
		r := stubbed(t, []string{"-p", "x"}, "", "CURSOR_WRAP_IDLE_TIMEOUT=").wants(0)
		if got := policy(t, r, "idle_timeout_ms"); got != 60_000 {
			t.Errorf("idle timeout %d", got)
		}
	})
	t.Run("a bad one is named", func(t *testing.T) {
		t.Parallel()
		stubbed(t, []string{"-p", "x"}, "", "CURSOR_WRAP_IDLE_TIMEOUT=soon").wants(64).says("CURSOR_WRAP_IDLE_TIMEOUT", "soon")
	})
	t.Run("a bad switch is named", func(t *testing.T) {
		t.Parallel()
		stubbed(t, []string{"-p", "x"}, "", "CURSOR_WRAP_SYNTHETIC_RESULT=maybe").wants(64).says("CURSOR_WRAP_SYNTHETIC_RESULT", "maybe")
	})
}

func TestHelpShowsEveryFlagAndExamples(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}, {"run", "--help"}, {"-p", "--help"}} {
		r := run1(t, call{bare: true, args: args, prompt: "-"}).wants(0)
		for _, want := range []string{"--print", "--output-format", "--plain", "--log-dir", "--log-level", "--log-sync", "--log-retention",
			"--flagged-retention", "--synthetic-result", "--agent-bin", "--model", "--workspace", "--force", "--resume",
			"Examples:", "cursor-wrap -p "} {
			if !strings.Contains(string(r.stdout), want) {
				t.Errorf("%v lacks %s", args, want)
			}
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		r := run1(t, call{bare: true, args: args, prompt: "-"}).wants(0)
		if out := string(r.stdout); !strings.HasPrefix(out, "cursor-wrap ") || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: %q", args, out)
		}
	}
	r := run1(t, call{bare: true, args: args("completion bash"), prompt: "-"}).wants(0)
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to read it")
	}
	cmd := exec.Command(shell, "-n")
	cmd.Stdin = strings.NewReader(string(r.stdout))
	if out, err := cmd.CombinedOutput(); err != nil || len(r.stdout) < 1000 {
		t.Errorf("bash does not take it: %v %s", err, out)
	}
	r = run1(t, call{bare: true, args: []string{"__complete", "--idle"}, prompt: "-"}).wants(0)
	if !strings.Contains(string(r.stdout), "--idle-timeout") {
		t.Errorf("no completion: %q", r.stdout)
	}
}

// ownWords is what was said of the call itself: a run also tells of what other
// dead runs on the machine have left behind.
func (r *ran) ownWords() string {
	var own strings.Builder
	for line := range strings.Lines(r.said) {
		if !strings.HasPrefix(line, "cursor-wrap: a dead run's cgroup") {
			own.WriteString(line)
		}
	}
	return own.String()
}
