package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func topCommand(c *cli) *cobra.Command {
	t := topper{cli: c}
	cmd := &cobra.Command{
		Use:   "top pod|member|node [NAME]",
		Short: "Show what members or nodes use now: processor time and memory",
		Long: `Show what members or nodes use now: processor time in thousandths of a core, and memory
without the pages of files that the kernel can take back at once. The nodes measure it for a
second when they are asked; nothing is stored. Of a node it is all that runs on it. Containers
that were started within that second are left out.`,
		Example: `  stead top pods
  stead top pod etcd-0 --containers
  stead top members -A --sort-by memory
  stead top nodes --no-headers`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.out, t.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			kind, name, err := t.check(args)
			switch {
			case err != nil:
				return err
			case kind == proto.KindNode:
				return t.nodes(cmd.Context(), name)
			}
			return t.members(cmd.Context(), name)
		},
	}
	t.addFlags(cmd.Flags())
	return cmd
}

// topper is one use of the verb top.
type topper struct {
	*cli
	out, errOut io.Writer
	list        proto.ListRequest
	order       string // cpu, memory; "": by name
	containers  bool
	headless    bool
}

func (t *topper) addFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&t.list.AllNamespaces, "all-namespaces", "A", false, "members of all namespaces")
	flags.StringVarP(&t.list.Selector, "selector", "l", "", "only members or nodes with these labels: app=db,tier!=test")
	flags.BoolVar(&t.containers, "containers", false, "show the containers of the members")
	flags.StringVar(&t.order, "sort-by", "", "cpu or memory: what uses most of it comes first")
	flags.BoolVar(&t.headless, "no-headers", false, "show the table without its header")
}

// check reads the command line, or returns what is wrong with it.
func (t *topper) check(args []string) (kind, name string, err error) {
	if _, err := spec.ParseSelector(t.list.Selector); t.list.Selector != "" && err != nil {
		return "", "", misuse("-l: %w", err)
	}
	targets, err := parseTargets(args)
	switch {
	case len(args) == 0:
		return "", "", misuse("top needs 'pod' or 'node', for example 'stead top pods'")
	case err != nil:
		return "", "", err
	case len(targets) != 1 || len(targets[0].names) > 1:
		return "", "", misuse("top shows one member or node, or all; for several use -l LABELS")
	}
	kind = targets[0].kind
	if len(targets[0].names) > 0 {
		name = targets[0].names[0]
	}
	switch {
	case kind != proto.KindMember && kind != proto.KindNode:
		return "", "", misuse("top shows members and nodes, not a %s", kind)
	case name != "" && (t.list.Selector != "" || t.list.AllNamespaces):
		return "", "", misuse("-l and -A choose among all; omit them, or the name")
	case kind == proto.KindNode && (t.containers || t.list.AllNamespaces):
		return "", "", misuse("--containers and -A are for members")
	case t.order != "" && t.order != "cpu" && t.order != "memory":
		return "", "", misuse("--sort-by takes cpu or memory, not %q", t.order)
	}
	t.list.Kind, t.list.Namespace = kind, t.namespace
	return kind, name, nil
}

// use is a line of the table: what it is of, and how much.
type use struct {
	cells []any
	used  *proto.Used
}

// sorted orders lines by --sort-by, the largest first; without it they stay as they are.
func (t *topper) sorted(uses []use) []use {
	slices.SortStableFunc(uses, func(a, b use) int {
		switch t.order {
		case "cpu":
			return cmp.Compare(b.used.GetCpuMillis(), a.used.GetCpuMillis())
		case "memory":
			return cmp.Compare(b.used.GetMemoryBytes(), a.used.GetMemoryBytes())
		}
		return 0
	})
	return uses
}

func (t *topper) table(head ...string) *table {
	if t.headless {
		head = nil
	}
	return newTable(t.out, head...)
}

// ask measures one node, or all ("").
func (t *topper) ask(ctx context.Context, node string) ([]*proto.NodeUsage, error) {
	got, err := t.control.Usage(ctx, &proto.UsageRequest{Node: node})
	for _, n := range got.GetNodes() {
		if n.GetError() != "" {
			fmt.Fprintf(t.errOut, "warning: node %s: %s\n", n.GetNode(), scalar.Plain(n.GetError()))
		}
	}
	return got.GetNodes(), err
}

// millis and mebibytes are as kubectl prints them.
func millis(u *proto.Used) string    { return fmt.Sprintf("%dm", u.GetCpuMillis()) }
func mebibytes(u *proto.Used) string { return fmt.Sprintf("%dMi", u.GetMemoryBytes()>>20) }

