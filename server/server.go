// Package server wires the control plane of one process: a cache of the store, the
// engine, the API of nodes and the API of people, on a unix socket that only root
// may open and, where that is asked for, by mTLS for other hosts.
package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/audit"
	"github.com/stead-project/stead/server/authorities"
	"github.com/stead-project/stead/server/backup"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/control"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/engine"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/server/keyring"
	"github.com/stead-project/stead/server/memory"
	"github.com/stead-project/stead/server/peers"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

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
	maker   *backup.Maker    // nil: the store cannot be backed up through this server
	backups *backup.Schedule // nil: none are scheduled
	audit   *audit.Trail     // nil: none is kept

	keyring     *keyring.Service     // written before the engine runs
	authorities *authorities.Service // as well

	authority atomic.Pointer[access.Authority] // nil: other hosts are not listened to
	addresses []string                         // for other hosts; written before serving is closed
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
	reserve := store.NewReserve(store.NewFormatted(known.Judge(cfg.Store)))
	cfg.Store = reserve
	s := &Server{cfg: cfg, memory: known, reserve: reserve, cache: cache.New(cfg.Store, cfg.Logger), fencing: fence.NewOutcomes(), serving: make(chan struct{})}
	s.makeBackups()
	if s.audit, err = cfg.openAudit(); err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	decide := engine.Config{
		Store: s.cache.Writer(cfg.Store), Cache: s.cache, ID: cfg.Name, LeaseTTL: cfg.LeaderTTL,
		CIDR: cfg.CIDR, Cold: cfg.SessionTTL, Fencing: s.fencing, WhileLeading: s.whileLeading, Trace: cfg.Trace, Logger: cfg.Logger,
	}
	if s.engine, err = engine.New(decide); err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	return s, nil
}

// makeBackups makes what makes backups; nothing of it runs yet.
func (s *Server) makeBackups() {
	b := s.cfg.Backups
	if s.cfg.Backup == nil || b.Read == nil {
		return
	}
	s.maker = backup.NewMaker(backup.MakerConfig{
		Server: s.cfg.Name, Version: s.cfg.Version, Store: s.cfg.Store, Snapshot: s.cfg.Backup, Read: b.Read,
		KeyFile: s.cfg.KeyFile, Recipients: b.Recipients, Spool: b.Spool,
	})
	if b.Dir != "" {
		s.backups = backup.NewSchedule(backup.ScheduleConfig{
			Maker: s.maker, Cache: s.cache, Dir: b.Dir, Server: s.cfg.Name, Rules: b.Rules, Logger: s.cfg.Logger,
		})
	}
}

// whileLeading does what a leader does beside deciding about sets.
func (s *Server) whileLeading(ctx context.Context, term store.Leadership) {
	var group sync.WaitGroup
	defer group.Wait()
	if s.cfg.FenceCommand != "" {
		group.Go(func() { s.fence(ctx, term) })
	}
	group.Go(func() { s.keyring.Lead(ctx, term) })
	group.Go(func() { s.authorities.Lead(ctx, term) })
}

