package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// found is how a test writes down who runs which call.
func found(a Activity) string {
	var all []string
	for _, r := range a.Runners {
		switch r.Fate {
		case Alive:
			all = append(all, fmt.Sprintf("%s=%d by %s", r.Call, r.PID, r.By))
		case Gone:
			all = append(all, fmt.Sprintf("%s=%d gone", r.Call, r.PID))
		default:
			all = append(all, r.Call+" "+string(r.Fate))
		}
	}
	return strings.Join(all, ", ")
}

func TestLink(t *testing.T) {
	young := age(9 * sec)
	long := "echo " + strings.Repeat("ä", 300)
	cut := string([]rune(long)[:200])
	for _, tt := range []struct {
		name  string
		rows  []Row
		calls []Call
		want  string
	}{
		{"a shell that runs it",
			[]Row{row(200, 100, 200, young, sh("make all"))},
			[]Call{shell("a", "make all", 9*sec)}, "a=200 by command line"},
		{"a command that took the place of its shell",
			[]Row{row(200, 100, 200, young, argv("sleep", "40"))},
			[]Call{shell("a", "sleep 40", 9*sec)}, "a=200 by command line"},
		{"a shell that was told more",
			[]Row{row(200, 100, 200, young, sh("cd /x && { make all; }; code=$?")), row(300, 100, 300, young, sh("cat"))},
			[]Call{shell("a", "make all", 9*sec)}, "a=200 by command line"},
		{"an interpreter that was put before it",
			[]Row{row(200, 100, 200, young, argv("/usr/bin/node", "/usr/bin/npm", "test")), row(300, 100, 300, young)},
			[]Call{shell("a", "npm test", 9*sec)}, "a=200 by command line"},
		{"white space is folded on both sides",
			[]Row{row(200, 100, 200, young, sh("make \\\n\t all\n"))},
			[]Call{shell("a", " make  \\ all", 9*sec)}, "a=200 by command line"},
		{"a long command is known by its beginning",
			[]Row{row(200, 100, 200, young, sh(long)), row(300, 100, 300, young)},
			[]Call{shell("a", cut, 9*sec)}, "a=200 by command line"},
		{"a long command that ends in a mark, too",
			[]Row{row(200, 100, 200, young, sh(long)), row(300, 100, 300, young)},
			[]Call{shell("a", cut[:100]+"…", 9*sec)}, "a=200 by command line"},
		{"a long command is found within a longer one",
			[]Row{row(200, 100, 200, young, sh("cd /x; "+long)), row(300, 100, 300, young)},
			[]Call{shell("a", cut, 9*sec)}, "a=200 by command line"},
		{"the beginning of a long command is as good as all of it",
			[]Row{row(200, 100, 200, young, sh("cd /x; "+long)), row(300, 100, 300, young, sh(long))},
			[]Call{shell("a", cut, 9*sec)}, "a=300 by command line"},
		{"a short command is not found inside of a word",
			[]Row{row(200, 100, 200, young, argv("node", "tools", "ls.txt", "./xls")), row(300, 100, 300, young)},
			[]Call{shell("a", "ls", 9*sec)}, "a none"},
		{"who was there before the call does not run it",
			[]Row{row(200, 100, 200, age(9200*ms), argv("sleep", "40"))},
			[]Call{shell("a", "sleep 40", 9*sec)}, "a none"},
		{"a tick or a line that was late makes nobody older",
			[]Row{row(200, 100, 200, age(9100*ms), argv("sleep", "40"))},
			[]Call{shell("a", "sleep 40", 9*sec)}, "a=200 by command line"},
		{"who cannot be dated may",
			[]Row{row(200, 100, 200, age(-1), argv("sleep", "40"))},
			[]Call{shell("a", "sleep 40", 9*sec)}, "a=200 by command line"},
		{"a zombie runs nothing",
			[]Row{row(200, 100, 200, young, inState('Z'), argv("sleep", "40"))},
			[]Call{shell("a", "sleep 40", 9*sec)}, "a none"},
		{"the highest of those that fit equally, and of those the oldest",
			[]Row{row(250, 100, 250, young, sh("make")), row(200, 250, 250, young, sh("make")), row(300, 100, 300, young, sh("make"))},
			[]Call{shell("a", "make", 9*sec)}, "a=250 by command line"},
		{"two equal calls, two shells",
			[]Row{row(200, 100, 200, young, sh("make")), row(300, 100, 300, young, sh("make"))},
			[]Call{shell("a", "make", 9*sec), shell("b", "make", 9*sec)}, "a=200 by command line, b=300 by command line"},
		{"what is below one call's process runs no other call",
			[]Row{row(200, 100, 200, young, sh("make")), row(201, 200, 200, young, argv("sleep", "40"))},
			[]Call{shell("a", "make", 9*sec), shell("b", "sleep 40", 9*sec)}, "a=200 by command line, b none"},
		{"two equal calls, one shell and what is below it: they run one after the other",
			[]Row{row(200, 100, 200, young, sh("make")), row(201, 200, 200, young, sh("make")), row(202, 201, 202, young, argv("make"))},
			[]Call{shell("a", "make", 9*sec), shell("b", "make", 9*sec)}, "a=200 by command line, b none"},
		{"the shell above who runs one call does not run another",
			[]Row{row(200, 100, 200, young, sh("exec 2>&1; make")), row(201, 200, 201, young, sh("make"))},
			[]Call{shell("a", "make", 9*sec), shell("b", "make", 9*sec)}, "a=201 by command line, b none"},
		{"a later call that fits exactly before an earlier one that is only mentioned",
			[]Row{row(200, 100, 200, young, sh("make all"))},
			[]Call{shell("a", "make", 9*sec), shell("b", "make all", 9*sec)}, "a none, b=200 by command line"},
		{"a read call does not take the shell's process",
			[]Row{row(200, 100, 200, young, argv("cat", "/etc/passwd"))},
			[]Call{{ID: "a", Tool: "read", Command: "/etc/passwd", Age: Span(9 * sec)}, shell("b", "cat /etc/passwd", 9*sec)},
			"a none, b=200 by command line"},
		{"outside of the agent's session before inside of it",
			[]Row{row(101, 100, 100, young, sh("make")), row(200, 100, 200, young, sh("cd x; make"))},
			[]Call{shell("a", "make", 9*sec)}, "a=200 by command line"},
		{"inside of it where nobody else fits",
			[]Row{row(101, 100, 100, young, argv("rg", "TODO"))},
			[]Call{{ID: "a", Tool: "grep", Command: "TODO", Age: Span(9 * sec)}}, "a=101 by command line"},
		{"never the agent itself, nor who is not below it",
			[]Row{row(101, 1, 100, young, argv("sleep", "40"))},
			[]Call{shell("a", "sleep 40", 9*sec), shell("b", "agent sleep 40", 9*sec)}, "a none, b none"},
		{"a pid that was reported, however old",
			[]Row{row(200, 100, 200, argv("server")), row(300, 100, 300, young, sh("serve"))},
			[]Call{{ID: "a", Tool: "shell", Command: "serve", PID: 200, Age: Span(sec)}}, "a=200 by reported pid"},
		{"a pid that was reported goes before a guess",
			[]Row{row(200, 100, 200, young, sh("serve"))},
			[]Call{shell("a", "serve", 9*sec), {ID: "b", Tool: "shell", PID: 200}}, "a none, b=200 by reported pid"},
		{"a pid that was reported for two",
			[]Row{row(200, 100, 200)},
			[]Call{{ID: "a", Tool: "shell", PID: 200}, {ID: "b", Tool: "shell", PID: 200}}, "a=200 by reported pid, b none"},
		{"a pid that was reported and is not there",
			[]Row{row(200, 100, 200, young, sh("serve"))},
			[]Call{{ID: "a", Tool: "shell", Command: "serve", PID: 999, Age: Span(9 * sec)}}, "a=200 by command line"},
		{"the one shell that was started with the one call",
			[]Row{row(200, 100, 200, age(6*sec), argv("./***"))},
			[]Call{shell("a", "TOKEN=x ./run", 9*sec)}, "a=200 by start time"},
		{"one that came late, if it is the only one", []Row{row(200, 100, 200, age(3*sec))}, []Call{shell("a", "x", 9*sec)}, "a=200 by start time"},
		{"but no orphan that did", []Row{row(200, 1, 200, age(3*sec))}, []Call{shell("a", "x", 9*sec)}, "a none"},
		{"nor one of two that did", []Row{row(200, 100, 200, age(3*sec)), row(300, 100, 300, age(2*sec))}, []Call{shell("a", "x", 9*sec)}, "a none"},
		{"the shell took the quotes away", []Row{row(200, 100, 200, age(sec), argv("python3", "-c", "import time;sleep(600)"))},
			[]Call{shell("a", `python3 -c "import time;sleep(600)"`, 9*sec), shell("b", "y", 9*sec)}, "a=200 by command line, b none"},
		{"nor too early", []Row{row(200, 100, 200, age(9200*ms))}, []Call{shell("a", "x", 9*sec)}, "a none"},
		{"nor one that leads no session", []Row{row(200, 100, 199, young)}, []Call{shell("a", "x", 9*sec)}, "a none"},
		{"nor a tool's own child", []Row{row(200, 100, 200), row(201, 200, 201, young)}, []Call{shell("a", "x", 9*sec)}, "a none"},
		{"an orphan may be", []Row{row(200, 1, 200, young)}, []Call{shell("a", "x", 9*sec)}, "a=200 by start time"},
		{"nor one of two", []Row{row(200, 100, 200, young), row(300, 100, 300, young)}, []Call{shell("a", "x", 9*sec)}, "a none"},
		{"nor for one of two", []Row{row(200, 100, 200, young)}, []Call{shell("a", "x", 9*sec), shell("b", "y", 9*sec)}, "a none, b none"},
		{"one of two whose other one is known",
			[]Row{row(200, 100, 200, young), row(300, 100, 300, young, sh("y")), row(301, 300, 301, young)},
			[]Call{shell("a", "x", 9*sec), shell("b", "y", 9*sec)}, "a=200 by start time, b=300 by command line"},
		{"nor for what is no shell", []Row{row(200, 100, 200, young, sh("x"))}, []Call{{ID: "a", Tool: "mcp", Age: Span(9 * sec)}}, "a none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := append(tt.rows, theAgent(age(-1), argv("agent", "sleep 40")))
			var w Watch
			got := found(w.Next(snap(0, rows...), tt.calls))
			equal(t, "runners", got, tt.want)
			got = found(w.Next(snap(5, rows...), tt.calls))
			equal(t, "runners, at the second look", got, tt.want)
		})
	}
}

