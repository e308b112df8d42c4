package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/host"
	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
)

func agentCommand() *cobra.Command {
	var (
		o     hostOptions
		token tokenOptions
		level string
	)
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run members on this host, as assigned by a server",
		Long: `Run members on this host, as assigned by a server. Stopping the agent leaves its
members running. The next agent with the same --root adopts them; 'stead agent purge'
ends them.`,
		Example: `  stead agent --server unix:///run/stead/stead.sock --node host-a
  stead agent --join 10.0.0.1:7443,10.0.0.2:7443 --token-file /root/token`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := cmd.Flags().GetString("server")
			if err != nil {
				return err
			}
			log, err := newLogger(level)
			if err != nil {
				return err
			}
			if (token.token != "" || token.file != "") && len(o.Join) == 0 {
				return usageError{errors.New("a join token needs --join HOST:PORT")}
			}
			if o.Token, err = token.read(cmd.InOrStdin()); err != nil {
				return err
			}
			return runAgent(cmd.Context(), o, func(context.Context) (*grpc.ClientConn, error) { return dialSocket(server) }, log)
		},
	}
	agentFlags(cmd, &o)
	cmd.Flags().StringSliceVar(&o.Join, "join", nil, "HOST:PORT of servers on other hosts, instead of a socket on this host (repeatable)")
	token.flags(cmd.Flags())
	cmd.Flags().StringVar(&o.Metrics, "metrics", "", "address for /metrics and /healthz: unix:///path or 127.0.0.1:port (default: off)")
	logFlag(cmd.Flags(), &level)
	var p hostOptions
	purge := &cobra.Command{
		Use:     "purge",
		Short:   purgeShort,
		Long:    purgeLong,
		Example: "  stead agent purge --root /var/lib/stead/agent",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return purge(cmd.Context(), p, cmd.OutOrStdout())
		},
	}
	agentFlags(purge, &p)
	cmd.AddCommand(purge, checkCommand(), acceptDiskCommand())
	return cmd
}

func agentFlags(cmd *cobra.Command, o *hostOptions) {
	cmd.Flags().StringVar(&o.Root, "root", "/var/lib/stead/agent", "directory on disk: identity, ledger, volumes, logs")
	o.flags(cmd.Flags())
}

// onDiskEnv lets tests use a run directory that is not on tmpfs. It is for tests only.
const onDiskEnv = "STEAD_TEST_RUN_DIR_ON_DISK"

// runAgent is one node's agent until ctx ends.
func runAgent(ctx context.Context, o hostOptions, dial session.Dial, log *slog.Logger) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := home.PrepareRunDir(o.RunDir, os.Getenv(onDiskEnv) != ""); err != nil {
		return err
	}
	o.Version, o.SteadNode = version, steadNode
	facts, err := o.Facts()
	if err != nil {
		return usage(err)
	}
	at, err := home.Open(o.Root, spec.NodeName(o.Node))
	if err != nil {
		return err
	}
	defer at.Close()
	dial, renew, err := reach(ctx, o, at, dial, log)
	if err == nil {
		err = session.Join(ctx, at, dial, facts.Boot, facts, log)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // a requested stop
	case err != nil:
		return err
	}
	m, err := host.New(o.Options, at, log)
	if err != nil {
		return usage(err)
	}
	defer m.Runtime.Close()
	metrics, err := server.ListenMetrics(o.Metrics)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	if err := m.Prepare(ctx); err != nil {
		return err
	}
	a, err := agent.New(agent.Config{
		Home: at, RunDir: o.RunDir, Dial: dial,
		Runtime: m.Runtime, Network: m.Network, Volumes: m.Volumes,
		Prober: probe.New(probe.Config{Exec: m.Runtime.Exec}),
		Boot:   facts.Boot, Facts: facts, Gateway: o.Gateway, Snapshots: m.Update, Hosts: m.UpdateHosts, Logger: log,
		Repair: m.Repair, Changed: m.Changed(), Watchdog: m.StartWatchdog, Cgroup: m.Runtime.Cgroup,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { renew(ctx); return nil })
	group.Go(func() error { return m.Run(ctx) })
	group.Go(func() error { return serveAgentMetrics(ctx, metrics, a, m.DNS) })
	group.Go(func() error { return a.Run(ctx) })
	log.Info("agent started", "node", o.Node)
	return group.Wait()
}

// reach returns how the node connects to a server, and what keeps that way open until its
// context ends: a socket, or with --join a link to other hosts, for which the node enrolls
// first.
func reach(ctx context.Context, o hostOptions, at *home.Home, socket session.Dial, log *slog.Logger) (session.Dial, func(context.Context), error) {
	if len(o.Join) == 0 {
		return socket, func(ctx context.Context) { <-ctx.Done() }, nil
	}
	link, err := session.Enroll(ctx, at, o.Join, o.Token, log)
	if err != nil {
		return nil, nil, err
	}
	return link.Dial, link.Run, nil
}

// serveAgentMetrics serves metrics of the agent and its DNS on lis (nil: not at all) until ctx
// ends. An agent without a server is healthy: its members continue to run.
func serveAgentMetrics(ctx context.Context, lis net.Listener, of ...prometheus.Collector) error {
	registry := prometheus.NewRegistry()
	for _, c := range of {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return server.ServeMetrics(ctx, lis, registry, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
}

func logFlag(f *pflag.FlagSet, level *string) {
	f.StringVar(level, "log-level", "info", "debug, info, warn or error")
}

// newLogger logs to standard error at a level.
func newLogger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError{fmt.Errorf("--log-level %q: write debug, info, warn or error", level)}
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})), nil
}
