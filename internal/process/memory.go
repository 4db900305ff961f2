package process

import "golang.org/x/sys/unix"

// Reserve returns n bytes outside the Go heap, so that a buffer large enough
// for the longest line costs only the pages that were touched and does not
// move the garbage collector's threshold. Release gives it back.
func Reserve(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// Forget gives the pages of a reserved stretch back to the system; they read
// as anything afterwards. The stretch must begin on a page.
func Forget(b []byte) {
	if len(b) > 0 {
		_ = unix.Madvise(b, unix.MADV_DONTNEED) // at worst the pages stay
	}
}

// Release gives reserved memory back. Nobody may touch it afterwards.
func Release(b []byte) { _ = unix.Munmap(b) } // at worst it stays
