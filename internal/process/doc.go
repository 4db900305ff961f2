// Package process starts the agent, hands out its pipes, learns of its exit
// and ends what it started. It is the only package that knows processes,
// signals and the files of an operating system; it judges nothing.
//
// A process is always named by its pid and its start time together, so that a
// reused pid is neither inspected nor signalled by mistake.
package process
