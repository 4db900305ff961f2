// Cursor-wrap stands where cursor-agent -p stood: it runs the agent, repeats
// its stream byte for byte, ends it when it hangs, and exits with the truth.
package main

import (
	"os"

	"cursor-wrap/internal/process"
)

func main() {
	if process.IsGuard(os.Args) {
		os.Exit(process.GuardMain(os.Args))
	}
	os.Exit(run(os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
