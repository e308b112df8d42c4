package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/stead-project/stead/agent/host"
)

const (
	purgeShort = "End every member of this node at once and undo what Stead changed on the host"
	purgeLong  = `End every member of this node at once, and remove links, routes, mounts, cgroups,
the nft table, and the containers and images in Stead's containerd namespace.
Volumes, logs and the ledger are kept. The agent must not be running. Use the same
flags as for the agent.`
)

// purge ends all that the node at o runs.
func purge(ctx context.Context, o hostOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	o.Version, o.SteadNode = version, steadNode
	log, err := newLogger("warn")
	if err != nil {
		return err
	}
	err = host.Purge(ctx, o.Options, log)
	switch {
	case errors.Is(err, host.ErrNoNode):
		fmt.Fprintf(out, "%v (%s)\n", err, o.Root)
	case errors.Is(err, host.ErrNotJoined):
		fmt.Fprintln(out, err)
	case err != nil:
		return usage(err)
	default:
		fmt.Fprintf(out, "node %s runs nothing any more; its volumes are kept in %s\n", o.Node, filepath.Join(o.Root, "volumes"))
	}
	return nil
}
