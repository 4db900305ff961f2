package process

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// tick is the unit of times in /proc: USER_HZ is 100 wherever Linux runs.
const tick = 10 * time.Millisecond

// keptMax is how many files are kept open at most, three for a process. A look
// that finds its files open takes a third of the time.
const keptMax = 512

// kept is a descriptor that stays open, plus one, so that its zero value is
// none. That of a file in /proc/<pid> is bound to that very process: after its
// end it reads ESRCH, whoever has the pid by then.
type kept int

// reader reads small files without making garbage.
type reader struct {
	buf  []byte // what was read last
	open int    // files that are kept open
	most int    // files that may be

	found, tids []int // lists that were read last
}

func (r *reader) init() {
	r.buf = make([]byte, 2*argvMax)
	r.most = keptMax
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		r.most = int(min(keptMax, limit.Cur/4))
	}
}

// read reads a file that is kept open if there is room. The bytes are good
// until the next read.
func (r *reader) read(k *kept, dir, name string) ([]byte, error) {
	if *k > 0 {
		return r.pread(int(*k) - 1)
	}
	fd, err := unix.Open(dir+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if r.open < r.most {
		r.open++
		*k = kept(fd + 1)
	} else {
		defer unix.Close(fd)
	}
	return r.pread(fd)
}

// readPath reads a file that is closed again.
func (r *reader) readPath(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return r.pread(fd)
}

// pread reads from the beginning. The kernel fills a page as far as whole
// entries go, so that a read of less than half of one was the last.
func (r *reader) pread(fd int) ([]byte, error) {
	for n := 0; ; {
		m, err := unix.Pread(fd, r.buf[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		n += m
		if m < 2048 {
			return r.buf[:n], nil
		}
		if n > len(r.buf)/2 {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
	}
}

// let closes a file that was kept open.
func (r *reader) let(k *kept) {
	if *k > 0 {
		_ = unix.Close(int(*k) - 1)
		r.open--
		*k = 0
	}
}

// drop closes what is kept open of a process.
func (r *reader) drop(w *watched) {
	r.let(&w.stat)
	r.let(&w.io)
	r.let(&w.children)
}

// list appends the names in a folder that are numbers.
func (r *reader) list(all []int, path string) ([]int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return all, err
	}
	defer unix.Close(fd)
	return r.listFD(all, fd)
}

func (r *reader) listFD(all []int, fd int) ([]int, error) {
	const length, head = int(unsafe.Offsetof(unix.Dirent{}.Reclen)), int(unsafe.Offsetof(unix.Dirent{}.Name))
	for {
		n, err := unix.Getdents(fd, r.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return all, err
		}
		for b := r.buf[:n]; len(b) > head; {
			// Read byte by byte: the last entry ends before a whole Dirent would.
			size := int(binary.NativeEndian.Uint16(b[length:]))
			if size <= head || size > len(b) {
				break
			}
			if v, rest := number(b[head:size]); len(rest) < size-head && rest[0] == 0 {
				all = append(all, int(v))
			}
			b = b[size:]
		}
	}
}

// number is that at the beginning of b, and what stands behind it.
func number(b []byte) (n int64, rest []byte) {
	i := 0
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	return n, b[i:]
}

// appendNumbers appends those in a list with blanks between them.
func appendNumbers(all []int, b []byte) []int {
	for len(b) > 0 {
		n, rest := number(b)
		if len(rest) < len(b) {
			all = append(all, int(n))
		}
		if len(rest) == 0 {
			break
		}
		b = rest[1:]
	}
	return all
}

// numberAfter is the number behind the first key.
func numberAfter(b []byte, key string) (int64, bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	n, _ := number(b[i+len(key):])
	return n, true
}

func itoa(n int) string { return strconv.Itoa(n) }

// statLine is what is needed of proc_pid_stat(5).
type statLine struct {
	name                         []byte // good until the next read
	state                        byte
	ppid, pgid, session, threads int
	utime, stime, cutime, cstime int64 // in ticks
	start                        uint64
	pages                        int64 // that are resident
	code                         int
}

func (st *statLine) own() time.Duration    { return time.Duration(st.utime+st.stime) * tick }
func (st *statLine) waited() time.Duration { return time.Duration(st.cutime+st.cstime) * tick }

// parse counts the fields from the last bracket: the name in field 2 may hold
// anything, spaces and brackets included.
func (st *statLine) parse(b []byte) bool {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || len(b) < end+4 {
		return false
	}
	st.name, st.state = b[open+1:end], b[end+2]
	b = b[end+4:]
	field := 4
	for ; len(b) > 0; field++ {
		minus := b[0] == '-'
		if minus {
			b = b[1:]
		}
		n, rest := number(b)
		if minus {
			n = -n
		}
		st.set(field, n)
		if len(rest) == 0 {
			break
		}
		b = rest[1:]
	}
	return field > 24
}

// set takes a field by its number in proc_pid_stat(5).
func (st *statLine) set(field int, n int64) {
	switch field {
	case 4:
		st.ppid = int(n)
	case 5:
		st.pgid = int(n)
	case 6:
		st.session = int(n)
	case 14:
		st.utime = n
	case 15:
		st.stime = n
	case 16:
		st.cutime = n
	case 17:
		st.cstime = n
	case 20:
		st.threads = int(n)
	case 22:
		st.start = uint64(n)
	case 24:
		st.pages = n
	case 52:
		st.code = int(n)
	}
}

func (r *reader) readStat(w *watched, st *statLine) error {
	b, err := r.read(&w.stat, w.dir, "stat")
	if err != nil {
		return err
	}
	if !st.parse(b) {
		return unix.ESRCH // a file of a process that has gone reads empty, too
	}
	return nil
}

// readDisk is what the process, its reaped children included, has caused to be
// read from and written to storage. Who may not be traced does not tell.
func (r *reader) readDisk(w *watched) int64 {
	b, err := r.read(&w.io, w.dir, "io")
	if err != nil {
		return tree.Unknown
	}
	in, ok := numberAfter(b, "\nread_bytes: ")
	out, ok2 := numberAfter(b, "\nwrite_bytes: ")
	if !ok || !ok2 {
		return tree.Unknown
	}
	return in + out
}

// readArgv is the command line as it may be shown; nil where it cannot be read.
func (r *reader) readArgv(w *watched) []string {
	fd, err := unix.Open(w.dir+"cmdline", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Pread(fd, r.buf[:argvMax], 0)
	b := bytes.TrimRight(r.buf[:max(n, 0)], "\x00")
	if err != nil || len(b) == 0 {
		return nil
	}
	var argv []string
	for arg := range bytes.SplitSeq(b, []byte{0}) {
		argv = append(argv, string(arg))
	}
	return shown(argv)
}
