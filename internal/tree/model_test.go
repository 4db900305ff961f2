package tree

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// model is a kernel's process table, as far as it matters here: it forks, works,
// ends, orphans and reaps at random, and knows the truth.
type model struct {
	*rand.Rand
	now    time.Duration
	procs  map[int]*modelled
	starts uint64
	cpu    time.Duration // the truth
	disk   int64
	reaped time.Duration
}

type modelled struct {
	Row
	born    time.Duration
	zombie  bool
	ignores bool // SIGCHLD: its children leave nothing behind
}

func newModel(r *rand.Rand) *model {
	m := &model{Rand: r, procs: map[int]*modelled{}}
	m.add(100, 1)
	return m
}

func (m *model) add(pid, ppid int) *modelled {
	m.starts++
	p := &modelled{Row: row(pid, ppid, 100, start(m.starts)), born: m.now, ignores: m.IntN(8) == 0}
	m.procs[pid] = p
	return p
}

func (m *model) any(want func(*modelled) bool) *modelled {
	var all []*modelled
	for _, p := range m.procs {
		if want(p) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *modelled) int { return a.PID - b.PID }) // the same for the same seed
	return all[m.IntN(len(all))]
}

func running(p *modelled) bool { return !p.zombie }

func (m *model) step() {
	m.now += time.Duration(m.IntN(200)) * ms
	p := m.any(running)
	if p == nil {
		return
	}
	switch m.IntN(6) {
	case 0, 1:
		m.work(p)
	case 2:
		if pid := 100 + m.IntN(40); m.procs[pid] == nil { // pids are soon used again
			child := m.add(pid, p.PID)
			child.Session = p.Session
			if m.IntN(3) == 0 {
				child.Session = pid
			}
		}
	case 3:
		if p.PID != 100 || m.IntN(20) == 0 {
			m.exit(p)
		}
	default:
		if z := m.any(func(z *modelled) bool { return z.zombie }); z != nil {
			m.reap(z)
		}
	}
}

func (m *model) work(p *modelled) {
	d := time.Duration(m.IntN(100)) * ms
	p.CPU += d
	m.cpu += d
	n := int64(m.IntN(1000))
	p.Disk += n
	m.disk += n
}

func (m *model) exit(p *modelled) {
	p.zombie = true
	for _, child := range m.procs {
		if child.PPID == p.PID {
			child.PPID = 1
		}
	}
	if parent := m.procs[p.PPID]; parent != nil && parent.ignores {
		delete(m.procs, p.PID)
	}
}

func (m *model) reap(z *modelled) {
	if parent := m.procs[z.PPID]; parent == nil {
		m.reaped += z.CPU + z.Waited
	} else {
		parent.Waited += z.CPU + z.Waited
		parent.Disk += z.Disk
	}
	delete(m.procs, z.PID)
}

// look takes a snapshot, in random order, sometimes with rows twice or counters
// that cannot be read.
func (m *model) look(hide, leaf bool) *Snapshot {
	s := &Snapshot{At: epoch.Add(m.now), Root: 1, Agent: ID{100, 1}, CPU: -1, Reaped: m.reaped, Sockets: true, Full: true}
	if leaf {
		s.CPU = m.cpu
	}
	for _, p := range m.procs {
		r := p.Row
		r.Age = m.now - p.born
		if p.zombie {
			r.State, r.Threads = 'Z', 0
		}
		for range 1 + m.IntN(10)/9 {
			s.Rows = append(s.Rows, r)
		}
	}
	for i := range s.Rows {
		for _, f := range []func(*Row){cpu(-1), waited(-1), disk(-1), age(-1)} {
			if hide && m.IntN(10) == 0 {
				f(&s.Rows[i])
			}
		}
	}
	m.Shuffle(len(s.Rows), func(i, j int) { s.Rows[i], s.Rows[j] = s.Rows[j], s.Rows[i] })
	return s
}

