package tree

import (
	"slices"
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	gone := -sec
	for _, tt := range []struct {
		want string
		row  func(*Row)
	}{
		{"", func(*Row) {}},
		{"", wait(Wait{})},
		{"", inState('D')},
		{"stopped", inState('T')},
		{"stopped by a debugger", inState('t')},
		{"ended, not yet reaped", inState('Z')},
		{"stopped by SIGTTIN", both(inState('T'), wait(Wait{Signal: "SIGTTIN", Call: "read", File: "/dev/tty"}))},
		{"stopped", both(inState('T'), wait(Wait{Call: "read"}))},
		{"runs", wait(Wait{Call: "running"})},
		{"runs", both(inState('R'), wait(Wait{}))},
		{"sleeps", both(inState('R'), wait(Wait{Call: "nanosleep"}))}, // asleep by the time it was looked into

		{"reads the terminal", wait(Wait{Call: "read", File: "/dev/pts/3"})},
		{"reads the terminal", wait(Wait{Call: "pread64", File: "/dev/tty"})},
		{"reads the terminal", wait(Wait{Call: "readv", File: "/dev/console"})},
		{"reads the terminal", wait(Wait{Channel: "n_tty_read"})},
		{"waits for events", wait(Wait{Call: "poll", File: "/dev/pts/3"})},
		{"", wait(Wait{Channel: "wait_woken"})},
		{"in read", wait(Wait{Call: "read", Channel: "wait_woken"})},
		{"writes to the terminal", wait(Wait{Call: "write", File: "/dev/pts/3"})},

		{"reads a pipe held by 807 node", wait(Wait{Call: "read", File: "pipe:[8]", Holders: []int{500, 807}})},
		{"reads a pipe held by 807 node and 999", wait(Wait{Call: "read", File: "pipe:[8]", Holders: []int{999, 807}})},
		{"reads a pipe held by 100 p100, 807 node and 2 more", wait(Wait{Call: "read", File: "pipe:[8]", Holders: []int{998, 999, 807, 100, 500}})},
		{"reads a pipe", wait(Wait{Call: "read", File: "pipe:[8]"})},
		{"reads a pipe that nobody in its tree holds open for writing", wait(Wait{Call: "read", File: "pipe:[8]", Holders: []int{}})},
		{"reads a pipe that only itself holds open for writing", wait(Wait{Call: "read", File: "pipe:[8]", Holders: []int{500}})},
		{"writes to a full pipe read by 807 node", wait(Wait{Call: "writev", File: "pipe:[8]", Holders: []int{807}})},
		{"writes to a full pipe that nobody in its tree reads", wait(Wait{Call: "write", File: "pipe:[8]", Holders: []int{}})},
		{"writes to a full pipe that only itself reads", wait(Wait{Call: "write", File: "pipe:[8]", Holders: []int{500}})},
		{"reads a pipe", wait(Wait{Channel: "anon_pipe_read"})},
		{"reads /mnt/x?y", wait(Wait{Call: "read", File: "/mnt/x\ny"})},

		{"receives from 34.1.2.3:443, nothing for 61s", both(sockets(peer(61*sec+5)), wait(Wait{Call: "recvfrom", File: "socket:[7]"}))},
		{"receives from 34.1.2.3:443, nothing for 2m5s", both(sockets(peer(125*sec)), wait(Wait{Call: "recvfrom", File: "socket:[7]"}))},
		{"receives from 34.1.2.3:443", both(sockets(peer(gone)), wait(Wait{Call: "read", File: "socket:[7]"}))},
		{"receives from 34.1.2.3:443", both(sockets(peer(900*ms)), wait(Wait{Call: "read", File: "socket:[7]"}))},
		{"receives from a socket", both(sockets(peer(sec)), wait(Wait{Call: "read", File: "socket:[71]"}))},
		{"receives from a socket", wait(Wait{Channel: "unix_stream_read_generic"})},
		{"receives from a socket", wait(Wait{Channel: "__skb_wait_for_more_packets"})},
		{"receives from a socket", wait(Wait{Channel: "netlink_recvmsg"})},
		{"sends to 34.1.2.3:443", both(sockets(peer(sec)), wait(Wait{Call: "sendto", File: "socket:[7]"}))},
		{"sends to a socket", wait(Wait{Call: "sendmsg", File: "socket:[7]"})},

		{"waits for events", wait(Wait{Call: "epoll_pwait2"})},
		{"waits for events", wait(Wait{Call: "io_uring_enter"})},
		{"waits for events; connected to 34.1.2.3:443, nothing received for 61s", both(sockets(peer(61*sec)), wait(Wait{Call: "epoll_wait"}))},
		{"waits for events; connected to 1.1.1.1:80 and 2 more, nothing received for 5s", both(
			sockets(peer(61*sec), Socket{Inode: 8, Peer: "1.1.1.1:80", Quiet: 5 * sec}, peer(7*sec)), wait(Wait{Call: "select"}))},
		{"waits for events; connected to 34.1.2.3:443 and 1 more", both(sockets(peer(gone), peer(7*sec)), wait(Wait{Call: "ppoll"}))},
		{"waits for events", wait(Wait{Channel: "do_epoll_wait"})},
		{"waits for events", wait(Wait{Channel: "poll_schedule_timeout.constprop.0"})},

		{"waits for child 807 node", wait(Wait{Call: "wait4", Child: 807})},
		{"waits for child 999", wait(Wait{Call: "waitid", Child: 999})},
		{"waits for a child", wait(Wait{Call: "wait4"})},
		{"waits for a child", wait(Wait{Channel: "do_wait"})},
		{"waits on a futex", wait(Wait{Call: "futex"})},
		{"waits on a futex", wait(Wait{Call: "futex_waitv"})},
		{"waits on a futex", wait(Wait{Channel: "futex_wait_queue"})},
		{"sleeps", wait(Wait{Call: "clock_nanosleep"})},
		{"sleeps", wait(Wait{Channel: "hrtimer_nanosleep"})},
		{"sleeps", wait(Wait{Call: "restart_syscall", Channel: "hrtimer_nanosleep"})},
		{"waits for a signal", wait(Wait{Call: "pause"})},
		{"waits for a signal", wait(Wait{Channel: "do_sigtimedwait.isra.0"})},
		{"waits for a lock on /tmp/lock", wait(Wait{Call: "flock", File: "/tmp/lock"})},
		{"waits for a lock", wait(Wait{Call: "fcntl"})},
		{"connects to a socket", wait(Wait{Call: "connect", File: "socket:[7]"})},
		{"waits for a connection", wait(Wait{Call: "accept4", File: "socket:[7]"})},
		{"opens /tmp/fifo", wait(Wait{Call: "openat", File: "/tmp/fifo"})},
		{"opens a file", wait(Wait{Call: "openat"})},
		{"in fsync", wait(Wait{Call: "fsync", File: "/x"})},

		{"uninterruptible", both(inState('D'), wait(Wait{Call: "read", File: "/dev/tty"}))},
		{"uninterruptible: nfs", both(inState('D'), wait(Wait{Channel: "rpc_wait_bit_killable"}))},
		{"uninterruptible: nfs", both(inState('D'), wait(Wait{Channel: "nfs_wait_bit_killable"}))},
		{"uninterruptible: fuse", both(inState('D'), wait(Wait{Channel: "request_wait_answer"}))},
		{"uninterruptible: fuse", both(inState('D'), wait(Wait{Channel: "__fuse_simple_request"}))},
		{"uninterruptible: disk", both(inState('D'), wait(Wait{Channel: "jbd2_log_wait_commit"}))},
		{"uninterruptible: disk", both(inState('D'), wait(Wait{Channel: "wait_on_page_bit"}))},
		{"uninterruptible: its vfork child", both(inState('D'), wait(Wait{Channel: "wait_for_vfork_done"}))},
		{"uninterruptible: its vfork child", both(inState('D'), wait(Wait{Channel: "kernel_clone"}))},
		{"uninterruptible: usb_stor", both(inState('D'), wait(Wait{Channel: "usb_stor"}))},
		{"frozen", wait(Wait{Call: "read", File: "/dev/tty", Channel: "do_freezer_trap"})},
		{"frozen", both(inState('D'), wait(Wait{Channel: "__refrigerator"}))},
	} {
		s := snap(0, row(500, 100, 500, tt.row), theAgent(), row(807, 100, 807, name("node")))
		now := index(s, nil)
		equal(t, "it", now.waits(now.byPID[500]), tt.want)
	}
}

