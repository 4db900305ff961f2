package events

import (
	"reflect"
	"testing"
)

// Recorded streams of the real agent: nothing in them is unknown, calls pair,
// and background work that ends was announced.
func TestCaptures(t *testing.T) {
	streams := captured(t)
	if len(streams) == 0 {
		t.Skip("CURSOR_WRAP_CAPTURES names no folder with *.jsonl in it")
	}
	for name, lines := range streams {
		t.Run(name, func(t *testing.T) {
			open, background := map[string]*Call{}, map[string]bool{}
			for i, line := range lines {
				e := Parse(line)
				compare(t, line)
				switch e.Kind {
				case Unknown:
					t.Errorf("line %d: unknown: %.200s", i+1, line)
				case Text:
					if i < len(lines)-1 {
						t.Errorf("line %d: not JSON: %.200s", i+1, line)
					}
				case Init, User, Result:
					if e.SessionID == "" || i == 1 && (e.Prompt == nil || *e.Prompt == "") {
						t.Errorf("line %d: %+v", i+1, e)
					}
				case ToolStarted:
					open[e.Call.ID] = e.Call
					if e.Call.Tool == "" || e.Call.Argument == "" || e.Call.ModelCallID == "" {
						t.Errorf("line %d: %+v", i+1, e.Call)
					}
				case ToolCompleted:
					completed := *e.Call
					background[completed.TaskID] = completed.Background && completed.PID > 0
					completed.Background, completed.TaskID, completed.PID = false, "", 0
					if start := open[completed.ID]; start == nil || !reflect.DeepEqual(*start, completed) {
						t.Errorf("line %d: %+v does not match its start %+v", i+1, completed, start)
					}
					delete(open, completed.ID)
				case TaskNotification:
					if !background[e.Task.ID] || !e.Task.Over() {
						t.Errorf("line %d: %+v was never announced", i+1, e.Task)
					}
				}
			}
			if len(open) > 0 {
				t.Errorf("never completed: %v", open)
			}
		})
	}
}
