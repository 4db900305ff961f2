package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v3/process"
	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// rooted starts sleepers below a root of their own: a shell that waits for
// them.
func rooted(b *testing.B, n int) (root int) {
	b.Helper()
	c := exec.Command("/bin/sh", "-c", fmt.Sprintf("for i in $(seq %d); do sleep 120 & done; echo ready; wait", n))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		for len(strays()) > 0 { // it reaps the others
			time.Sleep(time.Millisecond)
		}
	})
	run(b, c)
	if _, err := out.Read(make([]byte, 16)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Kill(-c.Process.Pid, unix.SIGKILL) }) // our own child's group, not reaped yet
	return c.Process.Pid
}

func cpuTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now)
	return time.Duration(now.Nano())
}

// measure reports the CPU time of a look, which is what it costs the machine:
// all of this process's, the collection of garbage included.
func measure(b *testing.B, look func()) {
	b.Helper()
	for range 3 {
		look() // the first ones learn
	}
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		look()
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e3, "cpu-µs/op")
}

// What one look costs, and what gopsutil takes to tell less. scripts/bench runs
// these by their names and reads what they print.
func BenchmarkSample(b *testing.B) {
	for _, size := range []struct {
		name            string
		members, beside int
	}{
		{"10", 10, 0},
		{"100", 100, 0},
		{"1000", 1000, 0},
		{"10 beside 3000", 10, 3000},
		{"1000 beside 3000", 1000, 3000},
	} {
		b.Run(size.name, func(b *testing.B) {
			if size.beside > 0 {
				rooted(b, size.beside)
			}
			root := rooted(b, size.members)
			for _, way := range []struct {
				name          string
				full, explain bool
			}{
				{"tree", false, false},
				{"tree full", true, false},
				{"tree explain", false, true},
			} {
				b.Run(way.name, func(b *testing.B) { benchmarkLooks(b, root, nil, size.members, way.full, way.explain) })
			}
			b.Run("members by gopsutil", func(b *testing.B) { benchmarkAsking(b, root, size.members) })
			b.Run("all by gopsutil", benchmarkWalking)
			b.Run("cgroup", func(b *testing.B) { // the last one: who is in it ends with it
				benchmarkLooks(b, root, leafOf(b, root), size.members, false, false)
			})
		})
	}
}

func benchmarkLooks(b *testing.B, root int, l *leaf, members int, full, explain bool) {
	s := newSampler(root, Proc{}, l)
	defer s.Close()
	var snap tree.Snapshot
	measure(b, func() { snap = s.Sample(time.Time{}, full, explain) })
	if len(snap.Rows) != members || !snap.Sockets {
		b.Fatalf("%d rows, sockets %v, not %d", len(snap.Rows), snap.Sockets, members)
	}
}

// leafOf is a cgroup with the tree in it.
func leafOf(b *testing.B, root int) *leaf {
	l, err := newLeaf("bench")
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { l.kill(); _ = l.remove(time.Second) })
	for _, r := range sampleOnce(root).Rows {
		if err := os.WriteFile(l.path+"/cgroup.procs", []byte(itoa(r.PID)), 0); err != nil {
			b.Skip(err)
		}
	}
	return l
}

func sampleOnce(root int) tree.Snapshot {
	s := newSampler(root, Proc{}, nil)
	defer s.Close()
	return s.Sample(time.Time{}, false, false)
}

// benchmarkAsking is gopsutil at its best: told who the members are, and with
// its boot time cached.
func benchmarkAsking(b *testing.B, root, members int) {
	process.EnableBootTimeCache(true)
	defer process.EnableBootTimeCache(false)
	rows := sampleOnce(root).Rows
	if len(rows) != members {
		b.Fatalf("%d rows, not %d", len(rows), members)
	}
	measure(b, func() {
		for _, r := range rows {
			ask(&process.Process{Pid: int32(r.PID)})
		}
	})
}

// benchmarkWalking is gopsutil as it comes: whoever wants a tree of it asks all.
func benchmarkWalking(b *testing.B) {
	measure(b, func() {
		all, err := process.Processes()
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range all {
			ask(p)
		}
	})
}

func ask(p *process.Process) {
	_, _ = p.Ppid() // a stranger may have gone
	_, _ = p.Times()
	_, _ = p.Status()
	_, _ = p.IOCounters()
}
