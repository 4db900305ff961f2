package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// logged runs the subcommand on a folder.
func logged(t *testing.T, folder string, words ...string) *ran {
	t.Helper()
	return run1(t, call{bare: true, prompt: "-", args: append([]string{"logs", "--log-dir", folder}, words...)})
}

// entries are what --json lists.
func (r *ran) entries() []logEntry {
	r.Helper()
	var list []logEntry
	if err := json.Unmarshal(r.stdout, &list); err != nil || list == nil {
		r.Fatalf("%v: %.500q; stderr %s", err, r.stdout, r.said)
	}
	return list
}

// outcomes are those of the list, in its order.
func (r *ran) outcomes() string {
	r.Helper()
	var all []string
	for _, e := range r.entries() {
		all = append(all, e.Outcome)
	}
	return strings.Join(all, " ")
}

// putLog makes a log whose run came out in a way.
func putLog(t *testing.T, folder string, start int64, run, session, outcome string, flagged bool) string {
	t.Helper()
	text := fmt.Sprintf(`{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"run_start","ts":1,"run_id":%q,"cwd":"/w","workspace":""}`+"\n", run)
	if outcome != "" {
		text += fmt.Sprintf(`{"time":"2026-11-21T19:07:50.123Z","level":"INFO","msg":"run_end","ts":1,"outcome":%q,"exit_code":1,"session_id":%q,"took_ms":65000,"turns":2,"counts":{"calls":3}}`+"\n", outcome, session)
	}
	file := filepath.Join(folder, fmt.Sprintf("cursor-wrap-%d-%s.jsonl", start, session))
	for name, text := range map[string]string{file: text, file + ".flagged": "{}\n"} {
		if name == file || flagged {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return file
}

func TestLogsOfRunsThatCameOutInEveryWay(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	dir := "--log-dir=" + folder
	run1(t, call{scenario: "good.txt", args: args(dir)}).wants(0)
	run1(t, call{scenario: "h04-no-output.txt", args: args(dir + " --startup-timeout=1s --kill-grace=1s")}).wants(2)
	killed := contain(t, call{scenario: lines("init", "linger"), args: args(dir)})
	killed.readUntil(`"init"`)
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-killed.exited
	killed.empty(time.Now().Add(patience))
	alive := start(t, call{scenario: lines("init", "wait-file $DIR/go", "say Done.", "result"), args: args(dir)})
	alive.readUntil(`"init"`)

	list := logged(t, folder, "--json").wants(0)
	if got := list.outcomes(); got != "hang running killed success" {
		t.Errorf("%s", got)
	}
	for _, e := range list.entries() {
		over := e.Outcome == "hang" || e.Outcome == "success"
		if e.RunID == "" || e.Workspace == "" || e.Log == "" || e.Size == 0 || e.Flagged != (e.Outcome == "hang") || e.Running != (e.Outcome == "running") ||
			(e.ExitCode != nil) != over || (e.Took != nil) != over || (e.Turns != nil) != over {
			t.Errorf("%+v", e)
		}
	}
	table := string(logged(t, folder).wants(0).stdout)
	for _, row := range []string{"! ", "hang 2", "success 0", "running ", "killed "} {
		if strings.Count(table, row) != 1 {
			t.Errorf("%q is not there once:\n%s", row, table)
		}
	}
	if got := logged(t, folder, "--flagged", "--json").outcomes(); got != "hang" {
		t.Errorf("flagged: %s", got)
	}

	alive.write("go", "")
	alive.finish().wants(0)
	if got := logged(t, folder, "--json").outcomes(); got != "hang success killed success" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestLogsAreNamedByAnyID(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := putLog(t, folder, 1, "aa11", "chat-one", "success", false)
	putLog(t, folder, 2, "aa22", "chat-two", "hang", true)
	putLog(t, folder, 3, "bb33", "chat-two", "error", true)
	for id, want := range map[string]string{"aa1": "aa11", "chat-one": "aa11", path: "aa11", filepath.Base(path): "aa11", "chat-two": "bb33 aa22", "b": "bb33"} {
		var got []string
		for _, e := range logged(t, folder, "--json", id).wants(0).entries() {
			got = append(got, e.RunID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", id, got, want)
		}
	}
	logged(t, folder, "aa").wants(1).says("aa11", "aa22", "more of the id")
	logged(t, folder, "cc").wants(1).says(`"cc"`, folder, "see cursor-wrap logs")
	logged(t, folder, "--ack", "aa").wants(1)
	if e := logged(t, folder, "--json", "aa11", "chat-one").entries(); len(e) != 1 || *e[0].Took != 65_000 || *e[0].Calls != 3 || e[0].Workspace != "/w" || e[0].Started.UnixMilli() != 1 {
		t.Errorf("%+v", e)
	}
}

func TestLogsAreAcknowledged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var files []string
	for n, run := range []string{"aa11", "bb22", "cc33"} {
		files = append(files, putLog(t, folder, int64(n), run, fmt.Sprint("chat", n), "error", true))
	}
	flagged := func() (n int) {
		for _, f := range files {
			if _, err := os.Stat(f + ".flagged"); err == nil {
				n++
			}
			if _, err := os.Stat(f); err != nil {
				t.Error(err)
			}
		}
		return n
	}
	logged(t, folder, "--ack").wants(64).says("--ack", "--all")
	logged(t, folder, "--ack", "--all", "aa11").wants(64)
	logged(t, folder, "--ack", "aa11", "nobody").wants(1).says("nobody")
	if got := flagged(); got != 3 {
		t.Fatalf("%d flagged after wrong calls", got)
	}
	if r := logged(t, folder, "--ack", "aa").wants(0); !strings.Contains(string(r.stdout), "aa11") || flagged() != 2 {
		t.Errorf("%d flagged; %s", flagged(), r.stdout)
	}
	logged(t, folder, "--ack", "aa11").wants(0).says("not flagged")
	if e := logged(t, folder, "--ack", "--all", "--json").wants(0).entries(); len(e) != 2 || e[0].Flagged || flagged() != 0 {
		t.Errorf("%+v, %d flagged", e, flagged())
	}
	logged(t, folder, "--ack", "--all").wants(0).says("no flagged log")
	logged(t, folder, "--flagged").wants(0).says("no flagged log")
}

func TestLogsOfOddFolders(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	logged(t, none).wants(0).says("no session log", none)
	if e := logged(t, none, "--json").wants(0).entries(); len(e) != 0 {
		t.Errorf("%+v", e)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	logged(t, file).wants(1).says("--log-dir", file)
	if err := unix.Mkfifo(filepath.Join(folder, "cursor-wrap-1-fifo.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "cursor-wrap-x.jsonl"), []byte("notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := logged(t, folder, "--json").wants(0).outcomes(); got != "unreadable" {
		t.Errorf("%s", got)
	}
	logged(t, folder, "--last=-3").wants(64).says("--last")
	logged(t, folder, "").wants(64)
	logged(t, folder, folder).wants(1).says("directory")
}

// What an agent calls its session, or a folder is called, does not reach the
// terminal as it is.
func TestLogsShowNoControlCharacters(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "logs\x1b]0;x\x07")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file := putLog(t, folder, 1, "run", "s", "", true)
	const evil = `\u001b[2J\u009b31m\nx\u202e`
	text := `{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"run_start","run_id":"` + evil + `","cwd":"/w` + evil + `"}` + "\n" +
		`{"time":"2026-11-21T19:07:44.123Z","level":"INFO","msg":"run_end","outcome":"` + evil + `","session_id":"` + evil + `"}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{nil, {"--json"}, {"--flagged"}, {"nobody"}, {"--ack", "--all"}, {"--ack", "--all"}} {
		r := logged(t, folder, words...)
		for _, c := range string(r.stdout) + r.said {
			if c < ' ' && c != '\n' || (c >= 0x7f && c < 0xa0 || c == 0x202e) && !slices.Contains(words, "--json") {
				t.Errorf("%q: %q", words, string(r.stdout)+r.said)
				break
			}
		}
	}
}

func TestLogsAreCompleted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	putLog(t, folder, 1, "aa11", "chat-one", "success", false)
	putLog(t, folder, 2, "bb22", "chat-two", "hang", true)
	for begun, want := range map[string]string{"": "bb22 aa11", "a": "aa11", "chat-t": "chat-two", "x": ""} {
		r := run1(t, call{bare: true, prompt: "-", args: []string{"__complete", "logs", "--log-dir", folder, begun}}).wants(0)
		var got []string
		for line := range strings.Lines(string(r.stdout)) {
			if id, about, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				got = append(got, id)
				if !strings.Contains(about, "/w") {
					t.Errorf("%q", line)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q", begun, r.stdout)
		}
	}
}

func TestLogsFolderFromTheEnvironment(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	putLog(t, folder, 1, "aa11", "chat-one", "success", false)
	r := run1(t, call{bare: true, prompt: "-", args: []string{"logs", "--json"}, env: []string{"CURSOR_WRAP_LOG_DIR=" + folder}}).wants(0)
	if got := r.outcomes(); got != "success" {
		t.Error(got)
	}
}

func TestLogColumns(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", 850 * time.Millisecond: "850ms", 5400 * time.Millisecond: "5.4s", 125 * time.Second: "2m05s", 3 * time.Hour: "3h00m", 500 * time.Hour: "20d", -time.Second: "0s"} {
		if got := spent(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0K", 10 << 10: "10K", 1023 << 10: "1.0M", 7 << 30: "7.0G"} {
		if got := bytesShort(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
