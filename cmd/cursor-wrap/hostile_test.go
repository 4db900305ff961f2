package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// unchanged runs a scenario under the recorder: success, nothing added, nothing lost.
func unchanged(t *testing.T, scenario string, extra ...string) *ran {
	t.Helper()
	r := run1(t, call{scenario: scenario, agent: built.recorder, args: extra}).wants(0)
	r.healthy("success")
	r.logIsWhole()
	return r
}

func TestAHundredMegabyteLinePassesInBoundedMemory(t *testing.T) {
	size := "100M"
	if underRace {
		size = "30M"
	}
	// The shell in between forks: what getrusage(2) says of a process on Linux includes the peak of
	// the one that started it, and this one is large.
	r := run1(t, call{scenario: lines("init", "user", "fill "+size, "say x", "result"), agent: built.recorder,
		via: []string{"/bin/sh", "-c", `"$@"; exit $?`, "sh"}, args: args("--log-sync=written")}).wants(0)
	r.healthy("success")
	r.logIsWhole()
	var end struct {
		Wrapper struct {
			RSS int64 `json:"max_rss_bytes"`
		}
	}
	r.one("run_end", &end)
	if limit := int64(64 << 20); end.Wrapper.RSS > limit && !underRace { // the detector multiplies it
		t.Errorf("the wrapper took %d MiB", end.Wrapper.RSS>>20)
	}
}

func TestAResultLineOfManyMegabytesIsAResult(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20<<20/16)
	for _, format := range []string{"stream-json", "json"} {
		t.Run(format, func(t *testing.T) {
			line := fmt.Sprintf(`{"type":"result","subtype":"success","duration_ms":1,"is_error":false,"result":%q,"session_id":"s"}`, long) + "\n"
			stream := t.TempDir() + "/stream"
			if err := os.WriteFile(stream, []byte(line), 0o644); err != nil {
				t.Fatal(err)
			}
			r := run1(t, call{scenario: lines("play " + stream + " fast"), args: args("--output-format=" + format)}).wants(0)
			same(t, "stdout", r.stdout, []byte(line))
			same(t, "replay --raw", r.replay("--raw"), []byte(line))
		})
	}
}

func TestBytesOfAnyKindPass(t *testing.T) {
	t.Parallel()
	var garbage bytes.Buffer
	for i := range 64 << 10 {
		garbage.WriteByte(byte(i*i>>7 ^ i*31)) // every byte, in no order
	}
	tests := map[string][]byte{
		"garbage":              garbage.Bytes(),
		"zeros":                make([]byte, 1<<20),
		"newlines alone":       bytes.Repeat([]byte("\n"), 50_000),
		"CRLF alone":           bytes.Repeat([]byte("\r\n"), 1000),
		"carriage returns":     bytes.Repeat([]byte("\r"), 1000),
		"every byte as a line": everyByte(),
		"deep nesting":         []byte(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "\n"),
		"a surrogate":          []byte(`{"type":"assistant","x":"\ud83d"}` + "\n" + `"\ud83d\u0000"` + "\n"),
		"spaces around":        []byte(" \t{ \"type\" : \"assistant\" } \r\n \n\t\n"),
		"line separators":      []byte("{\"x\":\"\u2028\u2029\x7f\"}\n\u2028\n"),
		"our own records":      []byte(`{"time":"x","level":"DEBUG","msg":"raw_event","recv_ts":1,"raw":{}}` + "\n" + `"}` + "\n"),
	}
	for name, stream := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := t.TempDir() + "/stream"
			if err := os.WriteFile(file, stream, 0o644); err != nil {
				t.Fatal(err)
			}
			unchanged(t, lines("init", "play "+file+" fast", `raw "\n"`, "result"))
		})
	}
}

func everyByte() []byte {
	var b []byte
	for i := range 256 {
		b = append(b, byte(i), '\n')
	}
	return b
}

func TestALastLineWithoutItsEndPassesAsItIs(t *testing.T) {
	t.Parallel()
	r := unchanged(t, lines("init", "result", `raw "half a wo"`))
	if !bytes.HasSuffix(r.stdout, []byte("half a wo")) {
		t.Errorf("stdout ends in %q", r.stdout[max(0, len(r.stdout)-40):])
	}
}

func TestHalfALineIsForwardedWhileTheAgentPauses(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("init", `raw "{\"type\":\"assi"`, "wait-file $DIR/read", `raw "stant\"}\r"`, "wait-file $DIR/again", `raw "\n"`, "result")})
	p.readUntil(`{"type":"assi`)
	p.write("read", "")
	p.readUntil("stant\"}\r")
	p.write("again", "")
	p.readUntil("\n")
	r := p.finish().wants(0)
	same(t, "replay --raw", r.replay("--raw"), r.stdout)
	if e := r.end(); e.Counts.Lines != 3 {
		t.Errorf("%+v", e)
	}
}

func TestAnAgentThatClosesStdoutAfterItsResultAndStaysIsASuccess(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: lines("init", "user", "say Done.", "result", "close stdout", "linger"), args: args("--exit-grace=200ms")}).wants(0)
	if n := len(r.log()); n > 50 {
		t.Errorf("the log of a short run has %d records", n)
	}
}

func TestAnAgentThatClosesStdoutIsNotLoggedOverAndOver(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "stdout-closed-but-alive.txt", args: args("--exit-grace=300ms")}).wants(1)
	if n := len(r.all("stdout_ended")); n != 1 {
		t.Errorf("%d stdout_ended records", n)
	}
}

