package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/report"
	"cursor-wrap/internal/tree"
)

// ran is a program that has ended.
type ran struct {
	*program
	code    int
	stdout  []byte
	said    string // on stderr
	records []record
}

// record is one line of the session log.
type record struct {
	Time    string
	Level   string
	Msg     string
	Recv    int64           `json:"recv_ts"`
	TS      int64           `json:"ts"`
	Raw     json.RawMessage `json:"raw"`
	RawText *string         `json:"raw_text"`
	RawB64  *string         `json:"raw_b64"`
	End     bool
	line    []byte
}

func run1(t *testing.T, c call) *ran {
	t.Helper()
	return start(t, c).finish()
}

// wants checks the exit code, and shows what was said where it is another.
func (r *ran) wants(code int) *ran {
	r.Helper()
	if r.code != code {
		r.Errorf("exit code %d, want %d; stderr: %.2000s", r.code, code, r.said)
	}
	return r
}

// says checks that stderr has all of these.
func (r *ran) says(parts ...string) *ran {
	r.Helper()
	for _, part := range parts {
		if !strings.Contains(r.said, part) {
			r.Errorf("stderr lacks %q: %.2000s", part, r.said)
		}
	}
	return r
}

// logFile is the one log of the call.
func (r *ran) logFile() string {
	r.Helper()
	files, err := filepath.Glob(filepath.Join(r.logs, "*.jsonl"))
	if err != nil || len(files) != 1 {
		r.Fatalf("logs: %v %v; stderr: %.2000s", files, err, r.said)
	}
	return files[0]
}

// log reads the log once; every line of it is valid JSON.
func (r *ran) log() []record {
	r.Helper()
	if r.records != nil {
		return r.records
	}
	text, err := os.ReadFile(r.logFile())
	if err != nil {
		r.Fatal(err)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		r.Errorf("the log ends in the middle of a line: %.200q", text[max(0, len(text)-200):])
	}
	for line := range bytes.Lines(text) {
		rec := record{line: line}
		if err := json.Unmarshal(line, &rec); err != nil {
			r.Errorf("log line %d: %v: %.300s", len(r.records)+1, err, line)
		}
		r.records = append(r.records, rec)
	}
	return r.records
}

// all are the records with that message.
func (r *ran) all(msg string) []record {
	r.Helper()
	var found []record
	for _, rec := range r.log() {
		if rec.Msg == msg {
			found = append(found, rec)
		}
	}
	return found
}

// one decodes the one record with that message.
func (r *ran) one(msg string, into any) {
	r.Helper()
	found := r.all(msg)
	if len(found) != 1 {
		r.Fatalf("the log has %d %s records; stderr: %.2000s", len(found), msg, r.said)
	}
	if err := json.Unmarshal(found[0].line, into); err != nil {
		r.Fatal(err)
	}
}

// ending is the last record of a log.
type ending struct {
	Outcome     string
	ExitCode    int `json:"exit_code"`
	Message     string
	SessionID   string `json:"session_id"`
	LostRecords int    `json:"lost_records"`
	Counts      struct {
		Lines, Bytes int64
		Unmatched    int64 `json:"unmatched_completions"`
	}
	Agent struct {
		ExitCode int `json:"exit_code"`
		Signal   string
	}
}

func (r *ran) end() (e ending) {
	r.Helper()
	r.one("run_end", &e)
	if e.ExitCode != r.code {
		r.Errorf("run_end has exit code %d, the program exited with %d", e.ExitCode, r.code)
	}
	return e
}

// hang is the recorded Reason.
type hang struct {
	Time       string
	Kind       string
	Phase      string
	Summary    string
	At         int64
	Deadline   int64
	LimitMS    int64  `json:"limit_ms"`
	SilenceMS  int64  `json:"silence_ms"`
	ElapsedMS  int64  `json:"elapsed_ms"`
	LastEvent  string `json:"last_event"`
	Attempts   int    `json:"reconnect_attempts"`
	Witness    string
	OpenCalls  []openCall `json:"open_calls"`
	Background []openCall
	Evidence   *struct {
		Finding string
		Tree    *tree.Activity
	}
}

