//go:build linux && !amd64

package process

// oldCalls are those that newer architectures do without.
var oldCalls []sysCall
