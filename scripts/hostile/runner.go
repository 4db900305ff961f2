//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// keeperArg is the hidden first argument that makes this program a keeper.
const keeperArg = "hostile-keeper"

// runner makes runs, some at the same time.
type runner struct {
	lab      *lab
	uid      int // who runs supervisor and tree; -1 is us
	tuning   tuning
	bound    time.Duration
	parallel int
	keep     bool          // the folders of runs that left something
	report   func(outcome) // called for each as it comes

	starting sync.Mutex
	keepers  map[int]bool // pids; guarded by starting
}

// cells are all runs for a supervisor.
func (r *runner) cells(s supervisor, trees, endings []string, rounds int) []cell {
	var list []cell
	for round := range rounds {
		for _, t := range trees {
			for _, e := range endings {
				list = append(list, cell{Supervisor: s.name, UID: r.uid, Tree: t, Ending: e, Round: round + 1})
			}
		}
	}
	return list
}

// all makes the runs and returns their outcomes in the order of the cells.
func (r *runner) all(ctx context.Context, s supervisor, cells []cell) []outcome {
	outcomes := make([]outcome, len(cells))
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := make(chan int)
	for range max(r.parallel, 1) {
		wg.Go(func() {
			for i := range next {
				o := r.one(ctx, s, cells[i])
				mu.Lock()
				outcomes[i] = o
				if r.report != nil {
					r.report(o)
				}
				mu.Unlock()
			}
		})
	}
	made := 0
	for i := range cells {
		if ctx.Err() != nil {
			break
		}
		next <- i
		made++
	}
	close(next)
	wg.Wait()
	return outcomes[:made]
}

func (r *runner) one(ctx context.Context, s supervisor, c cell) outcome {
	skip := func(why string) outcome { return outcome{cell: c, Skipped: why} }
	if why := lacking(c.Tree, r.uid >= 0); why != "" {
		return skip(why)
	}
	for _, e := range oursOnly {
		if c.Ending == e && !s.ours {
			return skip("does not judge the stream")
		}
	}
	dir, err := r.lab.run(r.uid)
	if err != nil {
		return outcome{cell: c, Failed: err.Error()}
	}
	agent := append([]string{r.lab.agent}, agentFlags...)
	o, err := r.runKeeper(ctx, job{
		cell: c, Argv: s.line(agent, c, dir, r.tuning), Agent: agent, Dir: dir,
		Delegate: s.containment == "cgroup",
		Bound:    r.bound, Patience: 15 * time.Second, Idle: r.tuning.idle,
	})
	if err == nil && !(r.keep && !o.clean()) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		o.cell, o.Failed = c, strings.Join([]string{o.Failed, err.Error()}, " ")
	}
	return o
}

// runKeeper starts a keeper and waits for its outcome. It closes the keeper's
// stdin, which tells it to clean up, when ctx ends.
func (r *runner) runKeeper(ctx context.Context, j job) (outcome, error) {
	spec, err := json.Marshal(j)
	if err != nil {
		return outcome{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(exe, keeperArg, string(spec))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return outcome{}, err
	}
	if err := r.start(cmd); err != nil {
		return outcome{}, err
	}
	stop := context.AfterFunc(ctx, func() { stdin.Close() })
	defer stop()
	err = cmd.Wait()
	r.forget(cmd.Process.Pid)
	var o outcome
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &o)
	}
	if err != nil {
		// Nobody but the supervisor was in a position to do this.
		o.Bystanders++
		err = fmt.Errorf("the keeper of the run ended: %w %s", err, bytes.TrimSpace(errs.Bytes()))
		r.cleanUpAfter(j.Dir)
	}
	return o, err
}

// start notes the keeper before anybody can take it for a stranger.
func (r *runner) start(cmd *exec.Cmd) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	if r.keepers == nil {
		r.keepers = map[int]bool{}
	}
	r.keepers[cmd.Process.Pid] = true
	return nil
}

func (r *runner) forget(keeper int) {
	r.starting.Lock()
	defer r.starting.Unlock()
	delete(r.keepers, keeper)
}

// cleanUpAfter ends what a keeper left that was killed. Its tree has come to
// us, who are a subreaper as well.
func (r *runner) cleanUpAfter(dir string) {
	fifos, _ := filepath.Glob(filepath.Join(dir, "life-*")) // the pattern is well-formed
	for range 500 {
		left := 0
		for _, fifo := range fifos {
			for _, p := range holders(filepath.Base(fifo)) {
				killHolder(p, filepath.Base(fifo))
				left++
			}
		}
		if left += r.killStrangers(dir); left == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// killStrangers kills and reaps those of our children that carry the run's
// folder in their environment: whoever started us may have left us children of
// its own (a shell that execs us does). Nobody else reaps these, so their pids
// are theirs.
func (r *runner) killStrangers(dir string) int {
	r.starting.Lock()
	defer r.starting.Unlock()
	found := 0
	for _, pid := range children() {
		if r.keepers[pid] {
			continue
		}
		if p, err := readStat(pid); err == nil && p.dead() {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // who is dead is in nobody's way
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || !bytes.Contains(env, []byte("HOSTILE_RUN="+dir+"\x00")) {
			continue
		}
		found++
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended since
	}
	return found
}
