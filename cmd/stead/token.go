package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
)

// trusting makes one call of the trust API.
func (c *cli) trusting(cmd *cobra.Command, f func(context.Context, proto.TrustClient) error) error {
	ctx, cancel := call(cmd.Context())
	defer cancel()
	return c.connected(ctx, func(conn *grpc.ClientConn) error { return f(ctx, proto.NewTrustClient(conn)) })
}

func tokenCommand(c *cli) *cobra.Command {
	return group("token", "Manage the tokens with which nodes join", tokenCreate(c), tokenList(c), tokenRevoke(c))
}

func tokenCreate(c *cli) *cobra.Command {
	var (
		ttl  time.Duration
		node string
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token with which one machine can join, once",
		Long: `Create a token with which one machine can join, once and for a short time: with 'stead
agent --join HOST:PORT --token-file FILE', or with STEAD_TOKEN=TOKEN. The token contains
a fingerprint of the cluster, so that the machine reveals the secret to no other cluster.
A node whose certificate expired while it was away needs a token created with --node.`,
		Example: "  stead token create\n  stead token create --node host-b --ttl 1h",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				made, err := t.CreateToken(ctx, &proto.CreateTokenRequest{TtlMillis: ttl.Milliseconds(), Node: node})
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), made.GetToken())
				}
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 15*time.Minute, "how long the token is valid; at most 168h, or 1h if created with a client file")
	cmd.Flags().StringVar(&node, "node", "", "the only node that may use it (default: any node that has never joined)")
	return cmd
}

func tokenList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List valid tokens, without their secrets",
		Example: "  stead token ls",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				list, err := t.ListTokens(ctx, &proto.ListTokensRequest{})
				if err != nil {
					return err
				}
				show := newTable(cmd.OutOrStdout(), "ID", "NODE", "USED BY", "MADE BY", "TTL", "AGE")
				for _, k := range list.GetTokens() {
					show.row(k.GetId(), k.GetNode(), k.GetUsedBy(), cmp.Or(k.GetMadeBy(), "root"), time.Duration(k.GetTtlMillis())*time.Millisecond, age(time.Unix(k.GetCreatedUnix(), 0)))
				}
				return show.flush()
			})
		},
	}
}

func tokenRevoke(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token; a node that has joined with it stays",
		Example: "  stead token revoke 1f2e3d4c5b6a",
		Args:    exactly(1, "the id of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				_, err := t.RevokeToken(ctx, &proto.RevokeTokenRequest{Id: args[0]})
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "token %s revoked\n", args[0])
				}
				return err
			})
		},
	}
}
