package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/agent/volume"
	"github.com/stead-project/stead/spec/scalar"
)

func acceptDiskCommand() *cobra.Command {
	var (
		root string
		dirs map[string]string
	)
	cmd := &cobra.Command{
		Use:   "accept-disk CLASS",
		Short: "Accept the disk that is mounted now as the disk of a storage class",
		Long: `Accept the disk that now holds the directory of a storage class as the disk of that
class, instead of the one that was used first. Use it after a disk was replaced for
good: until then members with a volume of the class wait with DiskMissing. Mount the
new disk first. Volumes that were on the old disk become VolumeMissing. A running
agent notices the change by itself.`,
		Example: "  stead agent accept-disk ssd --root /var/lib/stead/agent",
		Args:    exactly(1, "one storage class"),
		RunE: func(cmd *cobra.Command, args []string) error {
			class := args[0]
			if !scalar.ValidSubdomain(class) {
				return usageError{fmt.Errorf("invalid storage class %q: use lower-case letters, digits, '-' and '.'", class)}
			}
			disk, err := volume.AcceptDisk(root, class, dirs[class])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "storage class %s now uses %s; volumes made on another disk are missing (see 'stead volume ls')\n", class, disk)
			return nil
		},
	}
	cmd.Flags().StringVar(&root, "root", "/var/lib/stead/agent", "the agent's directory on disk")
	cmd.Flags().StringToStringVar(&dirs, "storage-class", nil, "the class and its directory, if that has changed: ssd=/mnt/ssd")
	return cmd
}
