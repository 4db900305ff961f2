// Package journal keeps the session log: every raw line that the agent wrote
// and every decision that was taken about it, one JSON record a line.
//
// It decides nothing and it never ends a run: a log that fails after it was
// opened counts what it loses, says so once, and goes on trying. Two sides
// write at the same time. The pump appends raw lines (Begin, Line, Part,
// Commit) and pays for the disk; the owner of the turn appends decisions
// (Record), which only ever touches memory. A flusher goroutine carries
// decisions to the file when the pump is quiet. Read and WriteRaw give back
// what was written, and Prune throws away what is old.
//
// Raw records are built by hand, because slog does not keep a line's bytes;
// slog encodes the decisions. The package reads no clock: every time comes in
// as an argument, and only the flusher's pacing uses a timer.
package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Sync says how far a record has come when Commit returns.
type Sync string

// The levels of durability.
const (
	Always  Sync = "always"  // on the disk: survives the death of the machine
	Written Sync = "written" // in the kernel: survives any death of this process; synced in the background
	None    Sync = "none"    // in the kernel; when it reaches the disk is the kernel's affair
)

// Options are what a log is opened with.
type Options struct {
	Dir   string           // made with mode 0700 where it is missing
	Start time.Time        // names the file
	Sync  Sync             // Always when empty
	Level slog.Level       // records below it are not kept; raw lines are at slog.LevelDebug
	Warn  func(msg string) // told once when the log fails after it was opened, by any goroutine; may be nil
}

// Log is an open session log. Begin, Line, Part and Commit belong to one
// goroutine, the pump; every other method may be called from anywhere.
type Log struct {
	file  file
	start int64 // Unix ms, as in the name
	sync  Sync
	level slog.Level
	warn  func(string)
	slog  slog.Handler

	path    atomic.Pointer[string]
	nameMu  sync.Mutex // held while the file is renamed or flagged
	flagged bool       // by nameMu

	// The pump's own.
	raw   bool   // raw lines are kept at this level
	recv  int64  // Unix ms of the latest Begin
	event []byte // the frame of a raw_event with that time, up to its first own field
	part  []byte // the same for a raw_part; empty until one is needed
	batch batch
	early bool // part of the batch was written before its Commit

	// mu guards what Record touches. It is never held across I/O.
	mu      sync.Mutex
	pending []byte // encoded decisions
	waiting int    // how many
	lost    losses // all that was lost so far
	sealed  bool   // Close has begun: nobody would write what comes now

	// ioMu guards the file's write side and is held while the disk is slow.
	ioMu   sync.Mutex
	spare  []byte // the other buffer of pending
	head   []byte
	vec    [][]byte
	told   losses // the part of lost that log_gap records tell about
	cause  error  // of the latest loss
	torn   bool   // the file does not end with a newline
	closed bool

	aliveMu    sync.RWMutex // held shared during a sync, so that Close cannot pull the file away
	touched    atomic.Bool  // something was written
	dirty      atomic.Bool  // Written: there is something new to sync
	warned     atomic.Bool  // that records are being lost
	syncFailed atomic.Bool  // and that was said
	last       atomic.Int64 // Unix ms of the latest time that was given

	grown atomic.Pointer[chan struct{}] // closed at the next write; nil while nobody waits for it
	over  atomic.Bool                   // nothing will be written any more

	wake    chan struct{}
	quit    chan struct{}
	stopped chan struct{}
	once    sync.Once
}

// nameTries bounds the search for a free name; each try is one system call.
const nameTries = 10_000

// Open makes the log of one run. The file is named after o.Start in Unix
// milliseconds; runs that start in the same millisecond take the next free
// one. A shared lock stays on the file until Close, or until the process ends
// in whatever way, so that Prune can tell a live log from a dead one.
func Open(o Options) (*Log, error) {
	l, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open session log: %w", err)
	}
	return l, nil
}

