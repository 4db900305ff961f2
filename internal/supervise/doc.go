// Package supervise runs one turn: from the start of the agent to its last
// descendant's end, and says how it came out.
//
// One goroutine, the owner, holds all state of the turn and is the only one
// that asks the monitor. It waits on batches from the pump, the agent's exit, a
// limit of its tree, the end of the teardown, signals to stop, looks at the
// tree, a word on the agent's terminal, the timer for whatever is due next, and,
// at the very end, the limit on waiting for a reader who does not read. Beside
// it run the pump (stdout), the drain (stderr), the writer of the prompt, in
// silence somebody who looks at the tree and, once, the teardown; when Run
// returns, all of them have ended, unless a reader of our stdout holds the pump
// and we were told to stop, or a process in uninterruptible sleep holds a look.
//
// The turn goes through four states: running; stopping, from the first cause
// to end it, while the ladder works; draining the pipes once nobody of the
// tree is left; gone. Whatever is seen before gone still counts: a result that
// arrives while the ladder runs is the result.
package supervise
