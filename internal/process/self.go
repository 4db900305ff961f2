package process

import "os"

// Self is this process.
func Self() Proc { return identify(os.Getpid()) }