func open(o Options) (*Log, error) {
	switch o.Sync {
	case "", Always, Written, None:
	default:
		return nil, fmt.Errorf("unknown sync level %q", o.Sync)
	}
	if o.Dir == "" {
		return nil, errors.New("no directory given")
	}
	// Absolute, because the file is renamed later and the directory that we
	// are in may have changed by then.
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	first := o.Start.UnixMilli()
	for start := first; ; start++ {
		path := filepath.Join(dir, fileName(start, noID))
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
		if errors.Is(err, fs.ErrExist) && start-first < nameTries {
			continue
		}
		if err != nil {
			return nil, err
		}
		// A file system without locks refuses the pruner's too, and what the
		// pruner cannot lock it leaves alone: nothing is lost by going on.
		_ = lockShared(f)
		return newLog(&osFile{f}, path, start, o), nil
	}
}

// newLog is Open without the file, for tests with worse ones.
func newLog(f file, path string, start int64, o Options) *Log {
	l := &Log{
		file:    f,
		start:   start,
		sync:    o.Sync,
		level:   o.Level,
		warn:    o.Warn,
		raw:     o.Level <= slog.LevelDebug,
		wake:    make(chan struct{}, 1),
		quit:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	if l.sync == "" {
		l.sync = Always
	}
	l.recv = start
	l.event = appendRawFrame(nil, start, rawEvent) // never a record without a frame
	l.slog = newEncoder(l)
	l.path.Store(&path)
	l.last.Store(start)
	go l.flusher()
	return l
}

// Path is where the log stands now: SetSession changes it.
func (l *Log) Path() string { return *l.path.Load() }

// SetSession puts the session's id into the file's name. Characters that do
// not belong into a name become '_', and 100 bytes are enough. A file that
// has the new name already is never overwritten: the name stays, and the error
// is fs.ErrExist. A log that was flagged keeps its name too, because the flag
// goes by it. It renames a file, so it may wait for a slow disk.
func (l *Log) SetSession(id string) error {
	l.nameMu.Lock()
	defer l.nameMu.Unlock()
	from := l.Path()
	to := filepath.Join(filepath.Dir(from), fileName(l.start, cleanID(id)))
	if from == to || l.flagged {
		return nil
	}
	if err := renameNew(from, to); err != nil {
		return fmt.Errorf("rename session log: %w", err)
	}
	l.path.Store(&to)
	return nil
}

// Flag marks the log as one of a run that did not succeed: a file
// `<log>.flagged` beside it, which Prune spares for longer. A log that has one
// already keeps it. It may wait for a slow disk.
func (l *Log) Flag(outcome string, at time.Time) error {
	l.nameMu.Lock()
	defer l.nameMu.Unlock()
	l.flagged = true
	if err := writeFlag(l.Path(), outcome, at, l.sync == Always); err != nil {
		return fmt.Errorf("flag session log: %w", err)
	}
	return nil
}

// Close writes and syncs what is pending and closes the file. The pump has
// made its last Commit by then. It waits for the disk; what comes after it is
// counted as lost. A second Close does nothing.
func (l *Log) Close() (err error) {
	l.once.Do(func() {
		close(l.quit)
		<-l.stopped
		l.Flush()
		l.mu.Lock()
		l.sealed = true
		l.mu.Unlock()
		l.put(&batch{}) // what came during the flush, such as its own failure
		l.aliveMu.Lock()
		defer l.aliveMu.Unlock()
		l.ioMu.Lock()
		defer l.ioMu.Unlock()
		l.closed = true
		l.over.Store(true)
		l.tellGrown()
		if err = l.file.Close(); err != nil {
			err = fmt.Errorf("close session log: %w", err)
		}
	})
	return err
}

// The names of logs and flags. Prune looks at nothing else.
const (
	logPrefix  = "cursor-wrap-"
	logSuffix  = ".jsonl"
	flagSuffix = ".flagged"
)

// noID stands in a name for a session whose id is not known yet.
const noID = "unknown"

// runEnd is the message of a log's last record.
const runEnd = "run_end"

// maxID bounds the session's share of the name, in bytes.
const maxID = 100

func fileName(start int64, id string) string {
	return logPrefix + strconv.FormatInt(start, 10) + "-" + id + logSuffix
}

// cleanID makes a part of a file name of whatever the agent called its session.
func cleanID(id string) string {
	b := []byte(id[:min(len(id), maxID)])
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return noID
	}
	return string(b)
}
