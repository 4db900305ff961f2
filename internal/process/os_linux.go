package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

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

// MemoryLimits tells whether Limits.Memory is held on this system.
const MemoryLimits = true

// waitAll makes a wait see children that announce their end by another signal
// than SIGCHLD, as clone(2) allows.
const waitAll = unix.WALL

// siginfoPID is where si_pid stands in a siginfo_t of SIGCHLD.
const siginfoPID = 16

// PeakMemory is the most memory that this process has held, in bytes; 0 where
// it cannot be read. getrusage(2) would count what our parent held when it
// forked us.
func PeakMemory() int64 {
	b, err := readFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "\nVmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, _ := strconv.ParseInt(number, 10, 64)
	return kb << 10
}

// becomeReaper makes orphans of the tree come to this process and not to init
// (PR_SET_CHILD_SUBREAPER, prctl(2)).
func becomeReaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// agentAttr is how the agent is born: in a session of its own, in its leaf if
// it has one, and bound to the guard's life as a last straw.
func agentAttr(l *leaf) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if l != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, l.fd()
	}
	return attr
}

// ProbeAttr is how a stranger's program is asked for its version: in a group of
// its own, which can be killed, and not outliving us.
func ProbeAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// selfPath is the file that this process runs, even if another one has its
// name by now.
func selfPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Lstat(self); err == nil {
		return self, nil
	}
	return exec.LookPath(os.Args[0]) // os.Executable would need /proc as well
}

// realWorld is this machine.
func realWorld(Proc) world {
	return world{tree: descendants, children: children, identify: identify, command: commandLine, signal: signalProc, kill: unix.Kill, reap: reapChild, proof: true}
}

// ignoredSignals lists the signals that this process was started with ignored
// and still ignores; the Go runtime has taken over most of them by now.
func ignoredSignals() []os.Signal {
	b, err := readFile("/proc/self/status")
	if err != nil {
		return nil
	}
	_, rest, ok := strings.Cut(string(b), "\nSigIgn:\t")
	if !ok || len(rest) < 16 {
		return nil
	}
	mask, err := strconv.ParseUint(rest[:16], 16, 64)
	if err != nil {
		return nil
	}
	var ignored []os.Signal
	for sig := syscall.Signal(1); mask != 0; sig, mask = sig+1, mask>>1 {
		switch {
		case mask&1 == 0:
		case sig == 32 || sig == 33:
			resetSignal(sig)
		default:
			ignored = append(ignored, sig)
		}
	}
	return ignored
}

// resetSignal gives one of the two signals back its default that the C library
// keeps for its threads, and that os/signal therefore leaves alone.
func resetSignal(sig syscall.Signal) {
	var action [4]uint64 // struct sigaction of rt_sigaction(2), all default
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// readFile reads a small file of /proc with three system calls; os.ReadFile
// makes twice as many, because it has to reckon with files that can wait.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 1024)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return b, err
		}
		b = b[:len(b)+n]
		if len(b) == cap(b) {
			b = append(b, make([]byte, len(b))...)[:len(b)]
		}
	}
}

// uidOf is the effective user of a process; -1 where it cannot be read.
func uidOf(pid int) int {
	var st unix.Stat_t
	if unix.Stat("/proc/"+strconv.Itoa(pid), &st) != nil {
		return -1
	}
	return int(st.Uid)
}

// identify names a child that has not been reaped. Start is 0 without /proc.
func identify(pid int) Proc {
	p, err := readStat(pid)
	if err != nil {
		return Proc{PID: pid, PGID: pid, Session: pid, UID: -1}
	}
	return p
}

// descendants walks the tree below this process by the children files
// (proc_tid_children(5)) of every thread, because a child belongs to the
// thread that forked it. The files may miss entries while children exit, so an
// empty list is a hint; the proof is a wait that says ECHILD.
func descendants() ([]Proc, error) {
	queue, err := children()
	if err != nil {
		return scan()
	}
	var rows []Proc
	seen := map[int]bool{}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		name := strconv.Itoa(pid)
		p, err := readStat(pid)
		if err != nil {
			continue // it has left meanwhile
		}
		rows = append(rows, p)
		if p.threads > 1 {
			below, _ := childrenOf(name) // likewise
			queue = append(queue, below...)
		} else if b, err := readFile("/proc/" + name + "/task/" + name + "/children"); err == nil {
			queue = append(queue, numbers(b)...)
		}
	}
	return rows, nil
}