func TestAHolderOfStdoutDoesNotHoldTheRun(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]string{
		"after a result": lines("init", "user", "spawn holder 60s node worker.js", "say Done.", "result"),
		"without one":    lines("init", "user", "spawn holder 60s node worker.js", "spawn group-holder 60s node mcp.js", "exit 0"),
		"after a crash":  lines("init", "user", "spawn holder 60s node worker.js", "result", "die KILL"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := 0
			if name == "without one" {
				want = 1
			}
			run1(t, call{scenario: scenario}).wants(want).result()
		})
	}
}

func TestStderrOfManyMegabytesIsDrainedAndItsEndIsTold(t *testing.T) {
	r := run1(t, call{scenario: lines("init", "repeat 4000", "stderr fill 2K", "end", "stderr fill 4M", "stderr the last words", "exit 1")}).wants(1)
	res := r.result()
	if len(res.Errors) != 1 || !strings.HasSuffix(res.Errors[0], "the last words") || len([]rune(res.Errors[0])) > 500 {
		t.Errorf("errors %.100q", res.Errors)
	}
	logged := 0
	for _, rec := range r.all("stderr") {
		logged += len(rec.line)
	}
	if logged < 4000*2000+4<<20 {
		t.Errorf("the log has %d bytes about stderr", logged)
	}
	r.says("the last words")
}

func TestTheStartOfALongRefusalIsEnoughForItsAdvice(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: "refusal-model.txt"}).wants(1)
	if res := r.result(); res.Wrapper == nil || !strings.Contains(res.Wrapper.Advice, "model") {
		t.Errorf("%+v", res.Wrapper)
	}
}

func TestAnAgentThatDiesAtOnceIsAnError(t *testing.T) {
	t.Parallel()
	r := run1(t, call{agent: built.silent}).wants(1)
	if res := r.result(); res.Subtype != "no_result" || res.Wrapper.Agent == nil || res.Wrapper.Agent.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
}

func TestAPromptOfTenMegabytes(t *testing.T) {
	prompt := strings.Repeat("fix the \"failing\" test \\ in ünïcode\n", 10<<20/37)
	t.Run("echoed exactly", func(t *testing.T) {
		r := run1(t, call{agent: built.stub, reader: strings.NewReader(prompt)}).wants(0)
		same(t, "the prompt that arrived", []byte(r.file("prompt")), []byte(prompt))
	})
	t.Run("in the user event", func(t *testing.T) {
		r := run1(t, call{scenario: lines("user", "result ok"), reader: strings.NewReader(prompt)}).wants(0)
		if len(r.all("prompt_mismatch")) != 0 || strings.Contains(r.said, "another prompt") {
			t.Errorf("the echo is taken for another prompt: %.300s", r.said)
		}
	})
	t.Run("never read", func(t *testing.T) {
		run1(t, call{scenario: "never-reads-stdin.txt", reader: strings.NewReader(prompt)}).wants(0)
	})
	t.Run("never read by one that stays", func(t *testing.T) {
		r := run1(t, call{scenario: lines("stdin ignore", "linger"), reader: strings.NewReader(prompt), args: args("--startup-timeout=300ms")}).wants(2)
		if h := r.hang(); h.Kind != "startup" {
			t.Errorf("%+v", h)
		}
	})
	t.Run("refused", func(t *testing.T) {
		run1(t, call{scenario: "closes-stdin.txt", reader: strings.NewReader(prompt)}).wants(0)
	})
}

func TestTheAgentsStdinEndsBehindThePrompt(t *testing.T) {
	t.Parallel()
	// Our own stdin stays open and is none of the agent's business.
	ours, open := pipe(t)
	defer open.Close()
	run1(t, call{scenario: "h05-reads-stdin-to-end.txt", args: []string{"fix it"}, reader: ours}).wants(0)
}

func TestStderrThatNobodyReadsDoesNotHoldTheRun(t *testing.T) {
	t.Parallel()
	_, blocked := pipe(t)
	defer blocked.Close()
	run1(t, call{scenario: lines("init", "stderr fill 4M", "result"), stderr: blocked}).wants(0)
}

func TestAStdoutThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	r := run1(t, call{scenario: "good.txt", via: []string{"/bin/sh", "-c", `exec "$@" >/dev/full`, "sh"}}).wants(1).says("no space left")
	if e := r.end(); e.Outcome != "error" {
		t.Errorf("%+v", e)
	}
}

// While nothing but a wait is left to do, the log says so once in a while at most.
func (r *ran) quietLog() {
	r.Helper()
	if n := len(r.log()) - len(r.all("raw_event")) - len(r.all("raw_part")); n > 60 {
		r.Errorf("the log of a short run has %d decisions, %d of them held", n, len(r.all("held")))
	}
}

func TestALongLadderFillsNoLog(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]string{
		"the agent has left":           lines("init", "spawn deaf 60s node mcp.js", "result"),
		"the agent has left, no word":  lines("init", "spawn deaf 60s node mcp.js", "exit 0"),
		"the agent stays":              lines("ignore TERM", "init", "result", "linger"),
		"the agent stays, stdout ends": lines("ignore TERM", "init", "close stdout", "linger"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run1(t, call{scenario: scenario, args: args("--kill-grace=4s --exit-grace=100ms")})
			r.quietLog()
		})
	}
}

func TestAReaderWhoTakesLongFillsNoLog(t *testing.T) {
	t.Parallel()
	r := run1(t, call{scenario: lines("init", "fill 8M", "result"), via: []string{"/bin/sh", "-c", `"$@" | { sleep 4; cat; }`, "sh"}}).wants(0)
	r.quietLog()
	r.judged("", "")
}
