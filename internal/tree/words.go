package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The sentences that others go by.
const (
	readsTerminal      = "reads the terminal"
	stoppedNow         = "stopped"
	frozen             = "frozen"
	uninterruptible    = "uninterruptible"
	receivesFromSocket = "receives from a socket"
	receivesFromPeer   = "receives from "
	readsPipe          = "reads a pipe"
	waitsForLock       = "waits for a lock"
	waitsForEvents     = "waits for events"
	waitsForPeers      = waitsForEvents + "; connected to "
	waitsForSignal     = "waits for a signal"
	waitsForChild      = "waits for a child"
	waitsOnFutex       = "waits on a futex"
)

// waits says in words what a process waits for. It is empty where the kernel
// did not tell, or was not asked.
func (t *table) waits(i int) string {
	r := t.rows[i]
	w := r.Wait
	switch {
	case !lives(r):
		return "ended, not yet reaped"
	case r.State == 'T' && w != nil && w.Signal != "":
		return stoppedNow + " by " + Shown(w.Signal)
	case r.State == 'T':
		return stoppedNow
	case r.State == 't':
		return stoppedNow + " by a debugger"
	case w == nil:
		return ""
	case inKernel(w.Channel, freezers):
		return frozen
	case r.State == 'D':
		return inD(w.Channel)
	case w.Call == "running", w.Call == "" && r.State == 'R':
		return "runs"
	case w.Call == "":
		return asleepIn(w.Channel)
	}
	return t.inCall(i)
}

// kind is what a system call waits for.
type kind int

const (
	other kind = iota
	reading
	writing
	events
	child
	sleeping
	signals
	locking
	opening
)

var kinds = map[string]kind{
	"read": reading, "readv": reading, "pread64": reading, "preadv": reading, "preadv2": reading,
	"recv": reading, "recvfrom": reading, "recvmsg": reading, "recvmmsg": reading,
	"write": writing, "writev": writing, "pwrite64": writing, "pwritev": writing, "pwritev2": writing,
	"send": writing, "sendto": writing, "sendmsg": writing, "sendmmsg": writing,
	"epoll_wait": events, "epoll_pwait": events, "epoll_pwait2": events, "poll": events, "ppoll": events,
	"select": events, "pselect6": events, "io_uring_enter": events, "io_getevents": events, "io_pgetevents": events,
	"wait4": child, "waitid": child, "waitpid": child,
	"nanosleep": sleeping, "clock_nanosleep": sleeping,
	"pause": signals, "rt_sigsuspend": signals, "sigsuspend": signals, "rt_sigtimedwait": signals,
	"flock": locking, "fcntl": locking,
	"open": opening, "openat": opening, "openat2": opening,
}

// inCall is what a process waits for that sleeps in a system call.
func (t *table) inCall(i int) string {
	r := t.rows[i]
	switch w := r.Wait; kinds[w.Call] {
	case reading:
		return t.reads(r)
	case writing:
		return t.writes(r)
	case events:
		return waitsForEvents + connected(r)
	case child:
		return t.waitsForChild(i)
	case sleeping:
		return "sleeps"
	case signals:
		return waitsForSignal
	case locking:
		return about(waitsForLock+" on ", w.File, waitsForLock)
	case opening:
		return about("opens ", w.File, "opens a file")
	}
	return inOther(r.Wait)
}

// inOther is for the calls that are about nothing, or about something that was
// not told. The kernel function may say more than a call's name: one that a
// signal has interrupted goes on as restart_syscall.
func inOther(w *Wait) string {
	switch {
	case strings.HasPrefix(w.Call, "futex"):
		return waitsOnFutex
	case w.Call == "connect":
		return "connects to a socket"
	case w.Call == "accept", w.Call == "accept4":
		return "waits for a connection"
	}
	return cmp.Or(asleepIn(w.Channel), "in "+Shown(w.Call))
}

// about is a sentence about a file, or the other one where it is not told.
func about(what, name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return what + clipped(Shown(name), 100)
}

