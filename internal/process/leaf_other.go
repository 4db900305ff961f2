//go:build !linux

package process

import (
	"errors"
	"time"
)

// leaf is a cgroup, which only Linux has.
type leaf struct{ path string }

func newLeaf(string) (*leaf, error) { return nil, errors.New("this system has no cgroups") }
func openLeaf(string) *leaf         { return nil }

func (l *leaf) fd() int                    { return -1 }
func (l *leaf) kill()                      {}
func (l *leaf) killMembers()               {}
func (l *leaf) members() []int             { return nil }
func (l *leaf) populated() bool            { return false }
func (l *leaf) expel(int)                  {}
func (l *leaf) remove(time.Duration) error { return nil }
func (l *leaf) hits(string, string) int64  { return 0 }
func (l *leaf) count(string) int64         { return 0 }
func (l *leaf) limit(Limits)               {}

// Sweep finds nothing: without cgroups a dead run's tree cannot be told from
// a stranger's.
func Sweep(...string) []Leftover { return nil }

// Marked finds nobody: another process's environment cannot be read.
func Marked(string) []Proc { return nil }

func (l *leaf) freeze(bool) error { return errors.ErrUnsupported }
func (l *leaf) frozen() bool      { return false }
