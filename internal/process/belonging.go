package process

// belonging picks from the whole table what belongs to the agent's tree, for
// systems where orphans leave it: the descendants of root, the members of the
// agent's process group, and those that were picked before and still live.
// seen remembers them.
func belonging(all []Proc, root int, agent Proc, seen map[procID]bool) []Proc {
	below := map[int][]int{} // rows by parent
	for i, p := range all {
		below[p.PPID] = append(below[p.PPID], i)
	}
	picked := map[int]bool{}
	var queue []int
	pick := func(i int) {
		if !picked[i] && all[i].PID != root {
			picked[i] = true
			queue = append(queue, all[i].PID)
		}
	}
	for _, i := range below[root] {
		pick(i)
	}
	for i, p := range all {
		if seen[p.id()] || agent.PID != 0 && p.PGID == agent.PID {
			pick(i)
		}
	}
	for len(queue) > 0 {
		for _, i := range below[queue[0]] {
			pick(i)
		}
		queue = queue[1:]
	}
	var rows []Proc
	for i, p := range all {
		if picked[i] {
			seen[p.id()] = true
			rows = append(rows, p)
		}
	}
	return rows
}