// A link holds, whatever becomes of the process.
func TestLinkThroughTime(t *testing.T) {
	calls := []Call{shell("a", "npm start & sleep 3", 9*sec)}
	top := row(200, 100, 200, age(9*sec), sh("npm start & sleep 3"))
	old, young := row(202, 200, 200, age(8*sec)), row(201, 200, 200, start(9999), age(1*sec))
	orphaned := func(r Row) Row { r.PPID = 1; return r }
	var w Watch
	at := 0.0
	for _, step := range []struct {
		name  string
		rows  []Row
		calls []Call
		want  string
	}{
		{"found", []Row{top, old}, calls, "a=200 by command line"},
		{"turned into another program", []Row{row(200, 100, 200, argv("node")), old}, calls, "a=200 by command line"},
		{"with another child", []Row{top, old, young}, calls, "a=200 by command line"},
		{"gone, before its children: the older goes on", []Row{orphaned(old), orphaned(young)}, calls, "a=202 by command line"},
		{"gone, too: the younger, which was never below it, goes on", []Row{orphaned(young)}, calls, "a=201 by command line"},
		{"all gone", nil, calls, "a=201 gone"},
		{"a pid that is used again is nobody's", []Row{row(201, 100, 201, start(77777), age(sec))}, calls, "a=201 gone"},
		{"the call is over", []Row{top}, nil, ""},
		{"and forgotten", nil, calls, "a none"},
	} {
		at += 5
		got := found(w.Next(snap(at, append(step.rows, theAgent())...), step.calls))
		equal(t, step.name, got, step.want)
	}
}

