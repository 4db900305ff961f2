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
	c := exec.Command("/bin/sh", "-c", fmt.Sprintf("for i in $(seq %d); do sleep 60 & done; echo ready; wait", n))
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

// measure reports the CPU time of a look, which is what it costs the machine.
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

func BenchmarkSample(b *testing.B) {
	for _, bench := range []struct {
		name           string
		members, other int
		full, explain  bool
		leaf           bool
	}{
		{"10", 10, 0, false, false, false},
		{"100", 100, 0, false, false, false},
		{"100 leaf", 100, 0, false, false, true},
		{"1000", 1000, 0, false, false, false},
		{"10 beside 3000", 10, 3000, false, false, false},
		{"10 beside 3000 full", 10, 3000, true, false, false},
		{"100 explain", 100, 0, false, true, false},
		{"100 full", 100, 0, true, false, false},
	} {
		b.Run(bench.name, func(b *testing.B) {
			if bench.other > 0 {
				rooted(b, bench.other)
			}
			root := rooted(b, bench.members)
			var l *leaf
			if bench.leaf {
				var err error
				if l, err = newLeaf("bench"); err != nil {
					b.Skip(err)
				}
				b.Cleanup(func() { l.kill(); _ = l.remove(time.Second) })
				for _, r := range sampleOnce(root).Rows {
					_ = os.WriteFile(l.path+"/cgroup.procs", []byte(itoa(r.PID)), 0)
				}
			}
			s := newSampler(root, Proc{}, l)
			defer s.Close()
			var snap tree.Snapshot
			measure(b, func() { snap = s.Sample(time.Time{}, bench.full, bench.explain) })
			if len(snap.Rows) != bench.members || !snap.Sockets {
				b.Fatalf("%d rows, %+v", len(snap.Rows), snap.Sockets)
			}
		})
	}
}

func sampleOnce(root int) tree.Snapshot {
	s := newSampler(root, Proc{}, nil)
	defer s.Close()
	return s.Sample(time.Time{}, false, false)
}

// The same beside it by gopsutil, asked per pid with its boot time cached.
func BenchmarkSampleByGopsutil(b *testing.B) {
	process.EnableBootTimeCache(true)
	for _, n := range []int{10, 100} {
		b.Run(itoa(n), func(b *testing.B) {
			rows := sampleOnce(rooted(b, n)).Rows
			measure(b, func() {
				for _, r := range rows {
					p := process.Process{Pid: int32(r.PID)}
					_, _ = p.Times()
					_, _ = p.Status()
					_, _ = p.IOCounters()
					_, _ = p.Ppid()
				}
			})
		})
		b.Run(itoa(n)+" by walking all", func(b *testing.B) {
			rooted(b, n)
			measure(b, func() {
				all, _ := process.Processes()
				for _, p := range all {
					_, _ = p.Ppid()
				}
			})
		})
	}
}
