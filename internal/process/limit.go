package process

import "fmt"

// Limits bound the agent's tree; 0 is no limit.
type Limits struct {
	Procs  int   `json:"procs,omitempty"`  // processes
	Memory int64 `json:"memory,omitempty"` // bytes
}

// Exceeded is a limit that the tree has reached.
type Exceeded struct {
	Kind     string `json:"kind"`     // "limit", so that it stands beside the other reasons
	What     string `json:"what"`     // procs or memory
	Limit    int64  `json:"limit"`    // processes or bytes
	Measured int64  `json:"measured"` // likewise
	By       string `json:"by"`       // "cgroup", the kernel's own count, or "sampling"
	Summary  string `json:"summary"`
}

func exceeded(what string, limit, measured int64, by string) *Exceeded {
	e := &Exceeded{Kind: "limit", What: what, Limit: limit, Measured: measured, By: by}
	unit := "processes"
	if what == "memory" {
		unit = "bytes of memory"
	}
	e.Summary = fmt.Sprintf("the agent's tree has %d %s, the limit is %d (counted by %s)", measured, unit, limit, by)
	return e
}

// check says which limit the tree has reached, or nil. Where the leaf has the
// controllers the kernel holds the limit and counts how often it was hit;
// elsewhere the tree is counted here.
func (l Limits) check(lf *leaf, tree func() ([]Proc, error)) *Exceeded {
	if l.Procs > 0 && lf.hits("pids.events", "max") > 0 {
		return exceeded("procs", int64(l.Procs), max(lf.count("pids.peak"), int64(l.Procs)), "cgroup")
	}
	if l.Memory > 0 && lf.hits("memory.events", "oom") > 0 {
		return exceeded("memory", l.Memory, max(lf.count("memory.peak"), l.Memory), "cgroup")
	}
	rows, err := tree()
	if err != nil {
		return nil
	}
	var procs, memory int64
	for _, p := range rows {
		if !p.gone() {
			procs++
			if l.Memory > 0 {
				memory += residentSize(p.PID)
			}
		}
	}
	switch {
	case l.Procs > 0 && procs > int64(l.Procs):
		return exceeded("procs", int64(l.Procs), procs, "sampling")
	case l.Memory > 0 && memory > l.Memory:
		return exceeded("memory", l.Memory, memory, "sampling")
	}
	return nil
}
