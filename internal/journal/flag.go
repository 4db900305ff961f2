package journal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// flag is what stands in a `.flagged` file, one line of JSON. That the file is
// there is what counts; the rest tells a person who looks.
type flag struct {
	TS      int64  `json:"ts"` // Unix ms
	Outcome string `json:"outcome"`
	Log     string `json:"log"` // base name
}

// writeFlag marks a log. A mark that is there already stands: the first
// outcome is the one to explain. Where the disk is full the empty file is left,
// because it still protects the log.
func writeFlag(log, outcome string, at time.Time, durable bool) error {
	line, err := json.Marshal(flag{at.UnixMilli(), outcome, filepath.Base(log)})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(log+flagSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if durable {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

// FlagKilled flags the log of a run that was killed before it could do so
// itself. A log that has an end, or that somebody still holds, is left alone.
func FlagKilled(log string, at time.Time) error {
	info, err := os.Lstat(log)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := openDead(log, info)
	if f == nil {
		return err
	}
	defer f.Close()
	if ended(f) {
		return nil
	}
	return writeFlag(log, "killed", at, false)
}
