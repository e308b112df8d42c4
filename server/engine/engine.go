// Package engine decides for all sets, in the one server that leads: it takes a
// set's world at one store revision, asks the pure planner, and writes what it
// decided in transactions that compare everything the decision relied on (SAFETY
// S7). A deposed engine writes nothing: each transaction compares the leader key
// by the create-revision of this very term. Reports that dispatch offers it are written in
// one transaction with what follows from them: offer.go, joined.go.
package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/internal/trace"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/fence"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Config is what an engine needs. Store, Cache and CIDR must be set.
type Config struct {
	Store store.Store
	// Cache mirrors Store; its Run is the caller's.
	Cache *cache.Cache
	// ID says who leads, for people: the server's name.
	ID string
	// LeaseTTL is how long a leader that fell silent keeps the others out; whole
	// seconds. Default 10s.
	LeaseTTL time.Duration
	// CIDR holds the members' addresses; Exclude are ranges in it that hosts use.
	CIDR    netip.Prefix
	Exclude []netip.Prefix
	// Quarantine is how long a freed address rests before another identity may get
	// it (SAFETY S17), counted by this leader from when it first saw it freed.
	// Default and, outside of tests, least: 10m.
	Quarantine time.Duration
	// Cold is how long at most after its start this engine, if it leads, waits for nodes
	// that have not connected to a server since, before it decides anything: the length of
	// their sessions. 0: it does not wait.
	Cold time.Duration
	// StatusDelay gathers changes of a set's status that ride with no action.
	// Default 100ms; large sets wait longer, up to ten times.
	StatusDelay time.Duration
	// VolumeID makes ids of new volumes; default: 32 random hex digits.
	VolumeID func() records.VolumeID
	// Next decides and Now is the clock; a simulation wraps the one and owns the other.
	// Default: plan.Next and time.Now.
	Next func(plan.World) plan.Plan
	Now  func() time.Time
	// Trace tells of decisions that begin lives; nil: traces are off.
	Trace  *trace.Tracer
	Logger *slog.Logger
	// Fencing is what came of fencing nodes, for their members to show. Default: nothing ever.
	Fencing *fence.Outcomes
	// WhileLeading runs during each term, if given: ctx ends with the term, which waits for it.
	WhileLeading func(ctx context.Context, term store.Leadership)
}

// Engine leads or waits to lead; see Run.
type Engine struct {
	cfg       Config
	log       *slog.Logger
	meter     meter
	silences  silences
	coldStart coldStart
	offers    atomic.Pointer[offers] // of the present term; nil: none
}

// New checks cfg and starts nothing.
func New(cfg Config) (*Engine, error) {
	switch {
	case cfg.Store == nil || cfg.Cache == nil:
		return nil, errors.New("engine: a store and its cache are needed")
	case !cfg.CIDR.IsValid() || !cfg.CIDR.Addr().Is4() || cfg.CIDR.Bits() > 30:
		return nil, errors.New("engine: the range of members' addresses must be IPv4 and hold some, as 10.88.0.0/16 does")
	}
	cfg.LeaseTTL = cmp.Or(cfg.LeaseTTL, 10*time.Second)
	cfg.Quarantine = cmp.Or(cfg.Quarantine, 10*time.Minute)
	cfg.StatusDelay = cmp.Or(cfg.StatusDelay, 100*time.Millisecond)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.Fencing = cmp.Or(cfg.Fencing, fence.NewOutcomes())
	if cfg.VolumeID == nil {
		cfg.VolumeID = func() records.VolumeID { return records.VolumeID(randomID()) }
	}
	if cfg.Next == nil {
		cfg.Next = plan.Next
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Engine{cfg: cfg, log: cfg.Logger, meter: meter{plan: newHistogram(), commit: newHistogram()}}, nil
}

// Run campaigns, and decides while it leads, until ctx ends. It returns nil when
// ctx ended. After it returned, nothing is written.
func (e *Engine) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := e.cfg.Cache.Wait(ctx, 1); err != nil {
		return nil // ctx ended
	}
	e.Start()
	group.Go(func() { e.followSilence(ctx) })
	return store.NewCandidate(e.cfg.Store, e.cfg.ID, e.cfg.LeaseTTL, e.log).Run(ctx, e.lead)
}

// Explain runs the planner on a set as the leader does, and writes nothing; false:
// there is no such set. It does not block and works on every server.
func (e *Engine) Explain(ref spec.SetRef) (plan.Plan, bool) {
	var w plan.World
	e.cfg.Cache.Look(func(v cache.View) { w = e.World(v, ref, nil) })
	if w.Set == nil {
		return plan.Plan{}, false
	}
	w.Table = true
	return e.cfg.Next(w), true
}

// World is a set's world as the leader plans with it, or as it would be with now in the place of
// the set's record (nil: as it is). It works on every server, which measures the silence of nodes
// itself; what only a leader measures (the rest after repeated failure) is left out.
func (e *Engine) World(v cache.View, ref spec.SetRef, now *records.Set) plan.World {
	w := v.World(ref)
	if now != nil {
		w = v.WorldWith(now)
	}
	at := e.cfg.Now()
	w.VolumeID, w.Now, w.Nodes = e.cfg.VolumeID, at.UTC(), e.withSilence(v, w.Nodes, at)
	if w.Set != nil {
		w.Free = newPool(e.cfg).candidates(v, unaddressed(w), at)
	}
	if v.Leader().Value == e.cfg.ID {
		w.Awaited, w.AwaitFor = e.coldStart.missing(v, at, e.cfg.Cold)
	}
	return w
}

// randomID is 32 hex digits that were never drawn before.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	return hex.EncodeToString(b[:])
}

// Init gives a fresh store its cluster id and epoch, once, and returns those the
// store has. Several servers may call it at once; all get the same. It fails on a
// store that has one without the other: that is none of ours, or damaged.
func Init(ctx context.Context, s store.Store) (clusterID string, epoch int64, err error) {
	for {
		_, kvs, err := s.Get(ctx, store.ClusterKey, store.EpochKey)
		if err != nil {
			return "", 0, fmt.Errorf("read cluster id: %w", err)
		}
		cluster, hasCluster := kvs[store.ClusterKey]
		at, hasEpoch := kvs[store.EpochKey]
		switch {
		case hasCluster && hasEpoch:
			epoch, err := strconv.ParseInt(string(at.Value), 10, 64)
			if err != nil || epoch < proof.FirstEpoch {
				return "", 0, fmt.Errorf("read epoch: invalid epoch %q", at.Value)
			}
			return string(cluster.Value), epoch, nil
		case hasCluster || hasEpoch:
			return "", 0, errors.New("the store has a cluster id without an epoch, or the reverse; restore it from a backup, or use an empty one")
		}
		_, err = s.Commit(ctx, store.Txn{
			If: []store.Compare{store.Absent(store.ClusterKey), store.Absent(store.EpochKey)},
			Then: []store.Op{
				store.Put(store.ClusterKey, []byte(randomID())),
				store.Put(store.EpochKey, []byte(strconv.Itoa(proof.FirstEpoch))),
			},
		})
		if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown) {
			return "", 0, fmt.Errorf("write cluster id: %w", err)
		}
	}
}
