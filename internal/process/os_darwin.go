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

// PeakMemory is the most memory that this process has held, in bytes.
func PeakMemory() int64 {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru) // cannot fail for ourselves
	return MaxRSS(&ru)
}

// MemoryLimits tells whether Limits.Memory is held on this system.
const MemoryLimits = false

// waitAll: every wait sees every child.
const waitAll = 0

// siginfoPID is where si_pid stands in a siginfo_t.
const siginfoPID = 12

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// becomeReaper cannot be: macOS gives every orphan to launchd.
func becomeReaper() error { return unix.ENOTSUP }

func agentAttr(*leaf) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ProbeAttr is how a stranger's program is asked for its version: in a group of
// its own, which can be killed.
func ProbeAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func selfPath() (string, error) { return os.Executable() }

// realWorld is this machine. What belongs to the tree is what descends from
// us, what is in the agent's session, and what was seen to do either before:
// an orphan's parent link is gone, its pid and start time are not.
func realWorld(agent Proc) world {
	seen := map[procID]bool{}
	return world{
		tree: func() ([]Proc, error) {
			rows, err := unix.SysctlKinfoProcSlice("kern.proc.all")
			if err != nil {
				return nil, err
			}
			all := make([]Proc, len(rows))
			for i := range rows {
				all[i] = fromKinfo(&rows[i])
			}
			return belonging(all, os.Getpid(), agent, seen), nil
		},
		children: children,
		identify: identify,
		command:  func(pid int) string { return identify(pid).Command },
		signal:   signalProc,
		kill:     unix.Kill,
		reap:     reapChild,
	}
}

func children() ([]int, error) {
	rows, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var pids []int
	for i := range rows {
		if int(rows[i].Eproc.Ppid) == os.Getpid() {
			pids = append(pids, int(rows[i].Proc.P_pid))
		}
	}
	return pids, nil
}

// identify names a child that has not been reaped.
func identify(pid int) Proc {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Proc{PID: pid, PGID: pid, UID: -1}
	}
	return fromKinfo(k)
}

func fromKinfo(k *unix.KinfoProc) Proc {
	p := Proc{
		PID:     int(k.Proc.P_pid),
		PPID:    int(k.Eproc.Ppid),
		PGID:    int(k.Eproc.Pgid),
		Start:   uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		State:   "R",
		UID:     int(k.Eproc.Ucred.Uid),
		Command: unix.ByteSliceToString(k.Proc.P_comm[:]),
	}
	if k.Proc.P_stat == zombie {
		p.State = "Z"
	}
	return p
}

// signalProc sends the signals if the pid still is that of p. macOS has no
// handle on a process, so an instant between the look and the kill remains.
func signalProc(p Proc, signals ...syscall.Signal) error {
	if now := identify(p.PID); now.Start != p.Start {
		return unix.ESRCH
	}
	for _, sig := range signals {
		if err := unix.Kill(p.PID, sig); err != nil {
			return err
		}
	}
	return nil
}

// residentSize would need libproc; memory limits are not held on macOS.
func residentSize(int) int64 { return 0 }

// ignoredSignals: which ones were inherited ignored cannot be read on macOS.
func ignoredSignals() []os.Signal { return nil }

func uidOf(pid int) int { return identify(pid).UID }
