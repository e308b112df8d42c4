package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"
	gproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
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
				return misuse("logs needs a member or a set, not a %s", kind)
			}
			req.Namespace, req.Member = c.namespace, name
			if since > 0 {
				req.SinceUnixNanos = time.Now().Add(-since).UnixNano()
			}
			out, errOut := forReader(cmd.OutOrStdout(), raw), forReader(cmd.ErrOrStderr(), raw)
			if kind == proto.KindSet {
				err = c.setLogs(cmd.Context(), &req, out, errOut)
			} else {
				err = c.memberLogs(cmd.Context(), &req, out, errOut)
			}
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

// memberLogs shows the logs of one member.
func (c *cli) memberLogs(ctx context.Context, req *proto.LogsRequest, out, errOut io.Writer) error {
	stream, err := c.control.Logs(ctx, req)
	if err != nil {
		return err
	}
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
		if f.GetChannel() == proto.ChannelErr {
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

// setLogs shows the logs of all members of the set that req names in place of a member:
// one after the other, or all at once when they are followed. A failure of one member does
// not keep the others from being shown.
func (c *cli) setLogs(ctx context.Context, req *proto.LogsRequest, out, errOut io.Writer) error {
	names, err := c.livingMembers(ctx, req.GetNamespace(), req.GetMember())
	if err != nil {
		return err
	}
	var (
		lock sync.Mutex // of out and errOut: lines are written whole
		all  sync.WaitGroup
		errs = make([]error, len(names))
	)
	show := func(i int) {
		one := gproto.Clone(req).(*proto.LogsRequest)
		one.Member = names[i]
		to := &lineWriter{lock: &lock, out: out, prefix: "[" + names[i] + "] "}
		toErr := &lineWriter{lock: &lock, out: errOut, prefix: to.prefix}
		err := c.memberLogs(ctx, one, to, toErr)
		if err = errors.Join(err, to.flush(), toErr.flush()); err != nil {
			errs[i] = fmt.Errorf("%s: %s", names[i], explainError(err))
		}
	}
	for i := range names {
		if req.GetFollow() {
			all.Go(func() { show(i) })
		} else {
			show(i)
		}
	}
	all.Wait()
	if ctx.Err() != nil { // Ctrl-C, not a failure of members
		return status.FromContextError(ctx.Err()).Err()
	}
	return errors.Join(errs...)
}

// livingMembers returns the names of the members of a set that have a life.
func (c *cli) livingMembers(ctx context.Context, namespace, set string) (names []string, err error) {
	members, err := list[any, records.MemberStatus](ctx, c, &proto.ListRequest{Kind: proto.KindMember, Namespace: namespace, Set: set})
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Status.Token != "" {
			names = append(names, m.Status.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("set %s in namespace %s has no running members", set, namespace)
	}
	return names, nil
}

// lineWriter writes whole lines, each with a prefix.
type lineWriter struct {
	lock   *sync.Mutex
	out    io.Writer
	prefix string
	rest   []byte // the start of a line that has not ended
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var text []byte
	for line := range bytes.Lines(w.rest[:end]) {
		text = append(append(text, w.prefix...), line...)
	}
	w.rest = append(w.rest[:0], w.rest[end:]...)
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, err := w.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes a last line that has no newline.
func (w *lineWriter) flush() error {
	if len(w.rest) == 0 {
		return nil
	}
	_, err := w.Write([]byte{'\n'})
	return err
}
