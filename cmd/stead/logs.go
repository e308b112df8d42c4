package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
)

func logsCommand(c *cli) *cobra.Command {
	var (
		req   proto.LogsRequest
		since time.Duration
		raw   bool
	)
	cmd := &cobra.Command{
		Use:   "logs MEMBER|set/NAME",
		Short: "Show the logs of a member's container, or of all members of a set",
		Long: `Show the logs of a member's container. For a set, each line starts with the name of the
member; -f follows the members that have a life now.`,
		Example: `  stead logs etcd-0
  stead logs set/etcd -f --tail 5
  stead logs etcd-0 -f --tail 20
  stead logs etcd-0 --previous      (the container before its last restart)`,
		ValidArgsFunction: c.completeNames(proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseTarget(args, proto.KindMember)
			if err != nil {
				return err
			}
			if kind != proto.KindMember && kind != proto.KindSet {
				return usageError{fmt.Errorf("logs needs a member or a set, not a %s", kind)}
			}
			req.Namespace, req.Member = c.namespace, name
			if since > 0 {
				req.SinceUnixNanos = time.Now().Add(-since).UnixNano()
			}
			out, errOut := forReader(cmd.OutOrStdout(), raw), forReader(cmd.ErrOrStderr(), raw)
			err = c.with(func(control proto.ControlClient) error {
				if kind == proto.KindSet {
					return setLogs(cmd.Context(), control, &req, out, errOut)
				}
				stream, err := control.Logs(cmd.Context(), &req)
				if err != nil {
					return err
				}
				return copyLogs(stream, out, errOut)
			})
			if req.Follow && cmd.Context().Err() != nil {
				return nil // Ctrl-C is the normal end
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&req.Container, "container", "c", "", "the container (default: the only one)")
	flags.BoolVarP(&req.Follow, "follow", "f", false, "follow the output until Ctrl-C")
	flags.Int64Var(&req.Tail, "tail", -1, "number of lines from the end; -1: all")
	flags.BoolVarP(&req.Previous, "previous", "p", false, "show the container before its last restart")
	flags.DurationVar(&since, "since", 0, "only lines newer than this, for example 5m")
	flags.BoolVar(&req.Timestamps, "timestamps", false, "start each line with its time")
	flags.BoolVar(&raw, "raw", false, "write unchanged bytes to a terminal, too, even if they control the terminal")
	return cmd
}

// frames is the receiving side of a stream of frames.
type frames interface {
	Recv() (*proto.Frame, error)
}

func copyLogs(stream frames, out, errOut io.Writer) error {
	for {
		f, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.GetError() != "" {
			return errors.New(f.GetError())
		}
		to := out
		if f.GetChannel() == 2 {
			to = errOut
		}
		if _, err := to.Write(f.GetData()); err != nil {
			return err
		}
		if f.GetDone() {
			return nil
		}
	}
}
