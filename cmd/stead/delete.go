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

// The values of --cascade.
const (
	cascadeBackground = "background"
	cascadeForeground = "foreground"
	cascadeOrphan     = "orphan"
)

// checkCascade refuses what --cascade cannot mean for a kind, and says whether to wait
// until the object is gone.
func checkCascade(cascade, kind string, wait bool) (bool, error) {
	switch {
	case cascade == cascadeBackground:
		return wait, nil
	case cascade == cascadeForeground:
		return true, nil
	case cascade != cascadeOrphan:
		return false, usageError{fmt.Errorf("--cascade %q: write %s, %s or %s", cascade, cascadeBackground, cascadeForeground, cascadeOrphan)}
	case kind != "set":
		return false, usageError{fmt.Errorf("a %s has no members to orphan; --cascade=orphan is for sets", kind)}
	case wait:
		return false, usageError{errors.New("an orphaned set stays: --wait would not end")}
	}
	return false, nil
}

func deleteCommand(c *cli) *cobra.Command {
	var (
		wait           bool
		ignoreNotFound bool
		timeout        time.Duration
		cascade        string
	)
	cmd := &cobra.Command{
		Use:   "delete KIND NAME",
		Short: "Remove an object; a set's members are stopped in order, its volumes stay",
		Long: `Remove an object. A set's members are stopped, highest first (Parallel: all at once),
and it is gone when they are; its volumes stay, unless its retention policy says Delete.

With --cascade=orphan nothing is stopped: the set stays, as Orphaned, and its members
run on with their names, addresses and volumes, but nobody replaces, updates or scales
them. 'stead apply' of the set adopts them; what it changes may then also be what of a
set must not change, as far as it suits the members and volumes that are there.`,
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
			if wait, err = checkCascade(cascade, kind, wait); err != nil {
				return err
			}
			switch kind {
			case "member": // what this means in Kubernetes: another life follows
				return restartMember(cmd, c, name)
			case "set", "service", "configmap", "secret", "budget":
			default:
				return usageError{fmt.Errorf("a %s cannot be deleted; sets, services, configmaps, secrets and budgets can", kind)}
			}
			return c.with(func(control proto.ControlClient) error {
				ctx, cancel := call(cmd.Context())
				defer cancel()
				done, err := control.Delete(ctx, &proto.DeleteRequest{Kind: kind, Namespace: c.namespace, Name: name, Cascade: cascade})
				if ignoreNotFound && status.Code(err) == codes.NotFound {
					return nil
				}
				if err != nil {
					return err
				}
				word := "deleted"
				switch {
				case cascade == cascadeOrphan:
					word = "is orphaned"
				case kind == "set":
					word = "is being deleted"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s %s\n", kind, c.namespace, name, word)
				sayEffects(cmd.OutOrStdout(), done.GetEffects())
				if !wait || kind != "set" {
					return nil
				}
				waitCtx, stop := context.WithTimeout(cmd.Context(), timeout)
				defer stop()
				ref := spec.SetRef{Namespace: spec.Namespace(c.namespace), Name: spec.SetName(name)}
				return waitGone(waitCtx, control, ref, cmd.OutOrStdout())
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the set is gone")
	cmd.Flags().StringVar(&cascade, "cascade", cascadeBackground, "what becomes of a set's members: background stops them, foreground does and waits, orphan leaves them as they are")
	cmd.Flags().Lookup("cascade").NoOptDefVal = cascadeBackground
	cmd.Flags().BoolVar(&ignoreNotFound, "ignore-not-found", false, "succeed when there is no such object")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long --wait waits; exit code 3 when it is over")
	return cmd
}
