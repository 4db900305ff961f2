package journal

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"
)

// TestFollowingMissesNothing: a reader that takes the channel before it reads
// sees every line, and is let go when the log is closed.
func TestFollowingMissesNothing(t *testing.T) {
	const records = 2000
	l, err := Open(Options{Dir: t.TempDir(), Start: time.UnixMilli(1770823845000), Sync: None, Level: slog.LevelInfo})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for i := range records {
			l.Record(time.UnixMilli(1770823845000), slog.LevelInfo, fmt.Sprint("r", i))
			if i%7 == 0 {
				l.Flush()
			}
		}
		_ = l.Close()
	}()
	var got bytes.Buffer
	for over := false; !over; {
		grown := l.Grown()
		select {
		case <-closed:
			over = true
		default:
		}
		if _, err := io.Copy(&got, file); err != nil {
			t.Fatal(err)
		}
		if !over {
			<-grown
		}
	}
	if n := bytes.Count(got.Bytes(), []byte("\n")); n != records {
		t.Errorf("%d lines were seen, want %d", n, records)
	}
	select {
	case <-l.Grown():
	default:
		t.Error("a log that is closed keeps its followers waiting")
	}
}
