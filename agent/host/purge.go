package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/nameserver"
	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/spec"
)

// Nothing was ever made for the node: errors of Purge.
var (
	ErrNoNode    = errors.New("no node was ever here")
	ErrNotJoined = errors.New("the node never joined a cluster; nothing was made")
)

// Purge ends all that the node of the options runs, and takes back what was set up for it.
// Volumes, logs and the ledger stay.
func Purge(ctx context.Context, o Options, log *slog.Logger) error {
	if _, err := os.Stat(filepath.Join(o.Root, "node.json")); errors.Is(err, os.ErrNotExist) {
		return ErrNoNode
	}
	at, err := home.Open(o.Root, spec.NodeName(o.Node))
	if err != nil {
		return err
	}
	defer at.Close()
	if at.Cluster() == "" {
		return ErrNotJoined
	}
	m, err := New(o, at, log)
	if err != nil {
		return err
	}
	defer m.Runtime.Close()
	if err := nameserver.Dismiss(namesDir(o.RunDir)); err != nil {
		log.Warn("name server is killed with all else", "err", err)
	}
	if err := m.Runtime.Purge(ctx); err != nil {
		return fmt.Errorf("end all containers: %w", err)
	}
	if err := m.Network.Teardown(ctx); err != nil {
		return fmt.Errorf("take back the network: %w", err)
	}
	if err := unmountBelow(o.RunDir, filepath.Join(o.Root, "scratch")); err != nil {
		return err
	}
	return os.RemoveAll(o.RunDir)
}

// unmountBelow unmounts all that is mounted on or below the directories, and fails unless nothing
// is left there: what a mount shows must not be deleted with them.
func unmountBelow(dirs ...string) error {
	for _, dir := range dirs {
		top, err := filepath.EvalSymlinks(dir) // as the kernel names it
		if err == nil {
			err = volume.UnmountAll(top)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
