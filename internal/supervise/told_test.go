package supervise

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/process"
)

// TestOrder: on disk, then on stdout, then to the monitor, for every batch.
func TestOrder(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine)
		r.after(time.Second)
		r.emit(thinkLine, `{"type":"thi`)
		r.after(2 * time.Second)
		r.emit(`nking"}`+"\n", okLine)
		r.after(3 * time.Second)
		r.leave(0)
	}, func(r *rig) {
		want := []string{
			"turn_start",
			"commit", "forward", "session s1", "phase",
			"commit", "forward", // the whole line at once
			"commit", "forward", // and the half one after a moment
			"commit", "forward", "result", "phase",
			"agent_exit", "teardown",
		}
		if !slices.Equal(r.log.order, want) {
			t.Errorf("order\n%q, want\n%q", r.log.order, want)
		}
	})
}

// TestHangIsExplained: the record, the synthetic line and the report hold the
// same Reason, and all of it.
func TestHangIsExplained(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine)
		r.after(time.Second)
		r.emit(startLine)
		r.after(100 * time.Second)
		r.emit(thinkLine) // no event moves the deadline of an open call
	}, func(r *rig) {
		r.outcome(Hang, 2)
		hangs := r.log.all("hang_detected")
		if len(hangs) != 1 {
			t.Fatalf("%d hang_detected records", len(hangs))
		}
		var logged monitor.Reason
		if err := json.Unmarshal(hangs[0].json, &logged); err != nil {
			t.Fatal(err)
		}
		if !sameJSON(t, &logged, r.report.Reason) {
			t.Errorf("logged %+v\nreported %+v", logged, r.report.Reason)
		}
		if logged.Kind != monitor.Tool || logged.Phase != monitor.Tools || len(logged.OpenCalls) != 1 ||
			logged.OpenCalls[0].Argument != "make" || logged.OpenCalls[0].Declared != monitor.Span(90*time.Second) ||
			logged.Silence != monitor.Span(21*time.Second) || logged.Limit != monitor.Span(2*time.Minute) {
			t.Errorf("reason %+v", logged)
		}
		var result struct {
			Wrapper struct{ Reason *monitor.Reason }
		}
		lines := strings.Split(strings.TrimSpace(r.sink.text()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
			t.Fatal(err)
		}
		if !sameJSON(t, result.Wrapper.Reason, r.report.Reason) {
			t.Errorf("told %+v\nreported %+v", result.Wrapper.Reason, r.report.Reason)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.said) != 1 || !strings.Contains(r.said[0], logged.Summary) {
			t.Errorf("said %q", r.said)
		}
	})
}

func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

// TestPhases: every transition between two batches is a record with its
// deadline.
func TestPhases(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		for i, line := range []string{initLine, startLine, doneLine, okLine} {
			r.after(time.Duration(i) * time.Second)
			r.emit(line)
		}
		r.leave(0)
	}, func(r *rig) {
		var got []string
		for _, rec := range r.log.all("phase") {
			f := rec.fields()
			left := time.UnixMilli(int64(f["deadline"].(float64))).Sub(rec.at)
			got = append(got, f["from"].(string)+">"+f["to"].(string)+" "+left.String())
		}
		want := []string{"starting>thinking 1m0s", "thinking>tools 2m0s", "tools>thinking 1m0s", "thinking>draining 5s"}
		if !slices.Equal(got, want) {
			t.Errorf("phases %q, want %q", got, want)
		}
	})
}

// TestTeardownRecord: who was ended and who is left, by name.
func TestTeardownRecord(t *testing.T) {
	newTurn(t, func(r *rig) {
		r.agent.left = []process.Ended{{Proc: process.Proc{PID: 99, Start: 7, Command: "x"}, Found: "group", Signal: "SIGKILL", Error: "operation not permitted"}}
		r.agent.onEnd = func(process.Ladder, <-chan struct{}) { time.Sleep(1234 * time.Millisecond) }
	}, func(r *rig) { r.stop <- syscall.SIGTERM }, func(r *rig) {
		all := r.log.all("teardown")
		if len(all) != 1 {
			t.Fatalf("%d teardown records", len(all))
		}
		f := all[0].fields()
		want := map[string]any{
			"exit": "killed by SIGTERM", "took_ms": 1234.0, "ended": []any{}, "spared": []any{},
			"by": "guard", "proof": false, "cgroup": "",
			"left": []any{map[string]any{
				"pid": 99.0, "start": 7.0, "ppid": 0.0, "uid": 0.0, "pgid": 0.0, "session": 0.0, "state": "", "command": "x",
				"found": "group", "signal": "SIGKILL", "error": "operation not permitted",
			}},
		}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("teardown %v\nwant %v", f, want)
		}
	})
}

