package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stead-project/stead/agent/home"
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
	at, err := home.Open(o.Root, spec.NodeName(o.Node))
	if err != nil {
		return err
	}
	defer at.Close()
	if at.Cluster() == "" {
		fmt.Fprintln(out, "the node never joined a cluster; nothing was made")
		return nil
	}
	h, err := newHost(o, at, log)
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
