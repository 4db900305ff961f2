package process

import (
	"github.com/shirou/gopsutil/v3/process"
	"golang.org/x/sys/unix"
)

func find(pid int) (Proc, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Proc{}, err
	}
	return fromKinfo(k), nil
}

func kidsOf(pid int) ([]Proc, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var kids []Proc
	for i := range table {
		if int(table[i].Eproc.Ppid) == pid {
			kids = append(kids, fromKinfo(&table[i]))
		}
	}
	return kids, nil
}

func argvOf(pid int) []string {
	argv, err := (&process.Process{Pid: int32(pid)}).CmdlineSlice()
	if err != nil {
		return nil
	}
	return argv
}
