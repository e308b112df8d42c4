package wireguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/internal/backoff"
	running "github.com/stead-project/stead/internal/program"
)

// Program is the name of the program.
const Program = "stead-tunnel"

// startTime is how long a process may take until it can be found: it may have to end another.
const startTime = 20 * time.Second

// mostLog is the size in bytes above which what earlier processes said is dropped.
const mostLog = 256 << 10

// SocketPath is where the process of a link is found. The tool `wg` looks there, too.
func SocketPath(link string) string { return filepath.Join("/var/run/wireguard", link+".sock") }

// Process is what a process is started with.
type Process struct {
	Program string // path of stead-tunnel
	Log     string // file that takes what it says; its directory is made
	// Started takes the id of a process that was started.
	Started func(pid int)
}

// Ensure has a process of this very program serve the link; one of another program hands over to it. It starts the process
// in the network namespace of the calling thread, and in a session of its own.
func (p *Process) Ensure(ctx context.Context, link string) error {
	if Served(link, p.Program) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.Log), 0o700); err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if st, err := os.Stat(p.Log); err == nil && st.Size() > mostLog {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(p.Log, flags, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", Program, err)
	}
	defer log.Close()
	cmd := exec.Command(p.Program, link)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", Program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // also so that no zombie stays while we live
	p.Started(cmd.Process.Pid)
	for deadline := time.Now().Add(startTime); !Served(link, p.Program); {
		select {
		case err := <-ended:
			return fmt.Errorf("%s ended (%v); %s says why", Program, err, p.Log)
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not serve yet; see %s", Program, p.Log)
		}
		if !backoff.Sleep(ctx, 5*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// Served reports whether a process serves the link that runs the program at a path, or one of the same content; "": any.
func Served(link, program string) bool {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: SocketPath(link), Net: "unix"})
	if err != nil {
		return false
	}
	defer c.Close()
	pid, err := PeerPID(c)
	if err != nil || program == "" {
		return err == nil
	}
	return running.Runs(pid, program)
}

// Forget removes what a process of the link that was killed left behind.
func Forget(link string) error {
	if Served(link, "") {
		return nil // it ends by itself once its link is gone
	}
	if err := os.Remove(SocketPath(link)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// PeerPID is the id of the process at the other end of a connection.
func PeerPID(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("find the process at the socket: %w", err)
	}
	return int(cred.Pid), nil
}
