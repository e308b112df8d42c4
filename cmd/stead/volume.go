package main

import (
	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func volumeCommand(c *cli) *cobra.Command {
	ls := c.listCommand(proto.KindVolume, "List the volumes, including those that no member uses", "  stead volume ls\n  stead volume ls -A --set etcd")
	return group("volume", "Manage volumes", ls, volumeReclaim(c), volumeRestore(c))
}

// listCommand is the verb ls of a group: the wide table of a kind.
func (c *cli) listCommand(kind, short, example string) *cobra.Command {
	list := &proto.ListRequest{Kind: kind}
	ls := &cobra.Command{
		Use:     "ls",
		Short:   short,
		Example: example,
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
	if kind != proto.KindNode {
		ls.Flags().BoolVarP(&list.AllNamespaces, "all-namespaces", "A", false, "list objects of all namespaces")
		ls.Flags().StringVar(&list.Set, "set", "", "only objects of this set")
	}
	return ls
}
