package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/monitor"
)

// The acceptance points of the headless run, one test each. Where a moment counts, it is the moment
// in the log that is looked at.

func TestAccept01AResultIsExitZero(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"exit 0": "exit 0", "exit 3": "exit 3", "killed": "die KILL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: lines("init", "user", "say Done.", "result", how), args: args("--quiet")}).wants(0)
			if r.said != "" {
				t.Errorf("a success is told on stderr: %q", r.said)
			}
			if e := r.end(); e.Outcome != "success" {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestAccept02AnIdleHangEndsWithinIdleTimeoutAndTick(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "h15-stall-after-tool.txt", args: args("--idle-timeout=400ms --tick-interval=10s")}).wants(2)
	h := r.hang()
	last := r.all("raw_event")
	silent := h.At - last[len(last)-1].Recv
	if h.Kind != "idle" || silent < 400 || silent > 400+10_000 {
		t.Errorf("ended after %d ms of silence: %+v", silent, h)
	}
}

func TestAccept03AToolPastItsDeclaredTimeoutAndGraceIsEnded(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "tool-hang.txt", args: args("--tool-grace=300ms --tick-interval=10s --idle-timeout=50ms")}).wants(2)
	h := r.hang()
	if h.Kind != "tool" || len(h.OpenCalls) != 1 {
		t.Fatalf("%+v", h)
	}
	c := h.OpenCalls[0]
	if c.DeclaredMS != 100 || c.ElapsedMS < 400 || c.ElapsedMS > 400+10_000 || h.LimitMS != 400 {
		t.Errorf("ended after %d ms: %+v", c.ElapsedMS, h)
	}
}

func TestAccept04AToolWithinItsDeclaredTimeoutIsNeverEnded(t *testing.T) {
	t.Parallel()
	r := run1(t, call{
		scenario: lines("init", "user", "tool start build shell 30000 make all", "sleep 1500ms", "tool done build 0 ok", "say Built.", "result"),
		args:     args("--idle-timeout=300ms --tool-grace=0 --tool-timeout=100ms --background-timeout=100ms --reconnect-timeout=100ms"),
	}).wants(0)
	r.judged("", "")
}

func TestAccept05NorParallelToolsOfWhichOneEndsFirst(t *testing.T) {
	t.Parallel()
	r := run1(t, call{
		scenario: lines("init", "user", "tool start long shell 30000 sleep 20", "tool start quick shell 1 true", "sleep 300ms",
			"tool done quick", "sleep 1s", "tool done long", "say Done.", "result"),
		args: args("--idle-timeout=200ms --tool-grace=50ms"),
	}).wants(0)
	r.judged("", "")
}

func TestAccept06EveryRawEventIsInTheLogWithItsTime(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "good.txt", agent: built.recorder}).wants(0)
	r.logIsWhole()
	var joined string
	for _, rec := range r.all("raw_event") {
		joined += string(rec.Raw) + "\n"
	}
	same(t, "the raw fields", []byte(joined), r.recorded())
}

func TestAccept07EveryHangDecisionIsThereWithItsWholeReason(t *testing.T) {
	t.Parallel()
	r := run1(t, call{
		scenario: lines("init", "user", "tool start a shell 100 tail -f server.log", "tool start b mcp database query", "linger"),
		args:     args("--tool-grace=100ms --tool-timeout=600ms"),
	}).wants(2)
	h := r.hang()
	if len(h.OpenCalls) != 2 || h.Kind != "tool" || h.Phase != "tools" || h.LastEvent != "tool_call/started" || h.SilenceMS < 500 ||
		h.LimitMS != 600 || h.Deadline == 0 || h.At < h.Deadline || h.ElapsedMS < h.SilenceMS || h.Witness != "stream and tree" || h.Evidence.Finding != "confirmed" {
		t.Fatalf("%+v", h)
	}
	a, b := h.OpenCalls[0], h.OpenCalls[1]
	if a.Tool != "shell" || a.Argument != "tail -f server.log" || a.DeclaredMS != 100 || a.ElapsedMS < 600 || a.Deadline == 0 || a.ID == "" {
		t.Errorf("%+v", a)
	}
	if b.Tool != "mcp" || b.DeclaredMS != 0 || b.Deadline != h.Deadline {
		t.Errorf("%+v", b)
	}
	// The same Reason stands on stdout.
	res := r.result()
	told, err := json.Marshal(res.Wrapper.Reason)
	if err != nil {
		t.Fatal(err)
	}
	h.Time = ""
	logged, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the Reason on stdout", told, logged)
	if res.Result != h.Summary || !strings.Contains(r.said, h.Summary) {
		t.Errorf("the result says %q, stderr says %q, the log %q", res.Result, r.said, h.Summary)
	}
}

func TestAccept08StdoutIsByteIdentical(t *testing.T) {
	t.Parallel()
	for _, stream := range captureFiles(t, "../../testdata/streams") {
		t.Run(filepath.Base(stream), func(t *testing.T) {
			t.Parallel()
			playCapture(t, stream)
		})
	}
}

