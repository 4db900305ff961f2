package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"
)

// syncEvery paces the background syncs of Written: what a crash of the machine
// may cost there.
const syncEvery = time.Second

var errSlow = errors.New("the disk does not keep up")

// Commit writes everything since the last one, with the decisions that are
// pending before it, in one system call, and with Always returns when it is on
// the disk. There is nothing to do about a failure, so none is returned: see
// Options.Warn and Lost.
func (l *Log) Commit() {
	wrote := l.put(&l.batch)
	l.batch.reset()
	if wrote || l.early {
		l.early = false
		l.settle()
	}
}

// Flush returns when everything that was recorded so far is written and, unless
// the level is None, synced. It waits for the disk.
func (l *Log) Flush() {
	l.put(&batch{})
	if l.sync != None {
		l.syncFile()
	}
}

// settle does what the level promises after a write.
func (l *Log) settle() {
	switch l.sync {
	case Always:
		l.syncFile()
	case Written:
		if !l.dirty.Swap(true) {
			l.nudge()
		}
	}
}

// nudge wakes the flusher, which looks at everything when it wakes.
func (l *Log) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// flusher carries decisions to the file while the pump is quiet, and makes the
// background syncs. It owns nothing but its timer.
func (l *Log) flusher() {
	defer close(l.stopped)
	var due <-chan time.Time
	for {
		select {
		case <-l.wake:
			if l.put(&batch{}) {
				l.settle()
			}
			if due == nil && l.dirty.Load() {
				due = time.After(syncEvery)
			}
		case <-due:
			due = nil
			l.dirty.Store(false) // before the sync: what is written during it may be missed by it
			l.syncFile()
		case <-l.quit:
			return
		}
	}
}

// put writes what is pending and then b, and reports whether all of it arrived
// (false also when there was nothing).
func (l *Log) put(b *batch) bool {
	l.ioMu.Lock()
	wrote, warning := l.putLocked(b)
	l.ioMu.Unlock()
	l.tellGrown()
	// Outside the lock: the one who is told may come back to the log.
	if warning != "" && l.warn != nil {
		l.warn(warning)
	}
	return wrote
}

func (l *Log) putLocked(b *batch) (wrote bool, warning string) {
	pending, count, lost := l.take()
	defer func() {
		l.spare = kept(pending, spareMax)
		clear(l.vec) // the pump's lines are not ours to keep alive
	}()
	gap := lost.minus(l.told)
	head, lines := l.head[:0], 0
	if l.torn {
		head, lines = append(head, '\n'), lines+1
	}
	if gap.records > 0 {
		head, lines = l.appendGap(head, gap), lines+1
	}
	l.head = head
	if len(head)+len(pending)+b.records == 0 {
		return false, ""
	}
	n, err := 0, error(fs.ErrClosed)
	if !l.closed {
		n, err = l.file.writev(l.vectors(pending, b))
	}
	if n >= len(head) {
		l.told = lost
	}
	if n > 0 {
		l.touched.Store(true)
	}
	if err == nil {
		l.torn = false
		if gap.records > 0 {
			warning = l.warning() // decisions that found no room: told as soon as somebody can
		}
		l.cause = nil
		return true, warning
	}
	// Every record is one line, so the newlines in what arrived say how many
	// are whole.
	vec := l.vectors(pending, b)
	whole, rest := arrived(vec, n)
	if n > 0 {
		l.torn = rest > 0
	}
	missing := losses{bytes: int64(size(vec) - max(n-rest, len(head)))}
	missing.records = int64(count + b.records - max(whole-lines, 0))
	missing.raw = min(missing.records, int64(b.records))
	l.lose(missing)
	if l.closed {
		return false, "" // too late to tell anybody
	}
	l.cause = err
	return false, l.warning()
}

// vectors lines up what one write takes, without empty slices.
func (l *Log) vectors(pending []byte, b *batch) [][]byte {
	vec := l.vec[:0]
	for _, s := range [][]byte{l.head, pending} {
		if len(s) > 0 {
			vec = append(vec, s)
		}
	}
	l.vec = b.vectors(vec)
	return l.vec
}

// arrived looks at the first n bytes: how many lines end there, and how many
// bytes of an unfinished line follow.
func arrived(vec [][]byte, n int) (lines, rest int) {
	for _, s := range vec {
		s = s[:min(n, len(s))]
		n -= len(s)
		lines += bytes.Count(s, []byte{'\n'})
		if i := bytes.LastIndexByte(s, '\n'); i >= 0 {
			rest = len(s) - i - 1
		} else {
			rest += len(s)
		}
	}
	return lines, rest
}

func size(vec [][]byte) (n int) {
	for _, s := range vec {
		n += len(s)
	}
	return n
}

// why is the reason of the latest loss. What was lost without a failed write
// found no room in memory.
func (l *Log) why() error {
	if l.cause == nil {
		return errSlow
	}
	return l.cause
}

// warning is what to tell about records being lost; empty when it was told.
func (l *Log) warning() string {
	if l.warned.Swap(true) {
		return ""
	}
	return fmt.Sprintf("session log %s: %v; the run goes on, records are being lost", l.Path(), l.why())
}

// syncFile syncs. It holds no lock that a writer needs: with Written, the pump
// goes on while a slow disk syncs. A failure loses nothing by itself, but what
// was promised about crashes no longer holds, which is said once.
func (l *Log) syncFile() {
	if !l.touched.Load() {
		return
	}
	l.aliveMu.RLock()
	var err error
	if !l.closed {
		err = l.file.sync()
	}
	l.aliveMu.RUnlock()
	if err == nil || l.syncFailed.Swap(true) {
		return
	}
	l.Record(time.UnixMilli(l.last.Load()), slog.LevelWarn, "log_sync_failed", slog.String("cause", err.Error()))
	if l.warn != nil && !l.warned.Load() {
		l.warn(fmt.Sprintf("session log %s: sync: %v; the run goes on, its latest records may not survive a crash of the machine", l.Path(), err))
	}
}
