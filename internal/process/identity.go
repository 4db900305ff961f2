package process

// Identity is when the process with that pid was started, in the units of
// Proc.Start; false when there is none, when nothing but its entry in the table
// is left, or when the system does not tell.
func Identity(pid int) (start uint64, ok bool) {
	p := identify(pid)
	return p.Start, p.Start != 0 && !p.gone()
}
