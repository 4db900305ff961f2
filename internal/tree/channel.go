package tree

import "strings"

// Names of kernel functions change from version to version, and compilers
// append to them (".isra.0"), so they are known by how they begin, or, after a
// star, by what they contain.

// words says what processes wait for that sleep in certain kernel functions.
type words struct {
	text  string
	names []string
}

var freezers = []string{"do_freezer_trap", "cgroup_freeze", "cgroup_enter_frozen", "__refrigerator"}

// families is what holds up those in uninterruptible sleep.
var families = []words{
	{"nfs", []string{"nfs", "rpc", "__rpc"}},
	{"fuse", []string{"*fuse", "request_wait_answer"}},
	{"disk", []string{"jbd2", "ext4", "xfs", "btrfs", "io_schedule", "blk", "wait_on_page", "folio_wait", "submit_bio_wait"}},
	{"its vfork child", []string{"*vfork", "kernel_clone", "_do_fork"}},
}

// sleeps is what they wait for that are in no system call that was told.
// wait_woken is not among them: terminals and sockets both use it.
var sleeps = []words{
	{readsTerminal, []string{"n_tty_read"}},
	{readsPipe, []string{"pipe_read", "anon_pipe_read", "pipe_wait_readable"}},
	{waitsForChild, []string{"do_wait"}},
	{waitsForEvents, []string{"ep_poll", "do_epoll_wait", "do_poll", "do_sys_poll", "do_select", "poll_schedule_timeout"}},
	{waitsOnFutex, []string{"futex_wait", "__futex_wait", "futex_do_wait"}},
	{"sleeps", []string{"hrtimer_nanosleep", "do_nanosleep"}},
	{receivesFromSocket, []string{"unix_stream_read", "__skb_wait_for_more_packets", "sk_wait_data", "*_recvmsg"}},
	{waitsForSignal, []string{"do_sigtimedwait", "sigsuspend", "do_sigsuspend"}},
}

func inKernel(channel string, names []string) bool {
	for _, name := range names {
		if part, ok := strings.CutPrefix(name, "*"); ok && strings.Contains(channel, part) || strings.HasPrefix(channel, name) {
			return true
		}
	}
	return false
}

// inD is what a process waits for in uninterruptible sleep: the function's own
// name where it says nothing else.
func inD(channel string) string {
	if channel == "" {
		return uninterruptible
	}
	for _, family := range families {
		if inKernel(channel, family.names) {
			return uninterruptible + ": " + family.text
		}
	}
	return uninterruptible + ": " + Shown(channel)
}

// asleepIn is what a process waits for, by the kernel function alone.
func asleepIn(channel string) string {
	for _, s := range sleeps {
		if inKernel(channel, s.names) {
			return s.text
		}
	}
	return ""
}
