package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func nodeCommand(c *cli) *cobra.Command {
	ls := c.listCommand(proto.KindNode, "List the nodes, with what their members request", "  stead node ls")
	return group("node", "Manage nodes", ls, nodeCordon(c, true), nodeCordon(c, false), nodeDrain(c), nodeLabel(c), nodeTaint(c),
		nodeRoutes(c), nodeFence(c), nodeRemove(c), nodeRevoke(c))
}

// editNode sends an edit of a node, and prints the result.
func (c *cli) editNode(cmd *cobra.Command, r *proto.EditNodeRequest, said string) error {
	done, err := c.control.EditNode(cmd.Context(), r)
	return printEdit(cmd, done, err, "node "+r.GetName()+" "+said)
}

// nodeCordon is the verb cordon, or uncordon.
func nodeCordon(c *cli, cordon bool) *cobra.Command {
	use, short := "cordon", "Mark a node unschedulable; running members are not affected"
	if !cordon {
		use, short = "uncordon", "Mark a node schedulable again, and end its drain: members that wait for it start again"
	}
	return &cobra.Command{
		Use:               use + " NODE",
		Short:             short,
		Example:           "  stead node " + use + " host-a",
		Args:              exactly(1, "the name of a node"),
		ValidArgsFunction: c.completeNames(proto.KindNode),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editNode(cmd, &proto.EditNodeRequest{Name: args[0], Cordon: &cordon}, use+"ed")
		},
	}
}

func nodeLabel(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:               "label NODE KEY=VALUE|KEY-...",
		Short:             "Set or remove labels of a node",
		Example:           "  stead node label host-a zone=north disk=ssd\n  stead node label host-a disk-",
		ValidArgsFunction: c.completeNames(proto.KindNode),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return misuse("label needs the name of a node and KEY=VALUE, or KEY- to remove a label")
			}
			r := &proto.EditNodeRequest{Name: args[0], Labels: map[string]string{}}
			for _, arg := range args[1:] {
				if key, drop := strings.CutSuffix(arg, "-"); drop && !strings.Contains(arg, "=") {
					r.DropLabels = append(r.DropLabels, key)
					continue
				}
				key, value, err := scalar.ParseLabel(arg)
				if err != nil {
					return usageError{err}
				}
				r.Labels[key] = value
			}
			return c.editNode(cmd, r, "labelled")
		},
	}
}

func nodeTaint(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "taint NODE KEY[=VALUE]:EFFECT|KEY[:EFFECT]-...",
		Short: "Set or remove taints of a node",
		Long: fmt.Sprintf(`Set or remove taints of a node. Members that do not tolerate a taint are not placed
there. EFFECT is %s, or %s: then they are placed there only if no
other node can take them. Running members are not affected.`, spec.NoSchedule, spec.PreferNoSchedule),
		Example:           "  stead node taint host-a dedicated=kafka:NoSchedule\n  stead node taint host-a dedicated-",
		ValidArgsFunction: c.completeNames(proto.KindNode),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return misuse("taint needs the name of a node and KEY=VALUE:EFFECT, or KEY- to remove a taint")
			}
			r := &proto.EditNodeRequest{Name: args[0]}
			for _, arg := range args[1:] {
				if key, drop := strings.CutSuffix(arg, "-"); drop {
					r.DropTaints = append(r.DropTaints, key)
					continue
				}
				if _, err := spec.ParseTaint(arg); err != nil {
					return usageError{err}
				}
				r.Taints = append(r.Taints, arg)
			}
			return c.editNode(cmd, r, "tainted")
		},
	}
}

func nodeFence(c *cli) *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "fence NODE --i-have-powered-off",
		Short: "Confirm that a node is powered off, so that its members can start elsewhere",
		Long: `Confirm that a node is powered off, so that its members can start elsewhere. Silence
proves nothing: a node that does not answer may still run its members, and two lives of
one member destroy data. Power the host off first (pull the plug, or use its management
controller), then run this. A host that is only unreachable is not off.

The lives that the node has now count as over. A member whose volumes are on the node
waits until the node returns without lives, or until you declare a volume lost with
'stead volume reclaim VOLUME --lost'.`,
		Example:           "  stead node fence host-b --i-have-powered-off",
		Args:              exactly(1, "the name of a node"),
		ValidArgsFunction: c.completeNames(proto.KindNode),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !off {
				return misuse("fence %s: power the host off, then confirm with --i-have-powered-off; if it is still on, members run twice", args[0])
			}
			done, err := c.control.FenceNode(cmd.Context(), &proto.FenceNodeRequest{Name: args[0], PoweredOff: off})
			return printEdit(cmd, done, err, "node "+args[0]+" fenced")
		},
	}
	cmd.Flags().BoolVar(&off, "i-have-powered-off", false, "confirm that the host is powered off")
	return cmd
}

func nodeRemove(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NODE",
		Short:             "Remove the record of a silent node that has no members and no volumes",
		Long:              "Remove the record of a silent node that has no members and no volumes. A machine that\nreturns under this name must join again.",
		Example:           "  stead node remove host-b",
		Args:              exactly(1, "the name of a node"),
		ValidArgsFunction: c.completeNames(proto.KindNode),
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := c.control.RemoveNode(cmd.Context(), &proto.RemoveNodeRequest{Name: args[0]})
			return printEdit(cmd, done, err, "node "+args[0]+" removed")
		},
	}
}

func nodeRoutes(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "routes",
		Short: "Print the routes by which machines without Stead can reach members",
		Long: `Print the routes by which machines without Stead can reach members. One route is enough:
every node forwards to the others. To resolve members' names, use the DNS of a node whose
agent has --dns-listen.`,
		Example: "  stead node routes",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			about, err := c.control.Info(cmd.Context(), &proto.InfoRequest{})
			if err != nil {
				return err
			}
			nodes, err := list[any, records.ShownNode](cmd.Context(), c, &proto.ListRequest{Kind: proto.KindNode})
			if err != nil {
				return err
			}
			return printRoutes(cmd.OutOrStdout(), about.GetCidr(), nodes)
		},
	}
}

// printRoutes prints a route to cidr over each ready node that reported its address.
func printRoutes(out io.Writer, cidr string, nodes []*shown[any, records.ShownNode]) error {
	found := false
	for _, o := range nodes {
		if st := o.Status; st.State == "Ready" && st.NodeFacts != nil && st.HostIP != "" {
			found = true
			fmt.Fprintf(out, "ip route replace %s via %s  # %s\n", cidr, st.HostIP, o.Metadata.Name)
		}
	}
	if !found {
		return errors.New("no ready node has reported its address; start an agent with --address")
	}
	return nil
}
