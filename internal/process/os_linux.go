package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const fionread = unix.TIOCINQ

// enlarge asks for a larger pipe. A user who has many open pipes is refused
// (pipe(7), pipe-user-pages-soft); the old size then does.
func enlarge(f *os.File, size int) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	}
}

// MaxRSS is the peak memory in bytes; getrusage(2) gives kilobytes on Linux.
func MaxRSS(ru *syscall.Rusage) int64 { return ru.Maxrss << 10 }

// identify names a child that has not been reaped. Start is 0 without /proc.
func identify(pid int) Proc {
	p, err := readStat(pid)
	if err != nil {
		return Proc{PID: pid, PGID: pid, Session: pid}
	}
	return p
}

// group lists the members of a process group, zombies included.
func group(pgid int) ([]Proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var members []Proc
	seen := false
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := readStat(pid)
		if err != nil {
			continue // it has left meanwhile
		}
		seen = true
		if p.PGID == pgid {
			p.Command = commandLine(pid)
			members = append(members, p)
		}
	}
	if !seen {
		return nil, errors.New("/proc shows no process")
	}
	return members, nil
}

// readStat reads /proc/<pid>/stat (proc_pid_stat(5)). The name in field 2 may
// hold anything, spaces and brackets included: the fields are counted from its
// last bracket.
func readStat(pid int) (Proc, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Proc{}, err
	}
	_, rest, _ := strings.Cut(string(b), "(")
	end := strings.LastIndexByte(rest, ')')
	if end < 0 {
		return Proc{}, fmt.Errorf("/proc/%d/stat: no name", pid)
	}
	name, fields := rest[:end], strings.Fields(rest[end+1:])
	if len(fields) < 20 {
		return Proc{}, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	p := Proc{PID: pid, State: fields[0], Command: name}
	p.PGID, _ = strconv.Atoi(fields[2])
	p.Session, _ = strconv.Atoi(fields[3])
	p.Start, err = strconv.ParseUint(fields[19], 10, 64)
	return p, err
}

// commandLine is the argv of a process, or its name in brackets.
func commandLine(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	b = bytes.TrimRight(b, "\x00")
	if err != nil || len(b) == 0 {
		p, _ := readStat(pid)
		return "[" + p.Command + "]"
	}
	return string(bytes.ReplaceAll(b, []byte{0}, []byte{' '}))
}

// signal sends sig to exactly this process: the pidfd is opened first and the
// start time checked after it, so that the pid cannot have changed hands.
func signal(p Proc, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.3
		return signalChecked(p, sig)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now, err := readStat(p.PID); err != nil || now.Start != p.Start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

func signalChecked(p Proc, sig syscall.Signal) error {
	if now, err := readStat(p.PID); err != nil || now.Start != p.Start {
		return unix.ESRCH
	}
	return unix.Kill(p.PID, sig)
}
