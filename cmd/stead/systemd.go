package main

import (
	"context"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// announce says to systemd that the service is up (Type=notify) once serving is closed, if systemd started it.
func announce(ctx context.Context, serving <-chan struct{}, log *slog.Logger) error {
	select {
	case <-ctx.Done():
		return nil
	case <-serving:
	}
	if _, err := daemon.SdNotify(true, daemon.SdNotifyReady); err != nil {
		log.Warn("systemd not notified that the service is up", "err", err)
	}
	return nil
}
