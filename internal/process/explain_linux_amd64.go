package process

import "golang.org/x/sys/unix"

// oldCalls are those that newer architectures do without.
var oldCalls = []sysCall{
	{unix.SYS_POLL, "poll", nothing}, {unix.SYS_SELECT, "select", nothing}, {unix.SYS_EPOLL_WAIT, "epoll_wait", nothing},
	{unix.SYS_PAUSE, "pause", nothing}, {unix.SYS_OPEN, "open", nothing},
	{unix.SYS_FORK, "fork", nothing}, {unix.SYS_VFORK, "vfork", nothing},
}
