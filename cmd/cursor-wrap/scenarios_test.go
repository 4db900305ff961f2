package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// play is what becomes of one scenario.
type play struct {
	file    string
	args    []string
	code    int
	outcome string
	subtype string // of the last result line on stdout
	kind    string // of the verdict; none where it is empty
	finding string // of the tree; "confirmed" where a hang has none
	message string // part of the one in run_end
	said    string // part of stderr
	heavy   bool   // runs alone
}

func args(s string) []string { return strings.Fields(s) }

// brief ends what ignores polite signals after a moment.
const brief = "--kill-grace=500ms"

var plays = []play{
	{file: "await-background.txt", args: args("--idle-timeout=300ms --tool-grace=0")},
	{file: "binary.txt"},
	{file: "closes-stdin.txt"},
	{file: "crlf.txt"},
	{file: "exits-leaving-stdout-holder.txt", args: args(brief)},
	{file: "flood.txt", heavy: true},
	{file: "good.txt"},
	{file: "h01-background-server.txt", args: args("--idle-timeout=200ms --background-timeout=1s"),
		code: 2, outcome: "hang", subtype: "hang", kind: "background", message: "npm run dev"},
	{file: "h02-background-finite.txt", args: args("--idle-timeout=300ms")},
	{file: "h02-moved-to-background.txt", args: args("--idle-timeout=300ms")},
	{file: "h03-linger-after-result.txt", args: args("--exit-grace=200ms")},
	{file: "h03-linger-deaf.txt", args: args("--exit-grace=200ms " + brief)},
	{file: "h04-no-output.txt", args: args("--startup-timeout=300ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "startup", message: "not one line"},
	{file: "h05-reads-stdin-to-end.txt"},
	{file: "h06-trust-exit-zero.txt", code: 1, outcome: "error", subtype: "no_result",
		message: "without a result (exit 0)", said: "--trust"},
	{file: "h07-login-waits.txt", args: args("--startup-timeout=500ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "startup", said: "https://login.example.invalid/device"},
	{file: "h08-mcp-hang.txt", args: args("--tool-timeout=500ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "tool", message: "mcp"},
	{file: "h09-shell-asleep.txt", args: args("--tool-grace=300ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "tool", message: "echo hello"},
	{file: "h09-shell-spins.txt", args: args("--tool-grace=300ms --busy-grace=700ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "tool", message: "echo hello", finding: "busy"},
	{file: "h10-waits-for-input.txt"},
	{file: "h11-reconnect-loop.txt", args: args("--reconnect-timeout=1s --idle-timeout=600ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "reconnect", message: "no progress"},
	{file: "h11-reconnects.txt"},
	{file: "h11-retries-then-fails.txt", code: 1, outcome: "error", subtype: "no_result",
		message: "exit 1", said: "server refused the request after retries"},
	{file: "h12-compaction-loop.txt", args: args("--max-duration=1s"),
		code: 124, outcome: "duration", subtype: "duration", kind: "duration", message: "whole time"},
	{file: "h12-compaction-pause.txt"},
	{file: "h13-long-generation.txt", args: args("--idle-timeout=300ms")},
	{file: "h14-subagent-background.txt", args: args("--idle-timeout=300ms")},
	{file: "h14-subagent-foreground.txt", args: args("--idle-timeout=300ms")},
	{file: "h14-subagent-hang.txt", args: args("--tool-timeout=500ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "tool", message: "task"},
	{file: "h15-stall-after-tool.txt", args: args("--idle-timeout=400ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "idle", message: "0 open tool calls"},
	{file: "h16-crash.txt", code: 1, outcome: "error", subtype: "no_result", message: "SIGSEGV"},
	{file: "h16-exit-1-no-result.txt", code: 1, outcome: "error", subtype: "no_result", message: "exit 1"},
	{file: "h16-killed.txt", code: 1, outcome: "error", subtype: "no_result", message: "SIGKILL"},
	{file: "h17-spins-silently.txt", args: args("--startup-timeout=300ms --busy-grace=700ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "startup", message: "busy without progress", finding: "busy"},
	{file: "h18-orphans.txt", args: args(brief)},
	{file: "h18-spared-worker.txt"},
	{file: "h18-stopped-child.txt", args: args("--tool-grace=300ms --busy-grace=700ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "tool", message: "is stopped", finding: "stopped"},
	{file: "h20-claim-waits.txt", args: args("--startup-timeout=500ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "startup", said: "Waiting for chat"},
	{file: "h21-cut-last-line.txt", code: 1, outcome: "error", subtype: "no_result", message: "exit 0"},
	{file: "h22-long-line.txt", heavy: true},
	{file: "h23-hook-delays-tool.txt", args: args("--tool-grace=5s --idle-timeout=300ms")},
	{file: "half-lines.txt"},
	{file: "hangs-once.txt", args: args("--idle-timeout=400ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "idle", message: "idle"},
	{file: "huge-line.txt", heavy: true},
	{file: "idle-hang.txt", args: args("--idle-timeout=400ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "idle", message: "idle"},
	{file: "is-error.txt", code: 1, outcome: "error", subtype: "error_during_execution", message: "is an error"},
	{file: "late-result-on-term.txt", args: args("--idle-timeout=400ms --kill-grace=30s"), kind: "idle"},
	{file: "never-reads-stdin.txt"},
	{file: "no-newline-at-end.txt"},
	{file: "no-result.txt", code: 1, outcome: "error", subtype: "no_result", message: "exit 0"},
	{file: "other-prompt.txt", said: `another prompt than ours: "review"`},
	{file: "parallel-tools.txt", args: args("--tool-grace=100ms --idle-timeout=200ms")},
	{file: "play-background.txt"},
	{file: "play-old-layout.txt"},
	{file: "play-sibling-keys.txt"},
	{file: "refusal-busy-chat.txt", code: 1, outcome: "error", subtype: "no_result", said: "another process uses this chat"},
	{file: "refusal-key.txt", code: 1, outcome: "error", subtype: "no_result", said: "try: the API key"},
	{file: "refusal-login.txt", code: 1, outcome: "error", subtype: "no_result", said: "try: the agent is not logged in"},
	{file: "refusal-model.txt", code: 1, outcome: "error", subtype: "no_result", said: "try: the model is not available"},
	{file: "refusal-quota.txt", code: 1, outcome: "error", subtype: "no_result", said: "try: the account's usage limit"},
	{file: "refusal-resume-id.txt", code: 1, outcome: "error", subtype: "no_result", said: "try: the chat id was refused"},
	{file: "refusal-sandbox.txt", code: 1, outcome: "error", subtype: "no_result", said: "try: no sandbox"},
	{file: "refusal-trust.txt", code: 1, outcome: "error", subtype: "no_result", said: "try: the workspace is not trusted"},
	{file: "rejected-tools.txt", args: args("--tool-timeout=30s")},
	{file: "slow-build.txt", args: args("--idle-timeout=1s")},
	{file: "slow-tool.txt", args: args("--idle-timeout=200ms")},
	{file: "stderr-flood.txt", heavy: true},
	{file: "stderr-mirror.txt"},
	{file: "stdout-closed-but-alive.txt", args: args("--exit-grace=200ms"),
		code: 1, outcome: "error", subtype: "no_result", message: "closed its stdout"},
	{file: "stray-completion.txt"},
	{file: "tool-hang.txt", args: args("--tool-grace=300ms"),
		code: 2, outcome: "hang", subtype: "hang", kind: "tool", message: "tail -f server.log"},
}

func TestScenariosEndAsTheirHeadsSay(t *testing.T) {
	for _, p := range plays {
		if p.outcome == "" {
			p.outcome, p.subtype = "success", "success"
		}
		t.Run(strings.TrimSuffix(p.file, ".txt"), func(t *testing.T) {
			if !p.heavy {
				t.Parallel()
			}
			c := call{scenario: p.file, agent: built.recorder, args: p.args}
			if p.heavy && underRace {
				c.scenario = slimmer(t, p.file)
			}
			r := run1(t, c).wants(p.code).says(p.said)
			r.healthy(p.subtype)
			r.logIsWhole()
			if e := r.end(); e.Outcome != p.outcome || !strings.Contains(e.Message, p.message) || e.LostRecords != 0 {
				t.Errorf("run_end: %+v, want %s with %q", e, p.outcome, p.message)
			}
			r.judged(p.kind, p.finding)
		})
	}
}

// slimmer is a scenario with less of everything, for the race detector, which makes all of it ten
// times as slow. A line that is too long to be held stays one.
func slimmer(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(scenarios, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("flood 1000000", "flood 30000", "fill 100M", "fill 20M", "repeat 8192", "repeat 1024", "fill 16M", "fill 2M").
		Replace(string(text))
}

func TestEveryScenarioHasItsExpectation(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(scenarios, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if !slices.ContainsFunc(plays, func(p play) bool { return p.file == name }) {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// synthetic are the subtypes of result lines that are the wrapper's own.
var synthetic = []string{"exec_error", "no_result", "hang", "duration"}

// healthy checks stdout against what the recorder saw: the same, and after it nothing or exactly the
// two lines of a failure. There is one result line.
func (r *ran) healthy(subtype string) {
	r.Helper()
	agent := r.recorded()
	last := r.result()
	if last.Subtype != subtype {
		r.Errorf("the result has subtype %q, want %q", last.Subtype, subtype)
	}
	if !slices.Contains(synthetic, subtype) {
		same(r.T, "stdout", r.stdout, agent)
		return
	}
	if !last.IsError || last.Result == "" || last.Wrapper == nil || last.Wrapper.ExitCode != r.code {
		r.Errorf("synthetic result: %+v", last)
	}
	if len(agent) > 0 && agent[len(agent)-1] != '\n' {
		agent = append(agent, '\n')
	}
	n := min(len(agent), len(r.stdout))
	same(r.T, "stdout up to our lines", r.stdout[:n], agent)
	ours := bytes.SplitAfter(r.stdout[n:], []byte("\n"))
	var system struct{ Type, Subtype string }
	if len(ours) != 3 || len(ours[2]) != 0 || json.Unmarshal(ours[0], &system) != nil ||
		system.Type != "system" || system.Subtype != "cursor_cli_error" {
		r.Errorf("behind the stream stand %q, want two lines", ours)
	}
}

// recorded is what the agent wrote, as the recorder saw it.
func (r *ran) recorded() []byte {
	r.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "recorded"))
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// logIsWhole checks that every line of the agent is in the log once, with the time of its arrival,
// and that replay --raw gives the agent's bytes back.
func (r *ran) logIsWhole() {
	r.Helper()
	agent := r.recorded()
	want := bytes.Count(agent, []byte("\n"))
	if len(agent) > 0 && agent[len(agent)-1] != '\n' {
		want++
	}
	got, last := 0, int64(0)
	for _, rec := range r.log() {
		if rec.Msg == "raw_event" || rec.Msg == "raw_part" && rec.End {
			got++
		}
		if strings.HasPrefix(rec.Msg, "raw_") {
			if rec.Recv < last || rec.Recv == 0 {
				r.Errorf("recv_ts %d behind %d", rec.Recv, last)
			}
			last = rec.Recv
		} else if rec.TS == 0 {
			r.Errorf("a record without ts: %s", rec.line)
		}
	}
	if got != want {
		r.Errorf("%d lines in the log, want %d", got, want)
	}
	if e := r.end(); e.Counts.Lines != int64(want) || e.Counts.Bytes != int64(len(agent)) {
		r.Errorf("counts %+v, want %d lines, %d bytes", e.Counts, want, len(agent))
	}
	same(r.T, "replay --raw", r.replay("--raw"), agent)
}

// judged checks the one recorded verdict, or that there is none.
func (r *ran) judged(kind, finding string) {
	r.Helper()
	var kinds []string
	for _, h := range r.verdicts() {
		kinds = append(kinds, h.Kind)
		if h.At < h.Deadline || h.Summary == "" || h.OpenCalls == nil || h.Background == nil || h.Evidence == nil {
			r.Errorf("the Reason is not whole: %+v", h)
			continue
		}
		if h.Kind != "duration" && h.Evidence.Finding != cmp.Or(finding, "confirmed") {
			r.Errorf("the tree says %q, want %q: %s", h.Evidence.Finding, cmp.Or(finding, "confirmed"), h.Summary)
		}
	}
	if strings.Join(kinds, " ") != kind {
		r.Errorf("verdicts %q, want %q", kinds, kind)
	}
}
