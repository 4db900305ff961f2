package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestATerminalOnStdinIsNoPrompt(t *testing.T) {
	t.Parallel()
	keyboard, terminal := openTerminal(t)
	run1(t, call{agent: built.stub, reader: terminal}).wants(64).says("no prompt", "stdin")
	if _, err := keyboard.WriteString("ignored\n"); err != nil {
		t.Fatal(err)
	}
	run1(t, call{agent: built.stub, reader: terminal, args: []string{"fix it"}}).wants(0)
}

func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	fd := int(keyboard.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}
