package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// explainMax is how many processes are looked into, beside the agent.
const explainMax = 200

// sysCall is what is known of a system call that can wait.
type sysCall struct {
	nr    int64
	name  string
	about about // what its first argument is
}

type about byte

const (
	nothing  about = iota
	reads          // the descriptor that it reads
	writes         // the one that it writes
	file           // one of which neither can be said
	childPID       // the pid of a child, as wait4(2) takes it
	childID        // what waitid(2) takes: a kind, and an id
)

// sysCalls are those of every architecture; those of one are in oldCalls.
var sysCalls = []sysCall{
	{unix.SYS_READ, "read", reads}, {unix.SYS_READV, "readv", reads}, {unix.SYS_PREAD64, "pread64", reads},
	{unix.SYS_RECVFROM, "recvfrom", reads}, {unix.SYS_RECVMSG, "recvmsg", reads},
	{unix.SYS_RECVMMSG, "recvmmsg", reads}, {unix.SYS_SPLICE, "splice", reads},
	{unix.SYS_WRITE, "write", writes}, {unix.SYS_WRITEV, "writev", writes},
	{unix.SYS_PWRITE64, "pwrite64", writes}, {unix.SYS_SENDTO, "sendto", writes},
	{unix.SYS_SENDMSG, "sendmsg", writes}, {unix.SYS_SENDMMSG, "sendmmsg", writes},
	{unix.SYS_SENDFILE, "sendfile", writes},
	{unix.SYS_FSYNC, "fsync", file}, {unix.SYS_FDATASYNC, "fdatasync", file}, {unix.SYS_FLOCK, "flock", file},
	{unix.SYS_FCNTL, "fcntl", file}, {unix.SYS_IOCTL, "ioctl", file}, {unix.SYS_CONNECT, "connect", file},
	{unix.SYS_ACCEPT, "accept", file}, {unix.SYS_ACCEPT4, "accept4", file},
	{unix.SYS_PPOLL, "ppoll", nothing}, {unix.SYS_PSELECT6, "pselect6", nothing},
	{unix.SYS_EPOLL_PWAIT, "epoll_pwait", nothing}, {unix.SYS_EPOLL_PWAIT2, "epoll_pwait2", nothing},
	{unix.SYS_IO_URING_ENTER, "io_uring_enter", nothing},
	{unix.SYS_WAIT4, "wait4", childPID},
	{unix.SYS_WAITID, "waitid", childID},
	{unix.SYS_FUTEX, "futex", nothing}, {unix.SYS_FUTEX_WAITV, "futex_waitv", nothing},
	{unix.SYS_FUTEX_WAIT, "futex_wait", nothing}, {unix.SYS_NANOSLEEP, "nanosleep", nothing},
	{unix.SYS_CLOCK_NANOSLEEP, "clock_nanosleep", nothing}, {unix.SYS_RT_SIGSUSPEND, "rt_sigsuspend", nothing},
	{unix.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", nothing},
	{unix.SYS_RESTART_SYSCALL, "restart_syscall", nothing}, {unix.SYS_OPENAT, "openat", nothing},
	{unix.SYS_CLOSE, "close", file},
	{unix.SYS_MSYNC, "msync", nothing}, {unix.SYS_CLONE, "clone", nothing}, {unix.SYS_CLONE3, "clone3", nothing},
	{unix.SYS_EXECVE, "execve", nothing},
}

// explain fills in what the processes wait for. Where the kernel does not tell
// us, because we may not trace the process, that is left empty.
func (s *Sampler) explain() {
	pipes := map[string][]pipeEnd{} // those that are waited for, and who holds them
	var waits []*tree.Wait
	var ends []pipeEnd // what each of them waits at, where that is a pipe
	for i, w := range s.here {
		r := &s.snap.Rows[i]
		if r.State == 'Z' || r.State == 'X' || i >= explainMax && r.ID != s.agent {
			continue
		}
		r.Wait = &tree.Wait{FD: tree.Unknown}
		if e, ok := s.explainOne(r, w); ok {
			pipes[r.Wait.File] = nil
			waits, ends = append(waits, r.Wait), append(ends, e)
		}
	}
	if len(pipes) == 0 {
		return
	}
	for _, w := range s.here {
		s.findEnds(pipes, w.dir, w.id.PID)
	}
	s.findEnds(pipes, "/proc/self/", os.Getpid())
	for i, wait := range waits {
		wait.Holders = ends[i].opposite(pipes[wait.File])
	}
}

// explainOne reports whether the process waits at a pipe, and at which end.
func (s *Sampler) explainOne(r *tree.Row, w *watched) (pipeEnd, bool) {
	wait := r.Wait
	if r.State == 'T' {
		wait.Signal = stopSignal(w.code)
	}
	if b, err := s.readPath(w.dir + "wchan"); err == nil && string(b) != "0" {
		wait.Channel = string(b)
	}
	b, err := s.readPath(w.dir + "syscall")
	if err != nil {
		return pipeEnd{}, false
	}
	call, args := parseCall(b)
	wait.Call = call.name
	switch call.about {
	case childPID:
		wait.Child = s.child(r.PID, int(int32(args[0])))
	case childID:
		wait.Child = s.childOf(r.PID, w, args)
	case reads, writes, file:
		return s.explainFile(wait, w, call.about, int(int32(args[0])))
	}
	return pipeEnd{}, false
}

func (s *Sampler) explainFile(wait *tree.Wait, w *watched, what about, fd int) (pipeEnd, bool) {
	wait.FD = fd
	link := w.dir + "fd/" + itoa(fd)
	target, err := os.Readlink(link)
	if err != nil {
		return pipeEnd{}, false
	}
	wait.File = target
	var st unix.Stat_t
	if unix.Stat(link, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO || what == file {
		return pipeEnd{}, false
	}
	return pipeEnd{pid: w.id.PID, reads: what == reads, writes: what == writes}, true
}

// parseCall reads /proc/<pid>/syscall: "running", or the number of the call
// and its arguments. A number of -1 is a wait outside of any call.
func parseCall(b []byte) (call sysCall, args [6]uint64) {
	fields := strings.Fields(string(b))
	if len(fields) == 0 {
		return call, args
	}
	if fields[0] == "running" {
		return sysCall{name: "running"}, args
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || n < 0 {
		return call, args
	}
	for i, field := range fields[1:] {
		if i < len(args) {
			args[i], _ = strconv.ParseUint(strings.TrimPrefix(field, "0x"), 16, 64)
		}
	}
	for _, table := range [][]sysCall{sysCalls, oldCalls} {
		if i := slices.IndexFunc(table, func(c sysCall) bool { return c.nr == n }); i >= 0 {
			return table[i], args
		}
	}
	return sysCall{name: "syscall " + fields[0]}, args
}

// stopSignal is what stopped a process, as its exit code tells while it is
// stopped; before Linux 5.17 it does not.
func stopSignal(code int) string {
	switch sig := syscall.Signal(code & 0x7f); sig {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return unix.SignalName(sig)
	}
	return ""
}

// child is the pid, as we see it, of the child that a process waits for by a
// pid of its own namespace; 0 where that is any.
func (s *Sampler) child(parent, pid int) int {
	if pid <= 0 {
		return 0
	}
	for i := range s.snap.Rows {
		if r := &s.snap.Rows[i]; r.PPID == parent && s.innerPID(r.PID) == pid {
			return r.PID
		}
	}
	if s.innerPID(parent) == parent {
		return pid // it was born after the rows were taken
	}
	return 0
}

// innerPID is the pid that a process has in its own namespace.
func (s *Sampler) innerPID(pid int) int {
	b, err := s.readPath("/proc/" + itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte("\nNSpid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	all := bytes.Fields(line)
	if len(all) == 0 {
		return pid // before Linux 4.1
	}
	n, _ := number(all[len(all)-1])
	return int(n)
}

// childOf is the same for waitid(2), which also takes a pidfd.
func (s *Sampler) childOf(parent int, w *watched, args [6]uint64) int {
	switch args[0] {
	case unix.P_PID:
		return s.child(parent, int(int32(args[1])))
	case unix.P_PIDFD:
		b, err := s.readPath(w.dir + "fdinfo/" + itoa(int(int32(args[1]))))
		if err != nil {
			return 0
		}
		pid, _ := numberAfter(b, "\nPid:\t")
		return int(pid)
	}
	return 0
}

// pipeEnd is a process's hold on a pipe.
type pipeEnd struct {
	pid           int
	reads, writes bool
}

// opposite are those who hold the other end.
func (e pipeEnd) opposite(all []pipeEnd) []int {
	pids := []int{} // nobody, which is more than not having looked
	for _, o := range all {
		if (e.reads && o.writes || e.writes && o.reads) && !slices.Contains(pids, o.pid) {
			pids = append(pids, o.pid)
		}
	}
	return pids
}

// findEnds adds what a process holds of the pipes.
func (s *Sampler) findEnds(pipes map[string][]pipeEnd, dir string, pid int) {
	type hold struct {
		fd   int
		file string
	}
	var holds []hold
	_ = s.eachFile(dir, func(fd int, target []byte) { // what cannot be read is not told
		if _, ok := pipes[string(target)]; ok {
			holds = append(holds, hold{fd, string(target)})
		}
	})
	for _, h := range holds {
		b, err := s.readPath(dir + "fdinfo/" + itoa(h.fd))
		if err != nil {
			continue
		}
		mode, ok := accessMode(b)
		if ok {
			pipes[h.file] = append(pipes[h.file], pipeEnd{pid, mode != unix.O_WRONLY, mode != unix.O_RDONLY})
		}
	}
}

// accessMode is how a file is open, as proc_pid_fdinfo(5) tells in octal.
func accessMode(b []byte) (int, bool) {
	_, rest, ok := bytes.Cut(b, []byte("flags:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	flags, err := strconv.ParseUint(string(line), 8, 64)
	return int(flags & unix.O_ACCMODE), ok && err == nil
}
