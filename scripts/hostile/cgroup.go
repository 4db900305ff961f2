//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cgroup is the part of the cgroup v2 tree that belongs to one run:
//
//	root         made by the keeper below its own
//	root/caller  the keeper, the bystanders, the supervisor
//	root/away    where the tree cgmove goes
//
// A nil cgroup is a machine without a writable cgroup v2: nothing is counted.
type cgroup struct {
	mount string // where cgroup2 is mounted
	own   string // the keeper's cgroup before
	root  string
	offer bool // to the tree: for cgmove and nestcg
}

const cgroupPrefix = "hostile-"

// newCgroup makes the run's part and moves this process into it.
func newCgroup(uid int, delegate bool) *cgroup {
	mount, own, ok := findCgroup()
	if !ok {
		return nil
	}
	c := &cgroup{mount: mount, own: own, offer: uid < 0 && os.Getuid() == 0}
	c.root = filepath.Join(own, cgroupPrefix+self())
	dirs := []string{c.root, c.caller(), c.away()}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			_ = c.removeAll()
			return nil
		}
	}
	if err := enter(c.caller()); err != nil {
		_ = c.removeAll()
		return nil
	}
	if delegate && uid >= 0 {
		for _, dir := range dirs {
			for _, file := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
				_ = os.Chown(filepath.Join(dir, file), uid, uid) // where it is missing, the supervisor says
			}
		}
	}
	return c
}

func (c *cgroup) caller() string { return filepath.Join(c.root, "caller") }
func (c *cgroup) away() string   { return filepath.Join(c.root, "away") }

// self names this process by pid and start, so that what a killed keeper left
// can be told from what a living one uses.
func self() string {
	p, _ := readStat(os.Getpid()) // pid alone if it cannot be read
	return fmt.Sprintf("%d-%d", os.Getpid(), p.start)
}

// findCgroup is where cgroup v2 is mounted, and our own folder there.
func findCgroup() (mount, own string, ok bool) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", false
	}
	var root string
	for line := range strings.Lines(string(mounts)) {
		left, right, _ := strings.Cut(line, " - ")
		f := strings.Fields(left)
		if strings.HasPrefix(right, "cgroup2 ") && len(f) > 4 {
			root, mount, ok = f[3], f[4], true
		}
	}
	member, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || !ok {
		return "", "", false
	}
	for line := range strings.Lines(string(member)) {
		path, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found {
			continue
		}
		below, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(below, "..") {
			return "", "", false
		}
		return mount, filepath.Join(mount, below), true
	}
	return "", "", false
}

func enter(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// environ tells the tree where it may make and use cgroups.
func (c *cgroup) environ() []string {
	if c == nil || !c.offer {
		return nil
	}
	return []string{"HOSTILE_CGROUP2=" + c.mount, "HOSTILE_AWAY=" + c.away()}
}

// left are the folders that the supervisor made and did not remove: in our
// part, or anywhere else under a name with its pid and start.
func (c *cgroup) left(pid int, start uint64) []string {
	if c == nil {
		return nil
	}
	var found []string
	for _, dir := range folders(c.root) {
		switch parent := filepath.Dir(dir); {
		case dir == c.root || dir == c.caller() || dir == c.away():
		case parent == c.caller() && strings.HasPrefix(filepath.Base(dir), "tree-"):
			// Made by the tree in its caller's cgroup: no supervisor's debt.
		default:
			found = append(found, strings.TrimPrefix(dir, c.root+"/"))
		}
	}
	return append(found, c.named(pid, start)...)
}

// named are folders outside our part that name the supervisor.
func (c *cgroup) named(pid int, start uint64) []string {
	if pid == 0 {
		return nil
	}
	p, s := strconv.Itoa(pid), strconv.FormatUint(start, 10)
	var found []string
	for _, dir := range folders(c.mount) {
		words := strings.FieldsFunc(filepath.Base(dir), func(r rune) bool { return r < '0' || r > '9' })
		if !strings.HasPrefix(dir, c.root+"/") && slices.Contains(words, p) && slices.Contains(words, s) {
			found = append(found, dir)
		}
	}
	return found
}

// folders are dir and all below it.
func folders(dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			found = append(found, path)
		}
		return nil // what cannot be read has gone, or is not ours
	})
	return found
}

// remove leaves our part and removes it, and what the supervisor left outside
// it. A cgroup that still holds a process cannot be removed: nothing is lost.
func (c *cgroup) remove(pid int, start uint64) error {
	if c == nil {
		return nil
	}
	if err := enter(c.own); err != nil {
		return fmt.Errorf("leave the cgroup: %w", err)
	}
	var err error
	for range 100 {
		// A zombie's last moments keep its cgroup busy.
		if err = c.removeAll(); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, dir := range slices.Backward(c.named(pid, start)) {
		_ = os.Remove(dir)
	}
	return err
}

// removeAll removes from the bottom up.
func (c *cgroup) removeAll() error {
	for _, dir := range slices.Backward(folders(c.root)) {
		if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}
