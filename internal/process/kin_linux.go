package process

import (
	"bytes"
	"strconv"
	"strings"
)

func find(pid int) (Proc, error) { return readStat(pid) }

// kidsOf reads the children files where the kernel has them. They can lack a
// child while a sibling of it exits, so that only the whole table proves that
// there is none.
func kidsOf(pid int) ([]Proc, error) {
	pids, err := childrenOf(strconv.Itoa(pid))
	if err != nil || len(pids) == 0 {
		pids, err = inTable(pid)
	}
	var kids []Proc
	for _, kid := range pids {
		if p, err := readStat(kid); err == nil && p.PPID == pid { // else it has left, and somebody may have its pid
			kids = append(kids, p)
		}
	}
	return kids, err
}

// inTable finds the children of a process in the table of all.
func inTable(parent int) ([]int, error) {
	all, err := names("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range all {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readStat(pid); err == nil && p.PPID == parent {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func argvOf(pid int) []string {
	b, err := readFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(b, []byte{0})), "\x00")
}