// What the rows tell is never more than the truth, and what the cgroup tells
// is the truth.
func TestNeverMoreThanTheTruth(t *testing.T) {
	var told, truth time.Duration
	for seed := range uint64(300) {
		m := newModel(rand.New(rand.NewPCG(seed, 1)))
		hide, leaf := seed%3 == 1, seed%3 == 2
		var w Watch
		w.Next(m.look(hide, leaf), everybody)
		for look := range 40 {
			cpu, disk := m.cpu, m.disk
			for range m.IntN(60) {
				m.step()
			}
			a := w.Next(m.look(hide, leaf), everybody)
			cpu, disk = m.cpu-cpu, m.disk-disk
			if got := time.Duration(a.CPU); got > cpu || leaf && got != cpu || got < 0 && !hide && len(m.procs) > 0 {
				t.Fatalf("seed %d, look %d: CPU %v, truth %v", seed, look, got, cpu)
			}
			if a.Disk > disk {
				t.Fatalf("seed %d, look %d: disk %d, truth %d", seed, look, a.Disk, disk)
			}
			if !hide && !leaf {
				told += max(0, time.Duration(a.CPU))
				truth += cpu
			}
		}
	}
	// A bound of nothing would be true, too.
	if told < truth/2 {
		t.Errorf("of %v only %v was seen", truth, told)
	}
	t.Logf("seen: %.1f %%", 100*told.Seconds()/truth.Seconds())
}

// The order of the rows is nobody's.
func TestOrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(50) {
		m := newModel(rand.New(rand.NewPCG(seed, 2)))
		var a, b Watch
		for range 20 {
			for range m.IntN(60) {
				m.step()
			}
			s := m.look(true, false)
			m.dress(s)
			calls := m.calls()
			first := a.Next(s, calls)
			other := *s
			other.Rows = slices.Clone(s.Rows)
			m.Shuffle(len(other.Rows), func(i, j int) { other.Rows[i], other.Rows[j] = other.Rows[j], other.Rows[i] })
			if second := b.Next(&other, calls); !reflect.DeepEqual(first, second) {
				t.Fatalf("seed %d:\n%+v\n%+v", seed, first, second)
			}
		}
	}
}

// dress gives the rows what makes an Activity full.
func (m *model) dress(s *Snapshot) {
	pick := func(all ...string) string { return all[m.IntN(len(all))] }
	for i := range s.Rows {
		r := &s.Rows[i]
		if i > 0 && slices.ContainsFunc(s.Rows[:i], func(o Row) bool { return o.ID == r.ID }) {
			continue
		}
		r.Argv = []string{"bash", "-c", pick("make", "sleep 40", "a\x1b[2J\xff\u2028b", "find / -name 'x'")}
		r.Memory = int64(m.IntN(100)) - 1
		if r.State == 'S' {
			r.State = pick("R", "S", "D", "T", "t")[0]
		}
		r.Wait = &Wait{
			Call: pick("", "read", "wait4", "poll", "running", "futex"), File: pick("", "/dev/pts/1", "pipe:[3]", "socket:[7]"),
			Channel: pick("", "do_wait", "n_tty_read", "rpc_wait"), Holders: []int{100 + m.IntN(40), 100 + m.IntN(40)},
		}
		for range m.IntN(12) {
			r.Sockets = append(r.Sockets, Socket{
				Inode: uint64(m.IntN(9)), Peer: pick("1.2.3.4:443", "[::1]:80"),
				Received: int64(m.IntN(999)), Sent: int64(m.IntN(999)), Quiet: time.Duration(m.IntN(99)-1) * 777 * time.Microsecond,
			})
		}
	}
	// A process that was read twice looks the same: which of two is the later one
	// can be told by its counters alone.
	for i := range s.Rows {
		for j := range s.Rows[:i] {
			if s.Rows[i].ID == s.Rows[j].ID {
				s.Rows[i] = s.Rows[j]
			}
		}
	}
}

func (m *model) calls() []Call {
	calls := []Call{
		{ID: "a", Tool: "shell", Command: "make", Age: Span(m.IntN(9999)) * Span(ms)},
		{ID: "b", Tool: "shell", Command: "sleep 40", Age: Span(m.IntN(9999)) * Span(ms)},
		{ID: "c", Tool: "shell", Age: Span(m.IntN(9999)) * Span(ms)},
		{ID: "d", Tool: "shell", PID: 100 + m.IntN(40)},
		{ID: "e", Tool: "read", Command: "x"},
	}
	return calls[m.IntN(3):]
}

// everybody is a call that keeps anybody from being forgotten: work in the
// background that is not linked could be done by any of them.
var everybody = []Call{{ID: "everybody", Behind: true}}
