package tmux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cursor-wrap/internal/process"
)

// Launch is what the wrapper needs to know in its pane. It goes there in a file
// for the owner alone, which is gone when it was read: a command line can be
// seen by everybody, and a server that runs already has an environment of its
// own.
type Launch struct {
	Name    string
	Args    [][]byte // what start was called with; bytes, because an argument need not be text
	Env     [][]byte // name=value
	Prompt  []byte   `json:"-"` // from stdin; nil where there is none
	Shown   []string // Args as they may be shown
	Dir     string
	Started time.Time
}

// Place is where and how large.
type Place struct {
	Exe        string // this program
	Dir        string // the state directory
	Cols, Rows int
}

// script is what a pane of ours runs, in the words of POSIX, from a file of the
// state folder, so that lists of processes stay readable: the wrapper as its
// child, and then the person's shell, which keeps the session and what was said
// in it. The wrapper writes down how it ended; where it was killed, the script
// does. A signal from the keyboard is the wrapper's business and must not end
// who comes after it; it is caught and not ignored, because an ignored one
// would be ignored below, too. A hang-up must end the script at once: only then
// does the kernel pass it on to the wrapper.
const script = `trap : INT QUIT
"$1" __session "$2"
code=$?
[ -e "$2/exit_status" ] || (umask 077; echo "$code" >"$2/exit_status.new" && mv -f "$2/exit_status.new" "$2/exit_status") 2>/dev/null
stty sane 2>/dev/null
printf '\ncursor-wrap: the run has ended with exit code %s; what follows is a shell\n' "$code"
trap - INT QUIT
exec "${SHELL:-/bin/sh}"
`

// Start runs the wrapper in a new detached session and returns its record once
// it has begun.
func (s *Server) Start(ctx context.Context, p Place, l Launch) (Record, error) {
	folder := Folder(p.Dir, l.Name)
	if err := errors.Join(os.MkdirAll(root(p.Dir), 0o700), ours(root(p.Dir))); err != nil {
		return Record{}, fmt.Errorf("state directory: %w", err)
	}
	id, err := s.open(ctx, p, l, folder)
	if err != nil {
		return Record{}, err
	}
	return s.awaitBegin(ctx, l.Name, id, folder)
}

// open makes the state folder and the session. Of those who would like the same
// name at the same time one gets it, and no other touches the folder.
func (s *Server) open(ctx context.Context, p Place, l Launch, folder string) (id string, err error) {
	unlock, err := lock(root(p.Dir))
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := s.clear(ctx, l.Name, folder); err != nil {
		return "", err
	}
	if err := l.write(folder); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	if id, err = s.newSession(ctx, p, l, folder); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return id, nil
}

// TakenError is that there is a session of the name.
type TakenError struct {
	Name string
	Ours bool
}

func (e *TakenError) Error() string {
	if e.Ours {
		return fmt.Sprintf("the session %q is there already", e.Name)
	}
	return fmt.Sprintf("tmux has a session %q that cursor-wrap has not made", e.Name)
}

// clear makes room for a session, where an old one of ours is closed.
func (s *Server) clear(ctx context.Context, name, folder string) error {
	all, err := s.Sessions(ctx)
	if err != nil {
		return err
	}
	if old := Named(all, name); old != nil {
		return &TakenError{name, old.Ours}
	}
	old, err := readRecord(folder)
	if err == nil && (In(all, folder) != nil || !New(old.Socket).gone(ctx, old)) {
		return &TakenError{name, true} // it was renamed, or is at another server
	}
	if err == nil && process.Alive(old.PID, old.Start) {
		return fmt.Errorf("the run of the last session %q, process %d, is still ending", name, old.PID)
	}
	return os.RemoveAll(folder)
}

// lock keeps others away who would start something; it dies with us.
func lock(folder string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
	}
}

