package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Session is a session and the pane of it that counts: the one that Start made,
// and otherwise the active pane of the active window.
type Session struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"` // $1; unique as long as the server runs
	Created  time.Time `json:"created"`
	Attached bool      `json:"attached"`
	Ours     bool      `json:"ours"`             // Start made it
	Folder   string    `json:"folder,omitempty"` // its state folder, where it is ours

	Pane       string    `json:"pane"` // %1; likewise
	PanePID    int       `json:"pane_pid"`
	Dead       bool      `json:"pane_dead"`        // the process has ended, and remain-on-exit keeps the pane
	DeadStatus int       `json:"pane_dead_status"` // its exit code, 128+n after signal n; -1 unknown
	Command    string    `json:"command"`          // what runs in the foreground
	Path       string    `json:"path"`             // its working directory
	Output     time.Time `json:"output"`           // of the window, the last; to a second

	Socket string `json:"socket"`
	Server int    `json:"server_pid"`
}

// folderOption is the option of a session that says it is ours: the pane that
// was made first, and the state folder. It lasts exactly as long as the session
// and goes with it when it is renamed.
const folderOption = "@cursor_wrap"

// fields are what is asked of each pane.
var fields = []string{
	"session_id", "session_created", "session_attached", folderOption, "session_name",
	"window_active", "window_activity", "pane_active",
	"pane_id", "pane_pid", "pane_dead", "pane_dead_status", "pane_dead_signal",
	"pane_current_command", "pane_current_path", "socket_path", "pid",
}

// Sessions are all of the server; none where none runs. What a session is
// called, what runs in it and where can be any text, a line break included: a
// mark that nobody can guess stands before each field.
func (s *Server) Sessions(ctx context.Context) ([]Session, error) {
	mark := "|" + rand.Text() + "|"
	var format strings.Builder
	for _, f := range fields {
		format.WriteString(mark + "#{" + f + "}")
	}
	out, err := s.ask(ctx, "list-panes", "-a", "-F", format.String())
	switch {
	case errors.Is(err, errNoServer), err != nil && strings.Contains(err.Error(), "no current target"): // a server may have no session
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parse(out, mark)
}

// row is a pane by the names of its fields.
type row map[string]string

func parse(out, mark string) ([]Session, error) {
	texts := strings.Split(out, mark)[1:]
	if len(texts)%len(fields) != 0 {
		return nil, fmt.Errorf("tmux list-panes: %d fields where each pane has %d", len(texts), len(fields))
	}
	var all []Session
	for ; len(texts) > 0; texts = texts[len(fields):] {
		r := row{}
		for i, f := range fields {
			r[f] = texts[i]
		}
		if len(all) == 0 || all[len(all)-1].ID != r["session_id"] {
			all = append(all, Session{ID: r["session_id"]})
		}
		r.into(&all[len(all)-1])
	}
	return all, nil
}

// into takes the pane if it is the one that counts.
func (r row) into(s *Session) {
	pane, folder, ours := strings.Cut(r[folderOption], ":")
	first := ours && pane == r["pane_id"]
	if taken := s.Ours && s.Pane == pane; taken || !first && (r["window_active"] != "1" || r["pane_active"] != "1") {
		return
	}
	*s = Session{
		Name: r["session_name"], ID: r["session_id"], Created: r.time("session_created"), Attached: r.number("session_attached") > 0,
		Ours: ours, Folder: folder,
		Pane: r["pane_id"], PanePID: r.number("pane_pid"), Dead: r["pane_dead"] == "1", DeadStatus: r.deadStatus(),
		Command: r["pane_current_command"], Path: r["pane_current_path"], Output: r.time("window_activity"),
		Socket: r["socket_path"], Server: r.number("pid"),
	}
}

// number is a field that is one, or -1.
func (r row) number(field string) int {
	n, err := strconv.Atoi(strings.TrimSpace(r[field]))
	if err != nil {
		return -1
	}
	return n
}

func (r row) time(field string) time.Time { return time.Unix(int64(r.number(field)), 0) }

func (r row) deadStatus() int {
	if sig := r.number("pane_dead_signal"); sig > 0 { // a name in some versions, and then it is unknown
		return 128 + sig
	}
	return r.number("pane_dead_status")
}

// Named finds a session by its exact name.
func Named(all []Session, name string) *Session {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// In finds the session of a state folder, whatever it is called by now.
func In(all []Session, folder string) *Session {
	for i := range all {
		if all[i].Ours && all[i].Folder == folder {
			return &all[i]
		}
	}
	return nil
}
