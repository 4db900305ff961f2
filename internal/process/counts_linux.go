package process

import (
	"path/filepath"
	"strconv"
	"strings"
)

// leafFiles are what a leaf counts, one number or a table of them each. Which
// there are depends on the controllers.
var leafFiles = []string{"cpu.stat", "pids.current", "pids.peak", "memory.current", "memory.peak", "memory.swap.current"}

// Counts is what the kernel counts for the tree's cgroup, by file, and by key
// where the file is a table: "pids.current", "cpu.stat usage_usec". Empty
// without a cgroup.
func (a *Agent) Counts() map[string]int64 {
	if a.leaf == nil {
		return nil
	}
	counts := map[string]int64{}
	for _, file := range leafFiles {
		b, err := readFile(filepath.Join(a.leaf.path, file))
		if err != nil {
			continue // not one of its controllers
		}
		for line := range strings.Lines(string(b)) {
			key, value, isTable := strings.Cut(strings.TrimSpace(line), " ")
			name := file + " " + key
			if !isTable {
				name, value = file, key
			}
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				counts[name] = n
			}
		}
	}
	return counts
}
