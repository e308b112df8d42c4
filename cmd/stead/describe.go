package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func describeCommand(c *cli) *cobra.Command {
	var selector string
	cmd := &cobra.Command{
		Use:   "describe KIND [NAME...] | KIND/NAME...",
		Short: "Show sets, members or other objects with everything that belongs to them",
		Example: `  stead describe set etcd
  stead describe member/etcd-0
  stead describe pods -l app=etcd
  stead describe nodes`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := spec.ParseSelector(selector); selector != "" && err != nil {
				return misuse("-l: %w", err)
			}
			targets, err := parseTargets(args)
			switch {
			case err != nil:
				return err
			case selector != "" && len(targets[0].names) > 0:
				return misuse("-l chooses among all objects; omit it, or the names")
			}
			d := describer{cli: c, out: cmd.OutOrStdout()}
			g := getter{cli: c, out: d.out, errOut: cmd.ErrOrStderr(), full: true, list: proto.ListRequest{Namespace: c.namespace, Selector: selector}}
			return d.all(cmd.Context(), &g, targets)
		},
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "only objects with these labels: app=db,tier!=test")
	return cmd
}

// describer prints everything about one object.
type describer struct {
	*cli
	out io.Writer
}

// all describes what targets name, one after the other. Objects that do not exist are reported
// after the others.
func (d describer) all(ctx context.Context, g *getter, targets []target) error {
	var missing []error
	shown := 0
	for _, t := range targets {
		objects, absent, err := g.fetch(ctx, t)
		if err != nil {
			return err
		}
		missing = append(missing, absent...)
		for _, o := range objects {
			if shown > 0 {
				fmt.Fprintln(d.out)
			}
			shown++
			if err := d.object(ctx, o); err != nil {
				return err
			}
		}
	}
	if shown == 0 && len(missing) == 0 {
		g.printNone(targets)
	}
	return errors.Join(missing...)
}

// object describes one object; those of most kinds are shown as YAML.
func (d describer) object(ctx context.Context, o *proto.Object) error {
	switch o.GetKind() {
	case proto.KindSet:
		return d.set(ctx, o)
	case proto.KindMember:
		return d.member(ctx, o)
	case proto.KindService:
		return d.service(ctx, o)
	case proto.KindQuota:
		return d.quota(o)
	}
	return (&printer{out: d.out, form: "yaml", kind: o.GetKind()}).all([]*proto.Object{o}, true)
}

func (d describer) set(ctx context.Context, got *proto.Object) error {
	o, err := decode[spec.SetSpec, records.ShownSet](got)
	if err != nil {
		return err
	}
	s, st := &o.Spec, &o.Status
	d.fields(
		"Set", string(o.Metadata.Namespace)+"/"+o.Metadata.Name+orders(st),
		"Created", age(o.Metadata.CreationTimestamp)+" ago, generation "+fmt.Sprint(o.Metadata.Generation),
		"Members", fmt.Sprintf("%d wanted, %d ready, %d available, %d terminating", replicasOf(s), st.ReadyReplicas, st.AvailableReplicas, st.TerminatingReplicas),
		"Update", fmt.Sprintf("%d on the update revision, %d of them available", st.UpdatedReplicas, st.UpdatedAvailableReplicas),
		"Policy", fmt.Sprintf("%s, %s", s.PodManagementPolicy, s.UpdateStrategy.Type),
		"Service", serviceText(s, st),
		"Revision", fmt.Sprintf("current %s, update %s", st.CurrentRevision, st.UpdateRevision),
		"Bootstrapped", fmt.Sprint(st.Bootstrapped),
	)
	for _, c := range st.Conditions {
		fmt.Fprintf(d.out, "%-13s %s\n", c.Type+":", scalar.Plain(c.Status+" "+c.Reason+" "+c.Message))
	}
	for i := range st.Moves {
		fmt.Fprintf(d.out, "%-13s %s\n", "Move:", scalar.Plain(st.Moves[i].Member+" "+moveLine(&st.Moves[i])))
	}
	if err := d.rows(st); err != nil {
		return err
	}
	if err := d.edits(st); err != nil {
		return err
	}
	if err := d.list(ctx, proto.KindVolume, o.Metadata.Name, "Volumes", ""); err != nil {
		return err
	}
	return d.list(ctx, proto.KindEvent, o.Metadata.Name, "Events", "")
}

// orders is what users requested for a set beside its spec.
func orders(st *records.ShownSet) string {
	switch {
	case st.Deleting:
		return " (being deleted)"
	case st.Orphaned:
		return " (orphaned; apply it again to adopt its members, or delete it)"
	case st.Paused:
		return " (rollout paused)"
	}
	return ""
}

// serviceText is the governing service, and the former while a rename is not complete.
func serviceText(s *spec.SetSpec, st *records.ShownSet) string {
	if st.ServiceName == "" || st.ServiceName == s.ServiceName {
		return s.ServiceName
	}
	return fmt.Sprintf("%s, renamed from %s: both names resolve until every member has restarted", s.ServiceName, st.ServiceName)
}

// rows prints the table of members, and for each that waits why.
func (d describer) rows(st *records.ShownSet) error {
	if len(st.Members) == 0 {
		return nil
	}
	fmt.Fprintln(d.out, "\nMembers:")
	t := newTable(d.out, "NAME", "READY", "PHASE", "RESTARTS", "NODE", "REVISION", "BLOCKED")
	for _, m := range st.Members {
		t.row(m.Name, yesNo(m.Ready), phaseText(m), m.Restarts, m.Node, m.Revision, blockedText(m))
	}
	return t.flush()
}

