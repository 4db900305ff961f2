package main

import (
	"os"
	"time"

	"cursor-wrap/internal/journal"
	"cursor-wrap/internal/process"
	"cursor-wrap/internal/registry"
)

// sweepDead ends what is left in the cgroups of dead runs, and takes them from
// the registry. It reports whether there was any: then, and only then, it is
// worth while to look through every process of the machine.
func sweepDead(stateDir string) (left []process.Leftover, died bool) {
	dir, err := stateIn(stateDir)
	if err != nil {
		return process.Sweep(), false
	}
	dead, err := registry.Dead(dir)
	if err != nil {
		dead = nil // whoever cannot read it has no runs there
	}
	flagDead(dead)
	var leaves []string
	for _, e := range dead {
		if e.Leaf != "" {
			leaves = append(leaves, e.Leaf)
		}
	}
	left = process.Sweep(leaves...)
	_, _ = registry.Sweep(dir) // or the next one does
	return left, len(dead) > 0
}

// flagDead flags the logs of our own runs that could not do it themselves. Root
// writes nothing where the records of others point.
func flagDead(dead []registry.Entry) {
	for _, e := range dead {
		if e.UID != os.Geteuid() {
			continue
		}
		_ = journal.FlagKilled(e.Log, time.Now()) // it may be gone, which is somebody's wish
	}
}

// told is what a person reads of processes that carry a dead run's mark.
func told(marked []process.Proc) string {
	return "left by a dead run, by the look of their environment, and not ended: " + process.List(marked)
}
