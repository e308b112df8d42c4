// Package server wires the control plane of one process: a cache of the store, the
// engine, the API of nodes and the API of people, on a unix socket that only root
// may open and, where that is asked for, by mTLS for other hosts.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/engine"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/server/memory"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// Config is what a server needs. Default fills what may be left out.
type Config struct {
	// Store is not closed by the server. StoreName tells people which it is:
	// embedded, or its endpoints.
	Store     store.Store
	StoreName string
	// Backup writes all that the store holds at one moment, as etcdembed.Embedded.Backup
	// does; nil: the store is an external one, and backed up there.
	Backup func(context.Context, io.Writer) error
	// Name of this server: who leads, who holds a session. Unique in the cluster.
	Name    string
	Version string
	// Socket is the path of the unix socket; it is made 0600, its directory 0700 if
	// there is none.
	Socket string
	// Local is served in place of Socket: a listener in memory, whose callers count as those
	// of the socket if its connections are of network "unix". nil: Socket is.
	Local net.Listener
	// KeyFile holds the key of the cluster's Secrets; made when absent. Every server
	// of a cluster needs the same.
	KeyFile string
	// SeenFile holds what this server knows of the store: each server has its own.
	SeenFile string
	// Hold, if given, has the store held at start, and says why: a person knows that it was
	// restored, whether or not that can be noticed.
	Hold string
	// Domain is the cluster's DNS domain; CIDR the range of members' addresses, and
	// Exclude are ranges in it that hosts use.
	Domain  string
	CIDR    netip.Prefix
	Exclude []netip.Prefix
	// SessionTTL is how long a node's session outlives its last renewal; LeaderTTL
	// how long a silent leader keeps others out.
	SessionTTL time.Duration
	LeaderTTL  time.Duration
	// Classes maps storage classes of manifests to those of nodes: fast-ssd to local.
	Classes map[string]string
	// Listen is where other hosts reach the API, host:port, by mTLS only; "": nowhere.
	// Advertise are the addresses by which they do; default: Listen, which then must be one.
	Listen    string
	Advertise []string
	// CertificateLife is how long certificates of nodes and servers last. Zero: 24h.
	CertificateLife time.Duration
	// FenceCommand is a program that proves silent nodes dead, by its absolute path; "":
	// people do. FenceAfter is how long a node must have been silent, FenceTimeout how long
	// the program may take. Zero: the defaults of package fence.
	FenceCommand             string
	FenceAfter, FenceTimeout time.Duration
	// Metrics is where /metrics and /healthz are served: unix:///path, or a loopback
	// address with port; empty: nowhere.
	Metrics string
	// Debug adds the debug pages there: profiles, and what the planner sees of a set.
	Debug    bool
	Registry *prometheus.Registry
	Logger   *slog.Logger
}

// The defaults of Config.
const (
	DefaultSocket = "/run/stead/stead.sock"
	DefaultDomain = "cluster.local"
	DefaultCIDR   = "10.88.0.0/16"
)

