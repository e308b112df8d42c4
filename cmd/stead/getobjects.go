package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	gproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
)

// fetch reads the objects of a target; absent are the errors of those that do not exist.
func (g *getter) fetch(ctx context.Context, t target) (objects []*proto.Object, absent []error, err error) {
	objects, absent, err = g.fetchStored(ctx, t)
	if err == nil && t.kind == proto.KindVolume && (g.full || g.output == "wide") {
		err = g.addUse(ctx, objects, g.errOut)
	}
	return objects, absent, err
}

// fetchStored is fetch of what the server shows.
func (g *getter) fetchStored(ctx context.Context, t target) (objects []*proto.Object, absent []error, err error) {
	if len(t.names) == 0 {
		list := gproto.Clone(&g.list).(*proto.ListRequest)
		list.Kind = t.kind
		got, err := g.control.List(ctx, list)
		return got.GetObjects(), nil, err
	}
	for _, name := range t.names {
		o, err := g.control.Get(ctx, &proto.GetRequest{Kind: t.kind, Namespace: cmp.Or(t.namespace, g.list.Namespace), Name: name})
		switch {
		case status.Code(err) == codes.NotFound:
			absent = append(absent, errors.New(explainError(err)))
		case err != nil:
			return nil, nil, err
		default:
			objects = append(objects, o)
		}
	}
	return objects, absent, nil
}

// hostAddresses are the addresses of the nodes that have reported one, by name.
func (g *getter) hostAddresses(ctx context.Context) (map[string]string, error) {
	nodes, err := list[any, records.ShownNode](ctx, g.cli, &proto.ListRequest{Kind: proto.KindNode})
	hosts := map[string]string{}
	for _, n := range nodes {
		if n.Status.NodeFacts != nil {
			hosts[n.Metadata.Name] = n.Status.HostIP
		}
	}
	return hosts, err
}

// listCommand is the verb ls of a group: the wide table of a kind.
func (c *cli) listCommand(kind, short, example string) *cobra.Command {
	g := getter{cli: c, output: "wide", full: true}
	ls := &cobra.Command{
		Use:     "ls",
		Short:   short,
		Example: example,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			g.list.Namespace, g.out, g.errOut = c.namespace, cmd.OutOrStdout(), cmd.ErrOrStderr()
			if _, err := newPrinter(g.out, g.output, kind, false); err != nil {
				return err
			}
			return g.show(cmd.Context(), []target{{kind: kind, word: kind}})
		},
	}
	ls.Flags().StringVarP(&g.output, "output", "o", "wide", "wide, yaml, json, name, jsonpath=TEMPLATE or jsonpath-file=FILE")
	if kind != proto.KindNode {
		ls.Flags().BoolVarP(&g.list.AllNamespaces, "all-namespaces", "A", false, "list objects of all namespaces")
		ls.Flags().StringVar(&g.list.Set, "set", "", "only objects of this set")
	}
	return ls
}
