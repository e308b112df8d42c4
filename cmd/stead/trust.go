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
	return group("client", "Manage client credentials for use from other hosts", clientCreate(c), clientRevoke(c))
}

func clientCreate(c *cli) *cobra.Command {
	var (
		file, name string
		ttl        time.Duration
		servers    []string
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a client credential file, for 'stead --config FILE' on any host",
		Long: `Create a client credential file, for 'stead --config FILE' (or STEAD_CONFIG) on any host
that can reach a server. It allows everything that root may do here, except creating such
files. It contains a key: whoever has the file controls the cluster until the file
expires or is revoked.`,
		Example: "  stead client create -o ann.json --name ann\n  stead client create --servers 10.0.0.1:7443,10.0.0.2:7443",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s already exists; remove it, or choose another file with -o", file)
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
					fmt.Fprintf(cmd.OutOrStdout(), "created %s for %s, valid for %s; revoke it with: stead client revoke %s\n", file, name, ttl, id)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "stead-client.json", "the file to create; readable by its owner only")
	cmd.Flags().StringVar(&name, "name", userName(), "name of the user, recorded with edits")
	cmd.Flags().DurationVar(&ttl, "ttl", 30*24*time.Hour, "how long the file is valid")
	cmd.Flags().StringSliceVar(&servers, "servers", nil, "HOST:PORT of servers (default: those that the server advertises)")
	return cmd
}

// signClient requests a certificate for the key of mine, and returns the client's id.
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
		Short:   "Revoke a client credential permanently, with the unused join tokens made with it",
		Example: "  stead client revoke 1f2e3d4c5b6a7988",
		Args:    exactly(1, "the id of a client, as printed by 'stead client create'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				gone, err := t.Revoke(ctx, &proto.RevokeRequest{Client: args[0]})
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				fmt.Fprintf(out, "client %s revoked\n", args[0])
				for _, id := range gone.GetTokens() {
					fmt.Fprintf(out, "  its unused join token %s is revoked, too\n", id)
				}
				for _, n := range gone.GetNodes() {
					fmt.Fprintf(out, "  node %s joined with one of its tokens and stays; if it should not, run 'stead node revoke %s'\n", n, n)
				}
				return nil
			})
		},
	}
}

func nodeRevoke(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a node's certificates permanently",
		Long: `Revoke a node's certificates permanently. The node loses its session, gets no more
instructions, and its reports are ignored. Its members continue to run, and are not
replaced, because silence proves nothing. The machine can join again only with an empty
--root and another name.`,
		Example: "  stead node revoke host-b",
		Args:    exactly(1, "the name of a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.trusting(cmd, func(ctx context.Context, t proto.TrustClient) error {
				_, err := t.Revoke(ctx, &proto.RevokeRequest{Node: args[0]})
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "node %s revoked; its members continue to run\n", args[0])
				}
				return err
			})
		},
		ValidArgsFunction: c.completeNames(proto.KindNode),
	}
}
