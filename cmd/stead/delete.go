package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func deleteCommand(c *cli) *cobra.Command {
	d := deleter{cli: c}
	cmd := &cobra.Command{
		Use:   "delete KIND NAME... | KIND/NAME... | KIND -l LABELS | -f FILE | -k DIRECTORY",
		Short: "Delete objects; the members of a set are stopped in order, its volumes are kept",
		Long: `Delete objects. The members of a set are stopped, highest first (Parallel: all at once),
and the set is removed after the last one. Its volumes are kept, unless its retention policy
says Delete. With -f the objects that manifests name are deleted, sets first; volumes and
PersistentVolumeClaims are never deleted by it. To delete a member is to restart it, as in
Kubernetes. To delete a PersistentVolumeClaim gives its volume up, when no member uses it
any more.

With --cascade=orphan nothing is stopped. The set becomes Orphaned. Its members continue
to run with their names, addresses and volumes, but are not replaced, updated or scaled
any more. 'stead apply' of the set adopts them. That manifest may even change immutable
fields, as long as it fits the members and volumes that exist.

--force is refused for members: a member is replaced only when it is proven that its life
is over, so that it never runs twice. For other objects it has no effect.`,
		Example: `  stead delete set etcd --wait
  stead delete set etcd --cascade=orphan
  stead delete configmap/etcd-entry svc/etcd
  stead delete -f examples/etcd/etcd.yaml
  stead delete cm,secrets -l app=etcd
  stead delete pod etcd-1 etcd-2`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := d.targets(cmd, args)
			if err != nil {
				return err
			}
			return d.run(cmd, targets)
		},
	}
	d.addFlags(cmd)
	return cmd
}

// deleter is one use of the verb delete.
type deleter struct {
	*cli
	cascade        string
	ignoreNotFound bool
	wait           waitFlags
	manifests
	selector string
	all      bool
	force    bool
	grace    int
}

func (d *deleter) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.cascade, "cascade", proto.CascadeBackground, "background stops the members of a set, foreground also waits for that, orphan leaves them running")
	flags.Lookup("cascade").NoOptDefVal = proto.CascadeBackground
	flags.BoolVar(&d.ignoreNotFound, "ignore-not-found", false, "succeed if an object does not exist")
	d.manifests.addFlags(flags, "delete ")
	flags.StringVarP(&d.selector, "selector", "l", "", "delete the objects with these labels: app=db,tier!=test")
	flags.BoolVar(&d.all, "all", false, "delete all objects of the kind in the namespace")
	flags.BoolVar(&d.force, "force", false, "refused for members; no effect for other objects")
	flags.IntVar(&d.grace, "grace-period", -1, "only -1, or 0 with --force: the manifest's terminationGracePeriodSeconds applies")
	d.wait.add(cmd, "wait until the sets are removed")
}