func isTerminal(name string) bool {
	return strings.HasPrefix(name, "/dev/pts/") || strings.HasPrefix(name, "/dev/tty") || strings.HasPrefix(name, "/dev/console")
}

func (t *table) reads(r *Row) string {
	switch w := r.Wait; {
	case isTerminal(w.File):
		return readsTerminal
	case strings.HasPrefix(w.File, "pipe:"):
		if w.Holders == nil {
			return readsPipe
		}
		if len(w.Holders) == 0 {
			return readsPipe + " that nobody in its tree holds open for writing"
		}
		return readsPipe + t.holders(r, " held by ", " that only itself holds open for writing")
	case strings.HasPrefix(w.File, "socket:"):
		return receives(r)
	}
	return about("reads ", r.Wait.File, inOther(r.Wait))
}

func (t *table) writes(r *Row) string {
	switch w := r.Wait; {
	case isTerminal(w.File):
		return "writes to the terminal"
	case strings.HasPrefix(w.File, "pipe:"):
		if w.Holders == nil {
			return "writes to a full pipe"
		}
		if len(w.Holders) == 0 {
			return "writes to a full pipe that nobody in its tree reads"
		}
		return "writes to a full pipe" + t.holders(r, " read by ", " that only itself reads")
	case strings.HasPrefix(w.File, "socket:"):
		if s := socket(r); s != nil {
			return "sends to " + Shown(s.Peer)
		}
		return "sends to a socket"
	}
	return about("writes to ", r.Wait.File, inOther(r.Wait))
}

// holders names who has the other end of a pipe, and says so if it is nobody
// but the one who waits.
func (t *table) holders(r *Row, verb, alone string) string {
	pids := slices.DeleteFunc(slices.Clone(r.Wait.Holders), func(pid int) bool { return pid == r.PID })
	slices.Sort(pids)
	pids = slices.Compact(pids)
	switch len(pids) {
	case 0:
		return alone
	case 1:
		return verb + t.name(pids[0])
	case 2:
		return verb + t.name(pids[0]) + " and " + t.name(pids[1])
	}
	return fmt.Sprintf("%s%s, %s and %d more", verb, t.name(pids[0]), t.name(pids[1]), len(pids)-2)
}

// socket is the connection that a process waits for, if it is one over TCP.
func socket(r *Row) *Socket {
	for i := range r.Sockets {
		if s := &r.Sockets[i]; r.Wait.File == fmt.Sprintf("socket:[%d]", s.Inode) {
			return s
		}
	}
	return nil
}

func receives(r *Row) string {
	s := socket(r)
	if s == nil {
		return receivesFromSocket
	}
	return receivesFromPeer + Shown(s.Peer) + forSoLong(", nothing for ", s.Quiet)
}

// connected names the peer that was heard of last. How long that is ago can be
// said only if it is known of all of them.
func connected(r *Row) string {
	all := liveliest(r.Sockets)
	if len(all) == 0 {
		return ""
	}
	s := "; connected to " + Shown(all[0].Peer)
	if len(all) > 1 {
		s += fmt.Sprintf(" and %d more", len(all)-1)
	}
	if all[len(all)-1].Quiet < 0 {
		return s
	}
	return s + forSoLong(", nothing received for ", all[0].Quiet)
}

// forSoLong tells of a silence of a second or more.
func forSoLong(what string, d time.Duration) string {
	switch {
	case d < time.Second:
		return ""
	case d < 2*time.Minute:
		return fmt.Sprintf("%s%ds", what, d/time.Second)
	}
	return what + Span(d).String()
}

// waitsForChild names the child if it is told, or if there is but one.
func (t *table) waitsForChild(i int) string {
	if pid := t.rows[i].Wait.Child; pid > 0 {
		return "waits for child " + t.name(pid)
	}
	if heirs := t.heirs(i); len(heirs) == 1 {
		return "waits for child " + t.name(t.rows[heirs[0]].PID)
	}
	return waitsForChild
}