// An orphan of one call's runs no other call.
func TestAnOrphanIsNotFree(t *testing.T) {
	calls := []Call{shell("a", "make", 9*sec)}
	top, job := row(200, 100, 200, age(9*sec), sh("make")), row(202, 201, 200, age(sec), argv("sleep", "40"))
	var w Watch
	w.Next(snap(0, theAgent(), top, row(201, 200, 200), job), calls)
	job.PPID = 1
	a := w.Next(snap(5, theAgent(), top, job), append(calls, shell("b", "sleep 40", sec)))
	equal(t, "runners", found(a), "a=200 by command line, b none")
	calls[0].PID = 200
	for _, at := range []float64{10, 15} {
		a = w.Next(snap(at, theAgent(), top, job), append(calls, shell("b", "sleep 40", 6*sec)))
	}
	equal(t, "once its pid is reported", found(a), "a=200 by reported pid, b none")
}

// Of a pid that was given out again while the table was read, both rows are
// there.
func TestAReportIsOfTheYounger(t *testing.T) {
	var w Watch
	a := w.Next(snap(0, theAgent(), row(200, 100, 200), row(300, 100, 300), row(200, 300, 200, start(9999))),
		[]Call{{ID: "a", Tool: "shell", PID: 200}})
	equal(t, "runner", a.Runners[0].ID, ID{200, 9999})
}

