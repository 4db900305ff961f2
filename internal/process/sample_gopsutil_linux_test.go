package process

import (
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v3/process"
)

// What is read by hand is what others read.
func TestSampledAsOthersDo(t *testing.T) {
	s := ownSampler(t)
	burnt := start(t, "burnt", "itself")
	burnt.ready(1)
	for _, c := range []*exec.Cmd{burnt.cmd, sleeper(t), sleeper(t)} {
		pid := c.Process.Pid
		until(t, soon(), "it is what it will be", func() bool { return len(identify(pid).Command) > 0 && commandLine(pid) != "" })
		r := rowOf(s.glance(), pid)
		p := must(process.NewProcess(int32(pid)))
		times, memory := must(p.Times()), must(p.MemoryInfo())
		if d := r.CPU.Seconds() - times.User - times.System; math.Abs(d) > 0.02 {
			t.Errorf("CPU %v, %+v", r.CPU, times)
		}
		if d := r.Memory - int64(memory.RSS); d < -vague() || d > vague() {
			t.Errorf("memory %d, %d", r.Memory, memory.RSS)
		}
		if argv := must(p.CmdlineSlice()); !slices.Equal(argv, r.Argv) {
			t.Errorf("argv %q, %q", r.Argv, argv)
		}
		if ppid := must(p.Ppid()); int(ppid) != r.PPID {
			t.Errorf("parent %d, %d", r.PPID, ppid)
		}
		if name := must(p.Name()); name != r.Name {
			t.Errorf("name %q, %q", r.Name, name)
		}
		if n := must(p.NumThreads()); int(n) != r.Threads {
			t.Errorf("threads %d, %d", r.Threads, n)
		}
		if uids := must(p.Uids()); int(uids[1]) != r.UID {
			t.Errorf("uid %d, %v", r.UID, uids)
		}
		if io := must(p.IOCounters()); int64(io.ReadBytes+io.WriteBytes) != r.Disk {
			t.Errorf("disk %d, %+v", r.Disk, io)
		}
		born := time.UnixMilli(must(p.CreateTime()))
		if d := time.Now().Add(-r.Age).Sub(born); d < -2*time.Second || d > 2*time.Second { // theirs is in whole seconds, of two clocks
			t.Errorf("age %v, born %v", r.Age, born)
		}
	}
}
