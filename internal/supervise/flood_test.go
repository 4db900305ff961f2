package supervise

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"cursor-wrap/internal/events"
	"cursor-wrap/internal/process"
)

// stream emits lines at an interval until the agent is ended, or for as long
// as no test should need.
func (r *rig) stream(every time.Duration) {
	for time.Since(r.began) < time.Hour && !r.agent.ended() {
		r.emit(thinkLine)
		time.Sleep(every)
	}
}

func (a *scripted) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls > 0
}

// TestAStreamPutsNothingOff: an agent that writes without a pause is judged like
// any other where its writing is no excuse.
func TestAStreamPutsNothingOff(t *testing.T) {
	rows := []struct {
		name string
		tune func(*rig)
		play func(*rig)
		want Outcome
		code int
		took time.Duration
	}{
		{"the duration", func(r *rig) { r.cfg.Policy.Max = 4 * time.Second },
			func(r *rig) { r.emit(initLine) }, Overtime, 124, 4 * time.Second},
		{"an open call", nil,
			func(r *rig) { r.emit(initLine, startLine) }, Hang, 2, 2*time.Minute + secondLook},
		{"the exit after a result", nil,
			func(r *rig) { r.emit(initLine, okLine) }, Success, 0, 5 * time.Second},
		{"somebody who holds the stream of an agent that has left", nil,
			func(r *rig) { r.emit(initLine); r.agent.exit(process.Exit{}) }, Failed, 1, drainGrace},
	}
	for _, row := range rows {
		for _, every := range []time.Duration{time.Millisecond, 15 * time.Millisecond} {
			t.Run(row.name+" every "+every.String(), func(t *testing.T) {
				newTurn(t, row.tune, func(r *rig) {
					row.play(r)
					r.stream(every)
				}, func(r *rig) {
					r.outcome(row.want, row.code)
					if got := r.agent.asked.Sub(r.began); got < row.took || got > row.took+held {
						t.Errorf("ended after %s, want %s", got, row.took)
					}
				})
			})
		}
	}
}

// The longest line that is held, and a pause before the line feed of its ending.
func TestLongestLineAndALateLineFeed(t *testing.T) {
	line := bytes.Repeat([]byte("x"), events.MaxLine)
	chunks := []chunk{{line, 0}, {[]byte("\r"), time.Second}, {[]byte("\n"), 0}, {[]byte(thinkLine), 0}}
	want := string(line) + "\r\n" + thinkLine
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, nil, chunks)
		if string(c.sink.got) != want || string(c.log.raw) != want {
			t.Errorf("%d bytes forwarded, %d logged, want %d", len(c.sink.got), len(c.log.raw), len(want))
		}
	})
}
