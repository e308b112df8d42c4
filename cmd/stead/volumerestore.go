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
		Short: "Bring a volume back from the trash of its node",
		Long: `Bring a volume back from the trash of its node, while it lies there: with its id, its
number and all that is in it. Its member must have no life and no other volume of that
claim: scale the set down, or give the other volume up first. VOLUME is an id, or a name as
'stead volume ls' shows it. A volume of which the store knows only by its node's word, as
after a restore of the store from a backup, needs --node: name it only if you trust it.`,
		Example: `  stead volume restore data-etcd-3
  stead volume restore data-etcd-3.0f3a9c71 --wait`,
		Args:              exactly(1, "a volume in the trash, as 'data-db-3'"),
		ValidArgsFunction: c.completeNames("volume"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				done, err := control.RestoreVolume(ctx, &proto.RestoreVolumeRequest{Namespace: c.namespace, Name: args[0], Node: node})
				if err != nil {
					return err
				}
				sayEffects(cmd.OutOrStdout(), done.GetEffects())
				return wait.volume(cmd, control, c.namespace, done.GetVolume(), restored)
			})
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the node in whose trash it lies")
	wait.add(cmd, "wait until it is back in its place")
	return cmd
}

// restored is the verdict on a volume that is to come back.
func restored(v *records.Volume, st volumeStatus) (end string, err error) {
	switch {
	case v == nil:
		return "", errors.New("it was erased before it could be brought back")
	case v.Fate == records.FateKeep && st.Asked == "":
		return fmt.Sprintf("is back in its place on node %s", v.Node), nil
	case v.Fate == records.FateTrashed && st.Asked == "":
		return "", errors.New("it was not brought back: its member has a life, or another volume; 'stead get events' says which")
	}
	return "", nil
}
