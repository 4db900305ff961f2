package process

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// trees are what an agent leaves behind, and how each of it is found.
var trees = []struct {
	name  string
	words []string
	found map[string]string // by part; the agent comes by itself
	lines int               // that they say before all are there
	root  bool
}{
	{"sessions of their own", []string{"parent", "setsid:wait", "setsid:deaf"}, map[string]string{"wait": "child", "deaf": "child"}, 3, false},
	{"a daemon without an environment", []string{"parent", "daemon:deaf"}, map[string]string{"deaf": "adopted"}, 2, false},
	{"stopped", []string{"parent", "stopped:halt", "deaf"}, map[string]string{"stopped": "child", "deaf": "child"}, 3, false},
	{"a subreaper of its own", []string{"parent", "setsid:reaper,deaf,wait"}, map[string]string{"reaper": "child", "deaf": "child", "wait": "child"}, 4, false},
	{"an orphaned subreaper", []string{"parent", "daemon:reaper,deaf"}, map[string]string{"reaper": "adopted", "deaf": "child"}, 3, false},
	{"a dead first thread", []string{"parent", "beheaded", "daemon:beheaded"}, nil, 3, false},
	{"zombies", []string{"parent", "zombies"}, map[string]string{"zombies": "child"}, 2, false},
	{"forked by many threads", []string{"parent", "threads"}, map[string]string{"wait": "child"}, 5, false},
	{"no children of their parents", []string{"parent", "sibling,deaf"}, map[string]string{"sibling": "child"}, 3, false},
	{"siblings of the agent", []string{"sibling", "deaf"}, map[string]string{"deaf": "adopted"}, 2, false},
	{"a pid namespace of its own", []string{"parent", "namespace,reaper,deaf"}, map[string]string{"namespace": "child"}, 4, true},
}

func TestTrees(t *testing.T) {
	for _, c := range containments(t) {
		for _, tree := range trees {
			for how, ladder := range map[string]Ladder{"asked": short, "killed": none} {
				t.Run(string(c)+" "+tree.name+" "+how, func(t *testing.T) {
					if tree.root && os.Geteuid() != 0 {
						t.Skip("needs root")
					}
					s := spec(t, tree.words...)
					s.Containment = c
					a := launchSpec(t, s)
					found := map[int]string{a.PID(): "agent"}
					for range tree.lines {
						if name, pid := a.named(); pid != a.PID() && tree.found[name] != "" {
							found[pid] = tree.found[name]
						}
					}
					td := a.over(ladder)
					a.silent(soon())
					if !td.Proof || td.By != "guard" {
						t.Errorf("%+v", td)
					}
					recorded(t, td, found)
				})
			}
		}
	}
}

// recorded checks that those who lived are in the record, once each.
func recorded(t *testing.T, td Teardown, found map[int]string) {
	t.Helper()
	for pid, how := range found {
		n := 0
		for _, e := range td.Ended {
			if e.PID == pid {
				n++
				if e.Found != how || e.Signal == "" || e.Start == 0 {
					t.Errorf("%+v, want it found as %s", e, how)
				}
			}
		}
		if n != 1 {
			t.Errorf("%d is %d times in the record %+v", pid, n, td.Ended)
		}
	}
}

