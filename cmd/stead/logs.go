package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
)

func logsCommand(c *cli) *cobra.Command {
	l := logReader{cli: c}
	cmd := &cobra.Command{
		Use:   "logs MEMBER... | set/NAME | -l LABELS",
		Short: "Show the logs of members' containers, or of all members of a set",
		Long: `Show the logs of members' containers. For a set, each line starts with the name of the
member, unless --prefix=false; with --prefix each line starts with [pod/MEMBER/CONTAINER], as
of kubectl. -l shows the last 10 lines of each member, unless --tail says otherwise. -f
follows the members that have a life now.`,
		Example: `  stead logs etcd-0
  stead logs set/etcd -f --tail 5
  stead logs etcd-0 -f --tail 20
  stead logs etcd-0 etcd-1 --prefix
  stead logs -l app=etcd --all-containers --since 5m
  stead logs etcd-0 --since-time 2026-11-23T10:00:00Z
  stead logs etcd-0 --previous      (the container before its last restart)`,
		ValidArgsFunction: c.completeNames(proto.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := l.check(cmd, args)
			if err == nil {
				err = l.show(cmd, args)
			}
			if l.req.Follow && cmd.Context().Err() != nil {
				return nil // Ctrl-C is the normal end
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&l.req.Container, "container", "c", "", "the container (default: the first)")
	flags.BoolVar(&l.allContainers, "all-containers", false, "show all containers of each member")
	flags.StringVarP(&l.selector, "selector", "l", "", "the members with these labels: app=db,tier!=test")
	flags.BoolVarP(&l.req.Follow, "follow", "f", false, "follow the output until Ctrl-C")
	flags.Int64Var(&l.req.Tail, "tail", -1, "number of lines from the end of each log; -1: all")
	flags.BoolVarP(&l.req.Previous, "previous", "p", false, "show the container before its last restart")
	flags.DurationVar(&l.since, "since", 0, "only lines newer than this, for example 5m")
	flags.StringVar(&l.sinceTime, "since-time", "", "only lines after this time, for example 2026-11-23T10:00:00Z")
	flags.BoolVar(&l.req.Timestamps, "timestamps", false, "start each line with its time")
	flags.BoolVar(&l.prefix, "prefix", false, "start each line with its member and container; --prefix=false: nothing of a set, either")
	flags.BoolVar(&l.raw, "raw", false, "write unchanged bytes to a terminal, too, even if they control the terminal")
	return cmd
}

// logReader is one use of the verb logs.
type logReader struct {
	*cli
	req           proto.LogsRequest
	selector      string
	allContainers bool
	prefix        bool
	since         time.Duration
	sinceTime     string
	raw           bool
}

// source is one log, and what its lines start with.
type source struct {
	member, container string // container "": the first
	prefix            string
}

// check refuses a wrong use, and completes the request.
func (l *logReader) check(cmd *cobra.Command, args []string) error {
	if _, err := spec.ParseSelector(l.selector); l.selector != "" && err != nil {
		return misuse("-l: %w", err)
	}
	switch {
	case l.selector != "" && len(args) > 0:
		return misuse("-l chooses the members; omit their names, or -l")
	case l.allContainers && l.req.GetContainer() != "":
		return misuse("--all-containers cannot be used with -c")
	case l.since > 0 && l.sinceTime != "":
		return misuse("--since cannot be used with --since-time")
	case l.since > 0:
		l.req.SinceUnixNanos = time.Now().Add(-l.since).UnixNano()
	case l.sinceTime != "":
		at, err := time.Parse(time.RFC3339, l.sinceTime)
		if err != nil {
			return misuse("invalid --since-time %q; write it as 2026-11-23T10:00:00Z", l.sinceTime)
		}
		l.req.SinceUnixNanos = at.UnixNano()
	}
	if l.selector != "" && !cmd.Flags().Changed("tail") {
		l.req.Tail = 10 // as kubectl
	}
	l.req.Namespace = l.namespace
	return nil
}

// show shows the logs that the arguments name.
func (l *logReader) show(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	sources, err := l.sources(ctx, args, cmd.Flags().Changed("prefix"))
	if err != nil {
		return err
	}
	out, errOut := forReader(cmd.OutOrStdout(), l.raw), forReader(cmd.ErrOrStderr(), l.raw)
	if len(sources) == 1 && sources[0].prefix == "" {
		return l.one(ctx, sources[0], out, errOut)
	}
	return l.several(ctx, sources, out, errOut)
}

// sources are the logs that the arguments, or the labels, name. chosen: --prefix was given.
func (l *logReader) sources(ctx context.Context, args []string, chosen bool) (out []source, err error) {
	if l.selector != "" {
		members, err := l.living(ctx, &proto.ListRequest{Selector: l.selector}, "the selector "+l.selector)
		return l.logsOf(members, false), err
	}
	targets, err := logTargets(args)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		for _, name := range t.names {
			var members []*shownMember
			if t.kind == proto.KindSet {
				members, err = l.living(ctx, &proto.ListRequest{Set: name}, "set "+name)
			} else {
				members, err = l.member(ctx, name)
			}
			if err != nil {
				return nil, err
			}
			out = append(out, l.logsOf(members, t.kind == proto.KindSet && !chosen)...)
		}
	}
	return out, nil
}