// Default fills the fields that may be left empty.
func (c *Config) Default() {
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	if c.Domain == "" {
		c.Domain = DefaultDomain
	}
	if !c.CIDR.IsValid() {
		c.CIDR = netip.MustParsePrefix(DefaultCIDR)
	}
	if c.SessionTTL == 0 {
		c.SessionTTL = dispatch.DefaultTTL
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Check tells what is wrong with c.
func (c *Config) Check() error {
	switch {
	case c.Store == nil:
		return errors.New("a store is needed")
	case c.Name == "":
		return errors.New("a name is needed")
	case c.KeyFile == "" || !filepath.IsAbs(c.KeyFile):
		return fmt.Errorf("key file %q must be an absolute path", c.KeyFile)
	case !filepath.IsAbs(c.SeenFile):
		return fmt.Errorf("file %q of what is known of the store must be an absolute path", c.SeenFile)
	case !filepath.IsAbs(c.Socket):
		return fmt.Errorf("socket %q must be an absolute path", c.Socket)
	case !scalar.ValidSubdomain(c.Domain):
		return fmt.Errorf("domain %q: must be a DNS name", c.Domain)
	case c.SessionTTL < time.Second:
		return fmt.Errorf("session TTL %s: must be at least 1s", c.SessionTTL)
	}
	if err := fence.Check(c.FenceCommand, c.FenceAfter, c.FenceTimeout); err != nil {
		return err
	}
	if err := access.CheckListen(c.Listen, c.Advertise); err != nil {
		return err
	}
	if c.Debug && c.Metrics == "" {
		return errDebugWithoutMetrics
	}
	return CheckMetrics(c.Metrics)
}

// Server is one process's control plane.
type Server struct {
	cfg     Config // its store is judged by memory
	memory  *memory.Memory
	cache   *cache.Cache
	engine  *engine.Engine
	fencing *fence.Outcomes
	reserve *store.Reserve // the store
	serving chan struct{}  // closed when both APIs answer
	refused access.Refusals

	addresses []string // for other hosts; written before serving is closed
}

// New checks cfg and starts nothing.
func New(cfg Config) (*Server, error) {
	cfg.Default()
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	known, err := memory.Open(cfg.SeenFile, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	reserve := store.NewReserve(known.Judge(cfg.Store))
	cfg.Store = reserve
	s := &Server{cfg: cfg, memory: known, reserve: reserve, cache: cache.New(cfg.Store, cfg.Logger), fencing: fence.NewOutcomes(), serving: make(chan struct{})}
	decide := engine.Config{
		Store: cfg.Store, Cache: s.cache, ID: cfg.Name, LeaseTTL: cfg.LeaderTTL,
		CIDR: cfg.CIDR, Exclude: cfg.Exclude, Cold: cfg.SessionTTL, Fencing: s.fencing, Logger: cfg.Logger,
	}
	if cfg.FenceCommand != "" {
		decide.WhileLeading = s.fence
	}
	if s.engine, err = engine.New(decide); err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	return s, nil
}

// fence has silent nodes fenced while this server leads.
func (s *Server) fence(ctx context.Context, term store.Leadership) {
	fence.New(fence.Config{
		Command: s.cfg.FenceCommand, After: s.cfg.FenceAfter, Timeout: s.cfg.FenceTimeout,
		Store: s.cfg.Store, Cache: s.cache, Nodes: s.engine.Nodes, Outcomes: s.fencing, Logger: s.cfg.Logger,
	}).Run(ctx, term)
}

// Serving is closed when both APIs answer.
func (s *Server) Serving() <-chan struct{} { return s.serving }

// Dial returns a connection to this server's socket for an agent in the same
// process. It may be called before Run; calls wait then, if asked to. The caller
// closes it.
func (s *Server) Dial() (*grpc.ClientConn, error) { return Dial(s.cfg.Socket) }

// Dial returns a connection to the server at a socket's path. The caller closes it.
func Dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(proto.MaxMessageBytes), grpc.MaxCallSendMsgSize(proto.MaxMessageBytes)))
}

func (s *Server) listen() (*access.Listeners, error) {
	if s.cfg.Local != nil {
		return access.Local(s.cfg.Local), nil
	}
	return access.Listen(s.cfg.Socket, s.cfg.Listen, s.cfg.Advertise)
}

// Run serves until ctx ends, then stops in reverse order, in at most about 5 s. It
// returns nil on a requested stop, and the first error otherwise. Sessions of
// nodes outlive it by their lease: they come back to the next server. Call it once.
func (s *Server) Run(ctx context.Context) error {
	lis, err := s.listen()
	if err != nil {
		return fmt.Errorf("run server: %w", err)
	}
	defer lis.Close()
	s.addresses = lis.Addresses()
	metrics, err := ListenMetrics(s.cfg.Metrics)
	if err != nil {
		return fmt.Errorf("run server: %w", err)
	}
	if metrics != nil {
		defer metrics.Close()
	}
	if err := s.init(ctx); err != nil {
		return ended(ctx, err)
	}
	g := newGroup(ctx)
	cacheEnd := g.start(func(ctx context.Context) error { return s.cache.Run(ctx) })
	defer cacheEnd()
	if err := s.cache.Wait(g.ctx, 1); err != nil {
		return s.over(ctx, g.cause(err))
	}
	memoryEnd := g.start(func(ctx context.Context) error { return s.memory.Run(ctx, s.cfg.Store, s.cache, s.cfg.Name) })
	defer memoryEnd()
	key, err := access.OpenKey(g.ctx, s.cfg.Store, s.cfg.KeyFile)
	if err != nil {
		return fmt.Errorf("run server: %w", err)
	}
	authority, err := s.openAuthority(g.ctx, key)
	if err != nil {
		return fmt.Errorf("run server: %w", err)
	}
	d, c, err := s.apis(key, authority)
	if err != nil {
		return fmt.Errorf("run server: %w", err)
	}
	reserveEnd := g.start(s.reserve.Run)
	defer reserveEnd()
	engineEnd := g.start(s.engine.Run)
	defer engineEnd()
	metricsEnd := g.start(s.serveMetrics(metrics, d))
	defer metricsEnd()
	apiEnd := g.start(access.New(access.Config{
		Listeners: lis, Authority: authority, Nodes: d, Asked: d.Broker().Asked, Control: c,
		Cache: s.cache, Refusals: &s.refused, Logger: s.cfg.Logger,
	}).Run)
	defer apiEnd()
	close(s.serving)
	s.cfg.Logger.Info("server started")
	<-g.ctx.Done()
	return s.over(ctx, g.cause(nil))
}

