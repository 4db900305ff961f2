package main

import (
	"strings"
	"syscall"
	"testing"
)

func TestSignalsEndItAsTheyEndTheRealOne(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		sig    syscall.Signal
		code   int
		stderr string
	}{
		{"TERM", syscall.SIGTERM, 143, ""},
		{"INT", syscall.SIGINT, 130, "Aborting operation...\n"},
		{"KILL", syscall.SIGKILL, 137, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, script(t, "init", "linger"), nil)
			s.readUntil("\n")
			s.signal(tt.sig)
			if out, code := s.finish(); code != tt.code || out != "" || s.stderr.String() != tt.stderr {
				t.Errorf("exit %d, stdout %q, stderr %q", code, out, &s.stderr)
			}
		})
	}
}

func TestTermCutsStdoutAtALine(t *testing.T) {
	t.Parallel()
	s := begin(t, script(t, "init", "flood 100000000"), nil)
	s.readUntil("\n")
	s.signal(syscall.SIGTERM)
	out, code := s.finish()
	if code != 143 || !strings.HasSuffix(out, "}\n") {
		t.Errorf("exit %d; it ends in %.200q", code, out[max(0, len(out)-200):])
	}
}

func TestTermEndsABlockedWriter(t *testing.T) {
	t.Parallel()
	s := begin(t, script(t, "init", "fill 8M"), nil)
	s.readUntil("\n")
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 143 { // nobody reads the rest
		t.Errorf("exit %d", code)
	}
}

func TestReactionsToSignals(t *testing.T) {
	t.Parallel()
	s := begin(t, script(t, "ignore TERM", "on INT say You said INT.", "on USR1 result late", "on USR1 exit 7", "init", "sleep 1h"), nil)
	s.readUntil("\n")
	s.signal(syscall.SIGTERM)
	s.signal(syscall.SIGINT)
	if said := s.readUntil("\n"); !strings.Contains(said, "You said INT.") {
		t.Errorf("said %q", said)
	}
	s.signal(syscall.SIGUSR1)
	out, code := s.finish()
	if got := decode(t, out); len(got) != 1 || got[0].Result != "late" || code != 7 {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestTheLateResult(t *testing.T) {
	t.Parallel()
	s := begin(t, scenarios+"/late-result-on-term.txt", nil)
	s.readUntil(`"completed"`)
	s.signal(syscall.SIGTERM)
	out, code := s.finish()
	if code != 0 || strings.Count(out, `"type":"result"`) != 1 {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestDieBySignal(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "SIGSEGV": syscall.SIGSEGV, "abrt": syscall.SIGABRT, "TERM": syscall.SIGTERM,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, script(t, "init", "die "+name), nil)
			out, code := s.finish()
			if code != 128+int(sig) || len(lines(out)) != 1 || s.stderr.Len() > 0 {
				t.Errorf("exit %d, stdout %q, stderr %q", code, out, &s.stderr)
			}
		})
	}
}
