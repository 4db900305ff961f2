package main

import (
	"testing"
	"time"
)

func TestChildrenEndByThemselves(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		if k.inner {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, script(t, "spawn "+name+" 200ms", "exit 3"), nil)
			if code := s.exit(); code != 3 {
				t.Errorf("exit %d, stderr %q", code, &s.stderr)
			}
			s.awaitTree()
		})
	}
}

func TestAStoppedChildEndsWhileItsParentLives(t *testing.T) {
	t.Parallel()
	s := begin(t, script(t, "spawn stopped 100ms", "wait-children", "exit 3"), nil)
	if code := s.exit(); code != 3 {
		t.Errorf("exit %d", code)
	}
}

func TestWaitChildrenWaits(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, _, code := play(t, script(t, "spawn plain 150ms", "spawn setsid 200ms", "wait-children"), "")
	if code != 0 || time.Since(began) < 200*time.Millisecond {
		t.Errorf("exit %d after %v", code, time.Since(began))
	}
}

func TestAHolderKeepsStdoutOpen(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"holder", "group-holder"} {
		s := begin(t, script(t, "spawn "+name+" 60s", "init"), nil)
		s.readUntil("\n")
		if code := s.exit(); code != 0 {
			t.Errorf("exit %d", code)
		}
		s.stdout.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := s.stdout.Read(make([]byte, 1)); n != 0 || !isTimeout(err) {
			t.Errorf("%s: read %d bytes, %v; want stdout open and silent", name, n, err)
		}
	}
}

func isTimeout(err error) bool {
	t, ok := err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}
