package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Info is what can be told of a log from its name, its beginning and its end.
type Info struct {
	Path     string
	Start    time.Time // of the run
	Session  string    // the agent's id of it; the name's, where no record has one; empty if there was none
	Size     int64
	Modified time.Time
	Flagged  bool  // a flag stands beside it
	Live     bool  // it has no end, and a living process holds it
	Head     *Head // nil where the log does not say how it began, as above slog.LevelInfo
	End      *End  // nil where the run is not over, or was killed

	// Err is why the log could not be read; the name is all that is known then.
	Err error

	flag string // the outcome that stands in the flag, where the log itself has none
}

// Head is how a run began, as its run_start tells it.
type Head struct {
	RunID     string `json:"run_id"`
	Version   string `json:"version"`
	PID       int    `json:"pid"`
	Dir       string `json:"cwd"`
	Workspace string `json:"workspace"` // as it was given; empty where it is Dir
	Resume    string `json:"resume"`
	Prompt    int    `json:"prompt_bytes"`
}

// End is how a run came out, as its run_end tells it.
type End struct {
	At       time.Time `json:"-"`
	Outcome  string    `json:"outcome"`
	ExitCode int       `json:"exit_code"`
	Message  string    `json:"message"`
	Session  string    `json:"session_id"`
	Took     int64     `json:"took_ms"`
	Turns    int       `json:"turns"`
	Restarts int       `json:"restarts"`
	Counts   struct {
		Lines int64 `json:"lines"`
		Bytes int64 `json:"bytes"`
		Calls int64 `json:"calls"`
	} `json:"counts"`
}

// What a log comes to that has no end.
const (
	Running    = "running"    // its run lives
	Killed     = "killed"     // its wrapper is gone, and could not say why
	Unreadable = "unreadable" // nobody can tell
)

// Outcome is how the run came out, or where it stands.
func (i *Info) Outcome() string {
	switch {
	case i.End != nil:
		return i.End.Outcome
	case i.Live:
		return Running
	case i.flag != "":
		return i.flag
	case i.Err != nil:
		return Unreadable
	}
	return Killed
}

// RunID is the run's id; empty where the log does not tell it.
func (i *Info) RunID() string {
	if i.Head == nil {
		return ""
	}
	return i.Head.RunID
}

// Workspace is the folder that the agent worked in, as far as the log tells.
func (i *Info) Workspace() string {
	switch {
	case i.Head == nil:
		return ""
	case i.Head.Workspace == "" || filepath.IsAbs(i.Head.Workspace):
		return firstOf(i.Head.Workspace, i.Head.Dir)
	}
	return filepath.Join(i.Head.Dir, i.Head.Workspace)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// looks bounds how often a folder is read again in which a log has changed its
// name meanwhile.
const looks = 5

// List tells of every log in dir, the oldest first. It reads the beginning and
// the end of each, however long it is. Only regular files that are named as
// logs count, as for Prune. A folder that does not exist holds none. What could
// not be read of one log is in its Err.
func List(dir string) ([]Info, error) {
	for n := 1; ; n++ {
		list, moved, err := list(dir)
		if err != nil {
			return nil, fmt.Errorf("list session logs: %w", err)
		}
		if !moved || n == looks {
			return list, nil
		}
	}
}

// list reports whether a log was gone when it was looked at: it may have
// another name by now, which was not seen.
func list(dir string) (all []Info, moved bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	flags := map[string]bool{}
	for _, e := range entries {
		if log, is := strings.CutSuffix(e.Name(), flagSuffix); is {
			flags[log] = true
		}
	}
	var r infoReader
	for _, e := range entries {
		name := e.Name()
		if !e.Type().IsRegular() || !strings.HasPrefix(name, logPrefix) || !strings.HasSuffix(name, logSuffix) {
			continue
		}
		i := Info{Path: filepath.Join(dir, name), Flagged: flags[name]}
		if r.read(&i, unix.O_NOFOLLOW); errors.Is(i.Err, fs.ErrNotExist) {
			moved = true
			continue
		}
		all = append(all, i)
	}
	return all, moved, nil
}

// infoReader reads logs one after another into the same memory.
type infoReader struct {
	parser
	buf []byte
}

// read fills in what the log itself tells.
func (r *infoReader) read(i *Info, how int) {
	i.named()
	// A FIFO would make an open wait, and a device could do anything.
	f, err := os.OpenFile(i.Path, os.O_RDONLY|unix.O_NONBLOCK|how, 0)
	if err != nil {
		i.Err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		i.Err = err
		return
	case !info.Mode().IsRegular():
		i.Err = &fs.PathError{Op: "read", Path: i.Path, Err: errors.New("not a regular file")}
		return
	}
	i.Size, i.Modified = info.Size(), info.ModTime()
	if i.Start.IsZero() {
		i.Start = i.Modified
	}
	isLog := r.head(i, f)
	if !r.end(i, f) {
		i.Live = held(f, i.Head)
		if !i.Live && r.end(i, f) { // it was over between the two
			return
		}
		i.flag = flagOf(i)
		if !i.Live && !isLog && i.Err == nil && i.Size > 0 {
			i.Err = &fs.PathError{Op: "read", Path: i.Path, Err: errors.New("not a session log")}
		}
	}
}

// named takes apart the name.
func (i *Info) named() {
	base := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(i.Path), logPrefix), logSuffix)
	start, id, _ := strings.Cut(base, "-")
	if ms, err := strconv.ParseInt(start, 10, 64); err == nil {
		i.Start = time.UnixMilli(ms)
		if id != noID {
			i.Session = id
		}
	}
}

