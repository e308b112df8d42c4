package enter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/thread"
)

// Container is a running container, held so that only it is ever entered.
type Container struct {
	init *os.File // pidfd of its first process
	plan Plan
}

// Open holds the container whose first process is pid. plan is what all its commands
// have in common; the limits that it does not name, and the likeness, are taken from the
// process. filtered: the container has a seccomp filter, which is taken from it, too.
// still is asked, once the process is held, whether pid is the container's.
func Open(pid int, plan Plan, filtered bool, still func() error) (*Container, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("hold process %d: %w", pid, err)
	}
	c := &Container{init: os.NewFile(uintptr(fd), "pidfd"), plan: plan}
	if err := c.learn(pid, filtered, still); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Container) learn(pid int, filtered bool, still func() error) error {
	err := still()
	if err == nil {
		err = sameUsers(pid)
	}
	if err == nil {
		err = sameLabel(pid)
	}
	if err == nil {
		c.plan.Like, err = readLikeness(pid)
	}
	if err == nil {
		c.plan.Limits, err = limits(pid, c.plan.Limits)
	}
	if err == nil && filtered {
		err = loaded(pid)
	}
	if err == nil && filtered {
		c.plan.Filter, err = filter(pid)
	}
	if err == nil && !c.Alive() {
		err = fmt.Errorf("process %d has ended", pid)
	}
	return err
}

// Alive reports whether the container's first process is there: the very one.
func (c *Container) Alive() bool {
	return unix.PidfdSendSignal(int(c.init.Fd()), 0, nil, 0) == nil
}

// Close lets the container go.
func (c *Container) Close() { c.init.Close() }

// sameUsers refuses a container with users of its own: a program with several threads,
// as ours are, cannot join them.
func sameUsers(pid int) error {
	ours, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return err
	}
	theirs, err := os.Readlink(procFile(pid, "ns/user"))
	if err != nil {
		return err
	}
	if ours != theirs {
		return fmt.Errorf("it has a user namespace of its own: %w", ErrRefused)
	}
	return nil
}

// loaded refuses a process that has no filter yet: the runtime loads it last before the
// container's program starts.
func loaded(pid int) error {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "\nSeccomp:\t2\n") {
		return fmt.Errorf("process %d has no seccomp filter yet: %w", pid, ErrRefused)
	}
	return nil
}

// sameLabel refuses a container under another AppArmor or SELinux label than ours, which
// the command would have.
func sameLabel(pid int) error {
	const file = "attr/current"
	ours, err1 := os.ReadFile("/proc/thread-self/" + file)
	theirs, err2 := os.ReadFile(procFile(pid, file))
	if err1 != nil && err2 != nil {
		return nil // the kernel has no labels
	}
	if err1 != nil || err2 != nil || string(ours) != string(theirs) {
		return fmt.Errorf("its security label is %q, and ours %q: %w", theirs, ours, ErrRefused)
	}
	return nil
}

func readLikeness(pid int) (l Likeness, err error) {
	text, err := os.ReadFile(procFile(pid, "oom_score_adj"))
	if err != nil {
		return l, err
	}
	l.OOMScore, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return l, err
	}
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		return l, fmt.Errorf("priority: %w", err)
	}
	l.Nice = 20 - raw // as the system call returns it
	if err := unix.SchedGetaffinity(pid, &l.CPUs); err != nil {
		return l, fmt.Errorf("affinity: %w", err)
	}
	return l, nil
}

// limits completes named by the limits of a process. They are read from its file: prlimit
// would want a right over limits, only to read another user's.
func limits(pid int, named []Limit) ([]Limit, error) {
	text, err := os.ReadFile(procFile(pid, "limits"))
	if err != nil {
		return nil, err
	}
	all, err := parseLimits(string(text))
	if err != nil {
		return nil, err
	}
	for _, l := range named {
		if l.Kind >= len(all) {
			return nil, fmt.Errorf("limit %d is not known to the kernel", l.Kind)
		}
		all[l.Kind] = l
	}
	return all, nil
}

// parseLimits reads a table of the kernel's: a line a limit, by their numbers, in columns
// of fixed width.
func parseLimits(text string) ([]Limit, error) {
	const name, column = 26, 21 // characters, with the blank after
	var all []Limit
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i == 0 {
			continue // the headings
		}
		if len(line) < name+2*column {
			return nil, fmt.Errorf("limits: %q is not understood", line)
		}
		soft, err1 := parseLimit(line[name : name+column])
		hard, err2 := parseLimit(line[name+column : name+2*column])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("limits: %w", err)
		}
		all = append(all, Limit{Kind: i - 1, Soft: soft, Hard: hard})
	}
	return all, nil
}

func parseLimit(text string) (uint64, error) {
	text = strings.TrimSpace(text)
	if text == "unlimited" {
		return unix.RLIM_INFINITY, nil
	}
	return strconv.ParseUint(text, 10, 64)
}

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

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
