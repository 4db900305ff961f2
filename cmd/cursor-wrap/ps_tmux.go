package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"cursor-wrap/internal/monitor"
	"cursor-wrap/internal/tmux"
	"cursor-wrap/internal/tree"
)

// panes is what ps looks at in tmux.
type panes struct {
	every       bool   // all sessions of the server, not ours alone
	socket      string // of the server
	captureExit bool
}

func (p *panes) options() tmux.Options {
	return tmux.Options{At: time.Now(), CaptureExit: p.captureExit}
}

// looks are the sessions that start has made, or all of the server.
func (o *ops) looks(ctx context.Context, dir string) ([]tmux.Look, error) {
	if o.panes.every {
		server := tmux.New(o.panes.socket)
		if err := server.Available(); err != nil {
			return nil, err
		}
		return server.LookAll(ctx, dir, o.panes.options())
	}
	records, err := tmux.Started(dir)
	looks := make([]tmux.Look, len(records))
	errs := make([]error, len(records), len(records)+1)
	var all sync.WaitGroup
	for i := range records {
		all.Go(func() {
			looks[i], errs[i] = tmux.New(records[i].Socket).Look(ctx, dir, records[i].Name, o.panes.options())
		})
	}
	all.Wait()
	return slices.DeleteFunc(looks, func(l tmux.Look) bool { return l.State == "" }), joined(append(errs, err))
}

// pane is the session of that name, if there is or was one.
func (o *ops) pane(ctx context.Context, dir, name string) (row, bool) {
	socket := o.panes.socket
	if r, err := tmux.Find(dir, name); err == nil && socket == "" {
		socket = r.Socket
	}
	server := tmux.New(socket)
	if server.Available() != nil {
		return row{}, false
	}
	l, err := server.Look(ctx, dir, name, o.panes.options())
	if err != nil || l.Session == nil && l.Record == nil {
		return row{}, false
	}
	return paneRow(&l), true
}

// withPanes adds the sessions of tmux in which none of the rows runs.
func (o *ops) withPanes(ctx context.Context, rows []row) ([]row, error) {
	dir, err := o.dir()
	if err != nil {
		return rows, err
	}
	if _, err := os.Stat(dir + "/tmux"); err != nil && !o.panes.every {
		return rows, nil
	}
	looks, err := o.looks(ctx, dir)
	for i := range looks {
		if !slices.ContainsFunc(rows, func(r row) bool { return looks[i].Record != nil && r.Tmux == looks[i].Name }) {
			rows = append(rows, paneRow(&looks[i]))
		}
	}
	return rows, err
}

// paneRow is a session of tmux.
func paneRow(l *tmux.Look) row {
	r := row{
		ID: l.Name, Status: l.State, Why: l.Why, Exit: l.Exit, Phase: "tmux", Tmux: l.Name, Calls: []monitor.Call{}, Behind: []monitor.Call{},
		Processes: len(l.Running), Percent: tree.Unknown, CPU: tree.Unknown, Memory: tree.Unknown,
	}
	if len(l.Running) > 0 {
		r.Why += ": " + l.Running[0].Command
	}
	if l.Note != "" {
		r.Why += "; " + l.Note
	}
	if rec := l.Record; rec != nil {
		r.Workspace, r.PID, r.Started = rec.Dir, rec.PID, monitor.Millis{Time: rec.Started}
	}
	if s := l.Session; s != nil {
		r.Workspace, r.Started = s.Path, monitor.Millis{Time: s.Created}
		if r.PID == 0 {
			r.PID = s.PanePID
		}
	}
	r.Age = monitor.Span(time.Since(r.Started.Time))
	return r
}
