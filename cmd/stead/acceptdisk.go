package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/spec"
)

func acceptDiskCommand() *cobra.Command {
	var (
		root string
		dirs map[string]string
	)
	cmd := &cobra.Command{
		Use:   "accept-disk CLASS",
		Short: "Take the disk that is mounted now as that of a storage class",
		Long: `Take the disk on which the directory of a storage class lies now as the disk of
that class, in place of the one that was first used for it. Do this when a disk
was replaced for good: until then members that want a volume of the class wait,
with DiskMissing. Mount the new disk before. Volumes on the disk before are
VolumeMissing from then on. A running agent takes notice by itself.`,
		Example: "  stead agent accept-disk ssd --root /var/lib/stead/agent",
		Args:    exactly(1, "one storage class"),
		RunE: func(cmd *cobra.Command, args []string) error {
			class := args[0]
			if !spec.ValidSubdomain(class) {
				return usageError{fmt.Errorf("storage class %q is no name", class)}
			}
			disk, err := volume.AcceptDisk(root, class, dirs[class])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "storage class %s is on %s from now on; volumes that were made on another disk are missing (stead volume ls)\n", class, disk)
			return nil
		},
	}
	cmd.Flags().StringVar(&root, "root", "/var/lib/stead/agent", "the agent's directory on disk")
	cmd.Flags().StringToStringVar(&dirs, "storage-class", nil, "the class and its directory, if that has changed: ssd=/mnt/ssd")
	return cmd
}
