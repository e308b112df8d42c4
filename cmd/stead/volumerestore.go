package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

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
--node: use it only if you trust that node.`,
		Example: `  stead volume restore data-etcd-3
  stead volume restore data-etcd-3.0f3a9c71 --wait`,
		Args:              exactly(1, "a volume in the trash, for example 'data-db-3'"),
		ValidArgsFunction: c.completeNames(proto.KindVolume),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				done, err := control.RestoreVolume(ctx, &proto.RestoreVolumeRequest{Namespace: c.namespace, Name: args[0], Node: node})
				if err != nil {
					return err
				}
				printEffects(cmd.OutOrStdout(), done.GetEffects())
				return wait.volume(cmd, control, c.namespace, done.GetVolume(), restored)
			})
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the node whose trash contains the volume")
	wait.add(cmd, "wait until it is restored")
	return cmd
}

// restored says how restoring a volume ended; empty while it is in progress.
func restored(v *records.Volume, st records.ShownVolume) (end string, err error) {
	switch {
	case v == nil:
		return "", errors.New("it was erased before it could be restored")
	case v.Fate == records.FateKeep && st.Asked == "":
		return fmt.Sprintf("is restored on node %s", v.Node), nil
	case v.Fate == records.FateTrashed && st.Asked == "":
		return "", errors.New("it was not restored: its member has a life or another volume; see 'stead get events'")
	}
	return "", nil
}