func TestAccept09IntAndTermEndTheChildCleanly(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, call{scenario: lines("init", "spawn plain 60s node mcp.js", "user", "linger")})
			p.readUntil(`"user"`)
			p.readUntil("\n")
			p.signal(sig)
			r := p.finish().wants(128 + int(sig))
			if len(results(t, r.stdout)) != 0 {
				t.Errorf("an aborted run has a result: %s", r.stdout)
			}
			if e := r.end(); e.Outcome != "signal" || e.Agent.ExitCode != 143 {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestAccept10AllThresholdsAreFlags(t *testing.T) {
	t.Parallel()
	flags := args("--startup-timeout=21s --idle-timeout=22s --tool-grace=23s --tool-timeout=24s --background-timeout=25s " +
		"--reconnect-timeout=26s --exit-grace=27s --max-duration=28m --tick-interval=3s --kill-grace=4s --confirm=off --confirm-window=16s --busy-grace=11m")
	r := run1(t, call{scenario: "good.txt", args: flags}).wants(0)
	var begun struct{ Policy monitor.Policy }
	r.one("run_start", &begun)
	want := monitor.Policy{
		Startup: 21 * time.Second, Idle: 22 * time.Second, ToolGrace: 23 * time.Second, Tool: 24 * time.Second,
		Background: 25 * time.Second, Reconnect: 26 * time.Second, ExitGrace: 27 * time.Second, Max: 28 * time.Minute,
		Tick: 3 * time.Second, Window: 16 * time.Second, Busy: 11 * time.Minute,
	}
	if begun.Policy != want {
		t.Errorf("policy %v, want %v", begun.Policy, want)
	}
	help := run1(t, call{bare: true, args: []string{"--help"}}).wants(0)
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if !strings.Contains(string(help.stdout), name+" ") {
			t.Errorf("--help lacks %s", name)
		}
	}
}

func TestAccept11NoResultNeverExitsZero(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]string{
		"nothing at all":       lines("exit 0"),
		"init alone":           lines("init", "exit 0"),
		"blank lines":          lines(`raw "\n\n\n"`, "exit 0"),
		"half of a result":     lines("init", `raw "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false"`, "exit 0"),
		"a word":               lines(`raw "result\n"`),
		"a nested result":      lines(`raw "{\"type\":\"assistant\",\"x\":{\"type\":\"result\",\"is_error\":false}}\n"`),
		"a quoted result":      lines(`raw "\"{\\\"type\\\":\\\"result\\\",\\\"is_error\\\":false}\"\n"`),
		"a result in capitals": lines(`raw "{\"Type\":\"result\",\"subtype\":\"success\",\"is_error\":false}\n"`),
		"a result on stderr":   lines(`stderr {"type":"result","subtype":"success","is_error":false,"result":"x"}`),
		"an unclear result":    lines(`raw "{\"type\":\"result\",\"result\":\"x\"}\n"`),
		"a prose success":      lines("init", "user", "say Everything is done, success!"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: scenario}).wants(1)
			if e := r.end(); e.Outcome != "error" {
				t.Errorf("%+v", e)
			}
			r.result() // the agent's own unclear one, or ours
		})
	}
}

func TestAccept12AResultAndAProcessThatNeverExitsIsExitZero(t *testing.T) {
	t.Parallel()
	r := run1(t, call{
		scenario: lines("ignore TERM", "init", "user", "spawn deaf 60s node mcp.js", "say Done.", "result", "linger"),
		args:     args("--exit-grace=200ms --kill-grace=300ms"),
	}).wants(0)
	if e := r.end(); e.Outcome != "success" || e.Agent.Signal != "SIGKILL" {
		t.Errorf("%+v", e)
	}
	var torn struct {
		Ended []struct{ Found, Signal string }
		Left  []any
	}
	r.one("teardown", &torn)
	if len(torn.Ended) != 2 || len(torn.Left) != 0 || torn.Ended[0].Signal != "SIGKILL" || torn.Ended[1].Signal != "SIGKILL" {
		t.Errorf("%+v", torn)
	}
	r.judged("", "")
}

func TestAccept13ABackgroundShellsSilenceIsNotAnIdleHang(t *testing.T) {
	t.Parallel()
	r := run1(t, call{
		scenario: lines("init", "user", "tool start s background npm run dev", "tool background s 4711 99", "say-midturn It runs.",
			"sleep 1500ms", "notify 4711 success Run npm", "say Done.", "result"),
		args: args("--idle-timeout=300ms"),
	}).wants(0)
	r.judged("", "")
}

func TestAccept14RetriesAloneDoNotKeepARunAlive(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "h11-reconnect-loop.txt", args: args("--reconnect-timeout=800ms")}).wants(2)
	h := r.hang()
	if h.Kind != "reconnect" || h.Attempts == 0 || h.SilenceMS >= 800 {
		t.Errorf("%+v", h)
	}
}

// captureFiles are the recorded streams of a folder.
func captureFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s: %v", dir, err)
	}
	return files
}

// playCapture lets the agent write a recorded stream and compares what comes out at both ends. What
// stands in it decides on the outcome.
func playCapture(t *testing.T, file string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	file, err = filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	r := run1(t, call{scenario: lines("play " + file + " fast")})
	n := len(want)
	switch ended := results(t, want); {
	case len(ended) == 0:
		r.wants(1)
		n = min(n, len(r.stdout))
		if got := results(t, r.stdout[n:]); len(got) != 1 || got[0].Subtype != "no_result" {
			t.Errorf("behind the stream: %q", r.stdout[n:])
		}
	case ended[len(ended)-1].IsError:
		r.wants(1)
	default:
		r.wants(0)
	}
	if len(r.stdout) > n && len(results(t, want)) == 0 {
		r.stdout = r.stdout[:n]
	}
	same(t, "stdout", r.stdout, want)
	same(t, "replay --raw", r.replay("--raw"), want)
}
