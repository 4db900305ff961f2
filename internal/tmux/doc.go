// Package tmux knows agents that sit in a terminal of tmux: it lists the
// sessions of a server, tells of each where its pane stands, and runs the
// wrapper in a session of its own that survives the terminal it was started
// from.
//
// What it knows of a pane it has from tmux and from the process table. Names
// are compared here, byte by byte, and tmux is then told the id, which is never
// taken for the beginning of another one. Nothing that a user chose is ever
// part of a command line that a shell or tmux reads again.
//
// What must outlast a call stands in the state directory, below tmux: a folder
// for each session that Start made, and one in .looks for each other pane that
// was looked at.
package tmux