// children lists this process's own children.
func children() ([]int, error) {
	pids, err := childrenOf("self")
	if err == nil {
		return pids, nil
	}
	rows, err := scan()
	if err != nil {
		return nil, err
	}
	for _, p := range rows {
		if p.PPID == os.Getpid() {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}

// childrenOf fails where the kernel was built without CONFIG_PROC_CHILDREN.
func childrenOf(pid string) ([]int, error) {
	dir := "/proc/" + pid + "/task/"
	tids, err := names(dir)
	if err != nil {
		return nil, err
	}
	var pids []int
	read := 0
	for _, tid := range tids {
		b, e := readFile(dir + tid + "/children")
		if e != nil {
			err = e
			continue // the thread has ended, or there are no such files at all
		}
		read++
		pids = append(pids, numbers(b)...)
	}
	if read == 0 {
		return nil, err
	}
	return pids, nil
}

// numbers are those in a list with blanks between them.
func numbers(b []byte) []int {
	var list []int
	for _, field := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(field); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// scan lists the descendants by one pass over the whole process table.
func scan() ([]Proc, error) {
	pids, err := names("/proc")
	if err != nil {
		return nil, err
	}
	below := map[int][]Proc{}
	for _, name := range pids {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, err := readStat(pid); err == nil {
				below[p.PPID] = append(below[p.PPID], p)
			}
		}
	}
	if len(below) == 0 {
		return nil, errors.New("/proc shows no process")
	}
	var rows []Proc
	queue := []int{os.Getpid()}
	for len(queue) > 0 {
		kids := below[queue[0]]
		delete(below, queue[0]) // no circles, even in a table that changed while it was read
		queue = queue[1:]
		for _, p := range kids {
			rows = append(rows, p)
			queue = append(queue, p.PID)
		}
	}
	return rows, nil
}

func names(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// readStat reads /proc/<pid>/stat (proc_pid_stat(5)). The name in field 2 may
// hold anything, spaces and brackets included: the fields are counted from its
// last bracket.
func readStat(pid int) (Proc, error) {
	b, err := readFile("/proc/" + strconv.Itoa(pid) + "/stat")
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
	p := Proc{PID: pid, State: fields[0], Command: name, UID: -1}
	p.PPID, _ = strconv.Atoi(fields[1])
	p.PGID, _ = strconv.Atoi(fields[2])
	p.Session, _ = strconv.Atoi(fields[3])
	p.threads, _ = strconv.Atoi(fields[17])
	p.Start, err = strconv.ParseUint(fields[19], 10, 64)
	return p, err
}

// commandLine is the argv of a process, or its name in brackets; empty when it
// has left.
func commandLine(pid int) string {
	b, err := readFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	b = bytes.TrimRight(b, "\x00")
	if err != nil || len(b) == 0 {
		p, err := readStat(pid)
		if err != nil {
			return "" // it has left
		}
		return "[" + p.Command + "]"
	}
	return strings.Join(Masked(strings.Split(string(b), "\x00")), " ")
}

// signalProc sends the signals to exactly this process: the pidfd is opened
// first and the start time checked after it, so that the pid cannot have
// changed hands.
func signalProc(p Proc, signals ...syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	send := func(sig syscall.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }
	if err != nil { // before Linux 5.3
		send = func(sig syscall.Signal) error { return unix.Kill(p.PID, sig) }
	} else {
		defer unix.Close(fd)
	}
	if now, err := readStat(p.PID); err != nil || now.Start != p.Start {
		return unix.ESRCH
	}
	for _, sig := range signals {
		if err := send(sig); err != nil {
			return err
		}
	}
	return nil
}
