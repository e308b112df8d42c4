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
