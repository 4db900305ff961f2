//go:build !linux

package process

// Counts is empty: there is no cgroup that would count.
func (a *Agent) Counts() map[string]int64 { return nil }
