package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func getCommand(c *cli) *cobra.Command {
	var (
		list   proto.ListRequest
		output string
		watch  bool
	)
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "List objects, or show one of them",
		Long: `List objects, or show one of them. Kinds: sets (sts), members (pods, po), volumes (pvc),
nodes (no), services (svc), budgets (pdb), configmaps (cm), secrets, events (ev), revisions
(rev). The column BLOCKED of members says what a member waits for; -o wide shows more. The
-o yaml of a set, service, budget or configmap can be applied again.`,
		Example: `  stead get members
  stead get members -o wide -A
  stead get pods -l app=etcd -o name
  stead get set etcd -o yaml
  stead get events --set etcd
  stead get members -w`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return misuse("get needs a kind and takes a name, for example 'stead get members'")
			}
			kind, name, err := parseChoice(args)
			if err != nil {
				return err
			}
			if _, err := spec.ParseSelector(list.Selector); list.Selector != "" && err != nil {
				return misuse("-l: %w", err)
			}
			show, err := newPrinter(cmd.OutOrStdout(), output, kind, list.AllNamespaces)
			if err != nil {
				return err
			}
			list.Kind, list.Namespace = kind, c.namespace
			if watch {
				return c.watchObjects(cmd.Context(), &list, name, show)
			}
			return c.getObjects(cmd.Context(), &list, name, show)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&list.AllNamespaces, "all-namespaces", "A", false, "list objects of all namespaces")
	flags.StringVarP(&list.Selector, "selector", "l", "", "only objects with these labels: app=db,tier!=test")
	flags.StringVar(&list.Set, "set", "", "only objects of this set")
	flags.StringVarP(&output, "output", "o", "", "wide, yaml, json or name (default: table)")
	flags.BoolVarP(&watch, "watch", "w", false, "watch for changes until Ctrl-C")
	return cmd
}

// parseChoice reads "kind", "kind name" or "kind/name".
func parseChoice(args []string) (kind, name string, err error) {
	if len(args) == 2 || strings.Contains(args[0], "/") {
		return parseTarget(args, "")
	}
	kind, err = parseKind(args[0])
	return kind, "", err
}

func (c *cli) getObjects(ctx context.Context, list *proto.ListRequest, name string, show *printer) error {
	if name != "" {
		o, err := c.control.Get(ctx, &proto.GetRequest{Kind: list.Kind, Namespace: list.Namespace, Name: name})
		if err != nil {
			return err
		}
		return show.all([]*proto.Object{o}, true)
	}
	got, err := c.control.List(ctx, list)
	if err != nil {
		return err
	}
	if len(got.GetObjects()) == 0 && show.isTable() {
		where := "namespace " + list.Namespace
		if list.AllNamespaces {
			where = "any namespace"
		}
		fmt.Fprintf(show.out, "no %ss in %s\n", list.Kind, where)
		return nil
	}
	return show.all(got.GetObjects(), false)
}

// watchObjects prints the objects that exist, then each change as it happens.
func (c *cli) watchObjects(ctx context.Context, list *proto.ListRequest, name string, show *printer) error {
	stream, err := c.control.Watch(ctx, list)
	if err != nil {
		return err
	}
	var first []*proto.Object
	synced := false
	for {
		ev, err := stream.Recv()
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		o := ev.GetObject()
		switch {
		case ev.GetSynced():
			synced = true
			if err := show.all(first, false); err != nil {
				return err
			}
		case name != "" && o.GetName() != name:
		case !synced:
			first = append(first, o)
		case ev.GetGone():
			fmt.Fprintf(show.out, "%s %s is gone\n", o.GetKind(), o.GetName())
		default:
			if err := show.change(o); err != nil {
				return err
			}
		}
	}
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
			show := &printer{out: cmd.OutOrStdout(), form: "wide", kind: list.Kind, namespace: list.AllNamespaces}
			return c.getObjects(cmd.Context(), list, "", show)
		},
	}
	if kind != proto.KindNode {
		ls.Flags().BoolVarP(&list.AllNamespaces, "all-namespaces", "A", false, "list objects of all namespaces")
		ls.Flags().StringVar(&list.Set, "set", "", "only objects of this set")
	}
	return ls
}
