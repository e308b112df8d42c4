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
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
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
	// Key seals Secrets.
	Key *seal.Key
	// Classes maps storage classes of manifests to those of nodes.
	Classes map[string]string
	// Backup writes all that the store holds; nil: it is an external one.
	Backup func(context.Context, io.Writer) error
	// About is told by Info; Leader, Epoch and StoreBytes are filled in there.
	About  *proto.InfoResponse
	Logger *slog.Logger
}

// Server implements proto.ControlServer. It keeps nothing of its own.
type Server struct {
	proto.UnimplementedControlServer
	cfg Config
}

// New checks cfg.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Cache == nil || cfg.Planner == nil || cfg.Nodes == nil || cfg.Key == nil ||
		cfg.About == nil || cfg.Logger == nil {
		return nil, errors.New("make control: store, world, planner, nodes, key, about and logger are needed")
	}
	return &Server{cfg: cfg}, nil
}

// waitTime bounds how long a call waits for its own write to be seen.
const waitTime = 5 * time.Second

// seen waits until the world shows rev, so that whoever wrote reads it back. A
// slow world is no error: the write stands.
func (s *Server) seen(ctx context.Context, rev store.Rev) {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	if err := s.cfg.Cache.Wait(ctx, rev); err != nil {
		s.cfg.Logger.Warn("write not seen yet", "err", err)
	}
}

// commit writes t unless the store is held; what names what is written, for people.
func (s *Server) commit(ctx context.Context, what string, t store.Txn) error {
	t.If = append(t.If, store.NotHeld())
	rev, err := s.cfg.Store.Commit(ctx, t)
	if errors.Is(err, store.ErrConflict) {
		if held := s.held(ctx); held != nil {
			return held
		}
	}
	if err != nil {
		return writeError(what, err)
	}
	s.seen(ctx, rev)
	return nil
}

// held refuses what would change something while the store is held; nil: it is not.
func (s *Server) held(ctx context.Context) error {
	_, kvs, err := s.cfg.Store.Get(ctx, store.HoldKey)
	if err != nil {
		return nil // the conflict is told instead
	}
	if hold := store.HoldIn(kvs); hold != nil {
		return precondition("%s", hold.Refusal())
	}
	return nil
}

// namespace is ns, or the default one.
func namespace(ns string) spec.Namespace {
	if ns == "" {
		return spec.DefaultNamespace
	}
	return spec.Namespace(ns)
}
