package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

// shrinkTimeout bounds 'store compact': it lasts as long as all data is copied once.
const shrinkTimeout = 2 * time.Minute

func storeCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look after the store of the cluster's records",
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("store takes a verb: compact")}
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "compact",
		Short: "Drop the store's history, give its space back and end the alarm NOSPACE",
		Long: `Drop the store's history, give the space it took back to the disk, and end the alarm
NOSPACE once there is room. Nothing that is stored is lost. Everybody waits for it, for
seconds at most. A server does it by itself when its embedded etcd is full; an external
etcd is only touched by this command, with all that others keep in it.`,
		Example: `  stead store compact`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := context.WithTimeout(cmd.Context(), shrinkTimeout)
				defer cancel()
				done, err := control.ShrinkStore(ctx, &proto.ShrinkStoreRequest{})
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "store compacted: %s → %s%s; it takes writes\n",
					bytesText(done.GetBeforeBytes()), bytesText(done.GetAfterBytes()), ofQuota(done.GetQuotaBytes()))
				return nil
			})
		},
	})
	return cmd
}

// ofQuota says how large the store may grow; nothing where that is not known.
func ofQuota(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return " of " + bytesText(bytes)
}
