package tmux

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cursor-wrap/internal/process"
	"cursor-wrap/internal/registry"
)

// Options are how to look.
type Options struct {
	// At is the moment of the look.
	At time.Time
	// Apart is how far two looks must be apart to be compared; a quarter of a
	// second where it is 0. A look that finds none from before, or too young a
	// one, takes a second.
	Apart time.Duration
	// Pause waits between those two; nil waits that long.
	Pause func(context.Context, time.Duration)
	// CaptureExit asks the shell for the exit status of what a person has typed
	// there and what is over. It types into the person's shell.
	CaptureExit bool
}

func (o *Options) fill() {
	if o.Apart == 0 {
		o.Apart = 250 * time.Millisecond
	}
	if o.Pause == nil {
		o.Pause = pause
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Look is where a session stands.
type Look struct {
	Name    string         `json:"name"`
	State   registry.State `json:"status"`
	Why     string         `json:"why"`
	Exit    *int           `json:"exit_code"` // null unknown
	Note    string         `json:"note,omitempty"`
	Session *Session       `json:"session"` // null closed
	Record  *Record        `json:"record"`  // null where Start did not make it

	// Running are the children of the pane's shell that live, or the pane's own
	// process where that is no shell.
	Running []process.Proc `json:"running"`
}

// Look tells where one session stands. One that is not there is closed; the
// error is that tmux could not be asked.
func (s *Server) Look(ctx context.Context, dir, name string, o Options) (Look, error) {
	all, err := s.Sessions(ctx)
	if err != nil {
		return Look{}, err
	}
	sweep(dir, all)
	folder := Folder(dir, name)
	session := Named(all, name)
	if session == nil {
		session = In(all, folder) // it was renamed
	}
	return s.look(ctx, dir, name, session, o)
}

// atOnce is how many sessions are looked at side by side. Most of a first look
// is a pause.
const atOnce = 8

// LookAll looks at every session of the server at once, and at those that Start
// made there and that are closed.
func (s *Server) LookAll(ctx context.Context, dir string, o Options) ([]Look, error) {
	all, err := s.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	sweep(dir, all)
	looks := make([]Look, len(all))
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range all {
		turns <- struct{}{}
		wg.Go(func() {
			looks[i], errs[i] = s.look(ctx, dir, all[i].Name, &all[i], o)
			<-turns
		})
	}
	wg.Wait()
	records, _ := Started(dir) // what cannot be read is not shown
	for _, r := range records {
		if In(all, r.Folder) == nil && New(r.Socket).gone(ctx, r) {
			l := Look{Name: r.Name, Record: &r, Exit: r.Exit}
			l.State, l.Why = judge(facts{closed: true, exit: r.Exit})
			looks = append(looks, l)
		}
	}
	looks = slices.DeleteFunc(looks, func(l Look) bool { return l.State == "" })
	return looks, firstOf(errs)
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// gone reports whether a session of ours is closed at its own server, which
// need not be the one that was listed.
func (s *Server) gone(ctx context.Context, r Record) bool {
	all, err := s.Sessions(ctx)
	return err == nil && In(all, r.Folder) == nil
}

func (s *Server) look(ctx context.Context, dir, name string, session *Session, o Options) (l Look, err error) {
	o.fill()
	l = Look{Name: name, Session: session}
	folder := Folder(dir, name)
	if session != nil && session.Ours {
		folder = session.Folder
	}
	if r, err := readRecord(folder); err == nil && (session == nil || session.Ours) {
		l.Record, l.Exit = &r, r.Exit
	}
	f := facts{closed: session == nil, dead: session != nil && session.Dead}
	switch {
	case f.closed:
	case f.dead:
		if code := session.DeadStatus; code >= 0 {
			l.Exit = &code
		}
	default:
		f.dead, f.changed, err = s.lookInside(ctx, dir, &l, o)
	}
	if err != nil {
		if all, e := s.Sessions(ctx); e == nil && slices.IndexFunc(all, func(s Session) bool { return s.ID == session.ID }) < 0 {
			l.Session, l.Running, f, err = nil, nil, facts{closed: true}, nil // it closed while we looked
		}
	}
	if err != nil {
		return Look{Name: name}, err
	}
	f.children, f.exit = len(l.Running), l.Exit
	l.State, l.Why = judge(f)
	if f.children > 0 && !f.closed && !f.dead {
		l.Exit = nil // something runs, whatever came before it
	}
	return l, nil
}

// lookInside looks at the processes of a pane and at its screen.
func (s *Server) lookInside(ctx context.Context, dir string, l *Look, o Options) (dead, changed bool, err error) {
	pane, err := process.Find(l.Session.PanePID)
	if err != nil {
		return true, false, nil // tmux does not know yet
	}
	shell := shellOf(pane)
	if l.Running, err = running(shell); err != nil {
		return false, false, err
	}
	if !process.Alive(pane.PID, pane.Start) { // or whose children they are is not known
		l.Running = nil
		return true, false, nil
	}
	if len(l.Running) == 0 && l.Record != nil && l.Exit == nil {
		if err := s.settle(ctx, l, shell); err != nil {
			return false, false, err
		}
	}
	if l.Record != nil && l.Exit != nil { // the wrapper has told its exit code, and has nothing left to do
		l.Running = slices.DeleteFunc(l.Running, func(p process.Proc) bool { return p.PID == l.Record.PID && p.Start == l.Record.Start })
	}
	m := recall(dir, l.Session, shell)
	if len(l.Running) == 0 {
		if l.Exit == nil {
			l.Exit, l.Note = s.askExit(ctx, m, shell, o.CaptureExit)
			m.save(l)
		}
		return false, false, nil
	}
	m.forgetExit()
	changed, err = s.compare(ctx, m, o)
	if err == nil {
		m.save(l)
	}
	return false, changed, err
}

// handover is how long the shell of a session of ours may take between the
// wrapper's end and the line that tells of it.
const handover = time.Second

// settle waits for one of the two that must come: the wrapper, or its exit
// status.
func (s *Server) settle(ctx context.Context, l *Look, shell process.Proc) (err error) {
	ctx, cancel := context.WithTimeout(ctx, handover)
	defer cancel()
	for ctx.Err() == nil && len(l.Running) == 0 && l.Exit == nil {
		pause(ctx, 5*time.Millisecond)
		if l.Running, err = running(shell); err != nil {
			return err
		}
		l.Exit = exitStatus(l.Record.Folder)
	}
	return nil
}

// shells are the programs that wait for commands, by the name that the kernel
// has of them.
var shells = []string{
	"sh", "bash", "rbash", "dash", "ash", "busybox", "zsh", "rzsh", "ksh", "ksh93", "rksh", "mksh", "lksh", "oksh", "pdksh", "yash", "posh",
	"fish", "csh", "tcsh", "bsd-csh", "rc", "es", "elvish", "nu", "xonsh", "pwsh",
}

func isShell(p process.Proc) bool {
	return slices.Contains(shells, strings.TrimPrefix(filepath.Base(p.Command), "-"))
}

// shellOf is the shell of a pane that takes commands. Where tmux was told to
// run one, it can be the child of the shell that tmux has started for that.
func shellOf(pane process.Proc) process.Proc {
	if !isShell(pane) || interactive(process.Argv(pane.PID)) {
		return pane
	}
	kids, err := process.ChildrenOf(pane.PID)
	if err == nil && len(kids) == 1 && isShell(kids[0]) && interactive(process.Argv(kids[0].PID)) {
		return kids[0]
	}
	return pane
}

// running is what runs in a pane. A command that tmux was told to run is the
// pane's own process, and counts as the child that it would be of a shell.
func running(pane process.Proc) ([]process.Proc, error) {
	if !isShell(pane) {
		return []process.Proc{pane}, nil
	}
	return process.ChildrenOf(pane.PID)
}
