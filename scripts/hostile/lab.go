//go:build linux

package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed tree/*.c tree/*.h
var source embed.FS

// errNoCompiler: all trees are made by a C program.
var errNoCompiler = errors.New("no C compiler: install cc, gcc or clang, or name one with CC")

// lab is the folder that the runs live in, with the compiled tree maker.
type lab struct {
	dir   string
	agent string
}

// newLab compiles the tree maker. Any user may enter the folder, because a run
// may be another user's.
func newLab() (*lab, error) {
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, agent: filepath.Join(dir, "hostile-agent")}
	if err := l.build(); err != nil {
		return nil, errors.Join(err, l.remove())
	}
	return l, nil
}

func (l *lab) build() error {
	if err := os.Chmod(l.dir, 0o755); err != nil {
		return err
	}
	cc, err := compiler()
	if err != nil {
		return err
	}
	src := filepath.Join(l.dir, "src")
	if err := os.CopyFS(src, source); err != nil {
		return err
	}
	files, err := fs.Glob(source, "tree/*.c")
	if err != nil {
		return err
	}
	args := append([]string{"-std=gnu11", "-O1", "-pthread", "-o", l.agent}, files...)
	cmd := exec.Command(cc, append(args, "-lrt")...) // timers, with an older C library
	cmd.Dir = src
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the tree maker: %w\n%s", err, out)
	}
	return os.Chmod(l.agent, 0o755)
}

// compiler is the C compiler of this machine.
func compiler() (string, error) {
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoCompiler
}

// keepCopy copies a program into the lab: what is measured does not change
// while it is, and another user can reach it.
func (l *lab) keepCopy(path, name string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	to := filepath.Join(l.dir, name)
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	return to, errors.Join(err, out.Close())
}

// run makes the folder of one run.
func (l *lab) run(uid int) (string, error) {
	dir, err := os.MkdirTemp(l.dir, "run-")
	if err != nil || uid < 0 {
		return dir, err
	}
	return dir, os.Chown(dir, uid, uid)
}

func (l *lab) remove() error { return os.RemoveAll(l.dir) }

// sweep removes what keepers left that were killed: their cgroups, which are
// empty by then or are left alone.
func sweep() {
	_, own, ok := findCgroup()
	if !ok {
		return
	}
	left, _ := filepath.Glob(filepath.Join(own, cgroupPrefix+"*")) // the pattern is well-formed
	for _, root := range left {
		var pid int
		var start uint64
		if _, err := fmt.Sscanf(strings.TrimPrefix(filepath.Base(root), cgroupPrefix), "%d-%d", &pid, &start); err != nil {
			continue
		}
		if p, err := readStat(pid); err == nil && p.start == start {
			continue // at work
		}
		_ = (&cgroup{root: root}).removeAll() // it says no when somebody is in it
	}
}

// adopt makes this process a subreaper: the tree of a keeper that was killed
// comes to it.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