// over is ended; that the store went back is kept for the next start, which holds it.
func (s *Server) over(ctx context.Context, err error) error {
	if errors.Is(err, store.ErrWentBack) {
		if note := s.memory.Note(err); note != nil {
			s.cfg.Logger.Error("what was found not kept", "err", note)
		}
		err = fmt.Errorf("%w; this server ends, and holds the store when it is started again", err)
	}
	return ended(ctx, err)
}

// ended is nil when the end was asked for.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run server: %w", err)
}

// init judges the store by what this server knows, and gives a fresh one its cluster id. It
// waits for a store that is away.
func (s *Server) init(ctx context.Context) error {
	wait := 100 * time.Millisecond
	for {
		err := s.meet(ctx)
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		if wait == 100*time.Millisecond {
			s.cfg.Logger.Warn("store waited for", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			wait = min(2*wait, 2*time.Second)
		}
	}
}

func (s *Server) meet(ctx context.Context) error {
	_, kvs, err := s.cfg.Store.Get(ctx, store.ClusterKey)
	if err != nil {
		return err
	}
	if err := s.memory.Owns(string(kvs[store.ClusterKey].Value)); err != nil {
		return err
	}
	if _, _, err := engine.Init(ctx, s.cfg.Store); err != nil {
		return err
	}
	return s.memory.Begin(ctx, s.cfg.Store, s.cfg.Name, s.cfg.Hold)
}

// Addresses are those at which other hosts reach this server, host:port; none where it
// listens on its socket only. Valid once Serving is closed.
func (s *Server) Addresses() []string { return s.addresses }

// openAuthority is the cluster's authority; nil where no other host is listened to.
func (s *Server) openAuthority(ctx context.Context, key *seal.Key) (*access.Authority, error) {
	if s.cfg.Listen == "" {
		return nil, nil
	}
	return access.OpenAuthority(ctx, access.AuthorityConfig{
		Store: s.cfg.Store, Key: key, Server: s.cfg.Name, Addresses: s.addresses, Life: s.cfg.CertificateLife, Logger: s.cfg.Logger,
	})
}

// reach connects to another server as this one; nil: no other host is reached.
func reach(a *access.Authority) dispatch.Reach {
	if a == nil {
		return nil
	}
	return a.Connect
}

// apis makes the two APIs; neither runs yet.
func (s *Server) apis(key *seal.Key, authority *access.Authority) (*dispatch.Server, *control.Server, error) {
	d, err := dispatch.New(dispatch.Config{
		Store: s.cfg.Store, Cache: s.cache, Key: key, Name: s.cfg.Name, Domain: s.cfg.Domain,
		CIDR: s.cfg.CIDR.String(), TTL: s.cfg.SessionTTL, Logger: s.cfg.Logger,
		Addresses: s.addresses, Reach: reach(authority), Known: s.memory.Known,
	})
	if err != nil {
		return nil, nil, err
	}
	c, err := control.New(control.Config{
		Store: s.cfg.Store, Cache: s.cache, Planner: s.engine, Nodes: d.Broker(), Key: key, Logger: s.cfg.Logger,
		Classes: s.cfg.Classes, Backup: s.cfg.Backup,
		About: &proto.InfoResponse{
			Version: s.cfg.Version, Domain: s.cfg.Domain, Server: s.cfg.Name,
			Store: s.cfg.StoreName, Cidr: s.cfg.CIDR.String(),
		},
	})
	return d, c, err
}
