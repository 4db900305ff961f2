package journal

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"cursor-wrap/internal/events"
)

// The levels of durability, in a bubble where seconds pass at once.
func TestSyncLevels(t *testing.T) {
	for _, tt := range []struct {
		sync                    Sync
		commit, second, quarter int // syncs after a commit, a second later, after 4 commits within the next
	}{
		{Always, 1, 1, 5},
		{"", 1, 1, 5},
		{Written, 0, 1, 2},
		{None, 0, 0, 0},
	} {
		t.Run("sync="+string(tt.sync), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newMemFile()
				l := newLog(f, "x", 0, Options{Sync: tt.sync, Level: -4})
				commit := func() {
					l.Begin(start)
					l.Line([]byte("{}"), "\n", events.AsJSON)
					l.Commit()
				}
				check := func(when string, want int) {
					t.Helper()
					synctest.Wait()
					if got := f.synced(); got != want {
						t.Errorf("%s: %d syncs, want %d", when, got, want)
					}
				}
				commit()
				check("after a commit", tt.commit)
				time.Sleep(time.Second) // of the bubble
				check("a second later", tt.second)
				time.Sleep(time.Hour)
				check("with nothing new", tt.second)
				for range 4 {
					commit()
					time.Sleep(time.Second / 4)
				}
				check("after four commits in a second", tt.quarter)
				l.Close()
			})
		})
	}
}

// A decision reaches the file although the pump is silent.
func TestFlusherWritesDecisions(t *testing.T) {
	for _, sync := range []Sync{Always, Written, None} {
		synctest.Test(t, func(t *testing.T) {
			f := newMemFile()
			l := newLog(f, "x", 0, Options{Sync: sync})
			l.Record(start, 0, "exit")
			synctest.Wait()
			if records, _ := readAll(t, f.bytes()); messages(records) != "exit" {
				t.Errorf("sync=%s: %q", sync, f.bytes())
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if want := map[Sync]int{Always: 1, Written: 1}[sync]; f.synced() != want {
				t.Errorf("sync=%s: %d syncs, want %d", sync, f.synced(), want)
			}
			l.Close()
		})
	}
}

func TestSyncFailureIsToldOnce(t *testing.T) {
	f := newMemFile()
	f.syncErr = unix.EIO
	var warned warnings
	l := memLog(t, f, Options{Level: -4, Warn: warned.add})
	for range 3 {
		l.Begin(start)
		l.Line([]byte("{}"), "\n", events.AsJSON)
		l.Commit()
	}
	l.Close()
	if got := warned.all(); len(got) != 1 || !strings.Contains(got[0], "sync: input/output error; the run goes on") {
		t.Errorf("warned %q", got)
	}
	records, _ := readAll(t, f.bytes())
	if got := strings.Count(messages(records), "log_sync_failed"); got != 1 || len(records) != 4 {
		t.Errorf("got %s", messages(records))
	}
	if n, _ := l.Lost(); n != 0 {
		t.Errorf("%d lost", n)
	}
}

func TestCloseSyncs(t *testing.T) {
	for sync, want := range map[Sync]int{Written: 1, None: 0} {
		f := newMemFile()
		l := memLog(t, f, Options{Sync: sync, Level: -4})
		l.Begin(start)
		l.Line([]byte("{}"), "\n", events.AsJSON)
		l.Commit()
		l.Close()
		if f.synced() != want || !f.closed {
			t.Errorf("sync=%s: %d syncs, want %d", sync, f.synced(), want)
		}
	}
}
