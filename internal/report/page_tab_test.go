package report

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// keyboard is a browser that is told which keys were pressed, as no script of a
// page can press them.
type keyboard struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	calls   int
}

// openWithKeys opens a page in a browser that listens on a pipe.
func openWithKeys(t *testing.T, page string) *keyboard {
	t.Helper()
	file := t.TempDir() + "/report.html"
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	hears, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close(); from.Close() })
	_ = from.SetReadDeadline(time.Now().Add(2 * time.Minute)) // a pipe has them
	startWith(t, []*os.File{hears, says}, "--remote-debugging-pipe", "about:blank")
	hears.Close()
	says.Close()

	k := &keyboard{t: t, to: to, from: bufio.NewReader(from)}
	var made struct{ TargetID, SessionID string }
	k.call("Target.createTarget", map[string]any{"url": "file://" + file}, &made)
	k.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	k.session = made.SessionID
	for k.value(`document.readyState + document.documentElement.className + !!document.querySelector("#zoom-out[disabled]")`) != "completejstrue" {
		time.Sleep(5 * time.Millisecond)
	}
	return k
}

// call has the browser do something, and waits for its answer.
func (k *keyboard) call(method string, params map[string]any, answer any) {
	k.t.Helper()
	k.calls++
	b, err := json.Marshal(struct {
		ID      int            `json:"id"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params"`
		Session string         `json:"sessionId,omitempty"`
	}{k.calls, method, params, k.session})
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.to.Write(append(b, 0)); err != nil {
		k.t.Fatal(err)
	}
	for {
		line, err := k.from.ReadBytes(0)
		if err != nil {
			k.t.Fatalf("%s: %v", method, err)
		}
		var got struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line[:len(line)-1], &got); err != nil {
			k.t.Fatal(err)
		}
		if got.ID != k.calls {
			continue // an event
		}
		if got.Error != nil {
			k.t.Fatalf("%s: %s", method, got.Error)
		}
		if err := json.Unmarshal(got.Result, answer); err != nil {
			k.t.Fatal(err)
		}
		return
	}
}

// value is what a script says.
func (k *keyboard) value(script string) string {
	k.t.Helper()
	var got struct{ Result struct{ Value string } }
	k.call("Runtime.evaluate", map[string]any{"expression": "String(" + script + ")", "returnByValue": true}, &got)
	return got.Result.Value
}

func (k *keyboard) press(key string, code int) {
	k.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		k.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}, &struct{}{})
	}
}

// TestTabStops: the timeline is one stop on the way through the page, and there
// the keys work.
func TestTabStops(t *testing.T) {
	k := openWithKeys(t, render(t, "hang", hangStory()))
	here := func() string {
		return k.value(`(document.activeElement.querySelector(":scope > title") || document.activeElement).textContent`)
	}
	k.value(`document.getElementById("zoom-fit").focus()`)
	for _, step := range []struct {
		key  string
		code int
		want string
	}{{"Tab", 9, "Turn 1,"}, {"ArrowRight", 39, "Turn 2,"}, {"ArrowDown", 40, "agent started"}} {
		if k.press(step.key, step.code); !strings.HasPrefix(here(), step.want) {
			t.Fatalf("%s leads to %.80q, want %q", step.key, here(), step.want)
		}
	}
	if k.press("Tab", 9); k.value(`!!document.activeElement.closest(".timeline")`) != "false" {
		t.Errorf("the timeline has a second stop: %.80q", here())
	}
}
