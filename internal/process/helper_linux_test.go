package process

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// named is the next line: a part that is ready.
func (s *said) named() (name string, pid int) {
	s.t.Helper()
	line := s.hear()
	if _, err := fmt.Sscan(line, &name, &pid); err != nil {
		s.t.Fatalf("%v: %q", err, line)
	}
	return name, pid
}

// until polls a fact of the kernel that tells nobody when it comes true.
func until(t *testing.T, by time.Time, what string, fact func() bool) {
	t.Helper()
	for !fact() {
		if time.Now().After(by) {
			t.Errorf("not in time: %s", what)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func publicCopy(t *testing.T) string {
	t.Helper()
	if public.path != "" {
		return public.path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if public.dir, err = os.MkdirTemp("", "process-test"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(public.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(public.dir+"/process.test", text, 0o755); err != nil {
		t.Fatal(err)
	}
	public.path = public.dir + "/process.test"
	return public.path
}
