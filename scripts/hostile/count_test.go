//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	// A run's keeper is this program again.
	if len(os.Args) == 3 && os.Args[1] == keeperArg {
		if err := keep(os.Args[2], os.Stdin, os.Stdout); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if l, err := sharedLab(); err == nil {
		_ = l.remove() // in the directory for temporary files
	}
	os.Exit(code)
}

// sharedLab is compiled once for all tests.
var sharedLab = sync.OnceValues(newLab)

func newRunner(t *testing.T) *runner {
	t.Helper()
	l, err := sharedLab()
	if errors.Is(err, errNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	return &runner{lab: l, uid: -1, bound: 3 * time.Second, tuning: tuning{grace: "200ms", idle: 300 * time.Millisecond}}
}

// shell is a supervisor: sh -c SCRIPT, with the agent's command line as "$@".
// A shell that goes on after its child does not exec it.
func shell(script string) supervisor {
	return supervisor{name: "sh", argv: []string{"/bin/sh", "-c", script, "sh", placeholder}}
}

// TestCounts holds the suite to supervisors of which it is known what they
// leave.
func TestCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some hundred processes")
	}
	const (
		waits = `"$@"; exit 0`
		cg    = `"$HOSTILE_CGROUP2$(sed -n s/^0:://p /proc/self/cgroup)"/leaf`
	)
	for _, tt := range []struct {
		name   string
		script string
		tree   string
		ending string
		want   outcome // its numbers
	}{
		{name: "a clean end", script: waits, tree: "none", ending: "result"},
		{name: "all of a wide tree", script: waits, tree: "wide", ending: "KILL", want: outcome{Survivors: 201}},
		{name: "all of a deep tree", script: waits, tree: "deep", ending: "KILL", want: outcome{Survivors: 51}},
		{name: "dead leader threads", script: waits, tree: "zleader", ending: "KILL", want: outcome{Survivors: 3}},
		{name: "stealthy daemons", script: waits, tree: "stealth", ending: "result", want: outcome{Survivors: 2}},
		{name: "the deaf", script: waits, tree: "nosig", ending: "hangup", want: outcome{Survivors: 6}},
		{name: "the stopped", script: waits, tree: "stopped", ending: "result", want: outcome{Survivors: 3}},
		{name: "zombies below a survivor", script: waits, tree: "zombies", ending: "result",
			want: outcome{Survivors: 1, Zombies: 50}},
		{name: "the agent of a killed guard", script: `sh -c '"$@"; exit 0' sh "$@"; exit 0`, tree: "none", ending: "KILLGUARD",
			want: outcome{Survivors: 1}},
		{name: "the agent of both", script: `sh -c '"$@"; exit 0' sh "$@"; exit 0`, tree: "none", ending: "KILLBOTH",
			want: outcome{Survivors: 1}},
		{name: "processes of the supervisor's own", script: `sleep 60 & "$@"; exit 0`, tree: "none", ending: "result",
			want: outcome{Helpers: 1}},
		{name: "a signal to the caller's group", script: `"$@"; kill -CONT 0`, tree: "none", ending: "result",
			want: outcome{Bystanders: 2}},
		{name: "a cgroup", script: `mkdir ` + cg + `; "$@"; exit 0`, tree: "none", ending: "result",
			want: outcome{Cgroups: []string{"caller/leaf"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if why := lacking("cgmove", false); tt.want.Cgroups != nil && why != "" {
				t.Skip(why)
			}
			r := newRunner(t)
			r.bound = 300 * time.Millisecond
			got := r.one(context.Background(), shell(tt.script), cell{UID: -1, Tree: tt.tree, Ending: tt.ending})
			if got.Failed != "" || got.Skipped != "" {
				t.Fatalf("not made: %s%s", got.Failed, got.Skipped)
			}
			if got.Survivors != tt.want.Survivors || got.Zombies != tt.want.Zombies || got.Helpers != tt.want.Helpers ||
				got.Bystanders != tt.want.Bystanders || strings.Join(got.Cgroups, " ") != strings.Join(tt.want.Cgroups, " ") {
				t.Errorf("got\n%s\n%s\nwant %+v", header, line(got), tt.want)
			}
			nobodyLeft(t)
		})
	}
}

// TestKeeperKilled: a supervisor that ends its caller's parent is found out,
// and what it leaves is ended all the same.
func TestKeeperKilled(t *testing.T) {
	r := newRunner(t)
	s := shell(`read -r _ _ _ keeper _ </proc/$PPID/stat; kill -9 "$keeper"; "$@"; exit 0`)
	got := r.one(context.Background(), s, cell{UID: -1, Tree: "setsid", Ending: "TERM"})
	if got.Failed == "" || got.Bystanders != 1 {
		t.Errorf("not noticed:\n%s", line(got))
	}
	sweep()
	nobodyLeft(t)
}

// TestInterrupted: a run that is given up in its middle leaves nothing.
func TestInterrupted(t *testing.T) {
	r := newRunner(t)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	s := shell(`"$@"; exit 0`)
	if made := r.all(ctx, s, r.cells(s, []string{"mixed", "hydrafast"}, []string{"KILL"}, 20)); len(made) == 40 {
		t.Error("not interrupted")
	}
	nobodyLeft(t)
}

// nobodyLeft looks for processes that run the tree maker's binary below us.
func nobodyLeft(t *testing.T) {
	t.Helper()
	for _, p := range descendants(os.Getpid()) {
		t.Errorf("left: %s", p)
	}
}

func TestTreesAreMade(t *testing.T) {
	b, err := source.ReadFile("tree/main.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range treeNames() {
		if !strings.Contains(string(b), `"`+name+`"`) {
			t.Errorf("the tree maker does not know %s", name)
		}
	}
}

func TestPick(t *testing.T) {
	got, err := pick("KILLBOTH,TERM", endings, rare)
	if err != nil || strings.Join(got, " ") != "TERM KILLBOTH" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, _ := pick("", endings, rare); len(got) != len(endings) {
		t.Errorf("all: got %v", got)
	}
	if _, err := pick("TERM,no", endings, rare); err == nil {
		t.Error("an unknown name passed")
	}
}

func TestReport(t *testing.T) {
	one, ten := 1.0, 10.0
	outcomes := []outcome{
		{cell: cell{Supervisor: "a", Tree: "none", Ending: "TERM"}, DeathMS: &one, Of: 1, Status: "143"},
		{cell: cell{Supervisor: "a", Tree: "wide", Ending: "TERM"}, DeathMS: &ten, Of: 201, Status: "143"},
		{cell: cell{Supervisor: "b", Tree: "none", Ending: "TERM"}, Of: 1, Survivors: 1, Who: []string{"7 x (S)"}},
		{cell: cell{Supervisor: "b", Tree: "wide", Ending: "KILL"}, Skipped: "needs root"},
	}
	if got := summary(outcomes); !strings.HasPrefix(got, "2 of 3 runs clean: 1 survivors, 0 zombies") {
		t.Errorf("summary: %s", got)
	}
	if allClean(outcomes) || !allClean(outcomes[:2]) || !allClean(outcomes[3:]) {
		t.Error("wrong verdict")
	}
	want := "| ending | `a` | `b` |\n|---|---|---|\n| TERM | **2 of 2** | 0 of 1, 1 alive |\n| KILL | – | – |\n"
	if got := markdown(outcomes, time.Second); !strings.HasPrefix(got, want) {
		t.Errorf("table:\n%s\nwant\n%s", got, want)
	}
}