type openCall struct {
	ID, Tool, Argument string
	TaskID             string `json:"task_id"`
	ElapsedMS          int64  `json:"elapsed_ms"`
	DeclaredMS         int64  `json:"declared_ms"`
	Deadline           int64
}

func (r *ran) hang() (h hang) {
	r.Helper()
	r.one("hang_detected", &h)
	return h
}

// verdicts are the recorded ones.
func (r *ran) verdicts() (all []hang) {
	r.Helper()
	for _, rec := range slices.Concat(r.all("hang_detected"), r.all("duration_exceeded")) {
		var h hang
		if err := json.Unmarshal(rec.line, &h); err != nil {
			r.Error(err)
		}
		all = append(all, h)
	}
	return all
}

// replays checks, for every run of the suite that leaves a log, that the monitor comes to the same
// verdict when the log is played through it again.
func (r *ran) replays() {
	r.Helper()
	const longest = 8 << 20 // bytes; a flood takes longer to judge again than to play
	files, _ := filepath.Glob(filepath.Join(r.logs, "*.jsonl"))
	if len(files) != 1 {
		return
	}
	if st, err := os.Stat(files[0]); err != nil || st.Size() > longest {
		return
	}
	log, err := os.Open(files[0])
	if err != nil {
		r.Fatal(err)
	}
	defer log.Close()
	var live, again []*monitor.Reason
	err = report.Replay(log, func(*monitor.Policy) {}, func(m report.Moment) {
		switch {
		case m.Reason != nil && m.What == "verdict":
			again = append(again, m.Reason)
		case m.Reason != nil && m.What == "recorded":
			live = append(live, m.Reason)
		}
	})
	if err != nil {
		return // no turn in it, or none that was kept
	}
	if len(live) != len(again) {
		r.Errorf("the live run came to %d verdicts, its replay to %d: %s", len(live), len(again), files[0])
		return
	}
	for i := range live {
		if a, b := verdict(live[i]), verdict(again[i]); a != b {
			r.Errorf("the live verdict is %s, the replayed one %s", a, b)
		}
	}
}

// verdict is what two verdicts must have in common to be the same.
func verdict(r *monitor.Reason) string {
	s := fmt.Sprint(r.Kind, r.Phase, r.Deadline, r.Limit, r.Witness, len(r.OpenCalls), len(r.Background))
	if r.Evidence != nil {
		s += fmt.Sprint(r.Evidence.Finding)
	}
	return s
}

// result is a result line on stdout.
type result struct {
	Type      string
	Subtype   string
	IsError   bool `json:"is_error"`
	Result    string
	Errors    []string
	SessionID string `json:"session_id"`
	Wrapper   *struct {
		Outcome  string
		ExitCode int `json:"exit_code"`
		Reason   *hang
		Advice   string
		Agent    *struct {
			ExitCode int `json:"exit_code"`
			Signal   string
		}
	}
}

// results are the result lines of a stream.
func results(t *testing.T, stream []byte) (found []result) {
	t.Helper()
	for line := range bytes.Lines(stream) {
		if !bytes.Contains(line, []byte(`"result"`)) {
			continue
		}
		var res result
		var exact map[string]any // a struct's keys match in any case
		if json.Unmarshal(line, &exact) == nil && exact["type"] == "result" && json.Unmarshal(line, &res) == nil {
			found = append(found, res)
		}
	}
	return found
}

// result is the one result line of stdout.
func (r *ran) result() result {
	r.Helper()
	found := results(r.T, r.stdout)
	if len(found) != 1 {
		r.Fatalf("%d result lines on stdout: %.2000q", len(found), r.stdout)
	}
	return found[0]
}

// replay runs the subcommand on the log.
func (r *ran) replay(args ...string) []byte {
	r.Helper()
	cmd := exec.Command(built.wrap, slices.Concat([]string{"replay"}, args, []string{r.logFile()})...)
	cmd.Env = append(r.environment(call{}), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		r.Errorf("replay %v: %v", args, err)
	}
	return out
}

// same compares streams without printing megabytes of them.
func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	from := max(0, n-60)
	t.Errorf("%s: %d bytes, want %d; they differ from byte %d on: got …%.200q, want …%.200q",
		what, len(got), len(want), n, got[from:], want[from:])
}
