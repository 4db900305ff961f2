//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "hostile: needs Linux: it counts by /proc, subreapers and pidfds")
	os.Exit(1)
}
