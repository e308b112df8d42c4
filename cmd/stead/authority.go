package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func authorityCommand(c *cli) *cobra.Command {
	return group("authority", "Replace the certificate authority of the cluster", authorityList(c), authorityRotate(c), authorityRetire(c))
}

func authorityList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the certificate authorities, who depends on each, and how far a rotation is",
		Long: `List the certificate authorities by their ids, which tell nothing of their keys. USE is:

  signs     certificates are signed by it
  next      it signs as soon as all servers trust it
  trusted   it is being replaced: what it signed is accepted, and servers are known by it
  retired   its key is gone, and what it signed is refused

SERVERS trust it. NODES and CLIENTS have its certificates, as far as is known: a node counts as moved when it
came with a certificate of the new authority. STORES are servers whose embedded store still knows the other servers by it,
until they are started again.`,
		Example: "  stead authority ls",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := c.authority.List(cmd.Context(), &proto.ListAuthoritiesRequest{})
			if err != nil {
				return err
			}
			show := newTable(cmd.OutOrStdout(), "AUTHORITY", "USE", "EXPIRES", "SERVERS", "NODES", "CLIENTS", "STORES")
			for _, a := range list.GetAuthorities() {
				show.row(a.GetId(), a.GetUse(), time.Unix(a.GetUntilUnix(), 0).UTC().Format(time.DateOnly), strings.Join(a.GetServers(), ","),
					strings.Join(a.GetNodes(), ","), strings.Join(a.GetClients(), ","), strings.Join(a.GetStores(), ","))
			}
			if err := show.flush(); err != nil || list.GetWait() == "" {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", list.GetWait())
			return err
		},
	}
}

func authorityRotate(c *cli) *cobra.Command {
	var without []string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new certificate authority, while servers, nodes and members run",
		Long: `Make a new certificate authority. When all servers trust it, it signs the certificates of nodes and
people; nodes get theirs by themselves. Until 'stead authority retire' the old one is accepted as well, and
servers are known by it. Members, sessions and connections are not touched.

A server that is away is waited for, unless it is named by --without: then it must be replaced after the
retirement ('stead server replace').`,
		Example: "  stead authority rotate\n  stead authority rotate --without s3",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := c.authority.Rotate(cmd.Context(), &proto.RotateAuthorityRequest{Without: without})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "authority %s signs when all servers trust it; 'stead authority ls' shows how far that is\n", made.GetId())
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&without, "without", nil, "servers that are not waited for, because they are gone for good (repeatable)")
	return cmd
}

func authorityRetire(c *cli) *cobra.Command {
	var yes bool
	var r proto.RetireAuthorityRequest
	cmd := &cobra.Command{
		Use:   "retire",
		Short: "Have the old certificate authority end, once no server, node or client file depends on it",
		Long: `Have the old certificate authority end: its key is erased from the store, and what it signed is refused.
It is refused while servers, nodes or client files depend on it, and names them.

A node named by --without-node is cut off: its members run on (guarded ones until their deadline), and it joins again
with a token of 'stead token create --node NAME'. With --end-clients the client files of the old authority end.
Join tokens that were not used are void.

Then start the servers again, one after the other: until then their embedded store knows the other servers also by
the old authority ('stead authority ls', STORES).`,
		Example: "  stead authority retire\n  stead authority retire --without-node host-c --end-clients --yes",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			r.DryRun = true
			would, err := c.authority.Retire(cmd.Context(), &r)
			if err != nil {
				return err
			}
			printRetirement(out, would, r.GetWithoutNodes())
			if err := confirm(cmd, "Retire authority "+would.GetId()+"?", yes); err != nil {
				return err
			}
			r.DryRun = false
			done, err := c.authority.Retire(cmd.Context(), &r)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "authority %s is retired\n", done.GetId())
			if stores := done.GetStores(); len(stores) > 0 {
				fmt.Fprintf(out, "start these servers again, one after the other, for their store still knows the others by it: %s\n", strings.Join(stores, ", "))
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&r.WithoutNodes, "without-node", nil, "a node that is cut off, and joins again with a token (repeatable)")
	cmd.Flags().BoolVar(&r.EndClients, "end-clients", false, "have the client files of the old authority end")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// printRetirement says who is cut off.
func printRetirement(out io.Writer, would *proto.RetireAuthorityResponse, nodes []string) {
	if len(nodes) > 0 {
		fmt.Fprintf(out, "cut off, and join again with a token: nodes %s\n", strings.Join(nodes, ", "))
	}
	for _, client := range would.GetClients() {
		fmt.Fprintf(out, "ends: the client file of %s\n", client)
	}
	if n := would.GetTokens(); n > 0 {
		fmt.Fprintf(out, "void: %d unused join tokens\n", n)
	}
}

// printAuthority prints, for 'status', what a rotation of the authority waits for.
func (c *cli) printAuthority(ctx context.Context, out io.Writer) {
	list, err := c.authority.List(ctx, &proto.ListAuthoritiesRequest{})
	if err == nil && list.GetWait() != "" { // else an older server, one without an authority, or no rotation is under way
		fact(out, "authority", "%s", list.GetWait())
	}
}
