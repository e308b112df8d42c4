package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

func nodeCommand(c *cli) *cobra.Command {
	ls := c.listCommand("node", "List the hosts, with what their members ask for", "  stead node ls")
	return group("node", "Look after the hosts", ls, nodeCordon(c, true), nodeCordon(c, false), nodeLabel(c), nodeTaint(c),
		nodeRoutes(c), nodeFence(c), nodeRemove(c), nodeRevoke(c))
}

// editNode sends a request about the node that args name first.
func (c *cli) editNode(cmd *cobra.Command, r *proto.EditNodeRequest, said string) error {
	return c.onNode(cmd, r.GetName(), said, func(ctx context.Context, control proto.ControlClient) (*proto.EditResponse, error) {
		return control.EditNode(ctx, r)
	})
}

// onNode calls do, bounded as every call, and prints what became of the node.
func (c *cli) onNode(cmd *cobra.Command, name, said string, do func(context.Context, proto.ControlClient) (*proto.EditResponse, error)) error {
	return c.with(func(control proto.ControlClient) error {
		ctx, cancel := call(cmd.Context())
		defer cancel()
		done, err := do(ctx, control)
		return printEdit(cmd, done, err, "node "+name+" "+said)
	})
}

// nodeCordon is the verb cordon, or uncordon.
func nodeCordon(c *cli, cordon bool) *cobra.Command {
	use, short := "cordon", "Let no member begin on a host; those that run go on"
	if !cordon {
		use, short = "uncordon", "Let members begin on a cordoned host again"
	}
	return &cobra.Command{
		Use:               use + " NODE",
		Short:             short,
		Example:           "  stead node " + use + " host-a",
		Args:              exactly(1, "the node's name"),
		ValidArgsFunction: c.completeNames("node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editNode(cmd, &proto.EditNodeRequest{Name: args[0], Cordon: &cordon}, use+"ed")
		},
	}
}

func nodeLabel(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:               "label NODE KEY=VALUE|KEY-...",
		Short:             "Give a host labels, or take them away",
		Example:           "  stead node label host-a zone=north disk=ssd\n  stead node label host-a disk-",
		ValidArgsFunction: c.completeNames("node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{errors.New("label takes the node's name and KEY=VALUE, or KEY- to take one away")}
			}
			r := &proto.EditNodeRequest{Name: args[0], Labels: map[string]string{}}
			for _, arg := range args[1:] {
				if key, drop := strings.CutSuffix(arg, "-"); drop && !strings.Contains(arg, "=") {
					r.DropLabels = append(r.DropLabels, key)
					continue
				}
				key, value, err := spec.ParseLabel(arg)
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
		Short: "Keep members away from a host that do not tolerate it",
		Long: fmt.Sprintf(`Keep members away from a host that do not tolerate it, or let them come again.
EFFECT is %s, or %s: they come when no other host can take them.
Members that run go on.`, spec.NoSchedule, spec.PreferNoSchedule),
		Example:           "  stead node taint host-a dedicated=kafka:NoSchedule\n  stead node taint host-a dedicated-",
		ValidArgsFunction: c.completeNames("node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{errors.New("taint takes the node's name and KEY=VALUE:EFFECT, or KEY- to take one away")}
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
		Short: "Say that a host is off, so that its members may begin elsewhere",
		Long: `Say that a host is off, so that its members may begin elsewhere. Stead never takes
silence for an end: a host that does not answer may run its members still, and two of
one member destroy data. Only power it off and say so here when it really is: pulled,
or off in its management controller. A host that is only unreachable is not off.

It ends the lives that the host has now. Members whose volumes are on it wait for it
to return, when it has no lives left, or until a person says that a volume is lost
with it: 'stead volume reclaim VOLUME --lost'.`,
		Example:           "  stead node fence host-b --i-have-powered-off",
		Args:              exactly(1, "the node's name"),
		ValidArgsFunction: c.completeNames("node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !off {
				return usageError{fmt.Errorf("fence %s: power the host off first, then add --i-have-powered-off; if it runs on, members run twice", args[0])}
			}
			return c.onNode(cmd, args[0], "fenced", func(ctx context.Context, control proto.ControlClient) (*proto.EditResponse, error) {
				return control.FenceNode(ctx, &proto.FenceNodeRequest{Name: args[0], PoweredOff: off})
			})
		},
	}
	cmd.Flags().BoolVar(&off, "i-have-powered-off", false, "the host is off, and its members with it")
	return cmd
}

func nodeRemove(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NODE",
		Short:             "Forget a silent host of which nothing is left",
		Long:              "Forget a silent host of which nothing is left: no member and no volume. A machine that\nreturns under its name joins anew.",
		Example:           "  stead node remove host-b",
		Args:              exactly(1, "the node's name"),
		ValidArgsFunction: c.completeNames("node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onNode(cmd, args[0], "removed", func(ctx context.Context, control proto.ControlClient) (*proto.EditResponse, error) {
				return control.RemoveNode(ctx, &proto.RemoveNodeRequest{Name: args[0]})
			})
		},
	}
}

func nodeRoutes(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "routes",
		Short: "Print the routes by which a machine without Stead reaches members",
		Long: `Print the routes by which a machine without Stead reaches members. One is enough: each
host leads on to the others. Their names are answered by hosts whose agents have
--dns-listen.`,
		Example: "  stead node routes",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				about, err := control.Info(ctx, &proto.InfoRequest{})
				if err != nil {
					return err
				}
				nodes, err := control.List(ctx, &proto.ListRequest{Kind: "node"})
				if err != nil {
					return err
				}
				return sayRoutes(cmd.OutOrStdout(), about.GetCidr(), nodes.GetObjects())
			})
		},
	}
}

// sayRoutes prints a route to cidr over each node that says its address and is there.
func sayRoutes(out io.Writer, cidr string, nodes []*proto.Object) error {
	any := false
	for _, p := range nodes {
		var st struct {
			records.NodeFacts
			State string `json:"state"`
		}
		o, err := decode(p, nil, &st)
		if err != nil {
			return err
		}
		if st.State == "Ready" && st.HostIP != "" {
			any = true
			fmt.Fprintf(out, "ip route replace %s via %s  # %s\n", cidr, st.HostIP, o.Metadata.Name)
		}
	}
	if !any {
		return errors.New("no host that is there says its address; start an agent with --address")
	}
	return nil
}
