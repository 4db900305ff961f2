package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep ends and removes what dead runs have left in cgroups of ours: below our
// own cgroup, and at the given paths. Leaves of other pid namespaces are not
// touched: whether their owners live cannot be seen from here.
func Sweep(paths ...string) []Leftover {
	if parent, err := ownCgroup(); err == nil {
		entries, _ := os.ReadDir(parent) // what cannot be read holds nothing of ours
		for _, e := range entries {
			paths = append(paths, filepath.Join(parent, e.Name()))
		}
	}
	slices.Sort(paths)
	var left []Leftover
	for _, path := range slices.Compact(paths) {
		if info, err := os.Stat(path); err == nil && info.IsDir() && abandoned(filepath.Base(path)) && isCgroup(path) {
			left = append(left, clear(path))
		}
	}
	return left
}

// isCgroup keeps a path that somebody else wrote from being taken for one.
func isCgroup(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// abandoned reports whether the name is that of a leaf whose owner, in our own
// pid namespace, is dead.
func abandoned(name string) bool {
	rest, ok := strings.CutPrefix(name, leafPrefix)
	fields := strings.SplitN(rest, ".", 4)
	if !ok || len(fields) != 4 {
		return false
	}
	ns, err := pidNamespace()
	if err != nil || fields[0] != strconv.FormatUint(ns, 10) {
		return false
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return false
	}
	p, err := readStat(pid)
	// A guard that outlives its front is at work on the leaf already; it is
	// done within seconds, or it is dead.
	return os.IsNotExist(err) || err == nil && (p.gone() || strconv.FormatUint(p.Start, 10) != fields[2])
}

func clear(path string) Leftover {
	dir, err := os.Open(path)
	if err != nil {
		return Leftover{Cgroup: path, Error: err.Error()}
	}
	l := &leaf{path: path, dir: dir}
	left := Leftover{Cgroup: path}
	for _, pid := range l.members() {
		if p := identify(pid); p.Start != 0 && !p.gone() {
			p.Command = commandLine(pid)
			left.Ended = append(left.Ended, p)
		}
	}
	l.kill()
	for over := time.Now().Add(2 * time.Second); l.populated() && time.Now().Before(over); time.Sleep(time.Millisecond) {
		l.killMembers()
	}
	if err := l.remove(time.Second); err != nil {
		left.Error = err.Error()
	}
	return left
}

// Marked lists the living that carry the marker, the name of an environment
// variable, but belong to no living run: they descend from no guard. A copied
// environment is enough to carry it, so nobody may be ended for that.
func Marked(marker string) []Proc {
	pids, err := names("/proc")
	if err != nil {
		return nil
	}
	var marked []Proc
	for _, name := range pids {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		env, err := readFile("/proc/" + name + "/environ") // ours and, as root, everybody's
		if err != nil || !carries(env, marker) || guarded(pid) {
			continue
		}
		if p := identify(pid); p.Start != 0 && !p.gone() {
			p.Command = commandLine(pid)
			marked = append(marked, p)
		}
	}
	return marked
}

func carries(env []byte, marker string) bool {
	m := []byte(marker + "=")
	return bytes.HasPrefix(env, m) || bytes.Contains(env, append([]byte{0}, m...))
}

// guarded reports whether a process is a guard, descends from one, or descends
// from us: what we have started carries the mark that we were given.
func guarded(pid int) bool {
	for range 1 << 16 {
		if pid == os.Getpid() {
			return true
		}
		argv, err := readFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return true // it has left
		}
		if fields := bytes.SplitN(argv, []byte{0}, 3); len(fields) > 1 && string(fields[1]) == GuardArg {
			return true
		}
		p, err := readStat(pid)
		if err != nil || p.PPID <= 1 {
			return err != nil
		}
		pid = p.PPID
	}
	return false
}

// hits is a counter of one of the leaf's event files; 0 where there is none.
func (l *leaf) hits(file, key string) int64 {
	if l == nil {
		return 0
	}
	b, err := readFile(filepath.Join(l.path, file))
	if err != nil {
		return 0
	}
	for row := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(row), key+" "); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}

// count is a number of the leaf's; 0 where there is none.
func (l *leaf) count(file string) int64 {
	b, err := readFile(filepath.Join(l.path, file))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// limit hands the limits to the kernel, as far as the leaf has the controllers.
func (l *leaf) limit(limits Limits) {
	write := func(file string, n int64) {
		if n > 0 {
			_ = os.WriteFile(filepath.Join(l.path, file), []byte(strconv.FormatInt(n, 10)), 0)
		}
	}
	write("pids.max", int64(limits.Procs))
	write("memory.max", limits.Memory)
}

// residentSize is in bytes; 0 where it cannot be read.
func residentSize(pid int) int64 {
	b, err := readFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(unix.Getpagesize())
}
