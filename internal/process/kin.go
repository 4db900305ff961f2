package process

import (
	"slices"
	"syscall"
)

// Find is the process that has this pid now. Its Command is its name alone.
func Find(pid int) (Proc, error) { return find(pid) }

// ChildrenOf lists the children of any process that live: not those of which
// only the entry in the table is left.
func ChildrenOf(pid int) ([]Proc, error) {
	kids, err := kidsOf(pid)
	return slices.DeleteFunc(kids, Proc.gone), err
}

// Argv is the command line of a process as it stands, secrets and all; nil
// where it cannot be read.
func Argv(pid int) []string { return argvOf(pid) }

// Alive reports whether the process is still there, under its pid and as the
// one that it was.
func Alive(pid int, start uint64) bool {
	now, err := find(pid)
	return err == nil && now.Start == start && !now.gone()
}

// Signal sends signals to exactly this process; ESRCH where it has gone.
func Signal(pid int, start uint64, signals ...syscall.Signal) error {
	return signalProc(Proc{PID: pid, Start: start}, signals...)
}

// Owner is the uid of whom a process runs as; negative where that is not known.
func Owner(pid int) (uid int) { return uidOf(pid) }