func TestPromptEcho(t *testing.T) {
	echo := func(prompt string) string {
		b, _ := json.Marshal(prompt)
		return `{"type":"user","message":{"content":[{"type":"text","text":` + string(b) + `}]}}` + "\n"
	}
	rows := []struct {
		name   string
		prompt string
		echoes []string
		warns  int
	}{
		{"the same", "do it", []string{"do it"}, 0},
		{"white space does not matter", " do\n it ", []string{"do it"}, 0},
		{"a stray word became the prompt", "do it", []string{"yolo"}, 1},
		{"told once; only the first one is the prompt", "do it", []string{"yolo", "yolo"}, 1},
		{"a later one is a conversation", "do it", []string{"do it", "and more"}, 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			newTurn(t, func(r *rig) { r.cfg.Prompt = []byte(row.prompt) }, func(r *rig) {
				for _, e := range row.echoes {
					r.emit(echo(e))
				}
				r.emit(okLine)
				r.leave(0)
			}, func(r *rig) {
				r.mu.Lock()
				defer r.mu.Unlock()
				if n := len(r.log.all("prompt_mismatch")); n != row.warns || len(r.said) != row.warns {
					t.Errorf("%d records, said %q, want %d", n, r.said, row.warns)
				}
			})
		})
	}
}

// TestAdvice: a known refusal gets its advice, found at the end of stderr, or on
// stdout outside the stream where stderr is silent; a success gets none.
func TestAdvice(t *testing.T) {
	for _, known := range refusals {
		newTurn(t, nil, func(r *rig) {
			_, _ = r.stderr.Write([]byte("some noise\nError: " + known.text + "!\n"))
			r.leave(1)
		}, func(r *rig) {
			if r.report.Advice != known.advice {
				t.Errorf("%q: advice %q", known.text, r.report.Advice)
			}
			if !strings.Contains(r.sink.text(), `"advice":"`) {
				t.Errorf("no advice in %s", r.sink.text())
			}
		})
	}
	newTurn(t, nil, func(r *rig) {
		r.emit("Authentication required. Please run login first.\n")
		r.leave(1)
	}, func(r *rig) {
		if !strings.Contains(r.report.Advice, "login") {
			t.Errorf("from stdout: %q", r.report.Advice)
		}
	})
	newTurn(t, nil, func(r *rig) {
		_, _ = r.stderr.Write([]byte("unknown option\n"))
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) {
		if r.report.Advice != "" {
			t.Errorf("advice after a success: %q", r.report.Advice)
		}
	})
}

// TestStderr: passed on whole, logged by lines, its last 8 KiB kept and 500
// characters of them told.
func TestStderr(t *testing.T) {
	long := strings.Repeat("é", 40_000)
	var r *rig
	newTurn(t, nil, func(rr *rig) {
		r = rr
		_, _ = r.stderr.Write([]byte("first\r\nsec"))
		r.after(time.Second)
		_, _ = r.stderr.Write([]byte("ond\n\n" + long + "\nlast"))
		r.after(2 * time.Second)
		r.leave(1)
	}, func(r *rig) {
		want := "first\r\nsecond\n\n" + long + "\nlast"
		if r.copy.String() != want {
			t.Errorf("passed on %d bytes, want %d", r.copy.Len(), len(want))
		}
		if got := r.report.Counts.Stderr; got != int64(len(want)) {
			t.Errorf("counted %d bytes, want %d", got, len(want))
		}
		var texts []string
		for _, rec := range r.log.all("stderr") {
			texts = append(texts, rec.fields()["text"].(string))
		}
		if texts[0] != "first" || texts[1] != "second" || texts[len(texts)-1] != "last" {
			t.Errorf("logged %.200q", texts)
		}
		for _, text := range texts {
			if len(text) > stderrLine+3*utf8.UTFMax {
				t.Errorf("a record of %d bytes", len(text))
			}
		}
		var result struct{ Errors []string }
		lines := strings.Split(strings.TrimSpace(r.sink.text()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
			t.Fatal(err)
		}
		tail := []rune(want)
		if len(result.Errors) != 1 || result.Errors[0] != string(tail[len(tail)-errorsMax:]) {
			t.Errorf("errors %.80q, want the last %d characters", result.Errors, errorsMax)
		}
	})
}

// A piece of stderr must not be cut inside a character: the log replaces both
// halves.
func TestStderrKeepsCharacters(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		_, _ = r.stderr.Write([]byte("x" + strings.Repeat("é", 10_000)))
		r.emit(okLine)
		r.leave(0)
	}, func(r *rig) {
		for _, rec := range r.log.all("stderr") {
			if text := rec.fields()["text"].(string); strings.ContainsRune(text, utf8.RuneError) {
				t.Errorf("%.20q … %q", text, text[len(text)-9:])
			}
		}
	})
}

func TestLastWords(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		" \n":                       "",
		" a\n":                      "a",
		strings.Repeat("x", 499):    strings.Repeat("x", 499),
		strings.Repeat("ü", 501):    strings.Repeat("ü", 500),
		"a\xff" + "b":               "a\uFFFDb",
		strings.Repeat("\xff", 600): "\uFFFD",
	} {
		if got := strings.Join(lastWords(in, errorsMax), "|"); got != want {
			t.Errorf("lastWords(%.20q) = %.20q, want %.20q", in, got, want)
		}
	}
}

// The tail is 8 KiB whatever the pieces it came in.
func TestStderrTail(t *testing.T) {
	log := &book{}
	d := newDrain(newWire(), log, &strings.Builder{}, time.Now)
	all := strings.Repeat("0123456789\n", 30_000)
	for i := 0; i < len(all); i += 977 {
		d.take([]byte(all[i:min(i+977, len(all))]))
	}
	if string(d.tail) != all[len(all)-tailSize:] {
		t.Errorf("tail of %d bytes", len(d.tail))
	}
	if log.flushes < 2 {
		t.Errorf("a flood of stderr waited for the disk %d times", log.flushes)
	}
}
