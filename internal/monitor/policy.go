package monitor

import (
	"encoding/json"
	"time"
)

// Policy holds the thresholds. For every field that ends a wait, 0 switches
// that deadline off; ToolGrace and ExitGrace are additions, where 0 means none.
type Policy struct {
	Startup    time.Duration // start to the first line
	Idle       time.Duration // silence with nothing open and nothing in the background
	ToolGrace  time.Duration // added to the wait that a call declared
	Tool       time.Duration // a call that declared no wait
	Background time.Duration // silence while background work is unfinished
	Reconnect  time.Duration // only reconnection attempts since the last progress
	ExitGrace  time.Duration // result to the exit of the process
	Max        time.Duration // the whole run; off by default

	// Confirm asks the tree before a passed deadline becomes a verdict.
	Confirm bool
	Tick    time.Duration // between two samples of a silence
	Window  time.Duration // the end of the silence in which nothing may have happened
	Busy    time.Duration // how long past its deadline a tree that works, or is stopped, is waited for
}

// Default returns the thresholds that are used where nobody chose others.
//
// Idle is 60 s because pauses of 2 to 12 s between steps are usual, and 25 to
// 39 s were seen while a context was compacted. Startup is 60 s because 3 to
// 12 s were seen. Tool is what a call without a declared wait (a subagent, an
// MCP server) may take before somebody should look. Window is 15 s, three
// samples: a kill never rests on one odd one. Busy is 10 min because shell
// wrappers were seen to spin for 10 to 15 minutes (H9); whoever compiles for
// longer than that declares it.
func Default() Policy {
	return Policy{
		Startup:    60 * time.Second,
		Idle:       60 * time.Second,
		ToolGrace:  30 * time.Second,
		Tool:       10 * time.Minute,
		Background: 30 * time.Minute,
		Reconnect:  5 * time.Minute,
		ExitGrace:  5 * time.Second,
		Confirm:    true,
		Tick:       5 * time.Second,
		Window:     15 * time.Second,
		Busy:       10 * time.Minute,
	}
}

// policyJSON is the form in which a policy stands in the log.
type policyJSON struct {
	Startup    Span `json:"startup_timeout_ms"`
	Idle       Span `json:"idle_timeout_ms"`
	ToolGrace  Span `json:"tool_grace_ms"`
	Tool       Span `json:"tool_timeout_ms"`
	Background Span `json:"background_timeout_ms"`
	Reconnect  Span `json:"reconnect_timeout_ms"`
	ExitGrace  Span `json:"exit_grace_ms"`
	Max        Span `json:"max_duration_ms"`
	Confirm    bool `json:"confirm"`
	Tick       Span `json:"tick_interval_ms"`
	Window     Span `json:"confirm_window_ms"`
	Busy       Span `json:"busy_grace_ms"`
}

// MarshalJSON writes the thresholds in milliseconds, named after their flags.
func (p Policy) MarshalJSON() ([]byte, error) {
	return json.Marshal(policyJSON{
		Span(p.Startup), Span(p.Idle), Span(p.ToolGrace), Span(p.Tool),
		Span(p.Background), Span(p.Reconnect), Span(p.ExitGrace), Span(p.Max),
		p.Confirm, Span(p.Tick), Span(p.Window), Span(p.Busy),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Policy) UnmarshalJSON(b []byte) error {
	var j policyJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*p = Policy{
		time.Duration(j.Startup), time.Duration(j.Idle), time.Duration(j.ToolGrace), time.Duration(j.Tool),
		time.Duration(j.Background), time.Duration(j.Reconnect), time.Duration(j.ExitGrace), time.Duration(j.Max),
		j.Confirm, time.Duration(j.Tick), time.Duration(j.Window), time.Duration(j.Busy),
	}
	return nil
}
