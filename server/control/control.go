// Package control is the API of people: apply, read, watch, scale, delete,
// explain, and what is asked of a node (logs, images). It alone writes sets,
// services, configs and secrets. Its errors carry a gRPC status where the kind is
// the caller's business; those of the store are translated at the edge (server).
package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"

	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/backup"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Planner tells what would be done for a set now (false: there is no such set), and how
// long the nodes of a view have been silent.
type Planner interface {
	Explain(ref spec.SetRef) (plan.Plan, bool)
	// World is a set's world as the leader plans with it, with now in the place of the set's
	// record (nil: as it is).
	World(v cache.View, ref spec.SetRef, now *records.Set) plan.World
	Nodes(v cache.View) []plan.Node
}

// Config is what a Server needs.
type Config struct {
	Store   store.Store
	Cache   cache.Reader
	Planner Planner
	// Nodes brings asks to nodes that have a session with this server.
	Nodes *dispatch.Broker
	// Origin is what the store calls itself, "" while that is not known; nil: it has no name.
	Origin func() string
	// Key seals Secrets.
	Key *seal.Key
	// Classes maps storage classes of manifests to those of nodes.
	Classes map[string]string
	// Host is what the operator lets members do with their hosts.
	Host spec.HostAccess
	// Backup writes all that the store holds, and Maker makes complete backups of that; nil: it cannot be backed up
	// through this server. Backups are the scheduled ones; nil: there are none.
	Backup  func(context.Context, io.Writer) error
	Maker   *backup.Maker
	Backups *backup.Schedule
	// ServiceCIDR is the range of services' addresses; zero: they get none.
	ServiceCIDR netip.Prefix
	// LoadBalancers are the ranges of addresses for Services of type LoadBalancer, and ExternalIPs those of which
	// Services may write externalIPs; none: these get no addresses.
	LoadBalancers, ExternalIPs []netip.Prefix
	// About is told by Info; Leader, Epoch and StoreBytes are filled in there.
	About *proto.InfoResponse
	// Trace tells of what is applied; nil: traces are off.
	Trace  *trace.Tracer
	Logger *slog.Logger
}

// Server implements proto.ControlServer: each of its parts has the calls of one subject. It
// keeps nothing of its own, but for how long addresses of services have rested.
type Server struct {
	proto.UnsafeControlServer // a call that no part implements does not compile
	queries
	objects
	sets
	volumes
	nodes
	cluster
}

// The parts of a Server.
type (
	queries struct{ *shared } // what users read
	objects struct{ *shared } // apply and delete
	sets    struct{ *shared } // scale, rollouts, explain
	volumes struct{ *shared } // reclaim and restore
	nodes   struct{ *shared } // nodes, and what is asked of one: logs, exec, images
	cluster struct{ *shared } // info, backup, restore
)

// shared is what all parts have: what they act on, and how they write.
type shared struct {
	cfg       Config
	addresses *servicePool
}

var _ proto.ControlServer = (*Server)(nil)

// New checks cfg.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Cache == nil || cfg.Planner == nil || cfg.Nodes == nil || cfg.Key == nil ||
		cfg.About == nil || cfg.Logger == nil {
		return nil, errors.New("make control: store, world, planner, nodes, key, about and logger are needed")
	}
	return newServer(cfg), nil
}

func newServer(cfg Config) *Server {
	s := &shared{cfg, newServicePool(cfg.ServiceCIDR)}
	return &Server{queries: queries{s}, objects: objects{s}, sets: sets{s}, volumes: volumes{s}, nodes: nodes{s}, cluster: cluster{s}}
}

// namespace is ns, or the default one.
func namespace(ns string) spec.Namespace {
	if ns == "" {
		return spec.DefaultNamespace
	}
	return spec.Namespace(ns)
}

// world is a set's world as the leader plans with it, with now in the place of its record
// (nil: as it is).
func (s *shared) world(ref spec.SetRef, now *records.Set) (w plan.World) {
	s.cfg.Cache.Look(func(v cache.View) { w = s.cfg.Planner.World(v, ref, now) })
	return w
}

// forecast is what happens to a set with now in the place of its record.
func (s *shared) forecast(now *records.Set) plan.Forecast {
	return plan.Preview(s.world(now.Ref, now))
}
