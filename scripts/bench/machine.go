package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// machine is what the figures belong to.
type machine struct {
	Cores  int    `json:"cores"`
	OS     string `json:"os"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	FS     string `json:"filesystem"` // of the directory with the logs
	Load   string `json:"load,omitempty"`
}

func describe(dir string) machine {
	kernel := "unknown kernel"
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return machine{
		Cores:  runtime.NumCPU(),
		OS:     runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: kernel,
		Go:     runtime.Version(),
		FS:     filesystem(dir),
		Load:   load(),
	}
}

func (m machine) String() string {
	s := fmt.Sprintf("machine: %d cores, %s, %s, %s, logs on %s", m.Cores, m.Kernel, m.OS, m.Go, m.FS)
	if m.Load != "" {
		s += ", load " + m.Load
	}
	return s
}
