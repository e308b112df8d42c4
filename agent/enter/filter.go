package enter

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/thread"
)

// Requests of ptrace that x/sys/unix does not name (linux/ptrace.h).
const ptraceGetFilter = 0x420c

const (
	// stopTime is how long a process may take to stop for us. One that sleeps in the
	// kernel does not stop.
	stopTime = time.Second
	// instruction is the size of one of a filter, in bytes.
	instruction = 8
)

// filter copies the first seccomp filter of a process, which is the one that the runtime
// gave it: later ones are its own. The process is stopped for some microseconds. It is
// the kernel's own copy, so that nothing has to be compiled as the runtime would.
func filter(pid int) (text []byte, err error) {
	// Should the process still be traced at the end, the thread's death lets it go.
	err = thread.Run(func() error {
		text, err = traceFilter(pid)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: process %d: %w: %w", ErrFilter, pid, err, ErrRefused)
	}
	return text, nil
}

func traceFilter(pid int) ([]byte, error) {
	if _, err := ptrace(unix.PTRACE_SEIZE, pid, 0, 0); err != nil {
		return nil, fmt.Errorf("seize: %w", err)
	}
	if _, err := ptrace(unix.PTRACE_INTERRUPT, pid, 0, 0); err != nil {
		return nil, fmt.Errorf("interrupt: %w", err)
	}
	sig, err := stopped(pid)
	if err != nil {
		return nil, err
	}
	// A signal that came meanwhile is the process's own.
	defer func() { _, _ = ptrace(unix.PTRACE_DETACH, pid, 0, sig) }()
	n, err := ptrace(ptraceGetFilter, pid, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("size: %w", err)
	}
	text := make([]byte, n*instruction)
	if n == 0 {
		return nil, errors.New("it is empty")
	}
	if _, err := ptrace(ptraceGetFilter, pid, 0, uintptr(unsafe.Pointer(&text[0]))); err != nil {
		return nil, err
	}
	return text, nil
}

// stopped waits until a seized process has stopped, and returns the signal that it was
// about to receive; 0: none.
func stopped(pid int) (uintptr, error) {
	for deadline := time.Now().Add(stopTime); ; time.Sleep(time.Millisecond) {
		var status unix.WaitStatus
		got, err := unix.Wait4(pid, &status, unix.WNOHANG|unix.WALL, nil)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return 0, fmt.Errorf("wait: %w", err)
		case err == nil && got == pid && status.Stopped():
			if status>>16 == unix.PTRACE_EVENT_STOP {
				return 0, nil
			}
			return uintptr(status.StopSignal()), nil
		case err == nil && got == pid:
			return 0, errors.New("it has ended")
		case time.Now().After(deadline):
			return 0, fmt.Errorf("it did not stop within %v", stopTime)
		}
	}
}

func ptrace(request, pid int, addr, data uintptr) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), addr, data, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
