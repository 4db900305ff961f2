package tmux

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cursor-wrap/internal/process"
)

// looksFolder is where looks at panes are kept that Start did not make. No
// session can be called so.
const looksFolder = ".looks"

// memory is what is kept of a look for the next one.
type memory struct {
	folder string

	Server      int    `json:"server_pid"`
	ServerStart uint64 `json:"server_start"`
	Session     string `json:"session"`
	Pane        string `json:"pane"`
	Shell       int    `json:"shell_pid"`
	ShellStart  uint64 `json:"shell_start"`

	At     time.Time `json:"at"`
	Screen screen    `json:"screen"`

	// Asked is whether the shell was asked for the exit status of what is over.
	Asked bool `json:"asked"`
	Exit  *int `json:"exit_code"`
}

// screen is what a pane shows, and where it stands in all that it has shown.
type screen struct {
	Hash   string `json:"hash"`
	Size   string `json:"size"`   // a new one changes the picture without any output
	Output int64  `json:"output"` // the second of the window's last; 0 where it has other panes
	mode   bool   // it is in copy mode, which takes the keys
	typed  bool   // what is typed goes there, and only there
}

// recall is what was kept of this very pane and shell; otherwise it begins anew.
func recall(dir string, s *Session, shell process.Proc) *memory {
	server, _ := process.Find(s.Server) // 0 where it is not told
	fresh := memory{
		Server: s.Server, ServerStart: server.Start, Session: s.ID, Pane: s.Pane, Shell: shell.PID, ShellStart: shell.Start,
	}
	fresh.folder = s.Folder
	if !s.Ours {
		key := sha256.Sum256([]byte(fmt.Sprint(s.Socket, "\x00", s.Server, server.Start, s.ID, s.Pane)))
		fresh.folder = filepath.Join(root(dir), looksFolder, hex.EncodeToString(key[:8]))
	}
	kept, err := readMemory(fresh.folder)
	if err != nil || kept.Server != fresh.Server || kept.ServerStart != fresh.ServerStart || kept.Pane != fresh.Pane ||
		kept.Shell != fresh.Shell || kept.ShellStart != fresh.ShellStart {
		return &fresh
	}
	return kept
}

func readMemory(folder string) (*memory, error) {
	m := &memory{folder: folder}
	b, err := os.ReadFile(filepath.Join(folder, lookFile))
	if err == nil {
		err = json.Unmarshal(b, m)
	}
	return m, err
}

// save keeps the look. Where that fails, the next one has nothing to compare
// with, which it can do without.
func (m *memory) save(l *Look) {
	err := m.prepare(l)
	if err == nil {
		err = writeJSON(m.folder, lookFile, m)
	}
	if err != nil && l.Note == "" {
		l.Note = "the look cannot be kept: " + err.Error()
	}
}

// prepare makes the folder. That of a session of ours is there, or was removed
// by somebody who wants it gone.
func (m *memory) prepare(l *Look) error {
	if l.Session.Ours {
		return nil
	}
	return os.MkdirAll(m.folder, 0o700)
}

// sweep removes what is kept of sessions that are gone and were not ours.
func sweep(dir string, all []Session) {
	looks := filepath.Join(root(dir), looksFolder)
	entries, _ := os.ReadDir(looks) // none, most often
	for _, e := range entries {
		folder := filepath.Join(looks, e.Name())
		m, err := readMemory(folder)
		if err != nil { // it is being made
			continue
		}
		same := func(s Session) bool { return s.Server == m.Server }
		here := func(s Session) bool { return same(s) && s.ID == m.Session }
		if !process.Alive(m.Server, m.ServerStart) || slices.ContainsFunc(all, same) && !slices.ContainsFunc(all, here) {
			_ = os.RemoveAll(folder) // the next look tries again
		}
	}
}

// compare tells whether there was output since the last look.
func (s *Server) compare(ctx context.Context, m *memory, o Options) (changed bool, err error) {
	now, err := s.capture(ctx, m.Pane)
	if err != nil {
		return false, err
	}
	comparable := m.Screen.Hash != "" && m.Screen.Size == now.Size
	changed = comparable && differ(m.Screen, now)
	age := o.At.Sub(m.At)
	if wait := o.Apart - age; !changed && (!comparable || age < 0 || wait > 0) {
		if !comparable || age < 0 {
			wait = o.Apart
		}
		before := now
		o.Pause(ctx, wait)
		if now, err = s.capture(ctx, m.Pane); err != nil {
			return false, err
		}
		changed, o.At = differ(before, now), o.At.Add(wait)
	}
	m.At, m.Screen = o.At, now
	return changed, nil
}

// differ tells two pictures of one size apart. What repeats a screen that is
// full of the same line shows in the time of the output alone.
func differ(a, b screen) bool {
	return a.Hash != b.Hash || a.Output != 0 && b.Output != 0 && a.Output != b.Output
}

// screenFormat is one line before the picture.
const screenFormat = "#{window_panes} #{window_activity} #{pane_width}x#{pane_height} #{pane_in_mode} #{?pane_synchronized,1,0} #{?pane_input_off,1,0} " +
	"#{history_size} #{cursor_x} #{cursor_y} #{alternate_on}"

// capture takes a picture of the visible screen, colours included: some
// programs move nothing else while they work.
func (s *Server) capture(ctx context.Context, pane string) (screen, error) {
	out, err := s.ask(ctx, "display-message", "-p", "-t", pane, screenFormat, then, "capture-pane", "-p", "-e", "-t", pane)
	if err != nil {
		return screen{}, err
	}
	line, picture, _ := strings.Cut(out, "\n")
	f := strings.SplitN(line, " ", 7)
	if len(f) < 7 {
		return screen{}, fmt.Errorf("tmux display-message: unexpected %q", line)
	}
	sum := sha256.Sum256([]byte(f[6] + "\n" + picture))
	c := screen{Hash: hex.EncodeToString(sum[:16]), Size: f[2], mode: f[3] != "0", typed: f[4] == "0" && f[5] == "0"}
	if f[0] == "1" {
		c.Output, _ = strconv.ParseInt(f[1], 10, 64)
	}
	return c, nil
}
