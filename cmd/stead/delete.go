package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func deleteCommand(c *cli) *cobra.Command {
	var (
		request        proto.DeleteRequest
		ignoreNotFound bool
		wait           waitFlags
	)
	cmd := &cobra.Command{
		Use:   "delete KIND NAME",
		Short: "Delete an object; the members of a set are stopped in order, its volumes are kept",
		Long: `Delete an object. The members of a set are stopped, highest first (Parallel: all at
once), and the set is removed after the last one. Its volumes are kept, unless its
retention policy says Delete.

With --cascade=orphan nothing is stopped. The set becomes Orphaned. Its members continue
to run with their names, addresses and volumes, but are not replaced, updated or scaled
any more. 'stead apply' of the set adopts them. That manifest may even change immutable
fields, as long as it fits the members and volumes that exist.`,
		Example: `  stead delete set etcd --wait
  stead delete set etcd --cascade=orphan
  stead delete configmap/etcd-entry
  stead delete pod etcd-1`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseTarget(args, "")
			if err != nil {
				return err
			}
			if err := proto.CheckCascade(request.Cascade, kind); err != nil {
				return misuse("--cascade: %w", err)
			}
			if wait.wait && request.Cascade == proto.CascadeOrphan {
				return misuse("--wait cannot be used with --cascade=orphan: an orphaned set is not removed")
			}
			wait.wait = wait.wait || request.Cascade == proto.CascadeForeground
			switch kind {
			case proto.KindMember: // what this means in Kubernetes: another life follows
				return c.restartMember(cmd, name)
			case proto.KindSet, proto.KindService, proto.KindConfigMap, proto.KindSecret, proto.KindBudget:
			default:
				return misuse("a %s cannot be deleted; only sets, services, configmaps, secrets and budgets can", kind)
			}
			request.Kind, request.Namespace, request.Name = kind, c.namespace, name
			done, err := c.control.Delete(cmd.Context(), &request)
			if ignoreNotFound && status.Code(err) == codes.NotFound {
				return nil
			}
			if err != nil {
				return err
			}
			return c.deleted(cmd, &request, done, wait)
		},
	}
	cmd.Flags().StringVar(&request.Cascade, "cascade", proto.CascadeBackground, "background stops the members of a set, foreground also waits for that, orphan leaves them running")
	cmd.Flags().Lookup("cascade").NoOptDefVal = proto.CascadeBackground
	cmd.Flags().BoolVar(&ignoreNotFound, "ignore-not-found", false, "succeed if the object does not exist")
	wait.add(cmd, "wait until the set is removed")
	return cmd
}

// deleted prints what r has caused, and waits for the members of a set if that was requested.
func (c *cli) deleted(cmd *cobra.Command, r *proto.DeleteRequest, done *proto.DeleteResponse, wait waitFlags) error {
	result := "deleted"
	switch {
	case r.Cascade == proto.CascadeOrphan:
		result = "is orphaned"
	case r.Kind == proto.KindSet:
		result = "is being deleted"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s %s\n", r.Kind, r.Namespace, r.Name, result)
	printEffects(cmd.OutOrStdout(), done.GetEffects())
	if r.Kind != proto.KindSet {
		return nil
	}
	ref := spec.SetRef{Namespace: spec.Namespace(r.Namespace), Name: spec.SetName(r.Name)}
	return wait.then(cmd, func(ctx context.Context) error { return c.waitGone(ctx, ref, cmd.OutOrStdout()) })
}
