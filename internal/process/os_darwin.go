package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fionread is FIONREAD of <sys/filio.h>, which golang.org/x/sys does not name
// on darwin.
const fionread = 0x4004667f

// enlarge does nothing: macOS sizes its pipes itself.
func enlarge(*os.File, int) {}

// MaxRSS is the peak memory in bytes, as getrusage(2) gives it on macOS.
func MaxRSS(ru *syscall.Rusage) int64 { return ru.Maxrss }

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// identify names a child that has not been reaped.
func identify(pid int) Proc {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Proc{PID: pid, PGID: pid, Session: pid}
	}
	return fromKinfo(k)
}

// group lists the members of a process group, zombies included.
func group(pgid int) ([]Proc, error) {
	rows, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		return nil, err
	}
	members := make([]Proc, len(rows))
	for i := range rows {
		members[i] = fromKinfo(&rows[i])
	}
	return members, nil
}

func fromKinfo(k *unix.KinfoProc) Proc {
	p := Proc{
		PID:     int(k.Proc.P_pid),
		PGID:    int(k.Eproc.Pgid),
		Start:   uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		State:   "R",
		Command: unix.ByteSliceToString(k.Proc.P_comm[:]),
	}
	if k.Proc.P_stat == zombie {
		p.State = "Z"
	}
	return p
}

// signal sends sig if the pid still is that of p. macOS has no handle on a
// process, so an instant between the look and the kill remains.
func signal(p Proc, sig syscall.Signal) error {
	if now := identify(p.PID); now.Start != p.Start {
		return unix.ESRCH
	}
	return unix.Kill(p.PID, sig)
}
