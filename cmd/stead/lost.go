package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/stores"
)

// againAfter is the pause before a stream that was lost is opened again.
const againAfter = 500 * time.Millisecond

// lasts reports whether a command follows or waits for something.
func lasts(cmd *cobra.Command) bool {
	for _, name := range []string{"follow", "watch", "wait"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "true" {
			return true
		}
	}
	switch cmd.CommandPath() {
	case "stead wait", "stead rollout status", "stead drain":
		return true
	}
	return false
}

// tellLost says on out, while a command lasts, that the store has lost its majority, or that no server answers, and when that is over. The
// command itself goes on.
func (c *cli) tellLost(ctx context.Context, out io.Writer) {
	ctx, cancel := context.WithCancel(ctx)
	c.telling.Go(func() {
		told := ""
		say := func(now string) {
			if now != told {
				fmt.Fprintf(out, "stead: %s\n", plainLines(cmp.Or(now, "the store can be reached again; this continues")))
			}
			told = now
		}
		for reached := false; ctx.Err() == nil; {
			err := hearLost(ctx, c.servers, func(text string) {
				reached = true
				say(text)
			})
			switch status.Code(err) {
			case codes.FailedPrecondition, codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
				return // an external store, or a server of an earlier version
			}
			switch text := status.Convert(err).Message(); {
			case ctx.Err() != nil:
			case status.Code(err) == codes.Unavailable && strings.HasPrefix(text, stores.NoMajority):
				say(text) // a server that cannot even look whether the caller's certificate was revoked says it in this way
			case reached:
				say("the connection to the server is lost, and is tried again")
			}
			backoff.Sleep(ctx, againAfter)
		}
	})
	c.stopTelling = cancel
}

// hearLost calls say with what a server tells, the first as soon as it answers.
func hearLost(ctx context.Context, servers proto.ServersClient, say func(string)) error {
	stream, err := servers.Quorum(ctx, &proto.QuorumRequest{})
	if err != nil {
		return err
	}
	for {
		state, err := stream.Recv()
		if err != nil {
			return err
		}
		say(state.GetLost())
	}
}
