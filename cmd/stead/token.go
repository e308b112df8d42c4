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

// trusting makes one call of the API of trust.
func (c *cli) trusting(cmd *cobra.Command, f func(context.Context, proto.TrustClient) error) error {
	ctx, cancel := call(cmd.Context())
	defer cancel()
	return c.connected(ctx, func(conn *grpc.ClientConn) error { return f(ctx, proto.NewTrustClient(conn)) })
}

func tokenCommand(c *cli) *cobra.Command {
	return group("token", "Let new nodes in: tokens with which they join", tokenCreate(c), tokenList(c), tokenRevoke(c))
}

func tokenCreate(c *cli) *cobra.Command {
	var (
		ttl  time.Duration
		node string
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token with which one machine joins, once",
		Long: `Make a token with which one machine joins, once and soon: 'stead agent --join
HOST:PORT --token-file FILE', or with STEAD_TOKEN=TOKEN. It says which cluster it is for, so that the machine tells
its secret to no other. A node that has joined before, and whose certificate ended
while it was away, comes back by a token that names it with --node.`,
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
	cmd.Flags().DurationVar(&ttl, "ttl", 15*time.Minute, "how long it lasts; at most 168h, and 1h of one that is made with a client file")
	cmd.Flags().StringVar(&node, "node", "", "the only node that may use it (default: any that never joined)")
	return cmd
}

func tokenList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the tokens that have not ended, without their secrets",
		Example: "  stead token ls",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				list, err := t.ListTokens(ctx, &proto.ListTokensRequest{})
				if err != nil {
					return err
				}
				show := newTable(cmd.OutOrStdout(), "ID", "NODE", "USED BY", "MADE BY", "LASTS", "AGE")
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
		Short:   "End a token before its time; a node that has joined by it stays",
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
