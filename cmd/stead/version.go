package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func versionCommand(c *cli) *cobra.Command {
	var client bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program and of the server",
		Example: `  stead version --client`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "client   %s\n", version)
			if client {
				return nil
			}
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				i, err := control.Info(ctx, &proto.InfoRequest{})
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "server   %s\ncluster  %s (epoch %d)\nleader   %s\nstore    %s, %s\ndomain   %s\nmembers  %s\n",
					i.GetVersion(), i.GetCluster(), i.GetEpoch(), orNone(i.GetLeader()), i.GetStore(),
					bytesText(i.GetStoreBytes()), i.GetDomain(), i.GetCidr())
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "only this program, without asking a server")
	return cmd
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
