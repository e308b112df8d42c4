package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// shownLines limits the lines about the members of one set.
const shownLines = 5

func statusCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the health of servers, store, nodes and sets on one screen",
		Long: `Show on one screen: the servers and their leader; how full the store is, its format, and its alarms;
whether the store went back, and which nodes its restore waits for; the nodes without a
session; the moves of members and how far they are; and, of all namespaces, the sets that are not healthy, with what their members wait
for. It works also while the store is full. The exit code only says whether the server
answered.`,
		Example: `  stead status`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.overview(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

func (c *cli) overview(ctx context.Context, out io.Writer) error {
	info, err := c.control.Info(ctx, &proto.InfoRequest{})
	if err != nil {
		return err
	}
	nodes, err := c.control.List(ctx, &proto.ListRequest{Kind: proto.KindNode})
	if err != nil {
		return err
	}
	sets, err := c.control.List(ctx, &proto.ListRequest{Kind: proto.KindSet, AllNamespaces: true})
	if err != nil {
		return err
	}
	printServers(out, info)
	c.printPeers(ctx, out)
	c.printKeyring(ctx, out)
	c.printAuthority(ctx, out)
	printStore(out, info)
	printRestoring(out, info)
	printBackups(out, info)
	if t := info.GetTunnel(); t != "" {
		fact(out, "tunnel", "%s", tunnelText(t))
	}
	if err := printNodes(out, nodes.GetObjects(), info.GetTunnel()); err != nil {
		return err
	}
	if err := printMoves(out, sets.GetObjects()); err != nil {
		return err
	}
	return c.printSets(ctx, out, sets.GetObjects())
}

// fact prints one aligned line; long text is left to the terminal to wrap.
func fact(out io.Writer, name, format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = scalar.Plain(text)
		}
	}
	fmt.Fprintf(out, "%-8s %s\n", name, fmt.Sprintf(format, args...))
}

func printServers(out io.Writer, i *proto.InfoResponse) {
	fact(out, "cluster", "%s (epoch %d)", i.GetCluster(), i.GetEpoch())
	leader := "leader " + i.GetLeader()
	if i.GetLeader() == "" {
		leader = "no leader: sets are not reconciled until a server can write to the store"
	}
	fact(out, "servers", "%s (answered by %s, %s); %s",
		strings.Join(i.GetServers(), ", "), i.GetServer(), i.GetVersion(), leader)
}

func printStore(out io.Writer, i *proto.InfoResponse) {
	fact(out, "store", "%s %s: %s%s used", i.GetStore(), i.GetStoreVersion(), bytesText(i.GetStoreBytes()), ofQuota(i.GetStoreQuotaBytes()))
	if format := i.GetStoreFormat(); format > 0 {
		why := ""
		if i.GetStoreFormatWhy() != "" {
			why = " (" + i.GetStoreFormatWhy() + ")"
		}
		fact(out, "format", "%d%s; this server knows up to %d", format, why, i.GetKnowsFormat())
	}
	switch alarm := i.GetStoreAlarm(); {
	case strings.Contains(alarm, store.NoSpaceAlarm):
		fact(out, "alarm", `%s: the store is full; members continue to run, but nothing can be changed or healed.
         Delete ConfigMaps and Secrets that are not needed, or start the server with
         a larger --store-quota-bytes; the server then recovers by itself within seconds.
         An external etcd must be compacted, defragmented and disarmed by hand.`, store.NoSpaceAlarm)
	case alarm != "":
		fact(out, "alarm", "%s", alarm)
	}
}

func printNodes(out io.Writer, nodes []*proto.Object, tunnel string) error {
	var silent, nowhere, short []string
	for _, p := range nodes {
		o, err := decode[records.Node, records.ShownNode](p)
		if err != nil {
			return err
		}
		if d := o.Spec.Drain; d != nil {
			nowhere = append(nowhere, fmt.Sprintf("%s has been drained for %s (%s): 'stead drain %s' shows who is left, 'stead uncordon %s' ends it",
				p.GetName(), age(d.At), cmp.Or(d.By, "unknown"), p.GetName(), p.GetName()))
		}
		if why := withoutWireGuard(o.Status.NodeFacts, tunnel); why != "" && len(nodes) > 1 {
			nowhere = append(nowhere, p.GetName()+" "+why)
		}
		if st := &o.Status; st.State == "Ready" && st.NodeFacts != nil {
			for _, c := range st.Conditions {
				short = append(short, fmt.Sprintf("%s has %s%s: %s. No new member is placed there", p.GetName(), c.Type, ofClass(c.Class), c.Message))
			}
		}
		if st := &o.Status; st.State != "Ready" {
			line := p.GetName() + " " + silenceText(st)
			if st.Waits != "" {
				line += ": " + st.Waits
			}
			silent = append(silent, line)
		} else if !st.Address().IsValid() && (len(nodes) > 1 || st.NodeFacts != nil && len(st.HostIPs) > 1) {
			nowhere = append(nowhere, fmt.Sprintf("members on other hosts do not reach those of %s: %s", p.GetName(), addressHelp(st.NodeFacts)))
		}
	}
	switch connected := len(nodes) - len(silent); {
	case len(nodes) == 0:
		fact(out, "nodes", "none yet; start 'stead agent' on a host")
	case len(silent) == 0:
		fact(out, "nodes", "%d of %d have a session", connected, len(nodes))
	default:
		fact(out, "nodes", "%d of %d have a session; the others:", connected, len(nodes))
	}
	for _, line := range slices.Concat(silent, nowhere, short) {
		fact(out, "", "%s", line)
	}
	return nil
}

