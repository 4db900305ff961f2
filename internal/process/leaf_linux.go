package process

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// leafPrefix begins the name of every cgroup that we make.
const leafPrefix = "cursor-wrap."

// leaf is a cgroup of version 2 that holds one turn's tree. It is made fresh
// for each, because a cgroup that was killed once kills whatever is born into
// it later (seen on Linux 6.18).
type leaf struct {
	path string
	dir  *os.File
}

// newLeaf makes a leaf below our own cgroup. It is found by trying: an error
// says why there can be none here. The name tells who owns it: the pid
// namespace, pid and start time of this process, so that a later start can
// tell a dead owner's.
func newLeaf(id string) (*leaf, error) {
	parent, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	name, err := leafName(id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return &leaf{path: path, dir: dir}, nil
}

func leafName(id string) (string, error) {
	self := identify(os.Getpid())
	ns, err := pidNamespace()
	if err != nil || self.Start == 0 {
		return "", errors.New("cannot name ourselves: /proc is not readable")
	}
	return fmt.Sprintf("%s%d.%d.%d.%s", leafPrefix, ns, self.PID, self.Start, id), nil
}

func pidNamespace() (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/self/ns/pid", &st)
	return st.Ino, err
}

// ownCgroup is the folder of our own cgroup in the version 2 hierarchy: the
// mount point from the mount table, our place in it from /proc/self/cgroup.
func ownCgroup() (string, error) {
	member, err := membership()
	if err != nil {
		return "", err
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		// id parent major:minor root mountpoint options… - type source options
		left, right, ok := strings.Cut(s.Text(), " - ")
		fields := strings.Fields(left)
		if !ok || len(fields) < 5 || !strings.HasPrefix(right, "cgroup2 ") {
			continue
		}
		root, mount := unescape(fields[3]), unescape(fields[4])
		if rel, err := filepath.Rel(root, member); err == nil && !strings.HasPrefix(rel, "..") {
			return filepath.Join(mount, rel), nil
		}
	}
	return "", errors.New("no cgroup2 mount shows our own cgroup")
}

func membership() (string, error) {
	b, err := readFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for row := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(row, "\n"), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("no cgroup of version 2")
}

// unescape undoes the octal escapes of proc_pid_mountinfo(5).
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// openLeaf is the guard's view of the leaf that the front made; nil where there
// is none any more.
func openLeaf(path string) *leaf {
	if path == "" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	return &leaf{path: path, dir: dir}
}

// fd is the leaf's folder, for clone3(2).
func (l *leaf) fd() int { return int(l.dir.Fd()) }

// kill ends all of the leaf, and what is below it, in one stroke. Where the
// kernel has no cgroup.kill (before 5.14), the members are killed one by one.
func (l *leaf) kill() {
	if os.WriteFile(filepath.Join(l.path, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	l.killMembers()
}

// freeze stops all of the leaf, or lets it go on.
func (l *leaf) freeze(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	return os.WriteFile(filepath.Join(l.path, "cgroup.freeze"), []byte(value), 0)
}

// frozen reports whether all of the leaf has stopped: the kernel takes its time
// over whoever is in a system call.
func (l *leaf) frozen() bool {
	b, err := readFile(filepath.Join(l.path, "cgroup.events"))
	return err == nil && strings.Contains(string(b), "frozen 1")
}

// killMembers kills what the leaf lists; a process whose leading thread has
// exited is passed over by cgroup.kill (seen on Linux 6.18), but is listed.
func (l *leaf) killMembers() {
	for _, pid := range l.members() {
		p := identify(pid)
		if p.Start != 0 {
			_ = signalProc(p, unix.SIGKILL) // who is left is told by the next look
		}
	}
}

// members are the pids in the leaf and below it.
func (l *leaf) members() []int {
	var pids []int
	for _, dir := range l.nested() {
		b, err := readFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// nested lists the leaf and the cgroups that the tree made below it, the
// deepest last.
func (l *leaf) nested() []string {
	var dirs []string
	_ = filepath.WalkDir(l.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what vanishes meanwhile is not there
	})
	return dirs
}

// populated reports whether the kernel still counts somebody in the leaf.
func (l *leaf) populated() bool {
	b, err := readFile(filepath.Join(l.path, "cgroup.events"))
	return err == nil && strings.Contains(string(b), "populated 1")
}

// expel moves a process out of the leaf, next to us.
func (l *leaf) expel(pid int) {
	parent := filepath.Dir(l.path)
	_ = os.WriteFile(filepath.Join(parent, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// remove takes the leaf away, from the bottom up. It is busy until its last
// zombie is reaped, so it is tried for a while.
func (l *leaf) remove(patience time.Duration) error {
	_ = l.dir.Close()
	over := time.Now().Add(patience)
	for {
		dirs := l.nested()
		var err error
		for i := len(dirs) - 1; i >= 0; i-- {
			if e := unix.Rmdir(dirs[i]); e != nil && !errors.Is(e, unix.ENOENT) {
				err = fmt.Errorf("remove %s: %w", dirs[i], e)
			}
		}
		if err == nil || time.Now().After(over) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
