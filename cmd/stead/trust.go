package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

func clientCommand(c *cli) *cobra.Command {
	return group("client", "Let people work from other hosts: client files", clientCreate(c), clientRevoke(c))
}

func clientCreate(c *cli) *cobra.Command {
	var (
		file, name string
		ttl        time.Duration
		servers    []string
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a file with which 'stead --config FILE' works from any host, as root does here",
		Long: `Make a file with which 'stead --config FILE' (or STEAD_CONFIG) works from any host
that reaches a server, and may do all that root may here, but make such files. It holds
a key: who has the file has the cluster, until it ends or is revoked.`,
		Example: "  stead client create -o ann.json --name ann\n  stead client create --servers 10.0.0.1:7443,10.0.0.2:7443",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s is there already; remove it, or name another with -o", file)
			}
			mine, err := trust.NewCredential(servers)
			if err != nil {
				return err
			}
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				id, err := signClient(ctx, t, mine, name, ttl)
				if err == nil {
					err = mine.Save(file)
				}
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is the client file of %s for %s; to end it before: stead client revoke %s\n", file, name, ttl, id)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "stead-client.json", "the file; readable by its owner only")
	cmd.Flags().StringVar(&name, "name", userName(), "whose it is, as edits are noted")
	cmd.Flags().DurationVar(&ttl, "ttl", 30*24*time.Hour, "how long it lasts")
	cmd.Flags().StringSliceVar(&servers, "servers", nil, "HOST:PORT of servers (default: those of the one that is asked)")
	return cmd
}

// signClient has a server sign the key of mine, and returns the client's id.
func signClient(ctx context.Context, t proto.TrustClient, mine *trust.Credential, name string, ttl time.Duration) (string, error) {
	request, err := mine.Request()
	if err != nil {
		return "", err
	}
	given, err := t.CreateClient(ctx, &proto.CreateClientRequest{Name: name, Request: request, TtlMillis: ttl.Milliseconds()})
	if err != nil {
		return "", err
	}
	if len(mine.Servers) == 0 {
		mine.Servers = given.GetServers()
	}
	return given.GetId(), mine.Take(given.GetCertificate(), given.GetCa())
}

func clientRevoke(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Void a client file, and the unused join tokens that it made, for ever",
		Example: "  stead client revoke 1f2e3d4c5b6a7988",
		Args:    exactly(1, "the id of a client, as 'stead client create' said it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				gone, err := t.Revoke(ctx, &proto.RevokeRequest{Client: args[0]})
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				fmt.Fprintf(out, "client %s revoked\n", args[0])
				for _, id := range gone.GetTokens() {
					fmt.Fprintf(out, "  join token %s, which it made and nobody used, ended with it\n", id)
				}
				for _, n := range gone.GetNodes() {
					fmt.Fprintf(out, "  node %s joined by its token and stays; if it should not: stead node revoke %s\n", n, n)
				}
				return nil
			})
		},
	}
}

func nodeRevoke(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Void a node's certificates, for ever",
		Long: `Void a node's certificates, for ever: it has no session any more, hears nothing new and
its reports do not count. What it runs goes on, for silence proves nothing: its members
are not replaced. The machine can join again with an empty --root and another name only.`,
		Example: "  stead node revoke host-b",
		Args:    exactly(1, "the name of a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				_, err := t.Revoke(ctx, &proto.RevokeRequest{Node: args[0]})
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "node %s revoked; what it runs goes on\n", args[0])
				}
				return err
			})
		},
		ValidArgsFunction: c.completeNames("node"),
	}
}