func (l *Launch) write(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if l.Prompt != nil {
		if err := os.WriteFile(filepath.Join(folder, promptFile), l.Prompt, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(folder, scriptFile), []byte(script), 0o600); err != nil {
		return err
	}
	return writeJSON(folder, launchFile, l)
}

// newSession makes the session. It is marked as ours by the same call that
// makes it, and not closed for being detached, whatever the person's own
// settings say.
func (s *Server) newSession(ctx context.Context, p Place, l Launch, folder string) (id string, err error) {
	target := "=" + l.Name + ":"
	out, err := s.ask(ctx, "new-session", "-d", "-P", "-F", "#{session_id} #{session_name}",
		"-s", word(literal(l.Name)), "-n", "cursor-wrap", "-c", word(literal(l.Dir)), "-x", strconv.Itoa(p.Cols), "-y", strconv.Itoa(p.Rows),
		"/bin/sh", filepath.Join(folder, scriptFile), word(p.Exe), word(folder), then,
		"set-option", "-F", "-t", target, folderOption, word("#{pane_id}:"+literal(folder)), then,
		"set-option", "-t", target, "destroy-unattached", "off")
	id, name, _ := strings.Cut(strings.TrimSuffix(out, "\n"), " ")
	if id != "" && (err != nil || name != l.Name) { // it was made, but is not what it should be
		_, _ = s.ask(ctx, "kill-session", "-t", id) // the error below counts
	}
	if id != "" && name != l.Name {
		return "", fmt.Errorf("tmux calls the session %q; choose another name", name)
	}
	return id, err
}

// beginTime is how long the wrapper may take to begin.
const beginTime = 20 * time.Second

// early is how long a run is watched for an end right after its beginning, such
// as that of one that cannot write its log.
const early = 100 * time.Millisecond

// awaitBegin waits until the wrapper has written its record.
func (s *Server) awaitBegin(ctx context.Context, name, id, folder string) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	for n := 0; ; n++ {
		r, err := readRecord(folder)
		switch exit := exitStatus(folder); {
		case err == nil:
			return s.watchEarly(ctx, r), nil
		case exit != nil:
			return Record{}, fmt.Errorf("the wrapper has not begun, exit code %d; tmux attach -t %s shows why", *exit, name)
		case ctx.Err() != nil:
			return Record{}, fmt.Errorf("the wrapper has not begun: %w", ctx.Err())
		case n%100 == 99:
			if all, err := s.Sessions(ctx); err == nil && In(all, folder) == nil {
				return Record{}, fmt.Errorf("the session %s (%s) was closed before the wrapper began", name, id)
			}
		}
		pause(ctx, 5*time.Millisecond)
	}
}

func (s *Server) watchEarly(ctx context.Context, r Record) Record {
	ctx, cancel := context.WithTimeout(ctx, early)
	defer cancel()
	for ; r.Exit == nil && ctx.Err() == nil; r.Exit = exitStatus(r.Folder) {
		pause(ctx, 5*time.Millisecond)
	}
	return r
}

// Begin is the wrapper's first act in its pane: it takes what Start has left
// for it, and says that it is there.
func Begin(folder string, getenv func(string) string) (Launch, error) {
	var l Launch
	path := filepath.Join(folder, launchFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, errors.New("there is nothing to start; use cursor-wrap start NAME")
	}
	if err == nil {
		err = errors.Join(json.Unmarshal(b, &l), os.Remove(path))
	}
	if err != nil {
		return l, err
	}
	if l.Prompt, err = takePrompt(folder); err != nil {
		return l, err
	}
	self, err := process.Find(os.Getpid())
	if err != nil {
		return l, err
	}
	socket, _, _ := strings.Cut(getenv("TMUX"), ",")
	return l, writeJSON(folder, recordFile, Record{
		Name: l.Name, Socket: socket, Pane: getenv("TMUX_PANE"), PID: self.PID, Start: self.Start,
		Started: l.Started, Args: l.Shown, Dir: l.Dir, Folder: folder,
	})
}

// End is the wrapper's last act in its pane: it writes down how the run ended.
func End(folder string, code int) error {
	err := os.WriteFile(filepath.Join(folder, exitFile), []byte(strconv.Itoa(code)+"\n"), 0o600) // a part of the line counts for nothing
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the session was removed, and nobody will ask
	}
	return err
}

func takePrompt(folder string) ([]byte, error) {
	path := filepath.Join(folder, promptFile)
	prompt, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	return prompt, err
}