// edits prints the last changes of the spec, and who made them.
func (d describer) edits(st *records.ShownSet) error {
	if len(st.Edits) == 0 {
		return nil
	}
	fmt.Fprintln(d.out, "\nEdits:")
	t := newTable(d.out, "GENERATION", "AGE", "VERB", "BY", "CHANGES")
	for _, e := range st.Edits[max(0, len(st.Edits)-shownLines):] {
		t.row(e.Generation, age(e.At), e.Verb, e.By, strings.Join(e.Changes, ", "))
	}
	return t.flush()
}

func (d describer) member(ctx context.Context, got *proto.Object) error {
	o, err := decode[records.Member, records.ShownMember](got)
	if err != nil {
		return err
	}
	m, st := &o.Spec, &o.Status
	set, _, err := spec.ParseMemberName(o.Metadata.Name)
	if err != nil {
		return err
	}
	d.fields(
		"Member", string(o.Metadata.Namespace)+"/"+o.Metadata.Name,
		"State", memberState(st.MemberStatus),
		"Phase", phaseText(st.MemberStatus)+", ready: "+yesNo(st.Ready),
		"Blocked", blockedText(st.MemberStatus),
		"Node", string(st.Node),
		"Address", addressText(st.MemberStatus),
		"Revision", string(st.Revision),
		"Life", lifeText(m, &st.MemberStatus),
	)
	if st.Move != nil {
		fmt.Fprintf(d.out, "%-13s %s\n", "Move:", scalar.Plain(moveLine(st.Move)))
	}
	if m.StopReason != "" {
		fmt.Fprintf(d.out, "%-13s reason %s\n", "Stopping:", m.StopReason)
	}
	for _, said := range [][2]string{{"Role", st.Role}, {"Note", claimOf(st).Note}, {"Busy", claimOf(st).Busy}} {
		if said[1] != "" {
			d.fields(said[0], said[1])
		}
	}
	for _, v := range m.Volumes {
		fmt.Fprintf(d.out, "%-13s %s: %s of class %s (id %s)\n", "Volume:", v.Claim, bytesText(v.SizeBytes), v.Class, v.ID)
	}
	main, initial := containersOf(st)
	if err := d.containers("Init containers", initial); err != nil {
		return err
	}
	if err := d.containers("Containers", main); err != nil {
		return err
	}
	return d.list(ctx, proto.KindEvent, string(set), "Events", o.Metadata.Name)
}

// containers prints a table of them, if there are any; sidecars are named as such.
func (d describer) containers(title string, list []records.ContainerReport) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintf(d.out, "\n%s:\n", title)
	t := newTable(d.out, "NAME", "STATE", "READY", "RESTARTS", "EXIT", "CAUSE", "IMAGE")
	for _, c := range list {
		name, exit := c.Name, ""
		if c.Role == spec.RoleSidecar {
			name += " (sidecar)"
		}
		if c.ExitCode != nil {
			exit = fmt.Sprint(*c.ExitCode)
		}
		t.row(name, c.State, c.Ready, c.Restarts, exit, c.Cause, c.Image)
	}
	return t.flush()
}

func lifeText(m *records.Member, st *records.MemberStatus) string {
	if st.Token == "" {
		return "none"
	}
	return fmt.Sprintf("token %s, started %s ago, reason %s", st.Token, age(st.BeganAt), m.Reason)
}

// fields prints aligned "Name: value" lines.
func (d describer) fields(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(d.out, "%-13s %s\n", pairs[i]+":", scalar.Plain(cmp.Or(pairs[i+1], "-")))
	}
}

// list prints the objects of a set, or its events about one member; nothing when there are none.
func (d describer) list(ctx context.Context, kind, set, title, member string) error {
	got, err := d.control.List(ctx, &proto.ListRequest{Kind: kind, Namespace: d.namespace, Set: set})
	if err != nil {
		return err
	}
	objects := slices.DeleteFunc(got.GetObjects(), func(o *proto.Object) bool {
		e, err := decode[records.Event, any](o)
		return member != "" && (err != nil || e.Spec.Member != member)
	})
	if len(objects) == 0 {
		return nil
	}
	fmt.Fprintf(d.out, "\n%s:\n", title)
	return (&printer{out: d.out, kind: kind}).all(objects, false)
}

func explainCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "explain SET|MEMBER",
		Short: "Explain what is being done for a set or member, what it waits for, and why",
		Long: `Run the planner as the server does, and show its result: every action it would take
now, and the reason for every member that waits.`,
		Example: `  stead explain etcd
  stead explain etcd-2`,
		Args:              exactly(1, "the name of a set or member"),
		ValidArgsFunction: c.completeNames(proto.KindSet, proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := c.control.Explain(cmd.Context(), &proto.ExplainRequest{Namespace: c.namespace, Name: args[0]})
			if err != nil {
				return err
			}
			if len(got.GetRows()) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is up to date; nothing is being done and nothing waits\n", args[0])
				return nil
			}
			t := newTable(cmd.OutOrStdout(), "MEMBER", "ACTION", "REASON")
			for _, r := range got.GetRows() {
				t.row(cmp.Or(r.GetMember(), "(set)"), r.GetWhat(), r.GetWhy())
			}
			return t.flush()
		},
	}
}