func both(a, b func(*Row)) func(*Row) { return func(r *Row) { a(r); b(r) } }

func TestTheOnlyChildIsNamed(t *testing.T) {
	parent := row(500, 100, 500, wait(Wait{Call: "wait4"}))
	for _, tt := range []struct {
		children []Row
		want     string
	}{
		{[]Row{row(501, 500, 500, name("bash")), row(502, 501, 500), row(503, 500, 500, inState('Z'))}, "waits for child 501 bash"},
		{[]Row{row(501, 500, 500), row(502, 500, 500)}, "waits for a child"},
	} {
		now := index(snap(0, append(tt.children, parent, theAgent())...), nil)
		equal(t, "it", now.waits(now.byPID[500]), tt.want)
	}
}

func TestTheMostTellingWait(t *testing.T) {
	asks := both(tty(), name("git"))
	pipe := wait(Wait{Call: "read", File: "pipe:[8]", Holders: []int{300}})
	receives := both(sockets(peer(61*sec)), wait(Wait{Call: "recvfrom", File: "socket:[7]"}))
	polls := both(sockets(peer(61*sec)), wait(Wait{Call: "poll"}))
	stuck := both(inState('D'), wait(Wait{Channel: "nfs_wait"}))
	waits, sleeps := wait(Wait{Call: "wait4"}), wait(Wait{Call: "nanosleep"})
	for _, tt := range []struct {
		name string
		rows []Row
		want string
		asks bool
	}{
		{"the runner itself", []Row{row(200, 100, 200, asks)}, "reads the terminal", true},
		{"somebody below it", []Row{row(200, 100, 200, waits), row(201, 200, 200, asks)}, "201 git reads the terminal", true},
		{"who asks, before who is stopped",
			[]Row{row(200, 100, 200, waits), row(201, 200, 200, inState('T')), row(202, 200, 200, asks)}, "202 git reads the terminal", true},
		{"who is stopped, before who is stuck",
			[]Row{row(200, 100, 200, stuck), row(201, 200, 200, inState('T'))}, "201 p201 stopped", false},
		{"who is stuck, before who receives",
			[]Row{row(200, 100, 200, receives), row(201, 200, 200, stuck)}, "201 p201 uninterruptible: nfs", false},
		{"who receives, before who reads a pipe",
			[]Row{row(200, 100, 200, pipe), row(201, 200, 200, receives)}, "201 p201 receives from 34.1.2.3:443, nothing for 61s", false},
		{"who reads a pipe, before who has peers",
			[]Row{row(200, 100, 200, polls), row(201, 200, 200, pipe)}, "201 p201 reads a pipe held by 300", false},
		{"who has peers, before anything else",
			[]Row{row(200, 100, 200, polls), row(201, 200, 200, sleeps)}, "waits for events; connected to 34.1.2.3:443, nothing received for 61s", false},
		{"a socket without a known peer is anything else",
			[]Row{row(200, 100, 200, polls), row(201, 200, 200, wait(Wait{Call: "read", File: "socket:[9]"}))},
			"waits for events; connected to 34.1.2.3:443, nothing received for 61s", false},
		{"of equals the deepest",
			[]Row{row(200, 100, 200, pipe), row(201, 200, 200, pipe), row(202, 200, 200, pipe)}, "201 p201 reads a pipe held by 300", false},
		{"who the others wait for",
			[]Row{row(200, 100, 200, waits), row(201, 200, 200, waits), row(202, 201, 200, sleeps)}, "202 p202 sleeps", false},
		{"as far down as it is known",
			[]Row{row(200, 100, 200, waits), row(201, 200, 200)}, "waits for child 201 p201", false},
		{"where many are waited for, who waits",
			[]Row{row(200, 100, 200, waits), row(201, 200, 200, sleeps), row(202, 200, 200, sleeps)}, "waits for a child", false},
		{"the dead wait for nothing",
			[]Row{row(200, 100, 200, waits), row(201, 200, 200, both(inState('Z'), asks))}, "waits for a child", false},
		{"nothing was looked into", []Row{row(200, 100, 200)}, "", false},
		{"another's terminal is not ours", []Row{row(200, 100, 200, sleeps), row(300, 100, 300, asks)}, "sleeps", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w Watch
			a := w.Next(snap(0, append(tt.rows, theAgent())...), []Call{{ID: "a", Tool: "shell", PID: 200}})
			equal(t, "waits", a.Runners[0].Waits, tt.want)
			equal(t, "asks", a.Runners[0].Asks, tt.asks)
		})
	}
}

func TestAsking(t *testing.T) {
	var w Watch
	a := w.Next(snap(0, theAgent(), row(200, 100, 200, tty()), row(300, 100, 300, wait(Wait{Call: "poll", File: "/dev/tty"})),
		row(101, 100, 100, tty()), row(400, 100, 400, tty(), inState('Z'))), nil)
	var got []int
	for _, p := range a.Asking {
		got = append(got, p.PID)
	}
	if want := []int{101, 200}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Spans are read by people.
func TestForSoLong(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "", 999 * ms: "", sec: " 1s", 119 * sec: " 119s", 2 * time.Minute: " 2m0s", 2 * time.Hour: " 2h0m0s",
	} {
		equal(t, d.String(), forSoLong(" ", d), want)
	}
}