// targets reads the command line, or returns what is wrong with it.
func (d *deleter) targets(cmd *cobra.Command, args []string) (targets []target, err error) {
	if _, err := spec.ParseSelector(d.selector); d.selector != "" && err != nil {
		return nil, misuse("-l: %w", err)
	}
	several := d.selector != "" || d.all
	switch {
	case d.named() && (len(args) > 0 || several):
		return nil, misuse("-f names the objects; omit KIND, NAME, -l and --all")
	case d.named():
		targets, err = filesTargets(cmd, &d.manifests, d.namespace)
		slices.SortStableFunc(targets, func(a, b target) int { return cmp.Compare(deletedWhen(a.kind), deletedWhen(b.kind)) })
	case len(args) == 1 && args[0] == "all":
		return nil, misuse("'all' is not taken by delete; name the kinds, for example 'stead delete sts,svc --all'")
	default:
		targets, err = parseTargets(args)
	}
	if err != nil {
		return nil, err
	}
	for i := range targets {
		if targets[i].kind == proto.KindVolume && targets[i].word == inKubernetes[proto.KindVolume] {
			targets[i].kind = proto.KindClaim // a claim is deleted; a volume is given up
		}
		if err := d.check(cmd.Flags(), targets[i], several); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// deletedWhen puts sets first: what they use must not be missed by members that still run.
func deletedWhen(kind string) int {
	if kind == proto.KindSet {
		return 0
	}
	return 1
}

// notDeleted says what to do with kinds that cannot be deleted.
var notDeleted = map[string]string{
	proto.KindVolume: "; to give it up write 'stead volume reclaim VOLUME'", proto.KindNode: "; to remove its record write 'stead node remove NODE'",
}

// check returns what is wrong with deleting t.
func (d *deleter) check(flags *pflag.FlagSet, t target, several bool) error {
	if err := proto.CheckCascade(d.cascade, t.kind); err != nil {
		return misuse("--cascade: %w", err)
	}
	switch t.kind {
	case proto.KindMember, proto.KindSet, proto.KindService, proto.KindEndpoints, proto.KindSlice, proto.KindConfigMap, proto.KindSecret, proto.KindBudget, proto.KindNetworkPolicy, proto.KindQuota, proto.KindClaim:
	default:
		return misuse("a %s cannot be deleted; only sets, services, endpoints, endpointslices, configmaps, secrets, budgets, networkpolicies, quotas and claims can%s", t.kind, notDeleted[t.kind])
	}
	switch {
	case len(t.names) == 0 && !several:
		return misuse("%s; for several: -l LABELS or --all", wanted[""])
	case len(t.names) > 0 && several:
		return misuse("-l and --all choose among all objects; omit them, or the names")
	case d.wait.wait && d.cascade == proto.CascadeOrphan:
		return misuse("--wait cannot be used with --cascade=orphan: an orphaned set is not removed")
	case d.force && t.kind == proto.KindMember:
		return misuse("--force: a member is replaced only when it is proven that its life is over, so that it never runs twice; omit --force to restart it; " +
			"if its node is off, write 'stead node fence NODE --i-have-powered-off'")
	case flags.Changed("grace-period") && d.grace != -1 && (d.grace != 0 || !d.force):
		return misuse("--grace-period cannot be chosen here; it is terminationGracePeriodSeconds of the set's template")
	}
	return nil
}

// run deletes what targets name, and then waits for the sets among it. An object that does not
// exist, or is refused, does not keep the others.
func (d *deleter) run(cmd *cobra.Command, targets []target) error {
	if d.force {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: --force has no effect here: members of sets are stopped within their grace period, other objects are removed at once")
	}
	var sets []spec.SetRef
	var failed []error
	count := 0
	for _, t := range targets {
		if err := d.choose(cmd.Context(), &t); err != nil {
			return err
		}
		for _, name := range t.names {
			count++
			gone, err := d.one(cmd, t, name)
			switch code := status.Code(err); {
			case err == nil:
				sets = append(sets, gone...)
			case code == codes.NotFound && d.ignoreNotFound:
			case code == codes.NotFound || code == codes.FailedPrecondition:
				failed = append(failed, errors.New(explainError(err)))
			default:
				return errors.Join(append(failed, err)...)
			}
		}
	}
	if count == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "nothing to delete in namespace %s\n", d.namespace)
	}
	d.wait.wait = d.wait.wait || d.cascade == proto.CascadeForeground
	for _, ref := range sets {
		if err := d.wait.then(cmd, func(ctx context.Context) error { return d.waitGone(ctx, ref, cmd.OutOrStdout()) }); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}

// choose fills the names of a target that labels choose.
func (d *deleter) choose(ctx context.Context, t *target) error {
	if len(t.names) > 0 {
		return nil
	}
	kind := t.kind
	if kind == proto.KindClaim {
		kind = proto.KindVolume
	}
	got, err := d.control.List(ctx, &proto.ListRequest{Kind: kind, Namespace: d.namespace, Selector: d.selector})
	for _, o := range got.GetObjects() {
		t.names = append(t.names, o.GetName())
	}
	return err
}

// one deletes one object, and returns the set to wait for, if it is one.
func (d *deleter) one(cmd *cobra.Command, t target, name string) ([]spec.SetRef, error) {
	if t.kind == proto.KindMember { // what this means in Kubernetes: another life follows
		return nil, d.restartMember(cmd, name, false)
	}
	r := &proto.DeleteRequest{Kind: t.kind, Namespace: cmp.Or(t.namespace, d.namespace), Name: name, Cascade: d.cascade}
	done, err := d.control.Delete(cmd.Context(), r)
	if err != nil {
		return nil, err
	}
	result := "deleted"
	switch {
	case r.Cascade == proto.CascadeOrphan:
		result = "is orphaned"
	case r.Kind == proto.KindSet, r.Kind == proto.KindClaim:
		result = "is being deleted"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s %s\n", r.Kind, r.Namespace, r.Name, result)
	printEffects(cmd.OutOrStdout(), done.GetEffects())
	if r.Kind != proto.KindSet {
		return nil, nil
	}
	return []spec.SetRef{{Namespace: spec.Namespace(r.Namespace), Name: spec.SetName(r.Name)}}, nil
}