// A report that comes late is still better than a guess.
func TestAReportTakesAGuessAway(t *testing.T) {
	guess := shell("a", "serve", 9*sec)
	rows := []Row{theAgent(), row(200, 100, 200, age(9*sec), sh("serve"))}
	var w Watch
	equal(t, "a guess", found(w.Next(snap(0, rows...), []Call{guess})), "a=200 by command line")
	told := []Call{guess, {ID: "b", Tool: "shell", PID: 200}}
	equal(t, "a report", found(w.Next(snap(5, rows...), told)), "a none, b=200 by reported pid")
	guess.PID = 200
	var v Watch
	v.Next(snap(0, rows...), []Call{shell("a", "serve", 9*sec)})
	equal(t, "a report of the same", found(v.Next(snap(5, rows...), []Call{guess})), "a=200 by reported pid")
	again := row(200, 100, 200, start(9999), age(sec))
	equal(t, "a pid that is used again", found(v.Next(snap(10, theAgent(), again), []Call{guess})), "a=200 gone")
}

func TestAZombieRunnerIsGone(t *testing.T) {
	calls := []Call{shell("a", "sleep 40", 9*sec)}
	r := row(200, 100, 200, age(9*sec), argv("sleep", "40"))
	var w Watch
	w.Next(snap(0, theAgent(), r), calls)
	r.State, r.Threads, r.Argv = 'Z', 0, nil
	a := w.Next(snap(5, theAgent(), r), calls)
	equal(t, "runners", found(a), "a=200 gone")
	equal(t, "how it was called", a.Runners[0].Command, "sleep 40")
}

// A subagent that is one of the agent's own processes starts tools, too.
func TestACallBelowACall(t *testing.T) {
	task := Call{ID: "task", Tool: "task", Command: "worker", Age: Span(60 * sec)}
	worker := row(101, 100, 100, age(60*sec), argv("worker"))
	var w Watch
	equal(t, "the subagent", found(w.Next(snap(0, theAgent(), worker), []Call{task})), "task=101 by command line")
	calls := []Call{task, shell("a", "make", 9*sec)}
	a := w.Next(snap(5, theAgent(), worker, row(200, 101, 200, age(9*sec), sh("make"))), calls)
	equal(t, "and its tool", found(a), "task=101 by command line, a=200 by command line")
}

// Who belongs to a call: those at and below its runner, orphans too, but not
// those of a call that is run further down.
func TestBelonging(t *testing.T) {
	looked := wait(Wait{})
	calls := []Call{{ID: "task", Tool: "task", Command: "worker", Age: Span(60 * sec)}, shell("a", "make", 9*sec)}
	top := row(200, 101, 200, age(9*sec), sh("make"), looked)
	child := row(201, 200, 200, age(8*sec))
	rows := []Row{theAgent(), row(101, 100, 100, age(60*sec), argv("worker")), top, child, row(202, 201, 200, age(8*sec)), row(300, 100, 300)}
	var w Watch
	w.Next(snap(0, rows...), calls)
	orphans := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.PID == 201 })
	for i := range orphans {
		if orphans[i].PID == 202 {
			orphans[i].PPID = 1
		}
	}
	var got []string
	for _, p := range w.Next(snap(5, orphans...), calls).Procs {
		got = append(got, fmt.Sprint(p.PID, p.Call))
	}
	equal(t, "who belongs to what", strings.Join(got, " "), "100 101task 200a 300 202a")
}
