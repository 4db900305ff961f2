package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parting reports whether this process is going to play that part.
func parting(name string) bool {
	return len(os.Args) > 2 && os.Args[1] == partArg && os.Args[2] == name
}

func init() {
	// hopper is a chain of processes of which each lives only until it has
	// started the next, in a session of its own if it is told so.
	parts["hopper"] = func(args []string) {
		until, _ := strconv.ParseInt(args[0], 10, 64)
		if len(args) < 3 {
			ready("hopper")
		}
		if time.Now().UnixMilli() < until {
			fork(bare, &syscall.SysProcAttr{Setsid: args[1] == "sid"}, "hopper", args[0], args[1], "next")
		}
	}
	// beheaded lives on after its first thread has ended: its stat says Z.
	parts["beheaded"] = func([]string) {
		if os.Getpid() != unix.Gettid() {
			panic("not the first thread")
		}
		go func() {
			for identify(os.Getpid()).State != "Z" {
				runtime.Gosched()
			}
			ready("beheaded")
			forever()
		}()
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	if parting("beheaded") {
		runtime.LockOSThread() // keeps the main goroutine on the first thread
	}
	// reaper is a subreaper below the guard: its orphans come to it.
	parts["reaper"] = func(kinds []string) {
		_ = becomeReaper()
		for _, kind := range kinds {
			spawn("daemon:" + kind)
		}
		ready("reaper")
		forever()
	}
	// zombies has children that have ended and that it does not reap.
	parts["zombies"] = func([]string) {
		for range 10 {
			pid := fork(os.Environ(), nil, "exit", "0")
			_ = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		}
		ready("zombies")
		forever()
	}
	// threads has children that were forked by threads other than its first.
	parts["threads"] = func([]string) {
		for range 4 {
			go func() {
				runtime.LockOSThread()
				spawn("wait")
				forever()
			}()
		}
		forever()
	}
	// sibling is no child of the process that forks it, but its parent's.
	parts["sibling"] = func(words []string) {
		fork(os.Environ(), &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT}, words...)
		ready("sibling")
		forever()
	}
	// lastwords leaves a daemon behind when it is asked to go; a deaf one is so
	// from its birth, because what it inherits ignored stays so.
	parts["lastwords"] = func(words []string) {
		term := make(chan os.Signal, 1)
		ossignal.Notify(term, syscall.SIGTERM)
		ready("lastwords")
		<-term
		if words[0] == "deaf" {
			ossignal.Ignore(syscall.SIGTERM)
		}
		_, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, &syscall.ProcAttr{
			Files: []uintptr{0, os.Stdout.Fd(), 2}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			panic(err)
		}
	}
	// namespace starts a part as the init of a pid namespace.
	parts["namespace"] = func(words []string) {
		fork(os.Environ(), &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}, words...)
		ready("namespace")
		forever()
	}
	// orphan ends once its parent has, in the way that it is told.
	parts["orphan"] = func(words []string) {
		r, w, _ := os.Pipe()
		pid, err := syscall.ForkExec("/proc/self/exe", append([]string{"orphan", partArg, "adoptee"}, words...), &syscall.ProcAttr{
			Env: os.Environ(), Files: []uintptr{r.Fd(), os.Stdout.Fd(), 2}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			panic(err)
		}
		_ = r.Close()
		fmt.Println("orphan", pid)
		runtime.KeepAlive(w) // it closes when we end
	}
	parts["adoptee"] = func(words []string) {
		stdinEnds()
		parts[words[0]](words[1:])
	}
	// nest makes cgroups of its own in the leaf, freezes one, and lives there.
	parts["nest"] = func([]string) {
		parent, err := ownCgroup()
		if err != nil {
			panic(err)
		}
		for _, dir := range []string{"a", "a/b", "c"} {
			if err := os.Mkdir(filepath.Join(parent, dir), 0o755); err != nil {
				panic(err)
			}
		}
		move := func(pid int, dir string) {
			if err := os.WriteFile(filepath.Join(parent, dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
				panic(err)
			}
		}
		move(os.Getpid(), "a/b")
		frozen := fork(os.Environ(), nil, "still")
		move(frozen, "c")
		_ = os.WriteFile(filepath.Join(parent, "c/cgroup.freeze"), []byte("1"), 0)
		ready("nest")
		forever()
	}
	// usurper becomes root altogether, if its file is root's and set-uid.
	parts["usurper"] = func([]string) {
		if err := unix.Setresuid(0, 0, 0); err != nil {
			panic(err)
		}
		ready("usurper")
		forever()
	}
	// blocker becomes another program that inherits blocked signals.
	parts["blocker"] = func(words []string) {
		runtime.LockOSThread()
		var set unix.Sigset_t
		set.Val[0] = 1<<(unix.SIGTERM-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGCHLD-1)
		if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
			panic(err)
		}
		panic(syscall.Exec(words[0], words, os.Environ()))
	}
	// still says nothing: it may be frozen before it could.
	parts["still"] = func([]string) { forever() }
	// fat holds so many MiB of memory.
	parts["fat"] = func(args []string) {
		mib, _ := strconv.Atoi(args[0])
		b, err := Reserve(mib << 20)
		if err != nil {
			panic(err)
		}
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
		ready("fat")
		forever()
	}
	// ignorer becomes another program that inherits ignored signals.
	parts["ignorer"] = func(words []string) {
		ossignal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP,
			syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCHLD, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGALRM)
		panic(syscall.Exec(words[0], words, os.Environ()))
	}
	// sweep says what is found and ended of dead runs.
	parts["sweep"] = func(args []string) {
		text, _ := json.Marshal(Sweep())
		fmt.Println(string(text))
		text, _ = json.Marshal(Marked(args[0]))
		fmt.Println(string(text))
	}
	// scanner ends a tree of its own that it sees through the whole process
	// table, as where the kernel has no children files.
	parts["scanner"] = func(kinds []string) {
		_ = becomeReaper()
		for _, kind := range kinds {
			spawn(kind)
		}
		stdinEnds()
		w := warden{world: realWorld(Proc{})}
		w.world.tree = scan
		w.world.children = func() (pids []int, err error) {
			rows, err := scan()
			for _, p := range rows {
				if p.PPID == os.Getpid() {
					pids = append(pids, p.PID)
				}
			}
			return pids, err
		}
		w.chld, w.more = watch()
		text, _ := json.Marshal(w.end(short, nil))
		fmt.Println(string(text))
	}
	parts["front"] = playFront
}

