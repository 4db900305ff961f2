package tmux

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// Record is what is known of a session that Start made, for as long as its
// state folder is there: after its end, too.
type Record struct {
	Name    string    `json:"name"`
	Socket  string    `json:"tmux_socket"` // path
	Pane    string    `json:"tmux_pane"`
	PID     int       `json:"pid"`   // of the wrapper
	Start   uint64    `json:"start"` // its start time, in the units of process.Proc
	Started time.Time `json:"started"`
	Args    []string  `json:"args"` // of start, secrets masked
	Dir     string    `json:"cwd"`

	Folder string `json:"folder"`
	Exit   *int   `json:"exit_code"` // of the wrapper; null while it runs, or where it is not known
}

// The files of a state folder.
const (
	recordFile = "record.json"
	launchFile = "launch.json"
	promptFile = "prompt"
	scriptFile = "pane.sh"
	exitFile   = "exit_status"
	lookFile   = "look.json"
)

// root is where all the state folders are.
func root(dir string) string { return filepath.Join(dir, "tmux") }

// Folder is the state folder of the session that Start makes of this name.
func Folder(dir, name string) string {
	return filepath.Join(root(dir), strings.NewReplacer("%", "%25", "/", "%2F").Replace(name))
}

// longestName leaves room in a file name.
const longestName = 100

// CheckName says why tmux could not have a session of this name, or would call
// it differently.
func CheckName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("it is empty")
	case len(name) > longestName:
		return fmt.Errorf("it has %d bytes, and %d is the most", len(name), longestName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("it has characters that cannot be shown")
	case strings.ContainsAny(name, `.:\`):
		return errors.New(`tmux takes no name with "." or ":" or a backslash`)
	case strings.ContainsAny(name[:1], "-=$@%+!{~"):
		return fmt.Errorf("it begins with %q, which means something else to tmux", name[:1])
	}
	return nil
}

// Started lists what Start has left in the state directory, by name. Whether a
// session is still there is for tmux to say. What somebody else has left there is
// not listed: their tmux could have ours do what they like.
func Started(dir string) ([]Record, error) {
	entries, err := os.ReadDir(root(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Record
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if r, err := readRecord(filepath.Join(root(dir), e.Name())); err == nil { // else it is only just being made
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Find is the record of the session that was started by that name;
// fs.ErrNotExist where there is none.
func Find(dir, name string) (Record, error) { return readRecord(Folder(dir, name)) }

// ours is nil for a folder that belongs to us.
func ours(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d and not to us, uid %d", folder, st.Uid, os.Geteuid())
	}
	return nil
}

func readRecord(folder string) (Record, error) {
	var r Record
	var b []byte
	err := ours(folder)
	if err == nil {
		b, err = os.ReadFile(filepath.Join(folder, recordFile))
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return Record{}, fmt.Errorf("record of a tmux session: %w", err)
	}
	r.Folder, r.Exit = folder, exitStatus(folder)
	return r, nil
}

// exitStatus is what was written down of an exit; nil where it is not known.
func exitStatus(folder string) *int {
	b, err := os.ReadFile(filepath.Join(folder, exitFile))
	text, whole := strings.CutSuffix(string(b), "\n")
	if err != nil || !whole { // it is being written
		return nil
	}
	code, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return nil
	}
	return &code
}

// writeJSON puts a file into its place whole, for the owner alone.
func writeJSON(folder, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, name+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(folder, name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
