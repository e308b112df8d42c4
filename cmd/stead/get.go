package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func getCommand(c *cli) *cobra.Command {
	g := getter{cli: c}
	cmd := &cobra.Command{
		Use:   "get KIND[,KIND...] [NAME...]",
		Short: "List objects, or show some of them",
		Long: `List objects, or show some of them. Kinds: sets (sts), members (pods, po), volumes (pvc),
nodes (no), services (svc), endpoints (ep), endpointslices, budgets (pdb), quotas, networkpolicies
(netpol), configmaps (cm), secrets, events (ev), revisions (rev); all: pods, services and sets.
The column BLOCKED of members says what a member waits for; -o wide shows more. The -o yaml of
a set, service, budget, networkpolicy, quota or configmap can be applied again. The -o json of a member has the fields of a Pod that scripts read (status.phase,
podIP, hostIP, conditions, containerStatuses) beside its own.

-o jsonpath, --sort-by, -L and --show-labels are those of kubectl. -o name prints the kind
in the language in which it was asked for: pod/etcd-0 or member/etcd-0.`,
		Example: `  stead get members
  stead get members -o wide -A
  stead get sts,svc
  stead get pods etcd-0 etcd-1
  stead get pods -l app=etcd -o name
  stead get pods --sort-by .status.restarts -L app --no-headers
  stead get pod etcd-0 -o jsonpath={.status.podIP}
  stead get set etcd -o yaml
  stead get -f examples/etcd/etcd.yaml
  stead get events --set etcd
  stead get members -w`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := g.targets(cmd, args)
			if err != nil {
				return err
			}
			if g.watch {
				return g.watchTarget(cmd.Context(), targets)
			}
			return g.show(cmd.Context(), targets)
		},
	}
	g.addFlags(cmd.Flags())
	return cmd
}

// getter is one use of the verb get.
type getter struct {
	*cli
	list   proto.ListRequest
	out    io.Writer
	errOut io.Writer
	output string
	watch  bool
	full   bool   // nodes are asked how full volumes are
	order  string // a path, of --sort-by
	manifests
	labels   []string
	allLabel bool
	headless bool
}

func (g *getter) addFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&g.list.AllNamespaces, "all-namespaces", "A", false, "list objects of all namespaces")
	flags.StringVarP(&g.list.Selector, "selector", "l", "", "only objects with these labels: app=db,tier!=test")
	flags.StringVar(&g.list.Set, "set", "", "only objects of this set")
	g.manifests.addFlags(flags, "show ")
	flags.StringVarP(&g.output, "output", "o", "", "wide, yaml, json, name, jsonpath=TEMPLATE or jsonpath-file=FILE (default: table)")
	flags.StringVar(&g.order, "sort-by", "", "sort by the values at this path, for example .metadata.creationTimestamp")
	flags.StringSliceVarP(&g.labels, "label-columns", "L", nil, "show these labels as columns (repeatable)")
	flags.BoolVar(&g.allLabel, "show-labels", false, "show all labels in the last column")
	flags.BoolVar(&g.headless, "no-headers", false, "show tables without their header")
	flags.BoolVarP(&g.watch, "watch", "w", false, "watch for changes until Ctrl-C")
}

