package supervise

import (
	"encoding/base64"
	"strings"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/process"
)

// What was written for a terminal is passed on as it was, and logged as it is
// read, with the bytes beside it where they differ. It may be cut anywhere.
func TestStderrOfATerminal(t *testing.T) {
	const said = "\x1b[31mError:\x1b[0m unknown option\r\nplain\r\n10%\r20%\r\n\x1b[0m\r\n\xff\xfe\x1b[m\r\nPassword: "
	want := []map[string]string{
		{"text": "Error: unknown option", "raw_text": "\x1b[31mError:\x1b[0m unknown option"},
		{"text": "plain"},
		{"text": "20%", "raw_text": "10%\r20%"},
		{"text": "", "raw_text": "\x1b[0m"},
		{"text": "\uFFFD", "raw_b64": base64.StdEncoding.EncodeToString([]byte("\xff\xfe\x1b[m"))},
		{"text": "Password: "},
	}
	for _, size := range []int{1, 3, len(said)} {
		newTurn(t, nil, func(r *rig) {
			for i := 0; i < len(said); i += size {
				_, _ = r.stderr.Write([]byte(said[i:min(i+size, len(said))]))
			}
			r.leave(1)
		}, func(r *rig) {
			if r.copy.String() != said {
				t.Errorf("passed on %q", r.copy.String())
			}
			recs := r.log.all("stderr")
			if len(recs) != len(want) {
				t.Fatalf("%d records, want %d", len(recs), len(want))
			}
			for i, rec := range recs {
				got := rec.fields()
				if len(got) != len(want[i]) {
					t.Errorf("pieces of %d: %v, want %v", size, got, want[i])
				}
				for key, value := range want[i] {
					if got[key] != value {
						t.Errorf("pieces of %d: %s is %q, want %q", size, key, got[key], value)
					}
				}
			}
			if !strings.Contains(r.report.Advice, "flag") {
				t.Errorf("advice %q", r.report.Advice)
			}
			if text := r.sink.text(); strings.Contains(text, `\u001b`) || !strings.Contains(text, "unknown option") {
				t.Errorf("told on stdout: %s", text)
			}
		})
	}
}

// A terminal shows only a part of what it has at a time, and somebody who was
// spared may write to it for ever.
func TestTheRestOfATerminal(t *testing.T) {
	for name, row := range map[string]struct {
		chunks int
		more   bool
	}{"all of it is read": {4, false}, "an endless one is left": {4, true}} {
		t.Run(name, func(t *testing.T) {
			src := &window{wire: newWire(), endless: row.more}
			for range row.chunks {
				_, _ = src.Write([]byte(strings.Repeat("x", 4095) + "\n"))
			}
			d := newDrain(src, &book{}, &strings.Builder{}, time.Now)
			d.stop()
			d.run()
			if least := int64(row.chunks * 4096); d.bytes < least || !row.more && d.bytes > least || d.bytes > 2*restMost {
				t.Errorf("%d bytes were read", d.bytes)
			}
		})
	}
}

// window is a source that tells of its first piece only.
type window struct {
	*wire
	endless bool
}

func (w *window) Buffered() (int, error) {
	if n, _ := w.wire.Buffered(); n > 0 && w.endless {
		_, _ = w.Write([]byte(strings.Repeat("y", 4096)))
	}
	n, err := w.wire.Buffered()
	return min(n, 4096), err
}

// A hang-up of its terminal ends the agent, not us.
func TestAnAgentThatWasHungUp(t *testing.T) {
	newTurn(t, nil, func(r *rig) {
		r.emit(initLine)
		r.out.end()
		r.stderr.end()
		r.agent.exit(process.Exit{Code: -1, Signal: syscall.SIGHUP})
	}, func(r *rig) {
		r.outcome(Failed, 1)
		if !strings.Contains(r.report.Message, "SIGHUP") {
			t.Errorf("message %q", r.report.Message)
		}
	})
}
