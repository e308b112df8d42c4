package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/fence"
)

// defaultDataDir is a server's own directory.
const defaultDataDir = "/var/lib/stead/server"

// serverOptions place a server; flags mirror the fields.
type serverOptions struct {
	DataDir    string // store and key
	Socket     string
	Name       string // of this server; default the host's name
	Domain     string
	CIDR       string
	SessionTTL time.Duration
	Listen     string   // for other hosts; "": none
	Advertise  []string // how they reach it
	Metrics    string
	Debug      bool
	Classes    map[string]string // of manifests, to those of nodes
	Fence      string            // program that proves silent nodes dead
	FenceAfter time.Duration     // how long they must have been silent
	FenceTime  time.Duration     // how long it may take
	Hold       bool              // the store was restored
	Store      storeOptions
}

// hold returns why the store must be held; "": it must not.
func (o *serverOptions) hold() string {
	if !o.Hold {
		return ""
	}
	return "an operator has restored the store"
}

func (o *serverOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Socket, "socket", server.DefaultSocket, "unix socket of the API, for root only")
	f.StringVar(&o.Name, "name", "", "name of this server (default: the host's name)")
	f.StringVar(&o.Domain, "domain", server.DefaultDomain, "DNS domain of the cluster")
	f.StringVar(&o.CIDR, "cidr", server.DefaultCIDR, "address range of the members; it must not overlap addresses or routes of the hosts")
	f.DurationVar(&o.SessionTTL, "session-ttl", dispatch.DefaultTTL, "how long a node may be silent before its session ends")
	f.StringVar(&o.Listen, "listen", "", "HOST:PORT where agents and clients on other hosts reach the API, over mutual TLS only (default: off)")
	f.StringSliceVar(&o.Advertise, "advertise", nil, "HOST:PORT under which other hosts reach --listen (repeatable; default: --listen)")
	f.StringVar(&o.Metrics, "metrics", "", "address for /metrics and /healthz: unix:///path or 127.0.0.1:port (default: off)")
	f.BoolVar(&o.Debug, "debug", false, "serve /debug/pprof and /debug/world?set=NAMESPACE/NAME on --metrics, too; they show the values of variables in templates")
	f.StringToStringVar(&o.Classes, "map-class", nil, "map a storage class of manifests to one of the nodes: fast-ssd=local (repeatable)")
	f.StringVar(&o.Fence, "fence-command", "", "program that powers off a silent node when its members must start elsewhere (nodeLoss: Replace); exit code 0 is taken as proof that the node is off (default: none)")
	f.DurationVar(&o.FenceAfter, "fence-after", fence.DefaultAfter, "how long a node must be silent before the fence command is run")
	f.DurationVar(&o.FenceTime, "fence-timeout", fence.DefaultTimeout, "time limit of the fence command; a command that is killed for it has proved nothing")
	f.BoolVar(&o.Hold, "hold", false, "the store was restored: hold it until 'stead restore' is run; remove the flag before the next start")
	o.Store.flags(f)
}

func serverCommand() *cobra.Command {
	var (
		o     serverOptions
		level string
	)
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the control plane: API, engine and, by default, an embedded etcd",
		Example: `  stead server --data-dir /var/lib/stead/server
  stead server --listen 10.0.0.1:7443
  stead server --etcd-endpoints https://10.0.0.1:2379 --etcd-cacert ca.pem --etcd-cert c.pem --etcd-key k.pem`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(level)
			if err != nil {
				return err
			}
			return runServer(cmd.Context(), o, log)
		},
	}
	cmd.Flags().StringVar(&o.DataDir, "data-dir", defaultDataDir, "directory of the embedded store and of the key that encrypts Secrets")
	o.flags(cmd.Flags())
	logFlag(cmd.Flags(), &level)
	return cmd
}

// runServer is one control plane until ctx ends.
func runServer(ctx context.Context, o serverOptions, log *slog.Logger) (err error) {
	config, err := o.config(log)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return err
	}
	opened, err := o.Store.open(ctx, o.DataDir, log)
	if err != nil {
		return err
	}
	defer func() {
		if closing := opened.close(); err == nil {
			err = closing
		}
	}()
	config.Store = opened.Store
	if opened.embedded != nil {
		config.Backup = opened.embedded.Backup
		if from := opened.embedded.UnpackedFrom(); from != "" && config.Hold == "" {
			config.Hold = "the store was unpacked from the backup " + from
		}
	}
	s, err := server.New(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return opened.noted(ctx, s.Serving()) })
	group.Go(func() error { return opened.watch(ctx, log) })
	group.Go(func() error { return s.Run(ctx) })
	return group.Wait()
}

func (o *serverOptions) config(log *slog.Logger) (server.Config, error) {
	cidr, err := netip.ParsePrefix(o.CIDR)
	if err != nil {
		return server.Config{}, usageError{fmt.Errorf("--cidr: %w", err)}
	}
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return server.Config{}, fmt.Errorf("find the host's name: %w; give --name", err)
		}
		o.Name = strings.ToLower(host)
	}
	for _, path := range []*string{&o.DataDir, &o.Socket} {
		if *path, err = filepath.Abs(*path); err != nil {
			return server.Config{}, err
		}
	}
	return server.Config{
		StoreName: o.Store.about(), Name: o.Name, Version: version, Socket: o.Socket,
		KeyFile: filepath.Join(o.DataDir, "secret.key"), SeenFile: filepath.Join(o.DataDir, "seen.json"), Hold: o.hold(),
		Domain: o.Domain, CIDR: cidr,
		SessionTTL: o.SessionTTL, Listen: o.Listen, Advertise: o.Advertise, Classes: o.Classes, Metrics: o.Metrics, Debug: o.Debug, Logger: log,
		FenceCommand: o.Fence, FenceAfter: o.FenceAfter, FenceTimeout: o.FenceTime,
	}, nil
}