// targets reads the command line, or returns what is wrong with it.
func (g *getter) targets(cmd *cobra.Command, args []string) (targets []target, err error) {
	g.out, g.errOut, g.list.Namespace = cmd.OutOrStdout(), cmd.ErrOrStderr(), g.namespace
	if _, err := spec.ParseSelector(g.list.Selector); g.list.Selector != "" && err != nil {
		return nil, misuse("-l: %w", err)
	}
	switch {
	case g.named() && (len(args) > 0 || g.list.Selector != ""):
		return nil, misuse("-f names the objects; omit KIND, NAME and -l")
	case g.named():
		targets, err = filesTargets(cmd, &g.manifests, g.namespace)
	case len(args) == 0:
		return nil, misuse("get needs a kind and takes names, for example 'stead get members'")
	default:
		targets, err = parseTargets(args)
	}
	if err != nil {
		return nil, err
	}
	named := len(targets[0].names) > 0
	switch {
	case named && g.list.Selector != "":
		return nil, misuse("-l chooses among all objects; omit it, or the names")
	case named && g.list.AllNamespaces:
		return nil, misuse("-A lists the objects of all namespaces; for one by its name write -n NAMESPACE")
	case g.watch && len(targets) > 1:
		return nil, misuse("-w watches objects of one kind")
	case g.watch && g.order != "":
		return nil, misuse("--sort-by cannot be used with -w")
	}
	_, err = newPrinter(g.out, g.output, targets[0].kind, false) // is -o right?
	return targets, err
}

// printer is that of one kind.
func (g *getter) printer(ctx context.Context, t target, several bool) (*printer, error) {
	show, err := newPrinter(g.out, g.output, t.kind, g.list.AllNamespaces)
	if err != nil {
		return nil, err
	}
	show.word, show.prefixed, show.headless = t.word, several, g.headless
	show.labels, show.allLabel, show.ordered = g.labels, g.allLabel, g.order != ""
	if t.kind == proto.KindMember && (show.isDocument() || g.order != "") {
		show.hosts, err = g.hostAddresses(ctx)
	}
	return show, err
}

// found are the objects of one target.
type found struct {
	target
	objects []*proto.Object
	show    *printer
}

// show prints what targets name: a table for each kind, or all in one document. Objects that do
// not exist are reported after the others.
func (g *getter) show(ctx context.Context, targets []target) error {
	var all []found
	var missing []error
	count := 0
	for _, t := range targets {
		objects, absent, err := g.fetch(ctx, t)
		if err != nil {
			return err
		}
		f := found{target: t, objects: objects}
		if f.show, err = g.printer(ctx, t, len(targets) > 1); err != nil {
			return err
		}
		if g.order != "" {
			if err := f.show.sortBy(g.order, objects); err != nil {
				return err
			}
		}
		all, missing, count = append(all, f), append(missing, absent...), count+len(objects)
	}
	if err := g.print(all, count, len(missing)); err != nil {
		return err
	}
	return errors.Join(missing...)
}

// print shows count objects, of which some may be missing.
func (g *getter) print(all []found, count, missing int) error {
	first := all[0]
	if first.show.isDocument() {
		if count == 0 && missing > 0 {
			return nil
		}
		var objects []*proto.Object
		for _, f := range all {
			objects = append(objects, f.objects...)
			if f.show.hosts != nil {
				first.show.hosts = f.show.hosts
			}
		}
		return first.show.all(objects, count == 1 && missing == 0 && len(all) == 1 && len(first.names) == 1)
	}
	shown := 0
	for _, f := range all {
		if len(f.objects) == 0 {
			continue
		}
		shown++
		if shown > 1 && f.show.isTable() {
			fmt.Fprintln(g.out)
		}
		if err := f.show.all(f.objects, false); err != nil {
			return err
		}
	}
	if count+missing == 0 && first.show.isTable() {
		g.printNone(targetsOf(all))
	}
	return nil
}

func targetsOf(all []found) (out []target) {
	for _, f := range all {
		out = append(out, f.target)
	}
	return out
}

// printNone says that there is nothing to show, not among the output that scripts count.
func (g *getter) printNone(all []target) {
	what, where := "objects of these kinds", " in namespace "+g.list.Namespace
	if len(all) == 1 {
		what = plural(all[0].kind)
	}
	switch {
	case len(all) == 1 && all[0].kind == proto.KindNode:
		where = ""
	case g.list.AllNamespaces:
		where = " in any namespace"
	}
	fmt.Fprintf(g.errOut, "no %s%s\n", what, where)
}
