package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent"
	"github.com/stead-project/stead/spec"
)

const (
	purgeShort = "End every member of this node at once and take back what Stead changed on the host"
	purgeLong  = `End every member of this node at once and take back links, routes, mounts,
cgroups, the nft table, and containers and images in Stead's containerd
namespace. Volumes, logs and the ledger stay where they are. The agent must not
be running. Give the flags with which it ran.`
)

// purge ends all that the node at o runs.
func purge(ctx context.Context, o hostOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.Root, "node.json")); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "no node was ever here (%s)\n", o.Root)
		return nil
	}
	log, err := newLogger("warn")
	if err != nil {
		return err
	}
	home, err := agent.Open(o.Root, spec.NodeName(o.Node))
	if err != nil {
		return err
	}
	defer home.Close()
	if home.Cluster() == "" {
		fmt.Fprintln(out, "the node never joined a cluster; nothing was made")
		return nil
	}
	h, err := newHost(o, home, log)
	if err != nil {
		return err
	}
	defer h.runtime.Close()
	if err := h.runtime.Purge(ctx); err != nil {
		return fmt.Errorf("end all containers: %w", err)
	}
	if err := h.network.Teardown(ctx); err != nil {
		return fmt.Errorf("take back the network: %w", err)
	}
	if err := unmountBelow(o.RunDir, filepath.Join(o.Root, "scratch")); err != nil {
		return err
	}
	if err := os.RemoveAll(o.RunDir); err != nil {
		return err
	}
	fmt.Fprintf(out, "node %s runs nothing any more; its volumes stay in %s\n", o.Node, filepath.Join(o.Root, "volumes"))
	return nil
}

// unmountBelow unmounts all that is mounted on or below the directories, newest first.
func unmountBelow(dirs ...string) error {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		fields := strings.Fields(lines[i])
		if len(fields) < 2 {
			continue
		}
		at := strings.ReplaceAll(fields[1], `\040`, " ")
		for _, dir := range dirs {
			if at != dir && !strings.HasPrefix(at, dir+"/") {
				continue
			}
			if err := unix.Unmount(at, 0); err != nil {
				return fmt.Errorf("unmount %s: %w", at, err)
			}
		}
	}
	return nil
}
