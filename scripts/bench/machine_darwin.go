package main

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// There are no subreapers: orphans go to launchd, and their CPU time with them.
func adoptOrphans() error { return nil }

func children(int) []int { return nil }

// memory is in bytes.
type memory struct{ now, peak int64 }

// memoryOf knows nothing here: another process's memory is not to be had
// without cgo.
func memoryOf(int) (memory, bool) { return memory{}, false }

func sameProgram(int, int) bool { return false }

func proportion(int) (int64, bool) { return 0, false }

// effort is what processes have done so far, which is not told here either.
type effort struct {
	cpu      time.Duration
	switches int64
	wakes    int64
}

func effortOf([]int) *effort { return nil }

const canWatch = false

func watchEnd(int, int, time.Time) (ending, error) { return ending{}, errors.ErrUnsupported }

// A pipe grows by itself here, up to 64 KiB, and takes no wishes.
func enlargePipe(int, int) error { return nil }

func pipeSize(int) int { return 0 }

func flushData(f *os.File) error { return f.Sync() }

func syncFilesystem(string) error { return unix.Sync() }

func filesystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "an unknown file system"
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}

func load() string { return "" }
