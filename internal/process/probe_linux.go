package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Probes are the looks at this machine. They are for one at a time, because a
// trial takes every new child of ours for its own.
func Probes(t Trial) []Probe {
	return []Probe{
		{"kernel", probeKernel},
		{"pid 1", probeInit},
		{"containment", func() Finding { return probeAuto(t) }},
		{"pid namespace", func() Finding { return probePIDNS(t) }},
		{"orphans", probeOrphans},
		{"limits", probeLimits},
		{"pipe", probePipe},
		{"/proc", probeProc},
		{"sockets", probeSockets},
		{"terminal", probeTerminal},
		{"clock", func() Finding { return probeClock(unix.CLOCK_BOOTTIME, unix.CLOCK_MONOTONIC) }},
	}
}

func probeKernel() Finding {
	name, release := machine()
	var major, minor int
	_, _ = fmt.Sscanf(release, "%d.%d", &major, &minor) // else 0.0, which is told
	before := func(a, b int) bool { return major < a || major == a && minor < b }
	switch {
	case before(5, 3):
		return Finding{Status: Doubtful, Found: name + ", without pidfd_open(2)", Advice: "from Linux 5.3 on, a signal cannot reach a stranger who was given the pid of a process that has ended"}
	case before(5, 14):
		return Finding{Status: Fine, Found: name + ", without cgroup.kill: processes are killed one by one"}
	}
	return Finding{Status: Fine, Found: name}
}

// probeAuto does what every run does that asks for nothing else.
func probeAuto(t Trial) Finding {
	held, err := t.run(Auto)
	switch {
	case err != nil:
		return Finding{Status: Broken, Found: "nothing could be started below a guard: " + err.Error(), Advice: "look at the limits below, and whether /proc is mounted"}
	case strings.HasPrefix(held, "cgroup "):
		return Finding{Status: Fine, Found: "auto takes a cgroup below " + filepath.Dir(strings.TrimPrefix(held, "cgroup "))}
	}
	return Finding{Status: Doubtful, Found: "auto takes the " + held,
		Advice: "two subreapers hold every tree, unless both are killed in the same instant; for a cgroup besides, run below systemd-run --user --scope -p Delegate=yes, or give the container a writable cgroup of version 2"}
}

func probePIDNS(t Trial) Finding {
	if _, err := t.run(PIDNS); err != nil {
		return Finding{Status: Doubtful, Found: "cannot be made: " + err.Error(),
			Advice: "only --containment pidns needs it: run as root, or allow user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, the seccomp profile of the container)"}
	}
	return Finding{Status: Fine, Found: "can be made, for --containment pidns"}
}

func probeOrphans() Finding {
	if err := becomeReaper(); err != nil {
		return Finding{Status: Broken, Found: "PR_SET_CHILD_SUBREAPER: " + err.Error(), Advice: "a descendant whose parent ends escapes; allow prctl(2) in the seccomp profile"}
	}
	return Finding{Status: Fine, Found: "come to this program, not to pid 1 (PR_SET_CHILD_SUBREAPER)"}
}

// probeInit looks whether pid 1 does the one thing that only it can do.
func probeInit() Finding {
	where := "no sign of a container"
	if sign := containerSign(); sign != "" {
		where = "in a container, by " + sign
	}
	if os.Getpid() == 1 {
		return Finding{Status: Fine, Found: "it is this program, which reaps everybody's orphans during a run; " + where}
	}
	one, err := readStat(1)
	if err != nil {
		return Finding{Status: Fine, Found: "cannot be seen; " + where}
	}
	left := zombiesOf(1)
	if len(left) > 0 { // it may have been about to
		time.Sleep(300 * time.Millisecond)
		still := zombiesOf(1)
		left = slices.DeleteFunc(left, func(p procID) bool { return !slices.Contains(still, p) })
	}
	if len(left) > 0 {
		return Finding{Status: Doubtful, Found: fmt.Sprintf("%q has not reaped %d of its children; %s", one.Command, len(left), where),
			Advice: "their entries stay in the process table; start the container with an init (docker run --init)"}
	}
	return Finding{Status: Fine, Found: fmt.Sprintf("%q; %s", one.Command, where)}
}

func containerSign() string {
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	for _, name := range []string{"KUBERNETES_SERVICE_HOST", "container"} {
		if os.Getenv(name) != "" {
			return "$" + name
		}
	}
	return ""
}

func zombiesOf(parent int) (all []procID) {
	pids, _ := names("/proc") // of none, nothing is said
	for _, name := range pids {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, err := readStat(pid); err == nil && p.PPID == parent && p.gone() {
				all = append(all, p.id())
			}
		}
	}
	return all
}

