//go:build !linux

package journal

// sync is the strongest that the system has; on macOS it flushes the drive's
// own cache too.
func (f *osFile) sync() error { return f.Sync() }

// renameNew renames and does not overwrite.
func renameNew(from, to string) error { return renameChecked(from, to) }