// members shows one member, or those that the flags choose.
func (t *topper) members(ctx context.Context, name string) error {
	all, err := list[records.Member, records.ShownMember](ctx, t.cli, &t.list)
	if err != nil {
		return err
	}
	node := ""
	if name != "" {
		all = slices.DeleteFunc(all, func(m *shownMember) bool { return m.Metadata.Name != name })
		if len(all) == 0 || all[0].Spec.Node == "" {
			return fmt.Errorf("there is no member %s that runs in namespace %s", name, t.namespace)
		}
		node = string(all[0].Spec.Node)
	}
	if len(all) == 0 {
		fmt.Fprintf(t.errOut, "no members in namespace %s\n", t.namespace)
		return nil
	}
	usages, err := t.ask(ctx, node)
	if err != nil {
		return err
	}
	uses := t.sorted(t.uses(all, usages))
	if len(uses) == 0 {
		return fmt.Errorf("nothing is known of what the members use; 'stead get members' says which run")
	}
	head := []string{"NAME", "CPU(cores)", "MEMORY(bytes)"}
	if t.containers {
		head = append([]string{"POD"}, head...)
	}
	if t.list.AllNamespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	table := t.table(head...)
	for _, u := range uses {
		table.row(append(u.cells, millis(u.used), mebibytes(u.used))...)
	}
	return table.flush()
}

// uses are the lines of members of which something is known, in their order; or those of their
// containers.
func (t *topper) uses(members []*shownMember, usages []*proto.NodeUsage) (out []use) {
	type key struct{ node, namespace, member string }
	found := map[key][]*proto.ContainerUsage{}
	for _, n := range usages {
		for _, c := range n.GetContainers() {
			id := wire.ToIdentity(c.GetMember())
			k := key{n.GetNode(), string(id.Namespace), id.MemberName()}
			found[k] = append(found[k], c)
		}
	}
	for _, m := range members {
		var cells []any
		if t.list.AllNamespaces {
			cells = append(cells, m.Metadata.Namespace)
		}
		cells = append(cells, m.Metadata.Name)
		sum := &proto.Used{}
		containers := found[key{string(m.Spec.Node), string(m.Metadata.Namespace), m.Metadata.Name}]
		for _, c := range containers {
			sum.CpuMillis += c.GetUsed().GetCpuMillis()
			sum.MemoryBytes += c.GetUsed().GetMemoryBytes()
			if t.containers {
				out = append(out, use{append(slices.Clone(cells), c.GetContainer()), c.GetUsed()})
			}
		}
		if len(containers) > 0 && !t.containers {
			out = append(out, use{cells, sum})
		}
	}
	return out
}

// nodes shows one node, or those that the flags choose.
func (t *topper) nodes(ctx context.Context, name string) error {
	all, err := list[records.Node, records.ShownNode](ctx, t.cli, &t.list)
	if err != nil {
		return err
	}
	if name != "" {
		all = slices.DeleteFunc(all, func(n *shownNode) bool { return n.Metadata.Name != name })
		if len(all) == 0 {
			return fmt.Errorf("there is no node %s", name)
		}
	}
	usages, err := t.ask(ctx, name)
	if err != nil {
		return err
	}
	var uses []use
	for _, n := range all {
		i := slices.IndexFunc(usages, func(u *proto.NodeUsage) bool { return u.GetNode() == n.Metadata.Name })
		if i < 0 || usages[i].GetHost() == nil {
			uses = append(uses, use{[]any{n.Metadata.Name, "<unknown>", "<unknown>", "<unknown>", "<unknown>"}, nil})
			continue
		}
		used := usages[i].GetHost()
		cpu, memory := "<unknown>", "<unknown>"
		if n.Status.NodeFacts != nil {
			cpu, memory = percent(used.GetCpuMillis(), n.Status.CPUMillis), percent(used.GetMemoryBytes(), n.Status.MemoryBytes)
		}
		uses = append(uses, use{[]any{n.Metadata.Name, millis(used), cpu, mebibytes(used), memory}, used})
	}
	table := t.table(strings.Fields("NAME CPU(cores) CPU(%) MEMORY(bytes) MEMORY(%)")...)
	for _, u := range t.sorted(uses) {
		table.row(u.cells...)
	}
	return table.flush()
}

// percent is how much of a whole is used.
func percent(used, whole int64) string {
	if whole <= 0 {
		return "<unknown>"
	}
	return fmt.Sprintf("%d%%", used*100/whole)
}