// probeLimits looks at those that the tree will be under.
func probeLimits() Finding {
	found, enough := userLimits()
	procs, pids := cgroupLimit("pids")
	memory, bytes := cgroupLimit("memory")
	if procs != "" {
		found = append(found, "processes of our cgroup "+procs)
		enough = enough && pids >= leastProcs
	}
	if memory != "" {
		found = append(found, "bytes of memory of our cgroup "+memory)
		enough = enough && bytes >= leastMemory
	}
	f := Finding{Status: Fine, Found: strings.Join(found, ", ")}
	if !enough {
		f.Status, f.Advice = Doubtful, fmt.Sprintf("an agent that builds something needs more; raise what has less free than %d processes, %d open files or %d MiB (ulimit, pids.max, memory.max, or the container's options)", leastProcs, leastFiles, leastMemory>>20)
	}
	return f
}

// cgroupLimit is the narrowest limit of a controller on the way from our own
// cgroup to the top: what is used of how much, and what is free. It is empty
// where there is none.
func cgroupLimit(controller string) (text string, free int64) {
	dir, err := ownCgroup()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			break
		}
		b, _ := readFile(filepath.Join(dir, controller+".max")) // the top has none, nor has one without the controller
		most, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			continue // "max"
		}
		b, _ = readFile(filepath.Join(dir, controller+".current"))
		used, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if text == "" || most-used < free {
			text, free = fmt.Sprintf("%d of %d", used, most), most-used
		}
	}
	return text, free
}

// probePipe asks for the pipe that a run has as its queue.
func probePipe() Finding {
	r, w, err := os.Pipe()
	if err != nil {
		return Finding{Status: Broken, Found: err.Error(), Advice: "raise the limit of open files"}
	}
	defer closeAll(r, w)
	enlarge(r, pipeSize)
	size, err := unix.FcntlInt(r.Fd(), unix.F_GETPIPE_SZ, 0)
	most, _ := readFile("/proc/sys/fs/pipe-max-size")
	found := fmt.Sprintf("%d KiB for the agent's stdout, of %d that were asked for (fs.pipe-max-size %s)", size>>10, pipeSize>>10, strings.TrimSpace(string(most)))
	if err != nil || size < pipeSize {
		return Finding{Status: Doubtful, Found: found, Advice: "while the log is synced the agent waits sooner; raise fs.pipe-max-size, or fs.pipe-user-pages-soft if this user has many pipes"}
	}
	return Finding{Status: Fine, Found: found}
}

// probeProc looks at what /proc tells of other processes.
func probeProc() Finding {
	if _, err := readStat(os.Getpid()); err != nil {
		return Finding{Status: Doubtful, Found: "not readable: " + err.Error(), Advice: "mount it: without it nobody sees what the tree does, a hang is decided by the stream alone, and who escapes is not found"}
	}
	found, lacks := []string{"tells of processes"}, []string{}
	if how := hidden(); how != "" {
		found = append(found, how)
		lacks = append(lacks, "processes of other users are hidden, so one of the tree that changes its user is lost from sight: mount /proc without hidepid, or with gid= of a group of ours")
	}
	if _, err := childrenOf("self"); err != nil {
		found = append(found, "without children files")
		lacks = append(lacks, "each look reads the whole process table (the kernel lacks CONFIG_PROC_CHILDREN)")
	}
	if scope, err := readFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		s := strings.TrimSpace(string(scope))
		found = append(found, "ptrace_scope "+s)
		if s == "3" || s == "2" && os.Geteuid() != 0 {
			lacks = append(lacks, "what a process waits for is not told: set kernel.yama.ptrace_scope to 1, which lets us look into our own descendants")
		}
	}
	if _, err := readFile("/proc/self/syscall"); err == nil {
		found = append(found, "and what they wait for")
	} else {
		found = append(found, "without system calls")
		lacks = append(lacks, "what a process waits for is told only in part (the kernel lacks CONFIG_HAVE_ARCH_TRACEHOOK, or a sandbox hides it)")
	}
	f := Finding{Status: Fine, Found: strings.Join(found, ", "), Advice: strings.Join(lacks, "; ")}
	if len(lacks) > 0 {
		f.Status = Doubtful
	}
	return f
}

// hidden is the option by which /proc hides the processes of others.
func hidden() string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	how := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		left, right, ok := strings.Cut(s.Text(), " - ")
		fields := strings.Fields(left)
		if !ok || len(fields) < 5 || fields[4] != "/proc" {
			continue
		}
		how = "" // of two mounts the last one is seen
		for option := range strings.SplitSeq(right[strings.LastIndexByte(right, ' ')+1:], ",") {
			if v, is := strings.CutPrefix(option, "hidepid="); is && v != "0" && v != "off" {
				how = option
			}
		}
	}
	return how
}

// probeSockets asks the kernel for the TCP sockets as a sampler does.
func probeSockets() Finding {
	t := sockets{mine: map[uint64]*tcpSocket{}, others: map[uint64]bool{}}
	err := t.again((*sockets).dump)
	t.hangUp()
	if err != nil {
		return Finding{Status: Doubtful, Found: "sock_diag(7): " + cause(err), Advice: "a slow download cannot be told from a hang by its bytes; allow AF_NETLINK in the sandbox, and load tcp_diag"}
	}
	return Finding{Status: Fine, Found: fmt.Sprintf("sock_diag(7) tells of them (%d now)", len(t.fresh))}
}

// cause is the last of a chain of errors.
func cause(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}
