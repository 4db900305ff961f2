//go:build linux && portable

package process

import (
	"slices"
	"testing"
	"time"

	"cursor-wrap/internal/tree"
)

// What is asked for where there are no files to read is what the files tell.
func TestSampledPortably(t *testing.T) {
	s := ownSampler(t)
	start(t, "burnt", "itself").ready(1)
	sleeper(t)
	a := asked{}
	until(t, soon(), "both have their names", func() bool {
		return !slices.ContainsFunc(s.glance().Rows, func(r tree.Row) bool { return len(r.Argv) == 0 })
	})
	for range 2 {
		got := a.rows(must(descendants()), func(Proc) time.Duration { return time.Minute })
		want := s.glance()
		if len(got) != 2 || len(want.Rows) != 2 {
			t.Fatalf("%+v, want %+v", got, want.Rows)
		}
		for _, g := range got {
			w := rowOf(want, g.PID)
			if d := g.CPU - w.CPU; d < -2*tick || d > 2*tick {
				t.Errorf("CPU %v, want %v", g.CPU, w.CPU)
			}
			if d := g.Memory - w.Memory; d < -vague() || d > vague() {
				t.Errorf("memory %d, want %d", g.Memory, w.Memory)
			}
			if g.ID != w.ID || g.PPID != w.PPID || g.PGID != w.PGID || g.Session != w.Session || g.State != 'R' && w.State != 'R' && g.State != w.State || g.Name != w.Name ||
				!slices.Equal(g.Argv, w.Argv) || g.Disk != tree.Unknown || g.Waited != tree.Unknown || g.Age != time.Minute {
				t.Errorf("%+v, want %+v", g, w)
			}
		}
	}
}
