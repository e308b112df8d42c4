package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func deleteCommand(c *cli) *cobra.Command {
	var (
		wait           bool
		ignoreNotFound bool
		timeout        time.Duration
	)
	cmd := &cobra.Command{
		Use:   "delete KIND NAME",
		Short: "Remove an object; a set's members are stopped in order, its volumes stay",
		Example: `  stead delete set etcd --wait
  stead delete configmap/etcd-entry
  stead delete pod etcd-1`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseTarget(args, "")
			if err != nil {
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
				done, err := control.Delete(ctx, &proto.DeleteRequest{Kind: kind, Namespace: c.namespace, Name: name})
				if ignoreNotFound && status.Code(err) == codes.NotFound {
					return nil
				}
				if err != nil {
					return err
				}
				word := "deleted"
				if kind == "set" {
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
	cmd.Flags().BoolVar(&ignoreNotFound, "ignore-not-found", false, "succeed when there is no such object")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long --wait waits; exit code 3 when it is over")
	return cmd
}
