package main

import (
	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func volumeCommand(c *cli) *cobra.Command {
	list := &proto.ListRequest{Kind: "volume"}
	ls := &cobra.Command{
		Use:     "ls",
		Short:   "List the volumes, also those that no member uses now",
		Example: "  stead volume ls\n  stead volume ls -A --set etcd",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list.Namespace = c.namespace
			show, err := newPrinter(cmd.OutOrStdout(), "wide", list.Kind, list.AllNamespaces)
			if err != nil {
				return err
			}
			return c.with(func(control proto.ControlClient) error {
				return getObjects(cmd.Context(), control, list, "", show)
			})
		},
	}
	ls.Flags().BoolVarP(&list.AllNamespaces, "all-namespaces", "A", false, "of all namespaces")
	ls.Flags().StringVar(&list.Set, "set", "", "only those of this set")
	return group("volume", "Look after the volumes of members", ls, volumeReclaim(c))
}
