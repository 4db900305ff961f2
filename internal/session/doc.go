// Package session runs a conversation: prompt after prompt, each a turn with an
// agent process of its own, and again a turn that hung, where that is safe.
//
// One goroutine owns it. It waits for a prompt, for a turn, or for the time
// before another attempt, and meanwhile for signals to stop; who reads the
// prompts and who runs a turn is the caller's. The next turn begins when Run of
// the last one has returned, which is when its last process is gone: two
// processes on one chat get in each other's way (H20).
package session
