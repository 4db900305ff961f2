package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	// burnt has used CPU time, itself or through a child that it has reaped.
	parts["burnt"] = func(args []string) {
		if args[0] == "itself" {
			parts["burn"](nil)
		} else {
			pid := fork(os.Environ(), nil, "burn")
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
		ready("burnt")
		forever()
	}
	// writer has written so many bytes to a disk.
	parts["writer"] = func(args []string) {
		size, _ := strconv.Atoi(args[1])
		f, err := os.Create(args[0])
		if err != nil {
			panic(err)
		}
		_, _ = f.Write(make([]byte, size))
		_ = f.Sync()
		ready("writer")
		forever()
	}
	// caller connects to each address of which its stdin tells, and lets a
	// child have the first connection if it is told so.
	parts["caller"] = func([]string) {
		var conns []*net.TCPConn
		for {
			var word string
			if _, err := fmt.Scanln(&word); err != nil {
				return
			}
			switch word {
			case "child":
				f, _ := conns[0].File()
				pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2, f.Fd()}})
				_ = f.Close()
				fmt.Println("child", pid, err)
			default:
				c, err := net.Dial("tcp", word)
				if err != nil {
					panic(err)
				}
				conns = append(conns, c.(*net.TCPConn))
				ready("caller")
			}
		}
	}
	// blocked waits in its first thread, in one of many ways.
	parts["blocked"] = func(args []string) {
		ready("blocked")
		block(args[0], args[1:])
	}
	if parting("blocked") {
		runtime.LockOSThread()
	}
	// peeper looks at its own children, as somebody who may not do much.
	parts["peeper"] = func(args []string) {
		for pid := still(); residentSize(pid) == 0; { // it has not begun
			time.Sleep(time.Millisecond)
		}
		switch args[0] {
		case "ordinary":
			if err := becomeOrdinary(); err != nil {
				panic(err)
			}
		case "procless":
			if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("none", "/proc", "tmpfs", 0, "")); err != nil {
				panic(err)
			}
		case "hidden": // all but its own
			if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"),
				becomeOrdinary()); err != nil {
				panic(err)
			}
		}
		s := newSampler(os.Getpid(), Proc{}, nil)
		snap := s.Sample(time.Now(), true, true)
		text, _ := json.Marshal(snap)
		fmt.Println(string(text))
		stdinEnds()
	}
}

func becomeOrdinary() error {
	return errors.Join(syscall.Setgroups(nil), syscall.Setresgid(nobodyUID, nobodyUID, nobodyUID), syscall.Setresuid(nobodyUID, nobodyUID, nobodyUID))
}

// still is a child that ends with us.
func still() int {
	return fork(os.Environ(), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, "still")
}

// block waits in the way that it is told, by the bare system call.
func block(how string, args []string) {
	switch how {
	case "read":
		_, _ = unix.Read(0, make([]byte, 1))
	case "write": // to a pipe that nobody empties, not even itself
		var p [2]int
		_ = unix.Pipe2(p[:], unix.O_CLOEXEC)
		_, _ = unix.Write(p[1], make([]byte, 1<<20))
	case "terminal":
		fd := must(unix.Open(args[0], unix.O_RDWR|unix.O_NOCTTY, 0))
		_, _ = unix.Read(fd, make([]byte, 1))
	case "child":
		pid := still()
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	case "children":
		still()
		_, _ = syscall.Wait4(-1, nil, 0, nil)
	case "pidfd":
		pid := still()
		fd := must(unix.PidfdOpen(pid, 0))
		_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED, nil)
	case "futex":
		var word uint32
		_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&word)), 0, 0, 0, 0, 0)
	case "sleep":
		_ = unix.Nanosleep(&unix.Timespec{Sec: 60}, nil)
	case "epoll":
		e := must(unix.EpollCreate1(unix.EPOLL_CLOEXEC))
		_, _ = unix.EpollWait(e, make([]unix.EpollEvent, 1), -1)
	case "lock":
		f := must(os.Open(args[0]))
		_ = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	case "vfork": // its child cannot begin, and shares its memory until then
		_, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{})
		fmt.Println("forked", err)
	}
	forever()
}
