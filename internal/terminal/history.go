package terminal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	defaultHistoryMost = 1000
	historyBytes       = 1 << 20 // of the file
	entryBytes         = historyBytes / 4
)

// HistoryFile is where the prompts of a workspace are kept. It goes by the
// physical folder: another name of it has the same history.
func HistoryFile(stateDir, workspace string) string {
	if abs, err := filepath.Abs(workspace); err == nil {
		workspace = abs
	}
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = real
	}
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(stateDir, "history", hex.EncodeToString(sum[:8])+".jsonl")
}

// history is the prompts of before, oldest first. The file holds one JSON
// string a line, so that a prompt of many lines is one entry. Sessions that run
// side by side add to it under a lock, and each shows what it found at its
// start and its own.
type history struct {
	file    string // empty: nothing is kept
	most    int
	entries []string
}

func openHistory(file string, most int, warn func(string)) *history {
	if most <= 0 {
		most = defaultHistoryMost
	}
	h := &history{file: file, most: most}
	if file == "" {
		return h
	}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		warn("the history cannot be read: " + err.Error())
	}
	for line := range bytes.Lines(data) {
		var entry string
		if json.Unmarshal(line, &entry) == nil { // a line that was cut is none
			h.remember(entry)
		}
	}
	return h
}

func (h *history) len() int { return len(h.entries) }

// entry is the nth newest, from 1.
func (h *history) entry(n int) string { return h.entries[len(h.entries)-n] }

// remember reports whether the entry was new.
func (h *history) remember(entry string) bool {
	if entry == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return false
	}
	h.entries = append(h.entries, entry)
	if len(h.entries) > h.most {
		h.entries = h.entries[1:]
	}
	return true
}

// add keeps an entry, in the file too. One that would fill the file alone is
// kept for this session only.
func (h *history) add(entry string) error {
	if !h.remember(entry) || h.file == "" {
		return nil
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(entry); err != nil || line.Len() > entryBytes {
		return err
	}
	f, err := openLocked(h.file)
	if err != nil {
		return err
	}
	defer f.Close() // gives the lock back, too
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		line = *bytes.NewBuffer(append([]byte{'\n'}, line.Bytes()...)) // somebody was killed in a write
	}
	if bytes.Count(data, []byte{'\n'}) < h.most && len(data)+line.Len() <= historyBytes {
		_, err = f.Write(line.Bytes())
		return err
	}
	return h.rewrite(append(data, line.Bytes()...))
}

// openLocked opens the file for nobody but us. Whoever rewrites it puts another
// in its place, so the one that was locked may be the file no longer.
func openLocked(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		_ = unix.Flock(int(f.Fd()), unix.LOCK_EX) // a file system without locks has to do without
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(name); err == nil && os.SameFile(mine, there) {
			return f, f.Chmod(0o600) // prompts are nobody else's business
		}
		f.Close()
	}
}

// rewrite puts the newest entries in the place of the file.
func (h *history) rewrite(data []byte) error {
	lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'})
	size, first := 0, len(lines)
	for first > 0 && len(lines)-first < h.most && size+len(lines[first-1]) < historyBytes {
		first--
		size += len(lines[first])
	}
	temp, err := os.CreateTemp(filepath.Dir(h.file), ".history-*") // 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(append(bytes.Join(lines[first:], nil), '\n'))
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), h.file)
	}
	if err != nil {
		_ = os.Remove(temp.Name()) // the error says more
	}
	return err
}
