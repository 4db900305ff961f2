package supervise

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cursor-wrap/internal/process"
)

// TestSyntheticLines: exactly what is put behind the agent's bytes. The clock
// of a bubble begins at the first of January 2000.
func TestSyntheticLines(t *testing.T) {
	rows := []struct {
		name string
		tune func(*rig)
		play func(*rig)
		want string
	}{
		{"no_result, behind a line that was cut short", nil, func(r *rig) {
			r.emit(initLine, `{"type":"assis`)
			_, _ = r.stderr.Write([]byte("Error: <boom> & \"bang\"\n"))
			r.after(1500 * time.Millisecond)
			r.leave(3)
		}, initLine + `{"type":"assis
{"type":"system","subtype":"cursor_cli_error","reason":"no_result","message":"the agent ended without a result (exit 3)","session_id":"s1"}
{"type":"result","subtype":"no_result","is_error":true,"duration_ms":1500,"result":"the agent ended without a result (exit 3)","errors":["Error: <boom> & \"bang\""],"session_id":"s1","wrapper":{"outcome":"error","exit_code":1,"agent":{"exit_code":3}}}
`},
		{"no_result, nothing said, resumed", func(r *rig) { r.cfg.SessionID = "old" }, func(r *rig) { r.leave(0) },
			`{"type":"system","subtype":"cursor_cli_error","reason":"no_result","message":"the agent ended without a result (exit 0)","session_id":"old"}
{"type":"result","subtype":"no_result","is_error":true,"duration_ms":0,"result":"the agent ended without a result (exit 0)","errors":[],"session_id":"old","wrapper":{"outcome":"error","exit_code":1,"agent":{"exit_code":0}}}
`},
		{"hang", nil, func(r *rig) { r.emit(initLine) }, initLine +
			`{"type":"system","subtype":"cursor_cli_error","reason":"hang","message":"idle 1m0s, 0 open tool calls, last event system/init","session_id":"s1"}
{"type":"result","subtype":"hang","is_error":true,"duration_ms":60025,"result":"idle 1m0s, 0 open tool calls, last event system/init","errors":[],"session_id":"s1","wrapper":{"outcome":"hang","exit_code":2,"reason":{"kind":"idle","phase":"thinking","summary":"idle 1m0s, 0 open tool calls, last event system/init","at":946684860000,"deadline":946684860000,"limit_ms":60000,"silence_ms":60000,"no_progress_ms":60000,"elapsed_ms":60000,"last_event":"system/init","reconnect_attempts":0,"witness":"stream","open_calls":[],"background":[]},"agent":{"exit_code":-1,"signal":"SIGTERM"}}}
`},
		{"duration", func(r *rig) { r.cfg.Policy.Max = 30 * time.Second }, func(r *rig) {
			r.emit(initLine)
			r.after(29 * time.Second)
			r.emit(thinkLine)
		}, initLine + thinkLine +
			`{"type":"system","subtype":"cursor_cli_error","reason":"duration","message":"the run took its whole time of 30.0s, in phase thinking","session_id":"s1"}
{"type":"result","subtype":"duration","is_error":true,"duration_ms":30025,"result":"the run took its whole time of 30.0s, in phase thinking","errors":[],"session_id":"s1","wrapper":{"outcome":"duration","exit_code":124,"reason":{"kind":"duration","phase":"thinking","summary":"the run took its whole time of 30.0s, in phase thinking","at":946684830000,"deadline":946684830000,"limit_ms":30000,"silence_ms":1000,"no_progress_ms":1000,"elapsed_ms":30000,"last_event":"thinking/delta","reconnect_attempts":0,"witness":"stream","open_calls":[],"background":[]},"agent":{"exit_code":-1,"signal":"SIGTERM"}}}
`},
		{"exec_error", func(r *rig) {
			r.cfg.Launch = func(context.Context) (Child, error) { return Child{}, errors.New("start /x: permission denied") }
		}, nil,
			`{"type":"system","subtype":"cursor_cli_error","reason":"exec_error","message":"start /x: permission denied","session_id":""}
{"type":"result","subtype":"exec_error","is_error":true,"duration_ms":0,"result":"start /x: permission denied","errors":[],"session_id":"","wrapper":{"outcome":"error","exit_code":1}}
`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			newTurn(t, row.tune, row.play, func(r *rig) {
				if got := r.sink.text(); got != row.want {
					t.Errorf("got\n%s\nwant\n%s", got, row.want)
				}
			})
		})
	}
}

// TestNewlineBeforeOurs: put only where the agent's last byte is none, also
// where the end of the cut line came in parts.
func TestNewlineBeforeOurs(t *testing.T) {
	for _, pieces := range [][]string{
		{"abc"}, {"abc\n"}, {"abc\r\n"}, {"abc\r"}, {"ab", "c"}, {"abc", "\n"}, {"abc\r", "\n"}, {"\n"}, {},
	} {
		newTurn(t, nil, func(r *rig) {
			for i, p := range pieces {
				r.after(time.Duration(i) * time.Second)
				r.emit(p)
			}
			r.after(10 * time.Second)
			r.out.end()
			r.agent.exit(process.Exit{})
		}, func(r *rig) {
			all := strings.Join(pieces, "")
			if string(r.log.raw) != all {
				t.Errorf("logged %q, want %q", r.log.raw, all)
			}
			if all != "" && !strings.HasSuffix(all, "\n") {
				all += "\n"
			}
			if rest, ok := strings.CutPrefix(r.sink.text(), all); !ok || !strings.HasPrefix(rest, `{"type":"system"`) {
				t.Errorf("%q: got %q", pieces, r.sink.text())
			}
		})
	}
}
