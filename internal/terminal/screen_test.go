package terminal

import (
	"fmt"
	"io"
	"math/rand"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func screenOn(v *vt) *screen {
	return newScreen(v, look{size: func() (int, int) { return v.width, v.height }})
}

// TestBlocksLeaveNothingBehind: whatever was shown in between, what stays is
// what the same output leaves alone.
func TestBlocksLeaveNothingBehind(t *testing.T) {
	pieces := []string{"a line\n", "no end", " ", "漢字", "a long line that needs more than the width of it\n", "\n",
		"\x1b[31mred\x1b[m", "tab\tbed", "\rover", "exactly twenty cells", "two\nlines\n", "e\u0301"}
	for seed := range int64(300) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewSource(seed))
			shown, alone := newVT(20, 200), newVT(20, 200)
			s := screenOn(shown)
			var log []string
			for range 30 {
				switch r.Intn(4) {
				case 0:
					s.setStatus(fmt.Sprint("status ", strings.Repeat("漢字 ", r.Intn(5)), r.Intn(3)))
				case 1:
					time.Sleep(time.Duration(r.Intn(2500)) * time.Millisecond)
				default:
					piece := pieces[r.Intn(len(pieces))]
					log = append(log, piece)
					_, _ = s.Write([]byte(piece))
					_, _ = alone.Write([]byte(piece))
				}
			}
			s.setStatus("")
			time.Sleep(5 * time.Second)
			_, _ = s.Write([]byte("|"))
			_, _ = alone.Write([]byte("|"))
			s.close(true)
			if a, b := shown.String(), alone.String(); a != b {
				t.Fatalf("seed %d: %q\n%s\n--- alone:\n%s", seed, log, a, b)
			}
		})
	}
}

func TestPromptRowsAreDrawnInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVT(10, 30)
		s := screenOn(v)
		defer s.close(true)
		for _, text := range []string{"", "a", "漢字漢字漢字漢字漢字", "b", "one\ntwo\nthree three", "x", "1234567", "12345678", "123456789"} {
			for pos := 0; pos <= len(text); pos = after(text, pos) {
				p := lay("> ", "… ", text, pos, 10)
				s.show(p)
				var want []string
				for _, r := range p.rows {
					want = append(want, strings.TrimRight(r.text, " "))
				}
				if got := v.String(); got != strings.TrimRight(strings.Join(want, "\n"), "\n") || v.y != p.y || v.x != p.x {
					t.Fatalf("%q at %d: %q, cursor %d,%d not %d,%d", text, pos, got, v.y, v.x, p.y, p.x)
				}
				if pos == len(text) {
					break
				}
			}
		}
		_, _ = s.Write([]byte("news\n"))
		if got := v.String(); got != "news\n> 12345678\n9" {
			t.Errorf("%q", got)
		}
	})
}

func TestStatusIsPaintedTenTimesASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVT(40, 5)
		s := screenOn(v)
		defer s.close(true)
		for i := range 2000 {
			s.setStatus(fmt.Sprint("status ", i))
			if i%3 == 0 {
				_, _ = s.Write([]byte("line\n"))
			}
			time.Sleep(time.Millisecond)
		}
		s.take()
		paints := s.status.paints
		s.give()
		if paints < 15 || paints > 21 {
			t.Errorf("%d paints in two seconds", paints)
		}
	})
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVT(40, 5)
		s := screenOn(v)
		defer s.close(true)
		for i, text := range []string{"the same", ""} {
			s.setStatus(text)
			time.Sleep(time.Second)
			synctest.Wait()
			before := v.written
			for range 100 {
				s.setStatus(text)
				time.Sleep(time.Minute)
			}
			if v.written != before || v.String() != text {
				t.Errorf("%d: %d bytes more, %q", i, v.written-before, v)
			}
		}
	})
}

func TestStatusWaitsForALineToBeLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVT(40, 5)
		s := screenOn(v)
		defer s.close(true)
		s.setStatus("status")
		time.Sleep(time.Second)
		for range 20 {
			_, _ = s.Write([]byte("."))
			time.Sleep(repaintRest)
			if got := v.String(); strings.Contains(got, "status") {
				t.Fatalf("%q", got)
			}
		}
		time.Sleep(2 * lineRest)
		if got, want := v.String(), strings.Repeat(".", 20)+"\nstatus"; got != want {
			t.Fatalf("%q", got)
		}
		_, _ = s.Write([]byte("end"))
		if got, want := v.String(), strings.Repeat(".", 20)+"end"; got != want {
			t.Fatalf("%q", got)
		}
	})
}

// TestStatusNeverBlocks: a terminal that takes nothing holds writes only.
func TestStatusNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newScreen(w, look{})
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			_, _ = s.Write([]byte("stuck\n"))
		}()
		synctest.Wait()
		for i := range 100 {
			s.setStatus(fmt.Sprint(i))
		}
		before := time.Now()
		s.close(true)
		if d := time.Since(before); d > 3*closeWait {
			t.Errorf("close took %v", d)
		}
		_ = r.Close()
		<-wrote
		synctest.Wait()
	})
}

func TestDumbHasNoEscapes(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	s := newScreen(&b, look{dumb: true})
	s.setStatus("status")
	_, _ = s.Write([]byte("line\n"))
	s.order(pasteOn)
	s.resizeSoon()
	s.close(true)
	if b.String() != "line\n" {
		t.Errorf("%q", b.String())
	}
}

func TestBackgroundHasNoStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVT(40, 5)
		var front atomic.Bool
		s := newScreen(v, look{ours: front.Load})
		s.setStatus("status")
		_, _ = s.Write([]byte("line\n"))
		time.Sleep(time.Second)
		if got := v.String(); got != "line" {
			t.Errorf("%q", got)
		}
		front.Store(true)
		s.forget()
		time.Sleep(time.Second)
		if got := v.String(); got != "line\nstatus" {
			t.Errorf("%q", got)
		}
		s.close(true)
	})
}
