package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/report"
)

// testReport is a JUnit report with one case.
type testReport struct {
	Suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Case     []struct {
			Name    string   `xml:"name,attr"`
			Time    float64  `xml:"time,attr"`
			Failure *trouble `xml:"failure"`
			Error   *trouble `xml:"error"`
			Out     string   `xml:"system-out"`
			Err     string   `xml:"system-err"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type trouble struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func (r *ran) junit(text string) testReport {
	r.Helper()
	var got testReport
	if err := xml.Unmarshal([]byte(text), &got); err != nil || len(got.Suite.Case) != 1 {
		r.Fatalf("%v in %s", err, text)
	}
	return got
}

// report is what the subcommand makes of the run's log.
func (r *ran) report(format string) []byte {
	r.Helper()
	got := start(r.T, call{bare: true, args: []string{"report", "--format", format, r.logFile()}, prompt: "-"}).finish().wants(0)
	return got.stdout
}

// kind is of what kind the trouble of the only test case is.
func (t *testReport) kind() string {
	switch c := t.Suite.Case[0]; {
	case c.Failure != nil:
		return "failure " + c.Failure.Type
	case c.Error != nil:
		return "error " + c.Error.Type
	}
	return ""
}

func TestReports(t *testing.T) {
	t.Parallel()
	hang := lines("init", "user", "tool start a shell 100 tail -f server.log", "spawn setsid 60s tail -f server.log", "linger")
	for _, row := range []struct {
		name     string
		call     call
		stop     bool
		code     int
		outcome  string
		junit    string
		sentence string
		trace    string // of the items, one
	}{
		{"good", call{scenario: "good.txt"}, false, 0, "success", "", "The agent gave its result", "ls -la"},
		{"hang", call{scenario: hang, args: args("--tool-grace=1s --tick-interval=200ms")}, false, 2, "hang", "failure hang", `shell "tail -f server.log"`, "tail -f server.log"},
		{"signal", call{scenario: lines("init", "user", "tool start a shell 90000 make", "touch $DIR/there", "linger")}, true, 143, "signal", "error signal",
			`from outside: stopped by SIGTERM, while shell "make" was open`, "make"},
		{"no result", call{scenario: lines("init", "user", "stderr Error: no quota", "say Well.", "exit 7")}, false, 1, "error", "failure error", "without a result (exit 7)", "Well."},
		{"no start", call{agent: "/no/such/agent"}, false, 1, "error", "error error", "could not be started: ", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := row.call
			file := filepath.Join(t.TempDir(), "junit.xml")
			c.args = append(slices.Clone(c.args), "--junit", file)
			p := start(t, c)
			if row.stop {
				p.awaitFile("there")
				p.signal(syscall.SIGTERM)
			}
			r := p.finish().wants(row.code)

			var story report.Story
			if err := json.Unmarshal(r.report("json"), &story); err != nil {
				t.Fatal(err)
			}
			if story.Run.Outcome != row.outcome || story.Run.ExitCode != row.code || !strings.Contains(story.Run.Sentence, row.sentence) {
				t.Errorf("%s, exit code %d: %s", story.Run.Outcome, story.Run.ExitCode, story.Run.Sentence)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "the JUnit report at the end", text, r.report("junit"))
			test := r.junit(string(text))
			if got := test.kind(); got != row.junit {
				t.Errorf("%q, want %q: %s", got, row.junit, text)
			}
			if md := string(r.report("md")); !strings.HasPrefix(md, "## ") || !strings.Contains(md, "cursor-wrap&#58; "+row.outcome) && !strings.Contains(md, "cursor-wrap: "+row.outcome) {
				t.Errorf("%.500s", md)
			}
			r.trace(row.trace)
		})
	}
}

// trace checks that a trace is one, and has the item.
func (r *ran) trace(item string) {
	r.Helper()
	var file struct {
		Events []struct {
			Name  string `json:"name"`
			Phase string `json:"ph"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(r.report("trace"), &file); err != nil {
		r.Fatal(err)
	}
	found := item == ""
	for _, e := range file.Events {
		found = found || e.Phase == "X" && strings.Contains(e.Name, item)
	}
	if !found {
		r.Errorf("no %q in the trace %+v", item, file.Events)
	}
}

const secretValue = `s3cr"et/<&>value`

// Where GitHub runs it, a failure is annotated and the step has a summary. No
// secret stands in either, nor in the reports; the log keeps all.
func TestOnGitHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	read := func(name string) string {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := os.WriteFile(at("summary"), []byte("# mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, _ := json.Marshal(secretValue)
	secret := string(in[1 : len(in)-1])
	scenario := lines("init", "user",
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"it is `+secret+`"}]}}`,
		"stderr 100% of "+secretValue,
		`{"type":"result","subtype":"error","is_error":true,"result":"refused: 50%, `+secret+`"}`)
	r := run1(t, call{scenario: scenario, args: []string{"--junit", at("junit.xml"), "--report", at("page.html")},
		env: []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + at("summary"), "MY_API_KEY=" + secretValue}}).wants(1)

	found := ""
	for line := range strings.Lines(r.said) {
		if strings.HasPrefix(line, "::error ") {
			found += line
		}
	}
	if !strings.HasPrefix(found, "::error title=cursor-wrap%3A error::The run failed after ") || !strings.HasSuffix(found, "refused: 50%25, ***.\n") {
		t.Errorf("annotation %q in %s", found, r.said)
	}
	if summary := read("summary"); !strings.HasPrefix(summary, "# mine\n\n## ") {
		t.Errorf("summary %.300q", summary)
	}
	if bytes.Contains(r.stdout, []byte("::error")) {
		t.Error("stdout is not the agent's alone")
	}
	log, err := os.ReadFile(r.logFile())
	if err != nil || !bytes.Contains(log, []byte(secret)) {
		t.Error("the log has lost the secret", err)
	}
	for name, text := range map[string]string{"summary": read("summary"), "junit": read("junit.xml"), "page": read("page.html"), "annotation": found} {
		if strings.Contains(text, "s3cr") || !strings.Contains(text, "***") && !strings.Contains(text, "&#42;&#42;&#42;") {
			t.Errorf("%s shows the secret, or nothing masked: %s", name, text)
		}
	}
	if left, _ := filepath.Glob(at(".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A run that went well is not annotated, and elsewhere nothing is.
func TestAnnotationsAreForFailuresOnGitHub(t *testing.T) {
	t.Parallel()
	summary := filepath.Join(t.TempDir(), "summary")
	good := run1(t, call{scenario: "good.txt", env: []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + summary}}).wants(0)
	if text, err := os.ReadFile(summary); err != nil || !strings.Contains(string(text), "success") {
		t.Errorf("summary %q, %v", text, err)
	}
	other := run1(t, call{scenario: "no-result.txt", env: []string{"GITHUB_STEP_SUMMARY=" + summary + "2"}}).wants(1)
	for _, r := range []*ran{good, other} {
		if strings.Contains(r.said, "::error") {
			t.Errorf("annotated: %s", r.said)
		}
	}
	if _, err := os.Stat(summary + "2"); err == nil {
		t.Error("a summary without GitHub")
	}
}

// What goes wrong with a report is told, and changes nothing about the run.
func TestAReportThatCannotBeWrittenChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.WriteFile(full, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run1(t, call{scenario: "good.txt", args: args("--junit /dev/full"),
		env: []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + full}}).wants(0).says("junit report /dev/full: ", "step summary "+full+": there is no room")
	if n := strings.Count(r.said, "the run itself is not affected"); n != 2 {
		t.Errorf("%d warnings: %s", n, r.said)
	}
	if info, err := os.Stat(full); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
	run1(t, call{scenario: "good.txt", env: []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=/no/such/summary"}}).wants(0).says("step summary")
}

// The environment asks for a report as the flag does.
func TestReportsAreAskedForInTheEnvironment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "junit.xml")
	r := run1(t, call{scenario: "good.txt", env: []string{"CURSOR_WRAP_JUNIT=" + file}}).wants(0)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if test := r.junit(string(text)); test.Suite.Tests != 1 || test.kind() != "" || test.Suite.Case[0].Out == "" {
		t.Errorf("%s", text)
	}
}

func TestReportOfALogOnStdinIntoAFile(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "good.txt"}).wants(0)
	log, err := os.Open(r.logFile())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	dir := t.TempDir()
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink("story.json", link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "story.json"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, call{bare: true, args: []string{"report", "--format=json", "-o", link, "-"}, reader: log}).finish().wants(0)
	text, err := os.ReadFile(filepath.Join(dir, "story.json"))
	if err != nil || !json.Valid(text) {
		t.Errorf("%s, %v", text, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
}

func TestReportOfWhatIsNoLogIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "hello\n"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, call{bare: true, args: []string{"report", "--format=md", file}, prompt: "-"}).finish().wants(1).says("not a session log")
	}
	start(t, call{bare: true, args: []string{"report", dir + "/none"}, prompt: "-"}).finish().wants(1).says("open log")
}

// Whoever is in a hurry is not held up by a report, and the run is what it was.
func TestASignalLeavesTheReportsBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	lazy, err := unix.Open(fifo, unix.O_RDWR|unix.O_NONBLOCK, 0) // a reader that does not read
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(lazy)
	for err == nil { // until it is full
		_, err = unix.Write(lazy, make([]byte, 4096))
	}
	p := start(t, call{scenario: "good.txt", args: []string{"--junit", filepath.Join(dir, "junit.xml"), "--report", fifo}})
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // nobody reads the other
		if _, err := os.Stat(filepath.Join(dir, "junit.xml")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no report")
		}
	}
	p.signal(syscall.SIGTERM)
	p.finish().wants(0).says("the reports are not complete")
}

// TestAPipeThatNobodyReads holds up no run.
func TestAPipeThatNobodyReads(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--junit", fifo}, {"--report", fifo}, nil} {
		run1(t, call{scenario: "good.txt", args: args, env: []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + fifo}}).
			wants(0).says(fifo, "the run itself is not affected")
	}
}
