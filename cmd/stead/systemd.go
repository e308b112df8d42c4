package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/stead-project/stead/internal/backoff"
)

// announce says to systemd that the service is up (Type=notify) once serving is closed, if systemd started it.
func announce(ctx context.Context, serving <-chan struct{}, log *slog.Logger) error {
	select {
	case <-ctx.Done():
		return nil
	case <-serving:
	}
	if err := systemd.notify(daemon.SdNotifyReady); err != nil {
		log.Warn("systemd not notified that the service is up", "err", err)
	}
	return nil
}

// systemd is the socket at which systemd hears from this process. It is taken out of the environment: what this process starts would
// be taken for it.
var systemd notifySocket

type notifySocket struct {
	mu sync.Mutex
	at string // "": systemd did not start this process
}

const notifyVariable = "NOTIFY_SOCKET"

func (n *notifySocket) notify(text string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at := os.Getenv(notifyVariable); at != "" {
		n.at = at
	}
	if n.at == "" {
		return nil
	}
	if err := os.Setenv(notifyVariable, n.at); err != nil {
		return err
	}
	_, err := daemon.SdNotify(true, text)
	return err
}

// hostEnds reports whether systemd is shutting the host down, or reboots it. Where there is no systemd nobody knows.
func hostEnds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	said, _ := exec.CommandContext(ctx, "systemctl", "is-system-running").Output() // it fails with most answers
	return strings.TrimSpace(string(said)) == "stopping"
}

// While members stop, systemd hears again and again that it is to wait so much longer than TimeoutStopSec.
const (
	holdTime  = 30 * time.Second
	holdAgain = 5 * time.Second
)

// holdShutdown has systemd wait for this process until ctx ends.
func holdShutdown(ctx context.Context, log *slog.Logger) {
	text := fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=The host is shut down: members stop", holdTime.Microseconds())
	for ok := true; ok; ok = backoff.Sleep(ctx, holdAgain) {
		if err := systemd.notify(text); err != nil {
			log.Warn("systemd not asked to wait for members", "err", err)
			return
		}
	}
}
