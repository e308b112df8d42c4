package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/server/backup"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/fence"
)

// defaultDataDir is a server's own directory.
const defaultDataDir = "/var/lib/stead/server"

// serverOptions place a server.
type serverOptions struct {
	server.Config
	PeerListen string   // where other servers reach the embedded store; "": it is alone
	Join       []string // servers of the cluster to join
	Token      tokenOptions
	token      string
	DataDir    string // store and key
	Range      string // of the members' addresses
	Virtual    string // range of services' addresses; "": the default
	// Balanced and External are the ranges of addresses of services for clients outside.
	Balanced, External []string
	Held               bool // the store was restored
	Recipients         string
	TraceEndpoint      string
	Etcd               storeOptions
}

func (o *serverOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Socket, "socket", server.DefaultSocket, "unix socket of the API, for root only")
	f.StringVar(&o.Name, "name", "", "name of this server (default: the host's name)")
	f.StringVar(&o.Domain, "domain", server.DefaultDomain, "DNS domain of the cluster")
	f.StringVar(&o.Range, "cidr", server.DefaultCIDR, "address range of the members; it must not overlap addresses or routes of the hosts")
	f.StringVar(&o.Tunnel, "tunnel", "", "tunnel between hosts: "+strings.Join(records.TunnelKinds, ", ")+"; give it to all servers (default: as nodes were told before, at first vxlan)")
	f.StringVar(&o.Virtual, "service-cidr", "", "address range of Services; it must overlap neither --cidr nor what hosts reach, and stays as it is while Services have addresses (default: "+strings.Join(server.DefaultServiceCIDRs, ", or ")+" if that overlaps --cidr)")
	f.StringSliceVar(&o.Balanced, "load-balancer-cidr", nil, "range of addresses for Services of type LoadBalancer, which your network leads to the hosts (repeatable; default: they get none)")
	f.StringSliceVar(&o.External, "external-ip-cidr", nil, "range of which Services may write externalIPs: whoever may apply manifests takes these addresses for all members and hosts (repeatable; default: none)")
	f.DurationVar(&o.SessionTTL, "session-ttl", dispatch.DefaultTTL, "how long a node may be silent before its session ends")
	f.StringVar(&o.Listen, "listen", "", "HOST:PORT where agents and clients on other hosts reach the API, over mutual TLS only (default: off)")
	f.StringSliceVar(&o.Advertise, "advertise", nil, "HOST:PORT under which other hosts reach --listen (repeatable; default: --listen)")
	f.StringVar(&o.Metrics, "metrics", "", "address for /metrics and /healthz: unix:///path or 127.0.0.1:port (default: off)")
	traceFlag(f, &o.TraceEndpoint)
	f.BoolVar(&o.Debug, "debug", false, "serve /debug/pprof and /debug/world?set=NAMESPACE/NAME on --metrics, too; they show the values of variables in templates")
	f.StringToStringVar(&o.Classes, "map-class", nil, "map a storage class of manifests to one of the nodes: fast-ssd=local (repeatable)")
	f.BoolVar(&o.Host.Privileged, "allow-privileged", false, "allow privileged containers and all capabilities: whoever may apply manifests is root on every host, and its members can break Stead's promises")
	f.StringSliceVar(&o.Host.Paths, "allow-host-path", nil, "absolute directory of the hosts in which hostPath volumes may be (repeatable); /: any but those of Stead and containerd")
	f.BoolVar(&o.Host.Network, "allow-host-network", false, "allow hostNetwork: members in the network of their hosts, which reach what these offer to themselves alone, and to which NetworkPolicies do not apply")
	f.StringSliceVar(&o.Host.Sysctls, "allow-sysctl", nil, "kernel parameter that members may set for themselves beyond the safe ones: net.core.somaxconn, or kernel.shm* (repeatable)")
	f.StringVar(&o.FenceCommand, "fence-command", "", "program that powers off a silent node when its members must start elsewhere (nodeLoss: Replace); exit code 0 is taken as proof that the node is off (default: none)")
	f.DurationVar(&o.FenceAfter, "fence-after", fence.DefaultAfter, "how long a node must be silent before the fence command is run")
	f.DurationVar(&o.FenceTimeout, "fence-timeout", fence.DefaultTimeout, "time limit of the fence command; a command that is killed for it has proved nothing")
	f.BoolVar(&o.Held, "hold", false, "the store was restored: hold it until 'stead restore' is run; remove the flag before the next start")
	f.StringVar(&o.Backups.Dir, "backup-dir", "", "directory in which this server makes backups of the store, each checked by opening it; its own, and on another disk (default: none are made)")
	f.DurationVar(&o.Backups.Rules.Every, "backup-every", 6*time.Hour, "time between two backups")
	f.IntVar(&o.Backups.Rules.Keep, "backup-keep", 28, "how many backups are kept; the newest good one always is")
	f.DurationVar(&o.Backups.Rules.MaxAge, "backup-max-age", 30*24*time.Hour, "backups that are older are removed when a new one was made (0: never)")
	f.StringVar(&o.Recipients, "backup-recipient", "", "file with public keys, printed by 'stead backup keygen', for which backups are encrypted; they then hold the key of Secrets, too (default: not encrypted)")
	f.StringVar(&o.AuditDir, "audit-dir", "", "directory in which this server keeps the audit log, which 'stead audit' shows (default: audit in the data directory)")
	f.Int64Var(&o.AuditBytes, "audit-bytes", audit.DefaultBytes, "how much of the audit log is kept; the oldest goes first (0: nothing is kept)")
	o.Etcd.flags(f)
}

