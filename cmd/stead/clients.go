package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func clientList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the client files that were created, and what each let in",
		Long: `List the client files that were created, and what each let in: unused join tokens, and the nodes
that joined with its tokens; (again) are nodes that were there before and came back with such a
token. What earlier versions created is listed by its id alone, if it let something in.`,
		Example: "  stead client ls",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := c.trust.ListClients(cmd.Context(), &proto.ListClientsRequest{})
			if err != nil {
				return err
			}
			show := newTable(cmd.OutOrStdout(), "ID", "NAME", "ROLE", "NAMESPACES", "AGE", "STATE", "TOKENS", "NODES")
			for _, k := range list.GetClients() {
				made, state := "", "unknown"
				if k.GetMadeUnix() != 0 {
					made, state = age(time.Unix(k.GetMadeUnix(), 0)), "valid"
					if time.Until(time.Unix(k.GetUntilUnix(), 0)) < 0 {
						state = "expired"
					}
				}
				if k.GetRevoked() {
					state = "revoked"
				}
				show.row(k.GetId(), k.GetName(), k.GetRole(), strings.Join(k.GetNamespaces(), ","), made, state, strings.Join(k.GetTokens(), ","), admittedText(k.GetLetIn()))
			}
			if err := show.flush(); err != nil {
				return err
			}
			printUnrecorded(cmd.OutOrStdout(), list.GetUnrecorded())
			return nil
		},
	}
}

// admittedText is one word a node.
func admittedText(nodes []*proto.AdmittedNode) string {
	var out []string
	for _, n := range nodes {
		text := n.GetName()
		if n.GetAgain() {
			text += "(again)"
		}
		if n.GetRevoked() {
			text += "(revoked)"
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
}

// printUnrecorded names the nodes of which it is not known with which tokens they came back.
func printUnrecorded(out io.Writer, nodes []string) {
	if len(nodes) > 0 {
		fmt.Fprintf(out, "\n%s joined with an earlier version: with whose token is known of the first time only\n", strings.Join(nodes, ", "))
	}
}

func clientRevoke(c *cli) *cobra.Command {
	var also bool
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a client credential permanently, with the unused join tokens made with it",
		Long: `Revoke a client credential permanently, with the unused join tokens made with it, and show the
nodes that its tokens let in. With --also these are revoked, too: they lose their sessions, and
their machines can join again only with an empty --root and another name. Their members continue
to run. A node that was there before and came back with such a token is named: whoever had the
token got the node's name, and the machine that you know may be another one.`,
		Example: "  stead client revoke 1f2e3d4c5b6a7988\n  stead client revoke 1f2e3d4c5b6a7988 --also",
		Args:    exactly(1, "the id of a client, as printed by 'stead client create'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			gone, err := c.trust.Revoke(cmd.Context(), &proto.RevokeRequest{Client: args[0], Also: also})
			if err != nil {
				return err
			}
			printRevoked(cmd.OutOrStdout(), args[0], gone, also)
			return nil
		},
	}
	cmd.Flags().BoolVar(&also, "also", false, "revoke the nodes that its tokens let in, too")
	return cmd
}

func printRevoked(out io.Writer, id string, gone *proto.RevokeResponse, also bool) {
	name := ""
	if gone.GetClient() != "" {
		name = " (" + gone.GetClient() + ")"
	}
	fmt.Fprintf(out, "client %s revoked%s\n", id, name)
	if gone.GetClient() == "" {
		fmt.Fprintln(out, "  it is not in the list of clients: an earlier version created it, or the id is wrong")
	}
	for _, token := range gone.GetTokens() {
		fmt.Fprintf(out, "  its unused join token %s is revoked, too\n", token)
	}
	for _, n := range gone.GetLetIn() {
		how := "joined"
		if n.GetAgain() {
			how = "was there before and came back"
		}
		if n.GetRevoked() {
			fmt.Fprintf(out, "  node %s %s with one of its tokens and is revoked; its members continue to run\n", n.GetName(), how)
		} else {
			fmt.Fprintf(out, "  node %s %s with one of its tokens and stays; if it should not, run 'stead node revoke %s'\n", n.GetName(), how, n.GetName())
		}
	}
	if also && len(gone.GetLetIn()) == 0 { // an earlier server names them, and revokes none
		for _, n := range gone.GetNodes() {
			fmt.Fprintf(out, "  node %s joined with one of its tokens and stays, for the server is older than this command; run 'stead node revoke %s'\n", n, n)
		}
	}
	printUnrecorded(out, gone.GetUnrecorded())
}
