package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

// devOptions place server and agent below one directory.
type devOptions struct {
	server serverOptions
	host   hostOptions
	level  string
}

func (o *devOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.host.Root, "root", "/var/lib/stead", "directory on disk for everything: store, ledger, volumes, logs")
	o.server.flags(cmd.Flags())
	o.host.flags(cmd.Flags())
	cmd.Flags().StringVar(&o.host.Metrics, "agent-metrics", "", "like --metrics, for the agent (default: off)")
	logFlag(cmd.Flags(), &o.level)
}

// place derives the directories of server and agent from --root.
func (o *devOptions) place() {
	o.server.DataDir = filepath.Join(o.host.Root, "server")
	o.host.Root = filepath.Join(o.host.Root, "agent")
}

func devCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run server, agent, DNS and an embedded etcd in one process on this host",
		Long: `Run server, agent, DNS and an embedded etcd in one process on this host. The API is
a unix socket that only root can open. Stopping it leaves the members running. The
next 'stead dev' adopts them; 'stead dev purge' ends them.`,
		Example: `  stead dev
  stead dev --root /srv/stead --cidr 10.99.0.0/16`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(o.level)
			if err != nil {
				return err
			}
			o.place()
			return runDev(cmd.Context(), o, log)
		},
	}
	o.flags(cmd)
	var p devOptions
	purge := &cobra.Command{
		Use:     "purge",
		Short:   purgeShort,
		Long:    purgeLong,
		Example: "  stead dev purge",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.place()
			return purge(cmd.Context(), p.host, cmd.OutOrStdout())
		},
	}
	p.flags(purge)
	cmd.AddCommand(purge)
	return cmd
}

// runDev runs server and agent until ctx ends; the first to end ends both.
func runDev(ctx context.Context, o devOptions, log *slog.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return runServer(ctx, o.server, log) })
	group.Go(func() error {
		return runAgent(ctx, o.host, func(context.Context) (*grpc.ClientConn, error) {
			return dialSocket(socketScheme + o.server.Socket)
		}, log)
	})
	return group.Wait()
}
