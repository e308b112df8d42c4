package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/trust"
)

func clientCommand(c *cli) *cobra.Command {
	return group("client", "Manage client credentials for use from other hosts", clientCreate(c), clientList(c), clientRevoke(c))
}

func clientCreate(c *cli) *cobra.Command {
	var (
		file    string
		r       proto.CreateClientRequest
		ttl     time.Duration
		servers []string
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a client credential file, for 'stead --config FILE' on any host",
		Long: `Create a client credential file, for 'stead --config FILE' (or STEAD_CONFIG) on any host
that can reach a server. It contains a key: whoever has the file has its role until it
expires or is revoked.

  admin      all that root may do here, except creating such files
  operator   what is in namespaces: apply, scale, delete, roll out, move, logs, exec, port-forward,
             volumes, and reading all of it; not nodes, servers, images, tokens, backups, audit
  viewer     reading that, and logs, but no Secrets

Operators and viewers have their role in all namespaces, or in those of --in-namespace. Who may apply
sets chooses what runs: what members may do to their hosts is decided by the servers' flags (--allow-…).`,
		Example: `  stead client create -o ann.json --name ann
  stead client create -o bob.json --name bob --role operator --in-namespace shop,shop-test
  stead client create --servers 10.0.0.1:7443,10.0.0.2:7443`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s already exists; remove it, or choose another file with -o", file)
			}
			mine, err := trust.NewCredential(servers)
			if err != nil {
				return err
			}
			r.TtlMillis = ttl.Milliseconds()
			id, err := c.signClient(cmd.Context(), mine, &r)
			if err == nil {
				err = mine.Save(file)
			}
			if err == nil {
				what := r.GetRole()
				if len(r.GetNamespaces()) > 0 {
					what += " in " + strings.Join(r.GetNamespaces(), ", ")
				}
				fmt.Fprintf(cmd.OutOrStdout(), "created %s for %s, %s, valid for %s; revoke it with: stead client revoke %s\n", file, r.GetName(), what, ttl, id)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "stead-client.json", "the file to create; readable by its owner only")
	cmd.Flags().StringVar(&r.Name, "name", userName(), "name of the user, recorded with edits")
	cmd.Flags().StringVar(&r.Role, "role", string(trust.RoleAdmin), "admin, operator or viewer")
	cmd.Flags().StringSliceVar(&r.Namespaces, "in-namespace", nil, "namespaces to which an operator or a viewer is limited (repeatable; default: none)")
	cmd.Flags().DurationVar(&ttl, "ttl", 30*24*time.Hour, "how long the file is valid")
	cmd.Flags().StringSliceVar(&servers, "servers", nil, "HOST:PORT of servers (default: those that the server advertises)")
	return cmd
}

// signClient requests a certificate for the key of mine, and returns the client's id.
func (c *cli) signClient(ctx context.Context, mine *trust.Credential, r *proto.CreateClientRequest) (id string, err error) {
	if r.Request, err = mine.Request(); err != nil {
		return "", err
	}
	given, err := c.trust.CreateClient(ctx, r)
	if err != nil {
		return "", err
	}
	if len(mine.Servers) == 0 {
		mine.Servers = given.GetServers()
	}
	if err := mine.Take(given.GetCertificate(), given.GetCa()); err != nil {
		return "", err
	}
	who, err := mine.Subject()
	if err != nil {
		return "", err
	}
	if string(who.Role) != r.GetRole() || who.Namespaces != strings.Join(r.GetNamespaces(), ",") {
		_, revoked := c.trust.Revoke(ctx, &proto.RevokeRequest{Client: given.GetId()})
		return "", errors.Join(errors.New("the server is too old to know roles, and made an admin, which was revoked: upgrade the servers"), revoked)
	}
	return given.GetId(), nil
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
			_, err := c.trust.Revoke(cmd.Context(), &proto.RevokeRequest{Node: args[0]})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "node %s revoked; its members continue to run\n", args[0])
			}
			return err
		},
		ValidArgsFunction: c.completeNames(proto.KindNode),
	}
}

func tokenCommand(c *cli) *cobra.Command {
	return group("token", "Manage the tokens with which nodes join", tokenCreate(c), tokenList(c), tokenRevoke(c))
}

func tokenCreate(c *cli) *cobra.Command {
	var (
		ttl  time.Duration
		node string
		srv  string
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token with which one machine can join, once",
		Long: `Create a token with which one machine can join, once and for a short time: with 'stead
agent --join HOST:PORT --token-file FILE', or with STEAD_TOKEN=TOKEN. The token contains
a fingerprint of the cluster, so that the machine reveals the secret to no other cluster.
A node whose certificate expired while it was away needs a token created with --node.

--for-server makes a token for another server ('stead server --join'). It lets that server have
the key of the cluster's Secrets and authority: only root on a server's host can make it, and
it is valid for at most an hour.`,
		Example: "  stead token create\n  stead token create --node host-b --ttl 1h\n  stead token create --for-server s2",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := c.trust.CreateToken(cmd.Context(), &proto.CreateTokenRequest{TtlMillis: ttl.Milliseconds(), Node: node, Server: srv})
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), made.GetToken())
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 15*time.Minute, "how long the token is valid; at most 168h, or 1h if created with a client file")
	cmd.Flags().StringVar(&srv, "for-server", "", "the server that may join with it, by its --name; no node may")
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
			list, err := c.trust.ListTokens(cmd.Context(), &proto.ListTokensRequest{})
			if err != nil {
				return err
			}
			show := newTable(cmd.OutOrStdout(), "ID", "NODE", "USED BY", "MADE BY", "TTL", "AGE")
			for _, k := range list.GetTokens() {
				ttl := time.Duration(k.GetTtlMillis()) * time.Millisecond
				show.row(k.GetId(), cmp.Or(k.GetNode(), forServer(k.GetServer())), k.GetUsedBy(), cmp.Or(k.GetMadeBy(), "root"), ttl, age(time.Unix(k.GetCreatedUnix(), 0)))
			}
			return show.flush()
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
			_, err := c.trust.RevokeToken(cmd.Context(), &proto.RevokeTokenRequest{Id: args[0]})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "token %s revoked\n", args[0])
			}
			return err
		},
	}
}

// forServer says that a token is for a server; "" for none.
func forServer(name string) string {
	if name == "" {
		return ""
	}
	return "server " + name
}
