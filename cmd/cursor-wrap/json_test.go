package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestJSONOutputIsExactlyTheResultLine(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "good.txt", agent: built.recorder, args: args("--output-format=json")}).wants(0)
	lines := bytes.SplitAfter(r.recorded(), []byte("\n"))
	same(t, "stdout", r.stdout, lines[len(lines)-2])
	same(t, "replay --raw", r.replay("--raw"), r.recorded())
}

func TestJSONOutputOfAnErrorIsTheAgentsOwn(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "is-error.txt", args: args("--output-format=json")}).wants(1)
	if res := r.result(); res.Subtype != "error_during_execution" || bytes.Count(r.stdout, []byte("\n")) != 1 {
		t.Errorf("stdout %s", r.stdout)
	}
}

func TestJSONOutputOfAFailureIsOneLine(t *testing.T) {
	t.Parallel()
	for subtype, c := range map[string]call{
		"no_result":  {scenario: "no-result.txt"},
		"exec_error": {agent: "/nowhere/agent"},
		"hang":       {scenario: "idle-hang.txt", args: args("--idle-timeout=300ms")},
		"duration":   {scenario: "idle-hang.txt", args: args("--max-duration=300ms")},
	} {
		t.Run(subtype, func(t *testing.T) {
			t.Parallel()
			c.args = append(c.args, "--output-format=json")
			r := run1(t, c)
			if res := r.result(); res.Subtype != subtype || !res.IsError || bytes.Count(r.stdout, []byte("\n")) != 1 || r.code != res.Wrapper.ExitCode {
				t.Errorf("exit %d, stdout %s", r.code, r.stdout)
			}
		})
	}
}

func TestJSONOutputOfAResultWithoutItsNewlineHasOne(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "no-newline-at-end.txt", args: args("--output-format=json")}).wants(0)
	if !bytes.HasSuffix(r.stdout, []byte("}\n")) || !json.Valid(r.stdout) {
		t.Errorf("stdout %q", r.stdout)
	}
}

func TestWithoutSyntheticResultsNothingIsAdded(t *testing.T) {
	t.Parallel()
	for file, code := range map[string]int{"no-result.txt": 1, "idle-hang.txt": 2, "h21-cut-last-line.txt": 1} {
		for _, format := range []string{"stream-json", "json"} {
			t.Run(format+" "+file, func(t *testing.T) {
				t.Parallel()
				r := run1(t, call{scenario: file, agent: built.recorder,
					args: args("--synthetic-result=false --idle-timeout=500ms --output-format=" + format)}).wants(code)
				want := r.recorded()
				if format == "json" {
					want = nil
				}
				same(t, "stdout", r.stdout, want)
			})
		}
	}
}

func TestASyntheticResultTellsWhatIsKnown(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: lines("init", "stderr "+strings.Repeat("é", 600)+" the end", "exit 7"),
		env: []string{"FAKEAGENT_SESSION=s-1"}}).wants(1)
	res := r.result()
	if res.SessionID != "s-1" || len(res.Errors) != 1 || len([]rune(res.Errors[0])) != 500 || !strings.HasSuffix(res.Errors[0], "é the end") {
		t.Errorf("%+v", res)
	}
	if w := res.Wrapper; w == nil || w.Agent == nil || w.Agent.ExitCode != 7 || w.ExitCode != 1 || w.Outcome != "error" {
		t.Errorf("%+v", w)
	}
	r = run1(t, call{scenario: lines("exit 7"), args: args("--resume=s-2")}).wants(1)
	if got := r.result().SessionID; got != "s-2" {
		t.Errorf("session %q", got)
	}
}

func TestAnotherPromptThanOursIsWarnedAbout(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "good.txt", args: args("-- review")}).wants(0).says(`"review"`, "agent flags")
	if n := len(r.all("prompt_mismatch")); n != 1 {
		t.Errorf("%d warnings in the log", n)
	}
	for name, prompt := range map[string]string{"white space": " fix  it\n", "odd bytes": "fix \xff it", "quotes": `"fix" \it`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: "good.txt", prompt: prompt}).wants(0)
			if n := len(r.all("prompt_mismatch")); n != 0 {
				t.Errorf("the same prompt is warned about: %s", r.said)
			}
		})
	}
}

func TestAResultDuringTheLadderWins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]call{
		"hang":     {args: args("--idle-timeout=300ms")},
		"duration": {args: args("--max-duration=300ms")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.scenario, c.agent = "late-result-on-term.txt", built.recorder
			c.args = append(c.args, "--kill-grace=30s")
			r := run1(t, c).wants(0)
			r.healthy("success")
			if e := r.end(); e.Outcome != "success" {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestReplayUnderOtherThresholdsSaysWhatWouldHaveHappened(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: lines("init", "user", "sleep 700ms", "say Done.", "result")}).wants(0)
	if out := string(r.replay()); strings.Contains(out, "hung") || !strings.Contains(out, "success, exit code 0") {
		t.Errorf("replay says\n%s", out)
	}
	if out := string(r.replay("--idle-timeout=300ms", "--confirm=off")); !strings.Contains(out, "hung, idle") {
		t.Errorf("replay under a shorter timeout says\n%s", out)
	}
	if out := string(r.replay("--idle-timeout=300ms")); strings.Contains(out, "hung") || !strings.Contains(out, "suspected") {
		t.Errorf("replay with a tree that nobody has looked at says\n%s", out)
	}
	r = run1(t, call{scenario: "idle-hang.txt", args: args("--idle-timeout=300ms")}).wants(2)
	out := string(r.replay("--idle-timeout=10m"))
	if strings.Contains(out, "hung") || !strings.Contains(out, "idle: idle") {
		t.Errorf("replay under a longer timeout says\n%s", out)
	}
}

func TestReplayOfWhatIsNoLogIsAnError(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/notes.txt"
	if err := os.WriteFile(file, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{file, file + ".none"} {
		run1(t, call{bare: true, args: []string{"replay", file}, prompt: "-"}).wants(1).says(file)
	}
}
