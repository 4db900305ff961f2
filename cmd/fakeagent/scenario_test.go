package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryScenarioParsesAndSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(scenarios + "/*.txt")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		scene, err := loadScenario(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if scene.life > defaultLife {
			t.Errorf("%s: lives for %v", file, scene.life)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text[0] != '#' || !strings.Contains(string(text), "\n# Wrapper") {
			t.Errorf("%s: does not say what it shows and what the wrapper does with it", file)
		}
	}
}

func TestMistakesAreFoundBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"dance":                           "unknown directive",
		"sleep long":                      "usage: sleep DURATION",
		"exit 256":                        "out of range",
		"exit":                            "usage: exit N",
		"init now":                        "unexpected",
		"raw unquoted":                    "invalid syntax",
		"fill 3G":                         "invalid syntax",
		"fill 4096M":                      "too large",
		"repeat -1\nend":                  "invalid syntax",
		"repeat 2\ninit":                  "no end",
		"when asked go\ninit":             "no end",
		"when asked\nend":                 "want fresh, resumed or asked TEXT",
		"when told\nend":                  "want fresh, resumed or asked TEXT",
		"end":                             "end without repeat",
		"init\nstdin ignore":              "before the first step",
		"stdin maybe":                     "want ignore or close",
		"life 3":                          "missing unit",
		"on TERM":                         "unknown directive",
		"on TERM life 3s":                 "want one directive",
		"on NOISE exit 0":                 "unknown signal",
		"ignore NOISE":                    "unknown signal",
		"die of boredom":                  "unknown signal",
		"close files":                     "unexpected",
		"mirror half":                     "unexpected",
		"play nothing.jsonl":              "no such file",
		"play scenario.txt slow":          "unknown pace",
		"spawn plain":                     "too few words",
		"spawn ghost 1s":                  "unknown kind",
		"spawn orphan 1s":                 "unknown kind",
		"notify 1 success":                "too few words",
		"wait-file":                       "no path",
		"tool":                            "too few words",
		"tool start a shell 10":           "a shell needs",
		"tool start a shell ten ls":       "a shell needs",
		"tool start a plough":             "unknown tool",
		"tool start a other xToolCall {]": "arguments of xToolCall",
		"tool done a":                     "not started",
		"tool start a read f\ntool background a 1 2":      "has no background",
		"tool start a read f\ntool forget a":              "unknown verb",
		"tool start a shell 1 ls\ntool done a zero":       "invalid syntax",
		"tool start a background ls\ntool background a 1": "shell id and a pid",
	}
	for text, want := range tests {
		file := script(t, "# a comment", "", text)
		_, err := parseScenario(file, "# a comment\n\n"+text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "scenario.txt:") {
			t.Errorf("%q: got %v, want one with %q", text, err, want)
		}
	}
}

func TestABadScenarioNamesItsLine(t *testing.T) {
	t.Parallel()
	out, stderr, code := play(t, script(t, "init", "# so far so good", "dance"), "")
	if out != "" || code != exitBadScenario || !strings.Contains(stderr, "scenario.txt:3: unknown directive") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, stderr)
	}
}

func TestAMistakeOfTheMomentNamesItsLine(t *testing.T) {
	t.Parallel()
	_, stderr, code := play(t, script(t, "init", "close stdout", "user"), "")
	if code != exitBadScenario || !strings.Contains(stderr, "scenario.txt:3:") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

func TestScenariosEndAsTheySay(t *testing.T) {
	t.Parallel()
	tests := map[string]int{
		"good": 0, "slow-tool": 0, "parallel-tools": 0, "is-error": 1, "no-result": 0,
		"h02-background-finite": 0, "h02-moved-to-background": 0, "h05-reads-stdin-to-end": 0,
		"h06-trust-exit-zero": 0, "h10-waits-for-input": 0, "h11-reconnects": 0, "h11-retries-then-fails": 1,
		"h12-compaction-pause": 0, "h13-long-generation": 0, "h14-subagent-foreground": 0,
		"h14-subagent-background": 0, "h16-exit-1-no-result": 1, "h16-crash": 128 + 11, "h16-killed": 128 + 9,
		"h18-orphans": 0, "h21-cut-last-line": 0, "h22-long-line": 0, "h23-hook-delays-tool": 0,
		"refusal-trust": 1, "refusal-login": 1, "refusal-key": 1, "refusal-model": 1, "refusal-busy-chat": 1,
		"refusal-resume-id": 1, "refusal-quota": 1, "refusal-sandbox": 1,
		"half-lines": 0, "no-newline-at-end": 0, "crlf": 0, "binary": 0, "stderr-flood": 0, "stderr-mirror": 0,
		"never-reads-stdin": 0, "closes-stdin": 0, "other-prompt": 0, "rejected-tools": 0, "await-background": 0,
		"stray-completion": 0, "play-old-layout": 0, "play-background": 0, "play-sibling-keys": 0,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(scenarios, name+".txt")
			out, stderr, code := play(t, file, "do it")
			if code != want {
				t.Errorf("exit %d, want %d; stderr %.200q", code, want, stderr)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if says, has := strings.Contains(string(text), "\nresult"), strings.Contains(out, `"type":"result","subtype":"success"`); says && !has {
				t.Errorf("no result in %.400q", out)
			}
		})
	}
}

func TestRepeatMayBeNested(t *testing.T) {
	t.Parallel()
	out, _, code := play(t, script(t, "repeat 2", "  repeat 3", `    raw "x"`, "  end", `  raw "."`, "end"), "")
	if out != "xxx.xxx." || code != 0 {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestWhenTellsStartsApart(t *testing.T) {
	t.Parallel()
	file := script(t, "when fresh", `  raw "fresh"`, "  when asked stay", `    raw " stay"`, "  end", "end", "when resumed", `  raw "again"`, "end")
	for _, start := range []struct{ prompt, args, want string }{
		{"go", "", "fresh"}, {"please stay here", "", "fresh stay"}, {"stay", "--resume=r", "again"},
	} {
		if out, _, code := play(t, file, start.prompt, strings.Fields(start.args)...); out != start.want || code != 0 {
			t.Errorf("%q %s: exit %d, %q", start.prompt, start.args, code, out)
		}
	}
}

func TestFilesSynchronise(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HANDS", dir)
	s := begin(t, script(t, "touch $HANDS/theirs", "init", "wait-file $HANDS/ours", "exit 5"), nil)
	s.readUntil("\n") // by now it has touched its file and waits for ours
	if _, err := os.Stat(dir + "/theirs"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(dir+"/ours", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, code := s.finish(); code != 5 {
		t.Errorf("exit %d", code)
	}
}

func TestLifeEndsWhateverIsStuck(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"lingering":    "linger",
		"burning":      "burn 1h",
		"writing":      "fill 4M",
		"waiting":      "wait-file /nowhere/at/all",
		"deaf":         "ignore TERM\nlinger",
		"reading":      "",
		"with a child": "spawn deaf 1h\nspawn stopped 1h\nlinger",
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdin, open := pipe(t)
			defer open.Close()
			if steps != "" {
				open.Close()
			}
			s := begin(t, script(t, "life 300ms", steps), stdin)
			began := time.Now()
			if code := s.exit(); code != exitOutlived || time.Since(began) > patience/2 {
				t.Errorf("exit %d after %v", code, time.Since(began))
			}
			s.awaitTree() // the children too
		})
	}
}
