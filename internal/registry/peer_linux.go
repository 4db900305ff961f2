package registry

import "golang.org/x/sys/unix"

// peerOf is the uid of who sits at the other end of a unix socket, as it was
// when the two met.
func peerOf(fd int) (uid int, err error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(c.Uid), nil
}
