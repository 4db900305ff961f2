package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testLab(t *testing.T) *lab {
	t.Helper()
	if err := adoptOrphans(); err != nil {
		t.Fatal(err)
	}
	l := &lab{dir: t.TempDir(), progress: io.Discard, report: &report{out: io.Discard}}
	if err := os.Mkdir(l.home(), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

// The tree must be what it says, whichever program builds it, and nothing of
// it may stay.
func TestTreeIsEnded(t *testing.T) {
	if _, err := exec.LookPath("tini"); err != nil {
		t.Skip("needs tini, to leave the deaf behind")
	}
	for _, program := range []string{"C", "script"} {
		t.Run(program, func(t *testing.T) {
			l := testLab(t)
			agent, made, err := l.treeAgent(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if program == "script" {
				err = os.WriteFile(agent, fmt.Appendf(nil, treeScript, initLine, resultLine), 0o700)
			} else if !strings.HasSuffix(made, program) {
				t.Skip(made)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := l.keeping([]string{tiniGroup})[0]
			for _, tt := range []struct {
				shape
				survivors float64
			}{
				{shape{name: "alone"}, 0},
				{shape{name: "flat", members: 6}, 0},
				{shape{name: "in a call", members: 1, says: callLine(time.Second)}, 0},
				{shape{name: "half deaf", members: 6, deaf: true}, 3},
				{shape{name: "obedient", leaves: true}, 0},
			} {
				v, err := l.end(t.Context(), c, agent, tt.shape)
				if err != nil {
					t.Errorf("%s: %v", tt.name, err)
					continue
				}
				if v["survivors"] != tt.survivors {
					t.Errorf("%s: %v survivors, want %v", tt.name, v["survivors"], tt.survivors)
				}
				if _, known := v["gone"]; known != (tt.survivors == 0) {
					t.Errorf("%s: the last death is known: %v", tt.name, known)
				}
				if left := children(os.Getpid()); len(left) > 0 {
					t.Errorf("%s: left %v", tt.name, left)
				}
			}
		})
	}
}

func TestExitCodeIsHeldTo(t *testing.T) {
	l := testLab(t)
	for _, tt := range []struct {
		script string
		code   int
		ok     bool
	}{
		{"exit 0", 0, true},
		{"exit 3", 3, true},
		{"exit 3", 0, false},
		{"exit 0", 3, false},
		{"kill -TERM $$", terminated, false}, // a signal is no exit code
	} {
		_, err := l.run(context.Background(), []command{{argv: []string{"sh", "-c", tt.script}, code: tt.code}},
			func(f flow) error { return drain(f.fd, func([]byte) error { return nil }) })
		if (err == nil) != tt.ok {
			t.Errorf("%q, to end with %d: %v", tt.script, tt.code, err)
		}
	}
}

func TestEffortIsCounted(t *testing.T) {
	before := effortOf([]int{os.Getpid()})
	for range 1000 {
		if _, err := os.ReadFile(filepath.Join("/proc/self", "stat")); err != nil {
			t.Fatal(err)
		}
	}
	after := effortOf([]int{os.Getpid()})
	if before == nil || after == nil {
		t.Skip("the kernel keeps no schedstat")
	}
	if after.cpu <= before.cpu || after.switches <= 0 || after.switches < before.switches {
		t.Errorf("from %+v to %+v", *before, *after)
	}
	if effortOf([]int{os.Getpid(), 1 << 30}) != nil {
		t.Error("of somebody who is not there, nothing can be known")
	}
}
