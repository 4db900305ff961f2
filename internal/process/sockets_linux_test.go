package process

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"cursor-wrap/internal/tree"
)

// served is a connection as both ends see it: accepted here, made by a child.
type served struct {
	net.Conn
	l net.Listener
}

// call makes the caller connect to us, on that network and address.
func call(t *testing.T, p *player, network, addr string) *served {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Skip(err)
	}
	p.tell(l.Addr().String() + "\n")
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.ready(1)
	t.Cleanup(func() { _ = c.Close(); _ = l.Close() })
	return &served{c, l}
}

func (c *served) say(t *testing.T, n int) {
	t.Helper()
	if _, err := c.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}

// socketOf is the one to that peer; nil without one.
func socketOf(snap tree.Snapshot, pid int, peer string) *tree.Socket {
	if r := rowOf(snap, pid); r != nil {
		for i := range r.Sockets {
			if r.Sockets[i].Peer == peer {
				return &r.Sockets[i]
			}
		}
	}
	return nil
}

func TestSampledSockets(t *testing.T) {
	for _, row := range []struct{ network, addr string }{{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}} {
		t.Run(row.network, func(t *testing.T) {
			s := ownSampler(t)
			p := start(t, "caller")
			pid := p.cmd.Process.Pid
			if snap := s.glance(); !snap.Sockets || len(rowOf(snap, pid).Sockets) != 0 {
				t.Errorf("%+v", snap)
			}
			c := call(t, p, row.network, row.addr)
			peer := c.l.Addr().String()
			snap := s.glance()
			one := socketOf(snap, pid, peer)
			if !snap.Sockets || one == nil || one.Received != 0 || one.Sent > 1 || one.Quiet < 0 {
				t.Fatalf("%+v", snap.Rows)
			}
			if len(rowOf(snap, pid).Sockets) != 1 {
				t.Errorf("%+v", rowOf(snap, pid).Sockets)
			}
			c.say(t, 1000)
			var two *tree.Socket
			until(t, soon(), "it has come", func() bool {
				two = socketOf(s.glance(), pid, peer)
				return two != nil && two.Received == 1000
			})
			if two.Inode != one.Inode || two.Quiet < 0 || two.Quiet > time.Minute {
				t.Errorf("%+v, was %+v", two, one)
			}
			_ = c.Close()
			until(t, soon(), "its end is seen", func() bool { // in CLOSE_WAIT, which is a connection
				return socketOf(s.glance(), pid, peer) != nil
			})
		})
	}
}

// A second connection is found, beside the first one, and each ends by itself.
func TestSampledSocketsComeAndGo(t *testing.T) {
	s := ownSampler(t)
	p := start(t, "caller")
	pid := p.cmd.Process.Pid
	var peers []string
	for n := 1; n <= 3; n++ {
		c := call(t, p, "tcp", "127.0.0.1:0")
		peers = append(peers, c.l.Addr().String())
		for range 2 { // by a dump, and by asking for those that are known
			snap := s.glance()
			if got := rowOf(snap, pid).Sockets; len(got) != n {
				t.Errorf("%d connections: %+v", n, got)
			}
			for _, peer := range peers {
				if socketOf(snap, pid, peer) == nil {
					t.Errorf("no connection to %s", peer)
				}
			}
		}
	}
	_ = p.in.Close()
	_ = p.cmd.Wait()
	if snap := s.glance(); !snap.Sockets || len(snap.Rows) != 0 {
		t.Errorf("%+v", snap)
	}
	if len(s.tcp.mine) != 0 {
		t.Errorf("%d sockets are remembered", len(s.tcp.mine))
	}
}

