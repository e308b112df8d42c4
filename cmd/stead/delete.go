package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

// checkCascade refuses a --cascade that does not fit the kind, and returns whether to
// wait until the object is removed.
func checkCascade(cascade, kind string, wait bool) (bool, error) {
	if err := proto.CheckCascade(cascade, kind); err != nil {
		return false, usageError{fmt.Errorf("--cascade: %w", err)}
	}
	if wait && cascade == proto.CascadeOrphan {
		return false, usageError{errors.New("--wait cannot be used with --cascade=orphan: an orphaned set is not removed")}
	}
	return wait || cascade == proto.CascadeForeground, nil
}

// deleteOptions are the flags of 'stead delete'.
type deleteOptions struct {
	wait           bool
	ignoreNotFound bool
	timeout        time.Duration
	cascade        string
}

func deleteCommand(c *cli) *cobra.Command {
	var o deleteOptions
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
			o.wait, err = checkCascade(o.cascade, kind, o.wait)
			if err != nil {
				return err
			}
			switch kind {
			case proto.KindMember: // what this means in Kubernetes: another life follows
				return restartMember(cmd, c, name)
			case proto.KindSet, proto.KindService, proto.KindConfigMap, proto.KindSecret, proto.KindBudget:
			default:
				return usageError{fmt.Errorf("a %s cannot be deleted; only sets, services, configmaps, secrets and budgets can", kind)}
			}
			return c.with(func(control proto.ControlClient) error {
				return c.deleteObject(cmd, control, kind, name, o)
			})
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the set is removed")
	cmd.Flags().StringVar(&o.cascade, "cascade", proto.CascadeBackground, "background stops the members of a set, foreground also waits for that, orphan leaves them running")
	cmd.Flags().Lookup("cascade").NoOptDefVal = proto.CascadeBackground
	cmd.Flags().BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "succeed if the object does not exist")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "time limit of --wait; exit code 3 when it expires")
	return cmd
}

// deleteObject deletes one object, and waits for the members of a set if that was asked.
func (c *cli) deleteObject(cmd *cobra.Command, control proto.ControlClient, kind, name string, o deleteOptions) error {
	ctx, cancel := call(cmd.Context())
	defer cancel()
	done, err := control.Delete(ctx, &proto.DeleteRequest{Kind: kind, Namespace: c.namespace, Name: name, Cascade: o.cascade})
	if o.ignoreNotFound && status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	result := "deleted"
	switch {
	case o.cascade == proto.CascadeOrphan:
		result = "is orphaned"
	case kind == proto.KindSet:
		result = "is being deleted"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s %s\n", kind, c.namespace, name, result)
	printEffects(cmd.OutOrStdout(), done.GetEffects())
	if !o.wait || kind != proto.KindSet {
		return nil
	}
	waitCtx, stop := context.WithTimeout(cmd.Context(), o.timeout)
	defer stop()
	ref := spec.SetRef{Namespace: spec.Namespace(c.namespace), Name: spec.SetName(name)}
	return waitGone(waitCtx, control, ref, cmd.OutOrStdout())
}
