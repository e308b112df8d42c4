package nameserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stead-project/stead/internal/backoff"
)

// startTime is how long a process may take until it can be found.
const startTime = 20 * time.Second

// mostLog is the size in bytes above which what earlier processes said is dropped.
const mostLog = 256 << 10

// start starts the process, in a session of its own that outlives us, and connects to it.
func (f *Feeder) start(ctx context.Context) (*net.UnixConn, error) {
	path := filepath.Join(f.cfg.Dir, "log")
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if st, err := os.Stat(path); err == nil && st.Size() > mostLog {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start the name server: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(f.cfg.Program, f.path, f.cfg.Task.text())
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the name server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // also so that no zombie stays while we live
	f.cfg.Started(cmd.Process.Pid)
	f.log.Info("name server started", "pid", cmd.Process.Pid, "log", path)
	for deadline := time.Now().Add(startTime); ; {
		c, err := dial(f.path)
		if !isRefused(err) || time.Now().After(deadline) {
			return c, err
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the name server ended (%v); %s says why", err, path)
		default:
		}
		if !backoff.Sleep(ctx, 5*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}
