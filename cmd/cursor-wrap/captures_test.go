package main

import (
	"os"
	"path/filepath"
	"testing"
)

// capturesEnv names a folder of recorded streams that are not part of the sources.
const capturesEnv = "CURSOR_WRAP_CAPTURES"

func TestRealCapturesComeThroughUnchanged(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(capturesEnv)
	if dir == "" {
		t.Skipf("%s names no folder of recorded streams", capturesEnv)
	}
	for _, file := range captureFiles(t, dir) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			playCapture(t, file)
		})
	}
}
