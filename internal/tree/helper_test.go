package tree

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

var epoch = time.Date(2026, 1, 28, 12, 0, 0, 0, time.UTC)

// agent is pid 100 in every test, a child of the guard, pid 1, and the leader
// of its session.
var agent = ID{100, 1000}

// row is a process that has slept for an hour and used nothing.
func row(pid, ppid, session int, with ...func(*Row)) Row {
	r := Row{
		ID: ID{pid, uint64(pid) * 10}, PPID: ppid, PGID: session, Session: session, State: 'S', Threads: 1,
		Age: time.Hour, Name: fmt.Sprintf("p%d", pid),
	}
	for _, f := range with {
		f(&r)
	}
	return r
}

func start(n uint64) func(*Row)         { return func(r *Row) { r.Start = n } }
func inState(s byte) func(*Row)         { return func(r *Row) { r.State = s } }
func threads(n int) func(*Row)          { return func(r *Row) { r.Threads = n } }
func age(d time.Duration) func(*Row)    { return func(r *Row) { r.Age = d } }
func cpu(d time.Duration) func(*Row)    { return func(r *Row) { r.CPU = d } }
func waited(d time.Duration) func(*Row) { return func(r *Row) { r.Waited = d } }
func disk(n int64) func(*Row)           { return func(r *Row) { r.Disk = n } }
func name(s string) func(*Row)          { return func(r *Row) { r.Name = s } }
func argv(args ...string) func(*Row)    { return func(r *Row) { r.Argv = args } }
func sockets(all ...Socket) func(*Row)  { return func(r *Row) { r.Sockets = all } }
func wait(w Wait) func(*Row)            { return func(r *Row) { r.Wait = &w } }
func sh(command string) func(*Row)      { return argv("/bin/bash", "-c", command) }
func peer(quiet time.Duration) Socket   { return Socket{Inode: 7, Peer: "34.1.2.3:443", Quiet: quiet} }
func tty() func(*Row)                   { return wait(Wait{Call: "read", File: "/dev/pts/3"}) }
func theAgent(with ...func(*Row)) Row   { return row(100, 1, 100, with...) }
func seconds(n float64) time.Time       { return epoch.Add(time.Duration(n * float64(sec))) }
func shell(id, command string, age time.Duration) Call {
	return Call{ID: id, Tool: "shell", Command: command, Age: Span(age)}
}

// snap is a snapshot of the rows, in whatever order.
func snap(at float64, rows ...Row) *Snapshot {
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return &Snapshot{At: seconds(at), Root: 1, Agent: agent, Rows: rows, CPU: -1, Reaped: -1, Sockets: true, Full: true}
}

// second is the activity between two snapshots.
func second(a, b *Snapshot, calls ...Call) Activity {
	var w Watch
	w.Next(a, calls)
	return w.Next(b, calls)
}

// equal compares values that print alike if and only if they are.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