func serverCommand(c *cli) *cobra.Command {
	var o serverOptions
	var level string
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the control plane: API, engine and, by default, an embedded etcd",
		Example: `  stead server --data-dir /var/lib/stead/server
  stead server --listen 10.0.0.1:7443
  stead server --listen 10.0.0.2:7443 --peer-listen 10.0.0.2:7444 --join 10.0.0.1:7443 --token-file /root/token
  stead server --etcd-endpoints https://10.0.0.1:2379 --etcd-cacert ca.pem --etcd-cert c.pem --etcd-key k.pem`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(level)
			if err != nil {
				return err
			}
			if o.token, err = o.Token.read(cmd.InOrStdin()); err != nil {
				return err
			}
			if o.Boot, err = home.BootID(home.BootIDFile); err != nil {
				return err
			}
			return runServer(cmd.Context(), o, log)
		},
	}
	cmd.Flags().StringVar(&o.DataDir, "data-dir", defaultDataDir, "directory of the embedded store and of the key that encrypts Secrets")
	o.flags(cmd.Flags())
	o.peerFlags(cmd.Flags())
	logFlag(cmd.Flags(), &level)
	cmd.AddCommand(serverList(c), serverRemove(c), serverReplace(c), serverRecover(), serverEnd(c))
	return cmd
}

// runServer is one control plane until ctx ends.
func runServer(ctx context.Context, o serverOptions, log *slog.Logger) (err error) {
	o.Logger = log
	if err := o.complete(); err != nil {
		return err
	}
	if o.Trace, err = openTrace(ctx, o.TraceEndpoint, "stead-server", o.Name, log); err != nil {
		return err
	}
	defer o.Trace.Close()
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return err
	}
	port, err := o.openPeers(ctx, log)
	if err != nil {
		return stopped(ctx, err)
	}
	defer port.close()
	opened, err := o.Etcd.open(ctx, o.DataDir, o.memberName(), port.store(), log)
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() {
		if closing := opened.close(); err == nil {
			err = closing
		}
	}()
	o.Store, o.Backup = opened.Store, opened.Store.Backup
	o.Backups.Spool, o.Backups.Read = o.DataDir, readSnapshot
	if opened.embedded != nil {
		if from := opened.embedded.UnpackedFrom(); from != "" && o.Hold == "" {
			o.Hold = "the store was unpacked from the backup " + from
		}
	}
	if port != nil {
		if err := opened.embedded.Promote(ctx); err != nil {
			return stopped(ctx, err)
		}
		o.Members, o.Peer, o.UID = opened.embedded, o.PeerListen, port.uid
		o.PeerAuthorities, o.Followed = port.port.Started(), port.follow
	}
	s, err := server.New(o.Config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return opened.noted(ctx, s.Serving()) })
	group.Go(func() error { return announce(ctx, s.Serving(), log) })
	group.Go(func() error { return opened.watch(ctx, log) })
	group.Go(func() error { return s.Run(ctx) })
	return group.Wait()
}

