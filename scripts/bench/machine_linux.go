package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes every orphan of our children ours, see newLab.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children are the pids that pid has started or adopted. Each thread has a
// file of its own.
func children(pid int) []int {
	var pids []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // that thread has ended
		}
		for field := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// memory is in bytes.
type memory struct{ now, peak int64 }

// memoryOf reads VmRSS and VmHWM of a living process.
func memoryOf(pid int) (m memory, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, false
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			m.now = kib << 10
		} else if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			m.peak = kib << 10
		}
	}
	return m, m.peak > 0 // a zombie has no memory left
}

// proportion is a process's resident memory, in bytes, where a page that n
// processes share counts for one nth.
func proportion(pid int) (bytes int64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, false // ours alone to read, and not on old kernels
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &bytes); err == nil {
			return bytes << 10, true
		}
	}
	return 0, false
}

// effort is what processes have done so far.
type effort struct {
	cpu      time.Duration
	switches int64 // by their own will and against it
	wakes    int64 // by their own will alone: each a wait, and the end of it
}

// effortOf sums up the living threads; nil where one of the processes has left.
// The times are the scheduler's own: those of stat come in steps of 10 ms, more
// than an idle process needs in a minute.
func effortOf(pids []int) *effort {
	var e effort
	for _, pid := range pids {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is well-formed
		if len(tasks) == 0 {
			return nil
		}
		for _, task := range tasks {
			sched, err := os.ReadFile(filepath.Join(task, "schedstat"))
			if err != nil {
				return nil
			}
			status, err := os.ReadFile(filepath.Join(task, "status"))
			if err != nil {
				return nil
			}
			var ns, n int64
			if _, err := fmt.Sscan(string(sched), &ns); err != nil {
				return nil
			}
			e.cpu += time.Duration(ns)
			for line := range strings.Lines(string(status)) {
				if _, count, ok := strings.Cut(line, "voluntary_ctxt_switches:"); ok { // and nonvoluntary
					if _, err := fmt.Sscan(count, &n); err == nil {
						e.switches += n
						if strings.HasPrefix(line, "voluntary") {
							e.wakes += n
						}
					}
				}
			}
		}
	}
	return &e
}

// sameProgram reports whether two processes run the same executable.
func sameProgram(a, b int) bool {
	x, errX := os.Stat(fmt.Sprintf("/proc/%d/exe", a))
	y, errY := os.Stat(fmt.Sprintf("/proc/%d/exe", b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func enlargePipe(fd, size int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size)
	return err
}

// pipeSize is 0 where fd is no pipe.
func pipeSize(fd int) int {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return 0
	}
	return n
}

func flushData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// syncFilesystem brings the disk to rest, as far as it is ours to do.
func syncFilesystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

func filesystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "an unknown file system"
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC: // ext2 and ext3 have the same number
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs (memory: a flush costs nothing here)"
	}
	return fmt.Sprintf("file system %#x", st.Type)
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
