package enter

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/thread"
)

// spawn forks the child, which waits for a byte from gate and writes to fault why it could
// not execute. It returns the child's pid.
func (p *Plan) spawn(gate, fault int) (pid int, err error) {
	err = thread.Run(func() error {
		pid, err = p.enterAndFork(gate, fault)
		return err
	})
	return pid, err
}

// enterAndFork makes this thread one of the container's, and forks. The order matters: what
// needs a right comes before the right is dropped.
func (p *Plan) enterAndFork(gate, fault int) (int, error) {
	// This thread's descriptors, in the host's proc: the container's does not know us.
	fds, err := unix.Open("/proc/thread-self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("descriptors: %w", err)
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		// Descriptors, root and umask of its own.
		{"leave the helper", func() error { return unix.Unshare(unix.CLONE_FS | unix.CLONE_FILES) }},
		{"session keyring", p.joinKeyring},
		{"namespaces", joinNamespaces},
		{"scheduling", p.schedule},
		{"limits", p.limit},
		{"directory", p.chdir},
		{"seccomp filter", p.filterThread},
		{"user and capabilities", p.drop},
	} {
		if err := step.do(); err != nil {
			return 0, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	unix.Umask(int(p.Umask))
	if err := p.finishAsUser(); err != nil {
		return 0, err
	}
	env := p.environment(fds)
	path, err := lookPath(p.Command[0], env)
	if err != nil {
		return 0, err
	}
	l, err := newLaunch(path, p.Command, env, p.childFilter())
	if err != nil {
		return 0, err
	}
	if err := onlyStreams(gate, fault); err != nil {
		return 0, fmt.Errorf("descriptors: %w", err)
	}
	pid, errno := l.fork()
	closeRange(0, ^uint32(0)) // the pipes' ends, as our thread may live on for a moment
	goruntime.KeepAlive(l)
	if errno != 0 {
		return 0, fmt.Errorf("fork: %w", errno)
	}
	return pid, nil
}

// joinKeyring leaves the agent's keys behind. A kernel without keys has none to hide.
func (p *Plan) joinKeyring() error {
	if _, err := unix.KeyctlJoinSessionKeyring(p.Keyring); err != nil && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return nil
}

// joinNamespaces joins all of the container's but that of users. The pid namespace is
// joined by children only.
func joinNamespaces() error {
	return unix.Setns(pidfdFD, unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWIPC|unix.CLONE_NEWUTS|unix.CLONE_NEWPID|unix.CLONE_NEWCGROUP)
}

// schedule takes on nice and processors of the container. What we may not raise is left
// lower.
func (p *Plan) schedule() error {
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, p.Like.Nice); err != nil && !errors.Is(err, unix.EACCES) {
		return err
	}
	return unix.SchedSetaffinity(0, &p.Like.CPUs)
}

// limit sets all limits, for the whole helper. What we may not raise is left lower.
func (p *Plan) limit() error {
	for _, l := range p.Limits {
		want := unix.Rlimit{Cur: l.Soft, Max: l.Hard}
		err := unix.Prlimit(0, l.Kind, &want, nil)
		if errors.Is(err, unix.EPERM) {
			var have unix.Rlimit
			err = unix.Prlimit(0, l.Kind, nil, &have)
			if err == nil {
				want.Max = min(want.Max, have.Max)
				want.Cur = min(want.Cur, want.Max)
				err = unix.Prlimit(0, l.Kind, &want, nil)
			}
		}
		if err != nil {
			return fmt.Errorf("limit %d: %w", l.Kind, err)
		}
	}
	return nil
}

// chdir goes where the container's own process starts, as root first and as the user
// later, as the runtime does.
func (p *Plan) chdir() error {
	err := unix.Chdir(p.Dir)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil // settle tries again
	}
	if err != nil {
		return fmt.Errorf("chdir to %q: %w: %w", p.Dir, err, ErrCommand)
	}
	p.there = true
	return nil
}

// drop takes on the user and the capabilities, of this thread alone.
func (p *Plan) drop() error {
	for c := range uint(64) {
		if p.Caps.Bounding&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		} else if err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	var groups unsafe.Pointer
	if len(p.Groups) > 0 {
		groups = unsafe.Pointer(&p.Groups[0])
	}
	// Not syscall's functions, which do it for all threads.
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, uintptr(len(p.Groups)), uintptr(groups)},
		{unix.SYS_SETRESGID, uintptr(p.GID), uintptr(p.GID), uintptr(p.GID)},
		{unix.SYS_SETRESUID, uintptr(p.UID), uintptr(p.UID), uintptr(p.UID)},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	goruntime.KeepAlive(p.Groups)
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 0, 0, 0, 0); err != nil {
		return err
	}
	return p.Caps.set()
}

func (c Caps) set() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	half := func(shift uint) unix.CapUserData {
		return unix.CapUserData{
			Effective: uint32(c.Effective >> shift), Permitted: uint32(c.Permitted >> shift), Inheritable: uint32(c.Inheritable >> shift),
		}
	}
	both := [2]unix.CapUserData{half(0), half(32)}
	if err := unix.Capset(&header, &both[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	for b := range uint(64) {
		if c.Ambient&(1<<b) != 0 {
			if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(b), 0, 0); err != nil {
				return fmt.Errorf("ambient capability %d: %w", b, err)
			}
		}
	}
	return nil
}

// filterThread loads the filter into this thread, from which the child has it. Where no new
// privileges can be gained the child loads it itself, later: see childFilter.
func (p *Plan) filterThread() error {
	if p.NoNewPrivileges || len(p.Filter) == 0 {
		return nil
	}
	program := sockProgram(p.Filter)
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, setModeFilter, 0, uintptr(unsafe.Pointer(&program)))
	goruntime.KeepAlive(p.Filter)
	if errno != 0 {
		return errno
	}
	return nil
}

// childFilter is the filter that is left to the child to load.
func (p *Plan) childFilter() []byte {
	if p.NoNewPrivileges {
		return p.Filter
	}
	return nil
}

// finishAsUser is what is done as the container's user.
func (p *Plan) finishAsUser() error {
	if p.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
	}
	if !p.there {
		if err := unix.Chdir(p.Dir); err != nil {
			return fmt.Errorf("chdir to %q: %w: %w", p.Dir, err, ErrCommand)
		}
	}
	// A path that leads out of the container's root does not begin with /.
	buf := make([]byte, unix.PathMax)
	if n, err := unix.Getcwd(buf); err != nil || n < 1 || buf[0] != '/' {
		return fmt.Errorf("directory %q is outside of the container: %w", p.Dir, ErrCommand)
	}
	return nil
}

// Where the child has its pipes.
const (
	gateFD  = 3
	faultFD = 4
)

// onlyStreams closes all of this thread's descriptors but the standard streams and the
// pipes. Go's own are among them: from here on nothing of Go's may block.
func onlyStreams(gate, fault int) error {
	// Not to overwrite one with the other: both were opened after descriptor 4.
	for to, from := range map[int]int{gateFD: gate, faultFD: fault} {
		if err := unix.Dup3(from, to, unix.O_CLOEXEC); err != nil {
			return err
		}
	}
	return closeRange(faultFD+1, ^uint32(0))
}

func closeRange(first, last uint32) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(first), uintptr(last), 0); errno != 0 {
		return errno
	}
	return nil
}
