//go:build linux

package main

import (
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

// lifeFD is the number under which every process of a tree holds the write end
// of its FIFO (LIFE_FD in tree/tree.h).
const lifeFD = "190"

// instant is the monotonic clock in nanoseconds, the same for all processes.
type instant int64

func now() instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // cannot be: every Linux has this clock
	}
	return instant(t.Nano())
}

func (t instant) since(from instant) time.Duration { return time.Duration(t - from) }

// proc is a line of the process table. A process is its pid and its start.
type proc struct {
	pid, ppid int
	state     byte
	threads   int
	start     uint64 // clock ticks since boot
	name      string
}

// dead reports whether the process is a zombie as a whole: the state of one
// whose leader thread alone has exited is Z as well.
func (p proc) dead() bool { return (p.state == 'Z' || p.state == 'X') && p.threads <= 1 }

func (p proc) String() string { return fmt.Sprintf("%d %s (%c)", p.pid, p.name, p.state) }

// readStat reads /proc/<pid>/stat. The name may hold anything, brackets and
// blanks included: the fields are counted from its last bracket.
func readStat(pid int) (proc, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, err
	}
	text := string(b)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return proc{}, errors.New("stat: no name")
	}
	f := strings.Fields(text[end+1:])
	if len(f) < 20 {
		return proc{}, errors.New("stat: too short")
	}
	p := proc{pid: pid, state: f[0][0], name: text[open+1 : end]}
	p.ppid, _ = strconv.Atoi(f[1]) // the kernel writes numbers
	p.threads, _ = strconv.Atoi(f[17])
	p.start, _ = strconv.ParseUint(f[19], 10, 64)
	return p, nil
}

// pids are the processes that /proc shows.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read of it counts
	var list []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// table is the whole process table.
func table() map[int]proc {
	t := map[int]proc{}
	for _, pid := range pids() {
		if p, err := readStat(pid); err == nil {
			t[pid] = p
		}
	}
	return t
}

// children are this process's own, started or adopted, by whichever thread.
func children() []int {
	var list []int
	files, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well-formed
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // that thread has ended
		}
		for field := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(field); err == nil {
				list = append(list, pid)
			}
		}
	}
	if len(files) > 0 {
		return list
	}
	// A kernel without CONFIG_PROC_CHILDREN.
	me := os.Getpid()
	for pid, p := range table() {
		if p.ppid == me {
			list = append(list, pid)
		}
	}
	return list
}

// descendants are all processes below the given one.
func descendants(of int) []proc {
	t := table()
	below := map[int][]int{}
	for pid, p := range t {
		below[p.ppid] = append(below[p.ppid], pid)
	}
	var found []proc
	for queue := below[of]; len(queue) > 0; {
		pid := queue[0]
		queue = append(queue[1:], below[pid]...)
		found = append(found, t[pid])
	}
	slices.SortFunc(found, func(a, b proc) int { return a.pid - b.pid })
	return found
}

// holds reports whether a process has the FIFO of that name open. The leader
// of a process may be dead and have no descriptors any more, while another
// thread of it lives and has them.
func holds(pid int, fifo, fd string) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	if opens(dir, fifo, fd) {
		return true
	}
	if p, err := readStat(pid); err != nil || p.threads < 2 {
		return false
	}
	tasks, _ := filepath.Glob(dir + "/task/*") // the pattern is well-formed
	return slices.ContainsFunc(tasks, func(task string) bool { return opens(task, fifo, fd) })
}

func opens(dir, fifo, fd string) bool {
	files := []string{dir + "/fd/" + fd}
	if fd == "*" {
		files, _ = filepath.Glob(dir + "/fd/*") // the pattern is well-formed
	}
	return slices.ContainsFunc(files, func(file string) bool {
		// By name, not by path: another mount namespace has another path. The
		// name is unique to the run.
		to, err := os.Readlink(file)
		return err == nil && strings.TrimSuffix(filepath.Base(to), " (deleted)") == fifo
	})
}

// holders are the living processes that hold the FIFO. Reading one link of
// each process is enough for what tree makes; all links are read when that
// finds nobody.
func holders(fifo string) []proc {
	for _, fd := range []string{lifeFD, "*"} {
		var found []proc
		for _, pid := range pids() {
			if pid == os.Getpid() || !holds(pid, fifo, fd) {
				continue
			}
			if p, err := readStat(pid); err == nil {
				found = append(found, p)
			}
		}
		if len(found) > 0 {
			slices.SortFunc(found, func(a, b proc) int { return a.pid - b.pid })
			return found
		}
	}
	return nil
}

// killHolder ends a process of the tree, and no other: the pidfd is opened
// first, and what it names is looked at again before it is used.
func killHolder(p proc, fifo string) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	again, err := readStat(p.pid)
	if err != nil || again.start != p.start || !holds(p.pid, fifo, "*") {
		return
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may have ended since
}