// playFront starts an agent and does what its stdin says.
func playFront(args []string) {
	fifo, words := args[0], args[1:]
	s := Spec{Path: "/proc/self/exe", Args: append([]string{partArg}, words...), ID: "test", Env: append(os.Environ(), saysEnv+"="+fifo)}
	if path, err := os.Executable(); err == nil {
		s.Path = path
	}
	s.Containment = Containment(os.Getenv("CONTAINMENT"))
	s.Stderr = Mode(os.Getenv("STDERR"))
	if strings.HasPrefix(words[0], "/") {
		s.Path, s.Args = words[0], words[1:]
	}
	a, err := Start(s)
	if err != nil {
		fmt.Println("failed", err)
		return
	}
	fmt.Println(a.PID(), a.GuardPID(), a.Held)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch op, rest, _ := strings.Cut(in.Text(), " "); op {
		case "end":
			grace, settle, _ := strings.Cut(rest, " ")
			l := NewLadder(must(time.ParseDuration(grace)))
			if settle != "" {
				l[1].Wait = must(time.ParseDuration(settle))
			}
			td := a.End(l, nil)
			a.Close()
			text, _ := json.Marshal(td)
			fmt.Println(string(text))
			return
		case "copy": // what the agent says
			_, _ = io.Copy(os.Stdout, a.Stdout)
		case "terminals": // who has one
			fmt.Println(terminalOf(os.Getpid()), terminalOf(a.GuardPID()), terminalOf(a.PID()))
		}
	}
	forever()
}