func parseRanges(flag string, list []string) (out []netip.Prefix, err error) {
	for _, text := range list {
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, misuse("%s: %w", flag, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// complete fills in what flags do not name directly.
func (o *serverOptions) complete() (err error) {
	if o.CIDR, err = netip.ParsePrefix(o.Range); err != nil {
		return misuse("--cidr: %w", err)
	}
	for _, allowed := range o.Host.Paths {
		if !filepath.IsAbs(allowed) {
			return misuse("--allow-host-path %q: write an absolute path", allowed)
		}
	}
	if err := o.checkPeers(); err != nil {
		return err
	}
	if o.Tunnel != "" && !slices.Contains(records.TunnelKinds, o.Tunnel) {
		return misuse("--tunnel %q: write %s", o.Tunnel, strings.Join(records.TunnelKinds, ", "))
	}
	if o.Virtual != "" {
		if o.ServiceCIDR, err = netip.ParsePrefix(o.Virtual); err != nil {
			return misuse("--service-cidr: %w", err)
		}
	}
	if o.LoadBalancers, err = parseRanges("--load-balancer-cidr", o.Balanced); err != nil {
		return err
	}
	if o.ExternalIPs, err = parseRanges("--external-ip-cidr", o.External); err != nil {
		return err
	}
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find the host's name: %w; give --name", err)
		}
		o.Name = strings.ToLower(host)
	}
	if o.Recipients != "" {
		if o.Backups.Recipients, err = backup.LoadPublic(o.Recipients); err != nil {
			return fmt.Errorf("--backup-recipient: %w", err)
		}
	}
	for _, path := range []*string{&o.DataDir, &o.Socket, &o.Backups.Dir, &o.AuditDir} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if o.Held {
		o.Hold = "an operator has restored the store"
	}
	switch {
	case o.AuditBytes == 0:
		o.AuditDir = ""
	case o.AuditBytes < audit.MinBytes:
		return misuse("--audit-bytes %d: must be 0 or at least %d", o.AuditBytes, audit.MinBytes)
	case o.AuditDir == "":
		o.AuditDir = filepath.Join(o.DataDir, "audit")
	}
	o.StoreName, o.Version = o.Etcd.about(), version
	o.KeyFile, o.SeenFile = filepath.Join(o.DataDir, "secret.key"), filepath.Join(o.DataDir, "seen.json")
	return nil
}

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

// place derives the directories of server and agent from --root, and gives both what they share.
func (o *devOptions) place() {
	o.server.DataDir = filepath.Join(o.host.Root, "server")
	o.host.Root = filepath.Join(o.host.Root, "agent")
	o.host.Trace = o.server.TraceEndpoint
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
	purge := purgeCommand("  stead dev purge", func() hostOptions {
		p.place()
		return p.host
	})
	p.flags(purge)
	cmd.AddCommand(purge)
	return cmd
}

// runDev runs server and agent until ctx ends; the first to end ends both.
func runDev(ctx context.Context, o devOptions, log *slog.Logger) error {
	var err error
	if o.server.Boot, err = home.BootID(o.host.BootID); err != nil {
		return err
	}
	// The agent is asked to end first: while the host is shut down it needs the server.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(running, cancel)()
	group.Go(func() error { return runServer(running, o.server, log) })
	group.Go(func() error {
		defer stop()
		return runAgent(ctx, o.host, func(context.Context) (*grpc.ClientConn, error) {
			return dialSocket(socketScheme + o.server.Socket)
		}, log)
	})
	return group.Wait()
}
