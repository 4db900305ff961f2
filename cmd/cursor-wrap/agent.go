package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"cursor-wrap/internal/process"
)

// versionTimeout is how long a stranger called agent may take to say its
// version.
const versionTimeout = 10 * time.Second

// cursorVersion is how Cursor's agent names its builds; other vendors ship an
// agent of the same name.
var cursorVersion = regexp.MustCompile(`^\d{4}\.\d{2}\.\d{2}-[0-9a-f]{7,}\s*$`)

// findAgent is the path of the agent's binary: the given one, or cursor-agent
// on the PATH, or an agent there that says it is Cursor's. It never is this
// program itself, whatever name that goes by.
func findAgent(ctx context.Context, given, path string) (string, error) {
	self, err := selfInfo()
	if err != nil {
		self = nil // without /proc nobody knows what we are; a name that leads to us is then taken
	}
	if given != "" {
		return checkGiven(given, path, self)
	}
	file, looked := searchAgent(ctx, path, self)
	if file != "" {
		return file, nil
	}
	return "", noAgent(looked, path)
}

func noAgent(looked []string, path string) error {
	msg := "no cursor-agent on the PATH, and no agent that is Cursor's"
	if len(looked) > 0 {
		msg += "; passed over " + strings.Join(looked, ", ")
	}
	return fmt.Errorf("%s; looked in %s; install it, or name it with --agent-bin", msg, path)
}

// searchAgent goes through the PATH. looked are the files of such names that it
// has passed over, and why.
func searchAgent(ctx context.Context, path string, self os.FileInfo) (found string, looked []string) {
	for _, name := range []string{"cursor-agent", "agent"} {
		for _, dir := range filepath.SplitList(path) {
			if dir == "" {
				dir = "."
			}
			file := filepath.Join(dir, name)
			why := reject(file, self)
			if why == nil && name == "agent" {
				why = isCursors(ctx, file)
			}
			if why == nil {
				return file, looked
			}
			if !errors.Is(why, fs.ErrNotExist) {
				looked = append(looked, fmt.Sprintf("%s (%v)", file, why))
			}
		}
	}
	return "", looked
}

func checkGiven(given, path string, self os.FileInfo) (string, error) {
	if !strings.ContainsRune(given, filepath.Separator) {
		found, err := lookIn(path, given)
		if err != nil {
			return "", fmt.Errorf("--agent-bin %s: not on the PATH; name it with its folder, or install it", given)
		}
		given = found
	}
	if err := reject(given, self); err != nil {
		return "", fmt.Errorf("--agent-bin %s: %w; name the agent's own binary", given, err)
	}
	return given, nil
}

func lookIn(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); executable(file) == nil {
			return file, nil
		}
	}
	return "", fs.ErrNotExist
}

// reject says why a file cannot be the agent; nil if it may be.
func reject(file string, self os.FileInfo) error {
	if err := executable(file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return bare(err)
	}
	if self != nil && os.SameFile(info, self) {
		return errors.New("leads to cursor-wrap itself")
	}
	return nil
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return bare(err)
	case info.IsDir():
		return errors.New("is a directory")
	case info.Mode().Perm()&0o111 == 0:
		return errors.New("not executable")
	}
	return nil
}

// bare is the cause without the path, which the caller names.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func selfInfo() (os.FileInfo, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Stat(exe)
}

// isCursors asks a file called agent for its version.
func isCursors(ctx context.Context, file string) error {
	out, err := askVersion(ctx, file, "--version")
	if !cursorVersion.Match(out) {
		if err == nil {
			err = errors.New("its --version is not Cursor's")
		}
		return fmt.Errorf("--version: %w", err)
	}
	return nil
}

// versionMax is how much of an answer is read, in bytes. Who goes on loses its
// reader.
const versionMax = 4 << 10

// askVersion runs a stranger's program that is asked for its version, and ends
// it with its group when it takes too long or has left somebody there.
func askVersion(ctx context.Context, file, flag string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var out clipped
	cmd := exec.CommandContext(ctx, file, flag)
	cmd.Stdout = &out
	cmd.SysProcAttr = process.ProbeAttr()
	// It is not reaped while Cancel runs, so the group's id is still its own.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a descendant that holds its stdout does not hold us
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	process.AwaitExit(cmd.Process.Pid)
	_ = cmd.Cancel() // it has ended; who is left of its group has nothing to say
	err := cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", versionTimeout)
	}
	return out.text, err
}

// clipped keeps the beginning of what is written, and fails afterwards.
type clipped struct{ text []byte }

func (c *clipped) Write(b []byte) (int, error) {
	n := min(len(b), versionMax-len(c.text))
	c.text = append(c.text, b[:n]...)
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
