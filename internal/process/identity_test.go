package process

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestIdentity(t *testing.T) {
	mine, ok := Identity(os.Getpid())
	if again, _ := Identity(os.Getpid()); !ok || mine == 0 || again != mine {
		t.Errorf("we were started at %d, then at %d, %v", mine, again, ok)
	}
	if b := Boot(); b == "" || b != Boot() {
		t.Errorf("boot %q, then %q", b, Boot())
	}
	if n := Namespace(); runtime.GOOS == "linux" && n == 0 || n != Namespace() {
		t.Errorf("namespace %d, then %d", n, Namespace())
	}
}

// TestIdentityOfTheDead: who has ended does not live, whether anybody has
// waited for it yet or not.
func TestIdentityOfTheDead(t *testing.T) {
	p := perform(t, exec.Command("/bin/cat"))
	pid := p.cmd.Process.Pid
	if start, ok := Identity(pid); !ok || start == 0 {
		t.Errorf("a process that waits for its input was started at %d, %v", start, ok)
	}
	_ = p.in.Close()
	p.silent(soon())
	for by := soon(); ; {
		if _, ok := Identity(pid); !ok {
			break
		}
		if time.Now().After(by) {
			t.Fatal("a zombie is said to live")
		}
	}
	_ = p.cmd.Wait()
	if start, ok := Identity(pid); ok {
		t.Errorf("a process that has been waited for was started at %d", start)
	}
}