// How much is read of the beginning, in bytes and in records: run_start holds
// two paths and the policy, and what was cleared up before may stand in front.
const (
	headFirst   = 4 << 10
	headMax     = 64 << 10
	headRecords = 32
)

// head looks for the run_start and reports whether the file begins as a log
// does.
func (r *infoReader) head(i *Info, f *os.File) (isLog bool) {
	size := headFirst
	for {
		b, err := r.at(f, 0, size)
		if err != nil {
			i.Err = err
			return false
		}
		whole := len(b) < size || size == headMax
		is, done := r.start(i, b)
		if done || whole {
			return is
		}
		size = headMax
	}
}

// start goes through the records at the beginning. It is done when it has seen
// all that it has to.
func (r *infoReader) start(i *Info, b []byte) (isLog, done bool) {
	for range headRecords {
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		if !ended {
			return isLog, false
		}
		b = rest
		rec, _, ok := r.parse(line)
		isLog = isLog || ok
		if !ok {
			continue
		}
		if rec.Msg == "run_start" {
			i.Head = new(Head)
			_ = json.Unmarshal(rec.Fields, i.Head) // of the wrong type it stays empty
			return true, true
		}
		if rec.IsRaw() {
			return true, true // the agent runs, and we have said nothing before
		}
	}
	return isLog, true
}

// end reports whether the log has one.
func (r *infoReader) end(i *Info, f *os.File) bool {
	rec, ok := r.last(f)
	if !ok || rec.Msg != runEnd {
		return false
	}
	i.End = &End{At: rec.At}
	_ = json.Unmarshal(rec.Fields, i.End) // of the wrong type it stays empty
	if i.End.Session != "" {
		i.Session = i.End.Session
	}
	return true
}

// tailMax bounds, in bytes, how long a last record is looked at; a run_end is a
// few hundred, so tailFirst does for almost all.
const (
	tailFirst = 4 << 10
	tailMax   = 256 << 10
)

// last is the last record of the log as it is now; not ok where that is torn.
// It is good until the next read.
func (r *infoReader) last(f *os.File) (rec Record, ok bool) {
	info, err := f.Stat()
	if err != nil {
		return Record{}, false
	}
	for _, most := range []int64{tailFirst, tailMax} {
		from := max(0, info.Size()-most)
		tail, err := r.at(f, from, int(info.Size()-from))
		if err != nil || int64(len(tail)) < info.Size()-from {
			return Record{}, false
		}
		tail = bytes.TrimSuffix(tail, []byte{'\n'})
		begins := bytes.LastIndexByte(tail, '\n') + 1
		if begins > 0 || from == 0 || most == tailMax {
			rec, _, ok = r.parse(tail[begins:])
			return rec, ok
		}
	}
	return Record{}, false
}

// at reads size bytes, or as many as there are.
func (r *infoReader) at(f *os.File, from int64, size int) ([]byte, error) {
	if cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	b := r.buf[:size]
	n, err := f.ReadAt(b, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// held reports whether a living process has the log open for writing, by the
// shared lock that Open puts on it. Somebody else who asks the same, or a
// pruner, holds a lock for an instant, too. So a refusal counts at once only
// where a process has the writer's pid, and else when it lasts: the writer may
// be in another pid namespace.
func held(f *os.File, h *Head) bool {
	const most = 64 * time.Millisecond
	for pause := time.Millisecond; ; pause *= 2 {
		err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			_ = flock(f, unix.LOCK_UN) // closing would do it as well
			return false
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return false // no locks on this file system
		}
		if h != nil && h.PID > 0 && !errors.Is(unix.Kill(h.PID, 0), unix.ESRCH) || pause > most {
			return true
		}
		time.Sleep(pause)
	}
}

// flagOf is the outcome that stands in a log's flag.
func flagOf(i *Info) string {
	if !i.Flagged {
		return ""
	}
	f, err := os.OpenFile(i.Path+flagSuffix, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	var mark flag
	line, _ := io.ReadAll(io.LimitReader(f, headFirst)) // it is there; what it says is for people
	_ = json.Unmarshal(line, &mark)
	return mark.Outcome
}