// The guard is dead: the front ends the same trees.
func TestTreesOfADeadGuard(t *testing.T) {
	for _, tree := range trees {
		t.Run(tree.name, func(t *testing.T) {
			if tree.root && os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			f := stage{containment: Tree}.open(t, tree.words...)
			f.tree.ready(tree.lines)
			if err := unix.Kill(f.guard, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			f.vanishes(soon())
			f.tell("end 1s")
			if td := f.teardown(); td.By != "front" || !td.Proof || len(td.Left) > 0 {
				t.Errorf("%+v", td)
			}
		})
	}
}

// A chain that is always one process ahead of a look at the table, whose agent
// has left.
func TestChainOfForks(t *testing.T) {
	for _, c := range containments(t) {
		for _, session := range []string{"group", "sid"} {
			t.Run(string(c)+" "+session, func(t *testing.T) {
				until := strconv.FormatInt(time.Now().Add(20*time.Second).UnixMilli(), 10)
				s := spec(t, "parent", "hopper,"+until+","+session, "daemon:hopper,"+until+","+session)
				s.Containment = c
				a := launchSpec(t, s)
				a.ready(3)
				_ = a.Stdin.Close()
				<-a.Exited()
				td := a.over(short)
				a.silent(soon())
				if !td.Proof {
					t.Errorf("%+v", td)
				}
			})
		}
	}
}

func TestChainOfForksOfADeadGuard(t *testing.T) {
	until := strconv.FormatInt(time.Now().Add(20*time.Second).UnixMilli(), 10)
	f := stage{containment: Tree}.open(t, "parent", "hopper,"+until+",sid", "daemon:hopper,"+until+",group")
	f.tree.ready(3)
	if err := unix.Kill(f.guard, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.vanishes(soon())
	f.tell("end 1s")
	if td := f.teardown(); !td.Proof || len(td.Left) > 0 {
		t.Errorf("%+v", td)
	}
}

// Asked to go, it starts a daemon: who is born in the teardown is in it, and is
// asked, too.
func TestLastWords(t *testing.T) {
	for daemon, row := range map[string]struct {
		ladder Ladder
		signal string
	}{
		"kind": {NewLadder(partLife), "SIGTERM"},
		"deaf": {Ladder{{Signals: short[0].Signals, Wait: time.Second}, short[1]}, "SIGKILL"},
	} {
		t.Run(daemon, func(t *testing.T) {
			a := launch(t, "lastwords", daemon)
			a.ready(1)
			td := a.over(row.ladder)
			a.silent(soon())
			if !td.Proof || td.Exit.Code != 0 || td.Took > prompt || !slices.ContainsFunc(td.Ended, func(e Ended) bool {
				return e.PID != a.PID() && e.Signal == row.signal && e.How == row.signal
			}) {
				t.Errorf("%+v, want the daemon in it, ended by %s", td, row.signal)
			}
		})
	}
}

func TestStoppedAgent(t *testing.T) {
	a := launch(t, "parent", "stopped:halt", "wait")
	a.ready(3)
	if err := unix.Kill(a.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, soon(), "the agent stands", func() bool { return identify(a.PID()).State == "T" })
	a.ends(a.over(NewLadder(partLife)), "agent SIGTERM, child SIGTERM, child SIGTERM")
}

// The walk by children files and the walk by parents see the same tree.
func TestScanIsTheWalk(t *testing.T) {
	a := launch(t, "parent", "threads", "setsid:reaper,deaf", "daemon:deaf", "stopped:halt", "zombies", "beheaded", "sibling,wait")
	a.ready(13)
	ids := func(rows []Proc, err error) (all []string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rows {
			if p.gone() && p.PPID == os.Getpid() { // reaped by no one in particular
				continue
			}
			all = append(all, p.Command+" "+strconv.Itoa(p.PID)+" "+strconv.FormatUint(p.Start, 10)+" of "+strconv.Itoa(p.PPID))
		}
		slices.Sort(all)
		return all
	}
	walked, scanned := ids(descendants()), ids(scan())
	if !slices.Equal(walked, scanned) {
		t.Errorf("walked\n%s\nscanned\n%s", strings.Join(walked, "\n"), strings.Join(scanned, "\n"))
	}
	// The guard and the agent, the twelve others, the ten zombies.
	if len(walked) != 25 {
		t.Errorf("%d rows:\n%s", len(walked), strings.Join(walked, "\n"))
	}
	a.over(none)
	a.silent(soon())
}

// Where the kernel has no children files the tree ends all the same.
func TestTreeEndedByScan(t *testing.T) {
	t.Cleanup(func() { nobody(t) })
	fifo, tree := newFIFO(t)
	s := spec(t, "scanner", "deaf", "setsid:deaf", "daemon:reaper,deaf", "stopped:halt", "beheaded")
	c := exec.Command(s.Path, s.Args...)
	c.Env = append(s.Env, saysEnv+"="+fifo)
	p := perform(t, c)
	tree.ready(6)
	_ = p.in.Close()
	var td Teardown
	decode(t, tree.hear(), &td)
	tree.silent(soon())
	if len(td.Ended) != 6 || len(td.Left) != 0 || !td.Proof {
		t.Errorf("%+v", td)
	}
}
