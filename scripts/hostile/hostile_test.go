//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestNothingSurvives is the short form of the suite, against the wrapper as it
// is in this checkout.
func TestNothingSurvives(t *testing.T) {
	wrap := buildWrapper(t)
	some := []string{"none", "wide", "setsid", "stealth", "nosig", "stopped", "zleader", "hydrafast", "mixed"}
	for _, tt := range []struct {
		name        string
		containment string
		uid         int
		trees       []string
		root        bool
	}{
		{name: "tree", containment: "tree", uid: -1, trees: treeNames()},
		{name: "cgroup", containment: "cgroup", uid: -1, trees: treeNames()},
		{name: "tree as nobody", containment: "tree", uid: nobody, trees: some, root: true},
		{name: "cgroup as nobody", containment: "cgroup", uid: nobody, trees: some, root: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root && os.Getuid() != 0 {
				t.Skip("only root can become somebody else")
			}
			if tt.containment == "cgroup" && !writableCgroup() {
				t.Skip("no writable cgroup v2")
			}
			r := newRunner(t)
			r.uid, r.parallel = tt.uid, 2
			path, err := r.lab.keepCopy(wrap, "cursor-wrap "+tt.name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := wrapper(path, tt.containment)
			if err != nil {
				t.Fatal(err)
			}
			outcomes := r.all(context.Background(), s, r.cells(s, tt.trees, []string{"result", "TERM", "KILL"}, 1))
			for _, o := range outcomes {
				if o.Skipped == "" && !o.clean() {
					t.Errorf("%s\n%s", header, line(o))
				}
			}
			t.Log(summary(outcomes))
			nobodyLeft(t)
		})
	}
}

func buildWrapper(t *testing.T) string {
	t.Helper()
	wrap := filepath.Join(t.TempDir(), "cursor-wrap")
	cmd := exec.Command("go", "build", "-o", wrap, "cursor-wrap/cmd/cursor-wrap")
	cmd.Env = append(slices.Clone(os.Environ()), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return wrap
}

// writableCgroup reports whether this process may make a cgroup, by making one.
func writableCgroup() bool {
	_, own, ok := findCgroup()
	if !ok {
		return false
	}
	dir := filepath.Join(own, cgroupPrefix+self())
	if err := os.Mkdir(dir, 0o755); err != nil {
		return false
	}
	return os.Remove(dir) == nil
}
