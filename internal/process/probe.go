package process

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Status is whether a run can do with what was found.
type Status string

// The statuses.
const (
	Fine     Status = "ok"
	Doubtful Status = "warn" // a run does, and lacks something
	Broken   Status = "fail" // it does not
)

// Finding is what was found of one thing that a run needs.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do about it
}

// Probe looks at one thing that a run needs, and leaves nothing behind.
type Probe struct {
	Name string
	Look func() Finding
}

// Trial is a program that does no harm and ends soon: the containments are
// tried on it.
type Trial struct {
	Path string
	Args []string
}

// run starts the trial in a containment and ends it. It says how it was held.
func (t Trial) run(c Containment) (held string, err error) {
	a, err := Start(Spec{Path: t.Path, Args: t.Args, Env: os.Environ(), ID: "doctor", Containment: c, Stderr: StderrDiscard})
	if err != nil {
		return "", errors.Unwrap(err) // without the name of what was started
	}
	down := a.End(NewLadder(0)[1:], nil)
	_ = a.Stdin.Close() // whether it took what nobody wrote does not matter
	_ = a.Stdout.Close()
	_ = a.Stderr.Close()
	a.Close()
	if len(down.Left) > 0 {
		err = fmt.Errorf("it could not be ended: %s %s", down.Left[0].Proc, down.Left[0].Why())
	}
	return a.Held, err
}

// Least is what should be free for a tree: node alone has a dozen threads,
// which count as processes, and a build has many of both.
const (
	leastProcs  = 256
	leastFiles  = 256
	leastMemory = 512 << 20 // bytes
)

// userLimits are those of getrlimit(2), and whether they are enough.
func userLimits() (found []string, enough bool) {
	enough = true
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		found = append(found, "open files "+limitText(files.Cur))
		enough = enough && files.Cur >= leastFiles
	}
	var procs unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &procs) == nil {
		found = append(found, "processes of this user "+limitText(procs.Cur))
		enough = enough && (procs.Cur >= leastProcs || os.Geteuid() == 0)
	}
	return found, enough
}

func limitText(n uint64) string {
	if n >= 1<<62 { // RLIM_INFINITY, which systems write in different ways
		return "unlimited"
	}
	return fmt.Sprint(n)
}

// probeTerminal opens one as --stderr pty does.
func probeTerminal() Finding {
	m, s, err := openTerminal(Size{})
	if err != nil {
		return Finding{Status: Doubtful, Found: err.Error(), Advice: "mount devpts on /dev/pts; without it a conversation at a terminal needs --stderr pipe"}
	}
	defer closeAll(m, s)
	return Finding{Status: Fine, Found: "a pseudo-terminal can be opened (" + s.Name() + ")"}
}

// probeClock looks for the clocks that tell how long the machine slept.
func probeClock(clocks ...int32) Finding {
	var at unix.Timespec
	for _, id := range clocks {
		if err := unix.ClockGettime(id, &at); err != nil {
			return Finding{Status: Doubtful, Found: fmt.Sprintf("clock %d: %v", id, err), Advice: "a suspended machine counts as a silent agent here: use longer timeouts"}
		}
	}
	return Finding{Status: Fine, Found: fmt.Sprintf("time asleep is told apart from silence (%s since the start of the machine)", Suspended().Round(time.Second))}
}

// machine is what uname(2) says.
func machine() (name, release string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "an unknown system", ""
	}
	text := func(b []byte) string { return strings.TrimSpace(unix.ByteSliceToString(b)) }
	return text(u.Sysname[:]) + " " + text(u.Release[:]) + " " + text(u.Machine[:]), text(u.Release[:])
}
