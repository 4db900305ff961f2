package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestASignalEndsTheRunWithItsNumberAndNoResult(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		for _, format := range []string{"stream-json", "json"} {
			t.Run(fmt.Sprintf("%v %s", sig, format), func(t *testing.T) {
				t.Parallel()
				p := start(t, call{scenario: lines("init", "spawn launcher 60s npx mcp", "touch $DIR/there", "linger"),
					args: args("--output-format=" + format)})
				p.awaitFile("there")
				p.signal(sig)
				r := p.finish().wants(128 + int(sig)).says("signal")
				if e := r.end(); e.Outcome != "signal" {
					t.Errorf("%+v", e)
				}
				if len(results(t, r.stdout)) != 0 || format == "json" && len(r.stdout) != 0 {
					t.Errorf("stdout %s", r.stdout)
				}
				if format == "stream-json" {
					same(t, "stdout", r.stdout, r.replay("--raw"))
				}
			})
		}
	}
}

// awaitFile waits until the agent has touched a file of the call's folder.
func (p *program) awaitFile(name string) {
	p.Helper()
	file := filepath.Join(p.dir, name)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("no file %s", name)
		}
	}
}

// awaitRecord waits for a record of the log.
func (p *program) awaitRecord(msg string) {
	p.Helper()
	p.awaitLog(msg, func(log []byte) bool { return bytes.Contains(log, []byte(`"msg":"`+msg+`"`)) })
}

// awaitHeld waits until the log tells of so many milliseconds in which nobody listened.
func (p *program) awaitHeld(ms int64) {
	p.Helper()
	p.awaitLog("held", func(log []byte) bool {
		var sum int64
		for line := range bytes.Lines(log) {
			var rec struct {
				Msg      string
				From, To int64
			}
			if bytes.Contains(line, []byte(`"msg":"held"`)) && json.Unmarshal(line, &rec) == nil {
				sum += rec.To - rec.From
			}
		}
		return sum >= ms
	})
}

func (p *program) awaitLog(what string, there func(log []byte) bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(p.logs, "*.jsonl"))
		if len(files) == 1 {
			// It may be renamed between the two steps: the next look finds it.
			if text, err := os.ReadFile(files[0]); err == nil && there(text) {
				return
			}
		}
		if time.Now().After(deadline) {
			p.Fatalf("no %s in %v", what, files)
		}
	}
}

func TestASecondSignalCutsTheGraceShort(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("on TERM touch $DIR/asked", "init", "spawn deaf 80s node mcp.js", "touch $DIR/there", "linger"),
		args: args("--kill-grace=10m")})
	p.awaitFile("there")
	p.signal(syscall.SIGTERM)
	p.awaitFile("asked")
	p.signal(syscall.SIGINT)
	r := p.finish().wants(143)
	if e := r.end(); e.Agent.Signal != "SIGKILL" {
		t.Errorf("%+v", e)
	}
	if n := len(r.all("signal")); n != 2 {
		t.Errorf("%d signals in the log", n)
	}
}

func TestASecondSignalCutsTheGraceOfAHangShort(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("on TERM touch $DIR/asked", "init", "linger"), args: args("--kill-grace=10m --idle-timeout=300ms")})
	p.awaitFile("asked") // the verdict has fallen
	p.signal(syscall.SIGINT)
	p.awaitRecord("signal")
	p.signal(syscall.SIGINT)
	p.finish().wants(2) // the first cause stands
}

func TestASignalBeforeTheFirstLineEndsTheRun(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("touch $DIR/there", "linger")})
	p.awaitFile("there")
	p.signal(syscall.SIGTERM)
	if r := p.finish().wants(143); len(r.stdout) != 0 {
		t.Errorf("stdout %q", r.stdout)
	}
}

func TestASignalAfterTheResultKeepsTheResult(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("init", "say Done.", "result", "linger"), args: args("--exit-grace=10m")})
	p.readUntil(`"type":"result"`)
	p.readUntil("\n")
	p.awaitRecord("result")
	p.signal(syscall.SIGTERM)
	p.finish().wants(0).result()
}

func TestAnIgnoredHangUpStaysIgnored(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("init", "touch $DIR/there", "wait-file $DIR/go", "result"),
		via: []string{"/bin/sh", "-c", `trap '' HUP; exec "$@"`, "sh"}})
	p.awaitFile("there")
	p.signal(syscall.SIGHUP)
	p.write("go", "")
	p.finish().wants(0)
}

func TestAShellsBackgroundJobStillHeedsInt(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("init", "touch $DIR/there", "linger"),
		via: []string{"/bin/sh", "-c", `trap '' INT QUIT PIPE; exec "$@"`, "sh"}})
	p.awaitFile("there")
	p.signal(syscall.SIGINT)
	p.finish().wants(130)
}

func TestAReaderWhoLeavesEndsTheRunWith141(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("init", "wait-file $DIR/go", "repeat 1000", "think On and on.", "end", "linger")})
	p.readUntil("\n")
	p.out.Close()
	p.write("go", "")
	r := p.exit().wants(141)
	if e := r.end(); e.Outcome != "signal" {
		t.Errorf("%+v", e)
	}
}

func TestASignalEndsARunWhoseConsumerDoesNotRead(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("init", "flood 30000", "say Done.", "result"), args: args("--tick-interval=100ms --idle-timeout=300ms")})
	p.readUntil("\n")
	p.awaitHeld(100)
	p.signal(syscall.SIGTERM)
	r := p.exit().wants(143)
	if e := r.end(); e.Outcome != "signal" {
		t.Errorf("%+v", e)
	}
}

func TestASignalEndsTheSearchForTheAgent(t *testing.T) {
	t.Parallel()
	p := start(t, call{agent: "-", env: []string{"PATH=" + bin(t, map[string]string{"agent": built.dumb}) + ":/usr/bin:/bin"}})
	p.awaitFile("asked")
	p.signal(syscall.SIGTERM)
	if r := p.finish().wants(143); len(r.stdout) != 0 {
		t.Errorf("stdout %q", r.stdout)
	}
}

func TestAStoppedWrapperJudgesNothingByTheTimeItSlept(t *testing.T) {
	t.Parallel()
	p := start(t, call{scenario: lines("init", "user", "touch $DIR/there", "wait-file $DIR/stopped", "sleep 2500ms", "touch $DIR/slept", "wait-file $DIR/go", "result"),
		args: args("--idle-timeout=1s --tick-interval=100ms")})
	p.awaitFile("there")
	p.signal(syscall.SIGSTOP)
	p.write("stopped", "")
	p.awaitFile("slept")
	p.signal(syscall.SIGCONT)
	p.write("go", "")
	r := p.finish().wants(0)
	r.judged("", "")
}

func TestAConsumerThatStopsReadingIsNoHang(t *testing.T) {
	t.Parallel()
	// Some MiB do not fit into the two pipes and the wrapper: then that waits for us, and the agent
	// for it.
	p := start(t, call{scenario: lines("init", "flood 30000", "say Done.", "result"), args: args("--idle-timeout=300ms --tick-interval=100ms --max-duration=10m")})
	p.readUntil("\n")
	p.awaitHeld(600) // it has looked, the idle timeout long past, and told why there is no verdict
	r := p.finish().wants(0)
	r.judged("", "")
}
