package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestVersionHasTheRealShape(t *testing.T) {
	t.Parallel()
	s := beginWith(t, nil, "--version")
	out, code := s.finish()
	if !regexp.MustCompile(`^\d{4}\.\d{2}\.\d{2}-[0-9a-f]{7}\n$`).MatchString(out) || code != 0 {
		t.Errorf("printed %q, exit %d", out, code)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	good := scenarios + "/good.txt"
	tests := []struct {
		name string
		args []string
		want string // on stderr
		code int
	}{
		{"unknown option", []string{"-p", "--max-turns", "3"}, "error: unknown option '--max-turns'\n", 1},
		{"unknown short option", []string{"-z"}, "error: unknown option '-z'\n", 1},
		{"unknown option with a value", []string{"-p", "--verbose=1"}, "error: unknown option '--verbose'\n", 1},
		{"value missing", []string{"-p", "--model"}, "argument missing", 1},
		{"no print", []string{"--output-format", "stream-json", "--scenario", good}, "--print", 1},
		{"text", []string{"-p", "--scenario", good}, "stream-json", 1},
		{"json", []string{"-p", "--output-format=json", "--scenario", good}, "stream-json", 1},
		{"unknown format", []string{"-p", "--output-format", "xml"}, "Allowed choices are", 1},
		{"no scenario", []string{"-p", "--output-format", "stream-json"}, "FAKEAGENT_SCENARIO", 70},
		{"scenario missing", []string{"-p", "--output-format", "stream-json", "--scenario", "none.txt"}, "none.txt", 70},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := beginWith(t, nil, tt.args...)
			out, code := s.finish()
			if out != "" || code != tt.code || !strings.Contains(s.stderr.String(), tt.want) {
				t.Errorf("exit %d, stdout %q, stderr %q; want exit %d and %q", code, out, &s.stderr, tt.code, tt.want)
			}
		})
	}
}

func TestEveryOptionOfTheRealAgentIsTaken(t *testing.T) {
	t.Parallel()
	args := []string{
		"--print", "--output-format", "stream-json", "--resume", "r", "--force", "-f", "--yolo", "--model=m",
		"--workspace", "/w", "--trust", "--approve-mcps", "--mode", "plan", "--sandbox", "enabled",
		"--stream-partial-output", "--api-key", "k", "-H", "A: b", "--header", "C: d", "--scenario", "s",
	}
	got, err := parseArguments(args)
	want := options{
		print: true, partial: true, outputFormat: "stream-json", resume: "r", model: "m", workspace: "/w",
		apiKey: "k", scenario: "s",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestScenarioFromTheEnvironment(t *testing.T) {
	t.Setenv("FAKEAGENT_SCENARIO", script(t, "result from the environment"))
	s := beginWith(t, nil, "-p", "--output-format", "stream-json")
	if out, code := s.finish(); code != 0 || !strings.Contains(out, "from the environment") {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestPositionalPromptLeavesStdinAlone(t *testing.T) {
	t.Parallel()
	never, open := pipe(t)
	defer open.Close() // open and empty for as long as the agent lives
	s := begin(t, script(t, "user"), never, "fix", "it")
	out, code := s.finish()
	if code != 0 || !strings.Contains(out, `"text":"fix it"`) {
		t.Errorf("exit %d, %q", code, out)
	}
}

var uuid = regexp.MustCompile(`"session_id":"([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"`)

func TestSession(t *testing.T) {
	file := script(t, "init", `{"id":"$SESSION"}`)
	first, _, _ := play(t, file, "")
	second, _, _ := play(t, file, "")
	a, b := uuid.FindStringSubmatch(first), uuid.FindStringSubmatch(second)
	if a == nil || b == nil || a[1] == b[1] {
		t.Fatalf("want two fresh sessions, got %q and %q", first, second)
	}
	if resumed, _, _ := play(t, file, "", "--resume", a[1]); strings.Count(resumed, a[1]) != 2 {
		t.Errorf("resumed %s: %q", a[1], resumed)
	}
	t.Setenv("FAKEAGENT_SESSION", "given")
	if given, _, _ := play(t, file, "", "--resume", a[1]); strings.Count(given, `"given"`) != 2 {
		t.Errorf("session from the environment: %q", given)
	}
}

func TestTheReadmeNamesEveryWord(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(scenarios + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"stdin", "life", "repeat", "when", "on"}
	for name := range directives {
		names = append(names, name)
	}
	for name, k := range kinds {
		if !k.inner {
			names = append(names, name)
		}
	}
	for name := range callKinds {
		names = append(names, name)
	}
	for _, name := range names {
		if !regexp.MustCompile("`" + name + "[ `]|start ID " + name).Match(text) {
			t.Errorf("README.md does not say what %q is", name)
		}
	}
}
