package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const goldenText = "../../testdata/golden/text/scenarios"

// inUTF8 is a locale that every system has, or need not have: only its name is looked at.
var inUTF8 = []string{"LC_ALL=", "LC_CTYPE=", "LANG=en_US.UTF-8"}

// textless are scenarios whose text is another one each time, or is none.
var textless = []string{"h12-compaction-loop.txt"}

// moments are what the clock decides.
// witness is what the processes were seen to do, which has its own tests.
var witness = regexp.MustCompile(`(?m); (the tree|the process|no process|busy|\d+ ).*\)$`)

var moments = regexp.MustCompile(`\d+m\d\ds|\d+(\.\d+)?m?s\b|\d+ reconnection`)

// TestGoldenTextOfScenarios: what a person reads in a pipe, times left out, and that it is not
// another outcome than in the other formats.
func TestGoldenTextOfScenarios(t *testing.T) {
	for _, p := range plays {
		if p.heavy || slices.Contains(textless, p.file) {
			continue
		}
		t.Run(strings.TrimSuffix(p.file, ".txt"), func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: p.file, env: inUTF8, args: append([]string{"--output-format=text"}, p.args...)}).wants(p.code)
			got := moments.ReplaceAllString(witness.ReplaceAllString(string(r.stdout), "; TREE)"), "T")
			file := filepath.Join(goldenText, p.file)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err, "; go test -update makes it")
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestTextOfPartialOutputIsShownOnce, with the agent's own flag.
func TestTextOfPartialOutputIsShownOnce(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "good.txt", env: inUTF8, args: args("--output-format=text --stream-partial-output")}).wants(0)
	for _, want := range []string{"I'll look at the files.", "There is one file, `README.md`."} {
		if strings.Count(string(r.stdout), want) != 1 {
			t.Errorf("%q is not there once: %q", want, r.stdout)
		}
	}
}

// TestLongTextLines: one that is too long to be held is named.
func TestLongTextLines(t *testing.T) {
	r := run1(t, call{scenario: "h22-long-line.txt", env: inUTF8, args: args("--output-format=text")}).wants(0)
	if got := string(r.stdout); got != "(a line of 21 MB left out)\n\nThat was long.\n\n" {
		t.Errorf("%q", got)
	}
}

func TestTextInACLocaleIsASCII(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{{"LC_ALL=", "LC_CTYPE=", "LANG="}, {"LC_ALL=C", "LANG=en_US.UTF-8"}, {"LC_ALL=", "LC_CTYPE=POSIX", "LANG=en_US.UTF-8"}} {
		r := run1(t, call{scenario: "tool-hang.txt", env: env, args: args("--output-format=text --tool-grace=300ms")}).wants(2)
		for _, b := range r.stdout {
			if b > 0x7e {
				t.Fatalf("%v: %q", env, r.stdout)
			}
		}
		if !strings.Contains(string(r.stdout), "... `tail -f server.log`\n! Hang detected - killed cursor-agent (") {
			t.Errorf("%v: %q", env, r.stdout)
		}
	}
}