// A child has what it was given, and keeps it when the giver has ended.
func TestSampledSocketsAreInherited(t *testing.T) {
	s := ownSampler(t)
	p := start(t, "caller")
	pid := p.cmd.Process.Pid
	c := call(t, p, "tcp", "127.0.0.1:0")
	peer := c.l.Addr().String()
	one := socketOf(s.glance(), pid, peer)
	p.tell("child\n")
	child := p.numbers()[0]
	var snap tree.Snapshot
	until(t, soon(), "both hold it", func() bool {
		snap = s.glance()
		it := socketOf(snap, child, peer)
		return it != nil && it.Inode == one.Inode && socketOf(snap, pid, peer) != nil
	})
	_ = p.in.Close()
	_ = p.cmd.Wait()
	c.say(t, 10)
	until(t, soon(), "the child receives", func() bool {
		it := socketOf(s.glance(), child, peer)
		return it != nil && it.Received == 10
	})
	_ = syscall.Kill(child, syscall.SIGKILL)
}

// The sockets of strangers are nobody's of the tree; ours, in this case.
func TestSampledSocketsOfStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := ownSampler(t)
	sleeper(t)
	snap := s.glance() // one of the two ends has not been accepted yet
	if !snap.Sockets || len(snap.Rows[0].Sockets) != 0 || !s.tcp.waiting {
		t.Errorf("%+v, waiting %v", snap, s.tcp.waiting)
	}
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for range 2 {
		if snap := s.glance(); !snap.Sockets || len(snap.Rows[0].Sockets) != 0 || s.tcp.waiting {
			t.Errorf("%+v", snap)
		}
	}
	if len(s.tcp.others) < 2 {
		t.Errorf("%d strangers' sockets are known", len(s.tcp.others))
	}
	// Handed to somebody of the tree, it is found with its holder.
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	heir := exec.Command("/bin/sleep", "60")
	heir.ExtraFiles = []*os.File{f}
	run(t, heir)
	if snap := s.glance(); socketOf(snap, heir.Process.Pid, l.Addr().String()) == nil {
		t.Errorf("%+v", snap.Rows)
	}
}

// A line to the kernel that has broken is opened anew.
func TestSampledSocketsAfterAnError(t *testing.T) {
	s := ownSampler(t)
	p := start(t, "caller")
	c := call(t, p, "tcp", "127.0.0.1:0")
	for range 3 {
		if snap := s.glance(); !snap.Sockets || socketOf(snap, p.cmd.Process.Pid, c.l.Addr().String()) == nil {
			t.Fatalf("%+v", snap)
		}
		for _, line := range s.tcp.line {
			line.Close()
		}
	}
}

// Many are looked up by a dump each time.
func TestSampledSocketsOfMany(t *testing.T) {
	s := ownSampler(t)
	p := start(t, "caller")
	for range askedMax + 2 {
		call(t, p, "tcp", "127.0.0.1:0")
	}
	for range 2 {
		if snap := s.glance(); len(rowOf(snap, p.cmd.Process.Pid).Sockets) != askedMax+2 {
			t.Errorf("%+v", snap.Rows)
		}
	}
}

// What happens in another network namespace cannot be seen from ours.
func TestSampledSocketsElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	s := ownSampler(t)
	sleeper(t)
	if !s.glance().Sockets {
		t.Fatal("sockets cannot be seen here")
	}
	c := exec.Command("/bin/sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	run(t, c)
	for range 3 {
		if s.glance().Sockets {
			t.Error("all sockets are said to be seen")
		}
	}
	finish(c)
	if !s.glance().Sockets {
		t.Error("it has gone")
	}
}

func TestPeer(t *testing.T) {
	mapped := [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 1, 14: 2, 15: 3}
	for want, addr := range map[string]struct {
		family byte
		dst    []byte
	}{
		"10.1.2.3:443": {syscall.AF_INET, []byte{10, 1, 2, 3, 9, 9}},
		"10.1.2.3:444": {syscall.AF_INET6, mapped[:]},
		"[fe80::7]:80": {syscall.AF_INET6, []byte{0xfe, 0x80, 15: 7}},
	} {
		k := &tcpSocket{family: addr.family}
		var port int
		for i := len(want) - 1; want[i] != ':'; i-- {
			_, _ = fmt.Sscan(want[i:], &port)
		}
		k.id[2], k.id[3] = byte(port>>8), byte(port)
		copy(k.id[20:], addr.dst)
		if got := k.peer().String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
