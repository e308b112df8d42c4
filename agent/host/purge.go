package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/home"
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

// unmountBelow unmounts all that is mounted on or below the directories, newest first.
// It fails unless nothing is left there: what a mount shows must not be deleted with them.
func unmountBelow(dirs ...string) error {
	var tops []string
	for _, dir := range dirs {
		top, err := filepath.EvalSymlinks(dir) // as the kernel names it
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		tops = append(tops, top)
	}
	there, err := mountsBelow(tops)
	if err != nil {
		return err
	}
	for _, at := range there {
		if err := unix.Unmount(at, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", at, err)
		}
	}
	if there, err = mountsBelow(tops); err == nil && len(there) > 0 {
		err = fmt.Errorf("%s is still mounted; unmount it and purge again", there[0])
	}
	return err
}

// mountsBelow lists what is mounted on or below the directories, newest first.
func mountsBelow(dirs []string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[1])
		if slices.ContainsFunc(dirs, func(dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }) {
			found = append(found, at)
		}
	}
	slices.Reverse(found)
	return found, nil
}
