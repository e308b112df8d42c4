package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

func volumeCommand(c *cli) *cobra.Command {
	ls := c.listCommand(proto.KindVolume, "List the volumes, including those that no member uses", "  stead volume ls\n  stead volume ls -A --set etcd\n  stead volume ls -o json")
	ls.Long = volumeLong
	return group("volume", "Manage volumes", ls, volumeReclaim(c), volumeRestore(c))
}

func volumeRestore(c *cli) *cobra.Command {
	var wait waitFlags
	var node string
	cmd := &cobra.Command{
		Use:   "restore VOLUME",
		Short: "Restore a volume from the trash of its node",
		Long: `Restore a volume from the trash of its node, with its id, its number and its data. Its
member must have no life and no other volume of that claim: scale the set down, or give
up the other volume first. VOLUME is an id, or a name as 'stead volume ls' shows it. A
volume that only its node has reported, for example after a restore of the store, needs
--node: use it only if you trust that node.

A volume that a node has in its place, and that the store does not know (its fate is
Unknown), becomes its member's in the same way, with --node. It is refused while it is
not known whether another copy is newer: the message says what to look at.`,
		Example: `  stead volume restore data-etcd-3
  stead volume restore data-etcd-3.0f3a9c71 --wait
  stead volume restore data-etcd-3 --node host-b --wait`,
		Args:              exactly(1, "a volume in the trash, for example 'data-db-3'"),
		ValidArgsFunction: c.completeNames(proto.KindVolume),
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := c.control.RestoreVolume(cmd.Context(), &proto.RestoreVolumeRequest{Namespace: c.namespace, Name: args[0], Node: node})
			if err != nil {
				return err
			}
			printEffects(cmd.OutOrStdout(), done.GetEffects())
			return wait.then(cmd, func(ctx context.Context) error {
				return c.waitVolume(ctx, done.GetVolume(), cmd.OutOrStdout(), restored)
			})
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the node whose trash contains the volume, or that has it unknown to the store")
	wait.add(cmd, "wait until it is restored")
	return cmd
}

// restored says how restoring a volume ended; empty while it is in progress.
func restored(v *shownVolume) (end string, err error) {
	switch {
	case v == nil:
		return "", errors.New("it was erased before it could be restored")
	case v.Spec.Fate == records.FateKeep && v.Status.Asked == "":
		return fmt.Sprintf("is restored on node %s", v.Spec.Node), nil
	case notDone(v), v.Spec.Fate == records.FateTrashed && v.Status.Asked == "":
		return "", errors.New("it was not restored: its member has a life or another volume; see 'stead get events'")
	}
	return "", nil
}

// notDone: what was asked of a volume that the store does not know was not done.
func notDone(v *shownVolume) bool {
	return v.Spec.Fate.Unknown() && v.Status.Asked == "" && v.Status.Said == nil
}

// volumeNote says what happens to a volume that is given up, or why it cannot be.
func volumeNote(st records.ShownVolume) string {
	switch said := st.Said; {
	case said != nil && said.State == records.VolumeTrashed:
		left := max(0, said.Left.Duration-time.Since(said.At)).Round(time.Second)
		note := "will be erased in about " + left.String()
		if said.Unproven {
			note += "; reported only by node " + string(said.Node)
		}
		return note
	case said != nil && said.Cause != "":
		return string(said.Cause) + ": " + said.Message
	case st.Asked != "":
		return "requested by a user: " + string(st.Asked)
	case said != nil:
		return string(said.State)
	}
	return ""
}

// volumeEvery is how often a volume that is waited for is read.
const volumeEvery = 200 * time.Millisecond

// waitVolume waits until judge says how it ended, and prints what the volume waits for whenever
// that changes. judge gets nil when the volume no longer exists.
func (c *cli) waitVolume(ctx context.Context, id string, out io.Writer, judge func(*shownVolume) (string, error)) error {
	log, last := newProgress(out), ""
	defer log.beat()()
	for {
		v, err := c.findVolume(ctx, id)
		switch {
		case err == nil:
			end, err := judge(v)
			if end != "" {
				log.line("volume", end)
			}
			if end != "" || err != nil {
				return err
			}
			now := string(v.Spec.Fate)
			if note := volumeNote(v.Status); note != "" {
				now += ": " + note
			}
			if now != last {
				log.line("volume", now)
			}
			last = now
		case ctx.Err() == nil && status.Code(err) != codes.Unavailable && status.Code(err) != codes.DeadlineExceeded:
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for volume %s: %w; the operation continues, see 'stead volume ls -n %s'", id, unfinished(ctx), c.namespace)
		case <-time.After(volumeEvery):
		}
	}
}

// findVolume returns the volume with this id, also from the trash; nil: there is none.
func (c *cli) findVolume(ctx context.Context, id string) (*shownVolume, error) {
	volumes, err := list[records.Volume, records.ShownVolume](ctx, c, &proto.ListRequest{Kind: proto.KindVolume, Namespace: c.namespace})
	at := slices.IndexFunc(volumes, func(v *shownVolume) bool { return string(v.Spec.UID) == id })
	if at < 0 {
		return nil, err
	}
	return volumes[at], nil
}
