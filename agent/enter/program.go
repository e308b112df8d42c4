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
func (p *Plan) environment() []string {
	if slices.ContainsFunc(p.Env, func(e string) bool { return strings.HasPrefix(e, "HOME=") }) {
		return p.Env
	}
	return append(slices.Clone(p.Env), "HOME="+cmp.Or(home(p.UID), "/"))
}

// passwdBytes is the most that is read of a container's list of users.
const passwdBytes = 1 << 20

// home looks into the container's list of users, which may be anything: only a file is
// read, and not without end.
func home(uid uint32) string {
	fd, err := unix.Open("/etc/passwd", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
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