// openKeyring makes what rotates the key, and has key complete.
func (s *Server) openKeyring(ctx context.Context, key *seal.Key) (err error) {
	s.keyring, err = keyring.New(keyring.Config{
		Store: s.cfg.Store, Cache: s.cache, Key: key, Server: s.cfg.Name, Logger: s.cfg.Logger,
		Moved: func(ctx context.Context) error {
			if a := s.authority.Load(); a != nil {
				return a.RenewIdentity(ctx, filepath.Dir(s.cfg.SeenFile))
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	return s.keyring.Ready(ctx)
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
	return proto.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func (s *Server) listen(ctx context.Context) (*access.Listeners, error) {
	if s.cfg.Local != nil {
		return access.Local(s.cfg.Local), nil
	}
	return access.Listen(ctx, s.cfg.Socket, s.cfg.Listen, s.cfg.Advertise)
}

// Run serves until ctx ends, then stops in reverse order, in at most about 5 s. It
// returns nil on a requested stop, and the first error otherwise. Sessions of
// nodes outlive it by their lease: they come back to the next server. Call it once.
func (s *Server) Run(ctx context.Context) error {
	err := s.run(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, store.ErrWentBack): // the next start holds it
		if note := s.memory.Note(err); note != nil {
			s.cfg.Logger.Error("what was found not kept", "err", note)
		}
		err = fmt.Errorf("%w; this server ends, and holds the store when it is started again", err)
	}
	return fmt.Errorf("run server: %w", err)
}

func (s *Server) run(ctx context.Context) error {
	lis, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer lis.Close()
	s.addresses = lis.Addresses()
	metrics, err := ListenMetrics(s.cfg.Metrics)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	if err := s.init(ctx); err != nil {
		return err
	}
	g := newGroup(ctx)
	cacheEnd := g.start(func(ctx context.Context) error { return s.cache.Run(ctx) })
	defer cacheEnd()
	if err := s.cache.Wait(g.ctx, 1); err != nil {
		return g.cause(err)
	}
	s.cache.Look(func(v cache.View) { err = s.cfg.checkServices(cache.ServiceAddresses(v)) })
	if err != nil {
		return err
	}
	formatEnd := g.start(s.followFormat)
	defer formatEnd()
	memoryEnd := g.start(func(ctx context.Context) error { return s.memory.Run(ctx, s.cfg.Store, s.cache, s.cfg.Name) })
	defer memoryEnd()
	key, err := access.OpenKey(g.ctx, s.cfg.Store, s.cfg.KeyFile, func(key *seal.Key) error { return s.openKeyring(g.ctx, key) })
	if err != nil {
		return err
	}
	authority, err := s.openAuthority(g.ctx, key)
	if err != nil {
		return err
	}
	s.authority.Store(authority)
	s.openAuthorities(authority)
	keyringEnd := g.start(s.keyring.Run)
	defer keyringEnd()
	authoritiesEnd := g.start(s.authorities.Run)
	defer authoritiesEnd()
	d, c, err := s.apis(key, authority)
	if err != nil {
		return err
	}
	others := s.others(authority)
	if err := others.Register(g.ctx); err != nil {
		return err
	}
	othersEnd := g.start(others.Run)
	defer othersEnd()
	reserveEnd := g.start(s.reserve.Run)
	defer reserveEnd()
	engineEnd := g.start(s.engine.Run)
	defer engineEnd()
	if s.backups != nil {
		backupsEnd := g.start(s.backups.Run)
		defer backupsEnd()
	}
	if s.audit != nil {
		auditEnd := g.start(s.audit.Run)
		defer auditEnd()
	}
	metricsEnd := g.start(s.serveMetrics(metrics, d))
	defer metricsEnd()
	apiEnd := g.start(access.New(access.Config{
		Listeners: lis, Authority: authority, Nodes: d, Asked: d.Broker().Asked, Control: c,
		Servers: others, Keyring: s.keyring, Authorities: s.authorities, Lost: others.Lost, Cache: s.cache, Refusals: &s.refused, Audit: s.audit, Audits: s.audits(authority), Logger: s.cfg.Logger,
	}).Run)
	defer apiEnd()
	close(s.serving)
	s.cfg.Logger.Info("server started")
	<-g.ctx.Done()
	return g.cause(nil)
}

// others knows the other servers.
func (s *Server) others(authority *access.Authority) *peers.Service {
	return peers.New(peers.Config{
		Store: s.cfg.Store, Cache: s.cache, Members: s.cfg.Members, Authority: authority, Version: s.cfg.Version, Dir: filepath.Dir(s.cfg.SeenFile), Logger: s.cfg.Logger,
		Self: records.Server{Name: s.cfg.Name, UID: s.cfg.UID, Peer: s.cfg.Peer, Addresses: s.addresses},
	})
}

// Found judges the store as Run does, and returns what a server keeps of the cluster's
// authority, which is made if there is none: a store that is to have peers needs it before
// it can be read. Nothing else runs.
func (s *Server) Found(ctx context.Context, uid spec.UID) (access.ServerIdentity, error) {
	if err := s.init(ctx); err != nil {
		return access.ServerIdentity{}, err
	}
	key, err := access.OpenKey(ctx, s.cfg.Store, s.cfg.KeyFile, nil)
	if err != nil {
		return access.ServerIdentity{}, err
	}
	authority, err := s.openAuthority(ctx, key)
	if err != nil {
		return access.ServerIdentity{}, err
	}
	return authority.Identity(uid), nil
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
		backoff.Sleep(ctx, wait)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait = min(2*wait, 2*time.Second)
	}
}

func (s *Server) meet(ctx context.Context) error {
	_, kvs, err := s.cfg.Store.Get(ctx, store.ClusterKey, store.FormatKey)
	if err != nil {
		return err
	}
	if err := store.CheckFormat(kvs, store.Format); err != nil {
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
		Store: s.cache.Writer(s.cfg.Store), Cache: s.cache, Offer: s.engine.Offer, Key: key, Name: s.cfg.Name, Boot: s.cfg.Boot, Domain: s.cfg.Domain,
		CIDR: s.cfg.CIDR.String(), ServiceCIDR: s.cfg.ServiceCIDR.String(), Tunnel: s.cfg.Tunnel, TTL: s.cfg.SessionTTL, Logger: s.cfg.Logger,
		Addresses: s.addresses, Reach: reach(authority), Known: s.memory.Known, Trace: s.cfg.Trace,
	})
	if err != nil {
		return nil, nil, err
	}
	c, err := control.New(control.Config{
		Store: s.cfg.Store, Cache: s.cache, Planner: s.engine, Nodes: d.Broker(), Key: key, Trace: s.cfg.Trace, Logger: s.cfg.Logger,
		Classes: s.cfg.Classes, Host: s.cfg.Host, Origin: func() string { return s.memory.Known().Origin }, Backup: s.cfg.Backup, Maker: s.maker, Backups: s.backups,
		About: &proto.InfoResponse{
			Version: s.cfg.Version, Domain: s.cfg.Domain, Server: s.cfg.Name,
			Store: s.cfg.StoreName, Cidr: s.cfg.CIDR.String(), ServiceCidr: s.cfg.ServiceCIDR.String(), Tunnel: s.cfg.Tunnel,
		},
		ServiceCIDR: s.cfg.ServiceCIDR, LoadBalancers: s.cfg.LoadBalancers, ExternalIPs: s.cfg.ExternalIPs,
	})
	return d, c, err
}
