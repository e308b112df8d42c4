package enter

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// environment adds HOME where the container does not say it.
func (p *Plan) environment(fds int) []string {
	if slices.ContainsFunc(p.Env, func(e string) bool { return strings.HasPrefix(e, "HOME=") }) {
		return p.Env
	}
	return append(slices.Clone(p.Env), "HOME="+cmp.Or(home(fds, p.UID), "/"))
}

// passwdBytes is the most that is read of a container's list of users.
const passwdBytes = 1 << 20

// home looks into the container's list of users, which may be anything: only a file is
// opened, and not read without end. To open a device can do harm, and the helper is in no
// cgroup of the container's that would forbid it. So the place is held first, looked at,
// and what is held is opened, by way of fds, this thread's descriptors.
func home(fds int, uid uint32) string {
	place, err := unix.Open("/etc/passwd", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(place)
	var st unix.Stat_t
	if err := unix.Fstat(place, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
	fd, err := unix.Openat(fds, strconv.Itoa(place), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	text := make([]byte, min(st.Size, passwdBytes))
	n, err := unix.Read(fd, text)
	if err != nil || n < 0 {
		return ""
	}
	return homeIn(bytes.NewReader(text[:n]), uid)
}

func homeIn(passwd io.Reader, uid uint32) string {
	for lines := bufio.NewScanner(passwd); lines.Scan(); {
		f := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(f) >= 6 && f[2] == strconv.FormatUint(uint64(uid), 10) {
			return f[5]
		}
	}
	return ""
}

// lookPath finds a program as the container's user, in the container's PATH.
func lookPath(name string, env []string) (string, error) {
	path := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	if err := os.Setenv("PATH", path); err != nil {
		return "", err
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, ErrCommand)
	}
	return found, nil
}

// stage says in a child's word what failed: it is the first byte, the errno the second.
type stage byte

const (
	stageFilter stage = 1
	stageExec   stage = 2
)

// Of the kernel: seccomp's operation, and how many signals there are.
const (
	setModeFilter = 1
	signals       = 64
)

// launch is all that a child needs, made before the fork: it cannot allocate.
type launch struct {
	path       *byte
	argv, envv []*byte // end with nil
	filter     []byte
	program    unix.SockFprog
	none       uint64    // a set of no signals
	all        uint64    // and one of all
	ignore     [4]uint64 // struct sigaction: by default
	word       [2]byte
}

func newLaunch(path string, argv, env []string, filter []byte) (*launch, error) {
	l := &launch{filter: filter, all: ^uint64(0)}
	var err error
	l.path, err = unix.BytePtrFromString(path)
	if err != nil {
		return nil, err
	}
	for list, texts := range map[*[]*byte][]string{&l.argv: argv, &l.envv: env} {
		for _, text := range texts {
			p, err := unix.BytePtrFromString(text)
			if err != nil {
				return nil, err
			}
			*list = append(*list, p)
		}
		*list = append(*list, nil)
	}
	if len(filter) > 0 {
		l.program = sockProgram(filter)
	}
	return l, nil
}

// sockProgram is a filter, which is not empty, as the kernel takes it.
func sockProgram(filter []byte) unix.SockFprog {
	return unix.SockFprog{Len: uint16(len(filter) / instruction), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
}

// fork returns the child's pid in the parent. The child has a copy of the memory, only
// this thread of the Go program, and so nothing of Go's but this function.
//
//go:norace
//go:nosplit
//go:noinline
func (l *launch) fork() (int, unix.Errno) {
	// No handler of Go's may run in the child.
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&l.all)), 0, 8, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	for sig := uintptr(1); sig <= signals; sig++ {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&l.ignore)), 0, 8, 0, 0) // KILL and STOP refuse
	}
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&l.none)), 0, 8, 0, 0)
	unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	n, _, errno := unix.RawSyscall(unix.SYS_READ, gateFD, uintptr(unsafe.Pointer(&l.word)), 1)
	for errno == unix.EINTR {
		n, _, errno = unix.RawSyscall(unix.SYS_READ, gateFD, uintptr(unsafe.Pointer(&l.word)), 1)
	}
	if n == 1 {
		at := stageFilter
		if l.program.Len > 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, setModeFilter, 0, uintptr(unsafe.Pointer(&l.program)))
		}
		if errno == 0 {
			at = stageExec
			_, _, errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(l.path)),
				uintptr(unsafe.Pointer(unsafe.SliceData(l.argv))), uintptr(unsafe.Pointer(unsafe.SliceData(l.envv))))
		}
		l.word[0], l.word[1] = byte(at), byte(errno)
		unix.RawSyscall(unix.SYS_WRITE, faultFD, uintptr(unsafe.Pointer(&l.word)), 2)
	}
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}
