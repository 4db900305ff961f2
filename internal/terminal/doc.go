// Package terminal is the person's side of a conversation: it reads prompts and
// keys from their terminal, and shows the agent's output with a status line
// below it. It decides nothing about turns; package session drives it.
//
// # Who reads
//
// One place at a time reads the keys: ReadPrompt, in its caller's goroutine, or
// the goroutine between Begin and End. Both sleep in a poll of the terminal and
// of a pipe, so that a signal, End and Close reach them at once, and the file's
// blocking mode, which other programs share, is left alone. Nothing is read at
// other times: what is typed then waits in the kernel.
//
// # Modes
//
// The terminal's modes are changed while somebody reads, and only while our
// process group is the terminal's foreground one; they are put back to what
// Open found. A job in the background touches nothing, asks no keys and shows
// no status. Close puts them back at any moment, from any goroutine; after it
// nobody can change them again. Interrupt, quit and suspend arrive as bytes and
// never as signals, so nobody else in the process group is hit by them; the
// quit key of a dumb terminal is the one exception.
//
// # Who writes
//
// Everything that reaches the screen goes through one lock. What stands at the
// bottom, the prompt being edited or the status line, is a block of rows that
// is taken away before other output and put back below it. Write may block as
// long as the terminal does; Status never does.
//
// # Why the line editor is our own
//
// That of golang.org/x/term counts runes, so a wide character puts its cursor
// on another row than the terminal's: on 40 columns a line of kanji was edited
// at the wrong end, and rows of it stayed on the screen after it was deleted.
// It also edits the last line of a paste alone, and shows pasted escape
// sequences to the terminal as they are.
package terminal
