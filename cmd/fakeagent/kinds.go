package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// readyFD is the pipe on which a child says that it is what its kind promises.
const readyFD = 3

// kind is a way to be left behind. The zero kind sits in the agent's process group, with all its
// streams on /dev/null, until its time is up.
type kind struct {
	session bool // leads a session of its own, as every tool shell of the real agent does
	group   bool // leads a process group of its own, in the agent's session
	stdout  bool // keeps the agent's stdout open
	leaves  bool // the process that the agent started is gone at once, another one stays
	stops   bool // stops itself
	inner   bool // second process of another kind, not for scenarios

	live func(child) // says that it is ready and does what it does; nil only sleeps
}

var kinds map[string]kind

// The table is filled here because its functions lead back to it.
func init() {
	kinds = map[string]kind{
		"plain":        {},
		"setsid":       {session: true},
		"daemon":       {session: true, leaves: true, live: child.detach},
		"orphan":       {inner: true, live: child.beDaemon},
		"deaf":         {live: child.beDeaf},
		"holder":       {session: true, stdout: true},
		"group-holder": {stdout: true},
		"stopped":      {group: true, stops: true, live: child.beStopped},
		"launcher":     {live: child.launch},
		"launched":     {inner: true},
		"busy":         {session: true, live: child.beBusy},
		"writer":       {session: true, live: child.writeDisk},
		"asker":        {live: child.askTerminal},
	}
}

// child is one started process of a kind.
type child struct {
	name  string
	life  time.Duration
	argv  []string
	ready *os.File
}

// runChild is the whole life of a child; its arguments are those that startChild gave.
func runChild(args []string) int {
	if len(args) < 2 {
		return exitBadScenario
	}
	life, err := time.ParseDuration(args[1])
	if err != nil {
		return exitBadScenario
	}
	time.AfterFunc(life, func() { os.Exit(0) })
	c := child{name: args[0], life: life, argv: args[2:], ready: os.NewFile(readyFD, "ready")}
	if live := kinds[c.name].live; live != nil {
		live(c)
		return 0
	}
	c.announce(c.name)
	select {}
}

// announce tells the agent that this process is ready, and under which name to list it.
func (c child) announce(name string) {
	fmt.Fprintf(c.ready, "%s %d\n", name, os.Getpid())
	c.ready.Close()
}

// detach leaves a child in this session and ends, so that nobody it knows is its parent.
func (c child) detach() {
	if _, err := startChild("orphan", c.life, c.argv, c.ready, nil); err != nil {
		os.Exit(exitBadScenario)
	}
}

// beDaemon is ready before its parent is gone: the agent waits for that one.
func (c child) beDaemon() {
	c.announce("daemon")
	select {}
}

func (c child) beDeaf() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	c.announce(c.name)
	select {}
}

func (c child) beStopped() {
	c.announce(c.name)
	syscall.Kill(os.Getpid(), syscall.SIGSTOP) // can only fail for other processes
	select {}                                  // somebody continued us: the rest of our time
}

// launch is npx, or a shell script: it waits for the program that it started.
func (c child) launch() {
	cmd, err := startChild("launched", c.life, c.argv, c.ready, nil)
	if err != nil {
		os.Exit(exitBadScenario)
	}
	c.announce(c.name)
	cmd.Wait()
}

func (c child) beBusy() {
	c.announce(c.name)
	spin(time.Now().Add(c.life))
}

// writeDisk works on the disk and leaves no file.
func (c child) writeDisk() {
	f, err := os.CreateTemp("", "fakeagent")
	if err != nil {
		os.Exit(exitBadScenario)
	}
	os.Remove(f.Name())
	c.announce(c.name)
	block := make([]byte, 64<<10)
	for {
		f.WriteAt(block, 0) // in place: the file stays small however long this runs
		time.Sleep(20 * time.Millisecond)
	}
}

// A look at a process sees what its first thread waits for; ours may be in any.
func init() {
	if len(os.Args) > 1 && os.Args[1] == childArgument {
		runtime.LockOSThread()
	}
}

// askTerminal asks on the controlling terminal, as git and ssh do, and ends with the answer. It fails
// at once where there is none. The read is a plain system call, so that a look at the process shows
// what it is blocked in.
func (c child) askTerminal() {
	tty, err := syscall.Open("/dev/tty", syscall.O_RDWR, 0)
	c.announce(c.name)
	if err != nil {
		os.Exit(1)
	}
	syscall.Write(tty, []byte("Username for 'https://git.example.invalid': "))
	syscall.Read(tty, make([]byte, 256))
}