func addressHelp(f *records.NodeFacts) string {
	if f == nil {
		f = &records.NodeFacts{}
	}
	return f.AddressHelp()
}

// tunnelText is what a kind of tunnel means for what members of different hosts send each other.
func tunnelText(kind string) string {
	switch kind {
	case records.TunnelWireGuard:
		return kind + ": encrypted between all hosts"
	case records.TunnelBoth:
		return kind + ": encrypted between hosts that have WireGuard, in the open between others"
	}
	return kind + ": not encrypted"
}

// withoutWireGuard says that a node cannot do what the tunnel of the cluster asks, and what that means; "": it can.
func withoutWireGuard(f *records.NodeFacts, tunnel string) string {
	if tunnel != records.TunnelBoth && tunnel != records.TunnelWireGuard || f == nil || f.Tunnel != nil && f.Tunnel.Key != "" {
		return ""
	}
	why := "its agent is of an earlier version"
	if f.Tunnel != nil {
		why = f.Tunnel.Missing
	}
	means := "members on other hosts reach its own in the open"
	if tunnel == records.TunnelWireGuard {
		means = "members on other hosts do not reach its own"
	}
	return fmt.Sprintf("has no WireGuard (%s): %s", why, means)
}

// ofClass names the storage class of a condition; "": it concerns all.
func ofClass(class string) string {
	if class == "" {
		return ""
	}
	return " of storage class " + class
}

// printSets prints the sets that are not healthy.
func (c *cli) printSets(ctx context.Context, out io.Writer, sets []*proto.Object) error {
	var wrong []*proto.Object
	for _, p := range sets {
		o, err := decode[spec.SetSpec, records.ShownSet](p)
		if err != nil {
			return err
		}
		if o.Status.Orphaned || !settled(o, forAvailable) {
			wrong = append(wrong, p)
		}
	}
	fact(out, "sets", "%d of %d are healthy", len(sets)-len(wrong), len(sets))
	for _, p := range wrong {
		// A list omits the members of a large set; a Get includes them.
		one, err := c.control.Get(ctx, &proto.GetRequest{Kind: proto.KindSet, Namespace: p.GetNamespace(), Name: p.GetName()})
		if err != nil {
			continue // it was deleted meanwhile
		}
		if err := printSet(out, one); err != nil {
			return err
		}
	}
	return nil
}

// printSet prints what is wrong with one set.
func printSet(out io.Writer, p *proto.Object) error {
	o, err := decode[spec.SetSpec, records.ShownSet](p)
	if err != nil {
		return err
	}
	st := &o.Status
	fmt.Fprintf(out, "\n%s/%s: %d of %d ready%s\n", o.Metadata.Namespace, o.Metadata.Name, st.ReadyReplicas, replicasOf(&o.Spec), scalar.Plain(conditionText(&st.SetStatus)))
	waiting := slices.DeleteFunc(st.Members, func(m records.MemberStatus) bool {
		return m.Ready && m.Blocked == "" && m.Goal != records.GoalStop
	})
	for _, m := range waiting[:min(len(waiting), shownLines)] {
		fmt.Fprintf(out, "  %-12s %s\n", m.Name, scalar.Plain(memberState(m)))
	}
	if more := len(waiting) - shownLines; more > 0 {
		fmt.Fprintf(out, "  and %d more; see 'stead describe set %s -n %s'\n", more, o.Metadata.Name, o.Metadata.Namespace)
	}
	return nil
}

// replicasOf is the number of members wanted.
func replicasOf(s *spec.SetSpec) int {
	if s.Replicas == nil {
		return 0
	}
	return int(*s.Replicas)
}

// conditionText lists the conditions that say more than that members are missing.
func conditionText(st *records.SetStatus) string {
	text := ""
	for _, c := range st.Conditions {
		trouble := c.Status == "True"
		if c.Type == "Progressing" {
			trouble = c.Reason != "" && c.Reason != "Complete"
		}
		if trouble && c.Type != "Available" {
			text += fmt.Sprintf("; %s: %s", c.Type, c.Reason)
		}
	}
	return text
}

// ofQuota says how large the store may grow; empty if that is not known.
func ofQuota(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return " of " + bytesText(bytes)
}

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
			i, err := c.control.Info(cmd.Context(), &proto.InfoRequest{})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "server   %s\ncluster  %s (epoch %d)\nleader   %s\nstore    %s, %s\ndomain   %s\nmembers  %s\nservices %s\n",
				i.GetVersion(), i.GetCluster(), i.GetEpoch(), cmp.Or(i.GetLeader(), "none"), i.GetStore(),
				bytesText(i.GetStoreBytes()), i.GetDomain(), i.GetCidr(), cmp.Or(i.GetServiceCidr(), "none"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "only this program, without asking a server")
	return cmd
}
