package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stead-project/stead/proto"
)

// completeTime is how long the shell is kept waiting for names.
const completeTime = 2 * time.Second

// completeNames completes one argument with the names of objects of the kinds.
func (c *cli) completeNames(kinds ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, kind := range kinds {
			names = append(names, c.names(cmd.Context(), kind, word)...)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTarget completes a kind and the name of an object of it.
func (c *cli) completeTarget(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	var words []string
	switch len(args) {
	case 0:
		for kind := range kinds {
			words = append(words, kind)
		}
		slices.Sort(words)
	case 1:
		if kind, err := parseKind(args[0]); err == nil {
			words = c.names(cmd.Context(), kind, word)
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// names are the names of a kind that begin with word; none when no server says so.
func (c *cli) names(ctx context.Context, kind, word string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	_ = c.connected(ctx, func(conn *grpc.ClientConn) error { // silent: the shell shows what there is
		got, err := proto.NewControlClient(conn).List(ctx, &proto.ListRequest{Kind: kind, Namespace: c.namespace})
		for _, o := range got.GetObjects() {
			if strings.HasPrefix(o.GetName(), word) {
				names = append(names, o.GetName())
			}
		}
		return err
	})
	return names
}
