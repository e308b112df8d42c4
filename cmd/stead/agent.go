package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

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
	"github.com/stead-project/stead/records"
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
				return misuse("a join token needs --join HOST:PORT")
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
	traceFlag(cmd.Flags(), &o.Trace)
	logFlag(cmd.Flags(), &level)
	var p hostOptions
	purge := purgeCommand("  stead agent purge --root /var/lib/stead/agent", func() hostOptions { return p })
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
	facts, err := o.Facts()
	if err != nil {
		return usage(err)
	}
	logAddress(&facts, log)
	at, err := home.Open(o.Root, spec.NodeName(o.Node))
	if err != nil {
		return err
	}
	defer at.Close()
	to, err := reach(ctx, o, at, dial, log)
	if err == nil {
		err = session.Join(ctx, at, to.dial, facts.Boot, facts, log)
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
	defer m.Copier.Close()
	metrics, err := server.ListenMetrics(o.Metrics)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	tracer, err := openTrace(ctx, o.Trace, "stead-agent", string(facts.Name), log)
	if err != nil {
		return err
	}
	defer tracer.Close()
	m.Prepare(ctx)
	a, err := agent.New(agent.Config{
		Home: at, RunDir: o.RunDir, Dial: to.dial, Servers: to.told, Authority: to.signs,
		Runtime: m.Runtime, Network: m.Network, Volumes: m.Volumes, Moves: m.Moves, Copier: m.Copier,
		Prober: probe.New(probe.Config{Exec: m.Runtime.Exec}),
		Boot:   facts.Boot, Facts: facts, Allocatable: m.Allocatable(), Gateway: o.Gateway, Snapshots: m.Update, Listed: m.Listed, Hosts: m.UpdateHosts, Tunnel: m.UpdateTunnel, Interests: m.SetInterests, Trace: tracer, Logger: log,
		Repair: m.Repair, Changed: m.Changed(), Watchdog: m.StartWatchdog, ForeignWatchdog: m.ForeignWatchdog, Cgroup: m.Runtime.Cgroup, VolumeUses: m.Meter.Uses,
	})
	if err != nil {
		return err
	}
	a.SetConditions(m.Conditions(ctx))
	// It ends later than it is asked to while the host is shut down.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	group.Go(func() error {
		defer stop()
		select {
		case <-running.Done():
		case <-ctx.Done():
			shutDown(running, a, o.ShutdownTime, log)
		}
		return nil
	})
	group.Go(func() error { to.keep(running); return nil })
	group.Go(func() error { m.WatchConditions(running, a.SetConditions); return nil })
	group.Go(func() error { return m.Run(running) })
	group.Go(func() error { m.CollectImages(running, a.Images); return nil })
	group.Go(func() error { return serveAgentMetrics(running, metrics, a, m) })
	group.Go(func() error { return a.Run(running) })
	log.Info("agent started", "node", o.Node)
	return group.Wait()
}

// shutDown has the members of this node stop, if systemd shuts the host down; a mere stop of the agent leaves them running.
func shutDown(ctx context.Context, a *agent.Agent, limit time.Duration, log *slog.Logger) {
	if limit <= 0 || !hostEnds(ctx) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	go holdShutdown(ctx, log)
	a.Shutdown(ctx, limit)
}

// logAddress says by which address other hosts reach this one, where that is a choice, or that none is known.
func logAddress(f *records.NodeFacts, log *slog.Logger) {
	switch {
	case f.HostIP == "":
		log.Warn("other hosts do not reach members here; "+f.AddressHelp(), "node", string(f.Name))
	case len(f.HostIPs) > 1:
		log.Info("several addresses; other hosts reach this one at that of its default route; for another one start the agent with --address",
			"address", f.HostIP, "addresses", strings.Join(f.HostIPs, " "))
	}
}

// way is how a node connects to servers.
type way struct {
	dial session.Dial
	keep func(context.Context) // keeps it open until its context ends
	told func(servers []string)
	// signs takes the id of the authority that signs certificates; nil: the node has none.
	signs func(id string)
}

// reach returns how the node connects to servers: by a socket, or with --join by a link to other
// hosts, for which the node enrolls first.
func reach(ctx context.Context, o hostOptions, at *home.Home, socket session.Dial, log *slog.Logger) (way, error) {
	if len(o.Join) == 0 {
		return way{dial: socket, keep: func(ctx context.Context) { <-ctx.Done() }}, nil
	}
	link, err := session.Enroll(ctx, at, o.Join, o.Token, log)
	if err != nil {
		return way{}, err
	}
	return way{dial: link.Dial, keep: link.Run, told: link.Told, signs: link.AuthorityTold}, nil
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
		return nil, misuse("--log-level %q: write debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})), nil
}

// tokenVariable holds a join token; unlike a flag, other users of the host cannot see it.
const tokenVariable = "STEAD_TOKEN"

// tokenBytes limits a join token that is read; a real one has about 120 bytes.
const tokenBytes = 4096

// tokenOptions say where a join token is.
type tokenOptions struct {
	token string // itself, or "-": on standard input
	file  string
}

func (o *tokenOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "token-file", "", "file with the join token for the first start, created by 'stead token create'")
	f.StringVar(&o.token, "token", "", "the join token itself, visible to every user of this host in the process list; '-': read it from standard input (default: $"+tokenVariable+")")
}

// read returns the join token; "": none was given. It unsets the variable, so that no
// process that is started later inherits it.
func (o *tokenOptions) read(in io.Reader) (string, error) {
	variable := os.Getenv(tokenVariable)
	if err := os.Unsetenv(tokenVariable); err != nil {
		return "", err
	}
	switch {
	case o.token != "" && o.file != "":
		return "", misuse("use either --token or --token-file, not both")
	case o.token == "-":
		return tokenFrom(in, "standard input")
	case o.token != "":
		return o.token, nil
	case o.file == "":
		return variable, nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w; remove the flag if the node has already joined", err)
	}
	defer f.Close()
	return tokenFrom(f, o.file)
}

func tokenFrom(r io.Reader, name string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, tokenBytes))
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("read join token: %s is empty", name)
	}
	return token, nil
}
