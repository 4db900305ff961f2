//go:build race

package main

// underRace says that the binary under test is built with the race detector too.
const underRace = true
