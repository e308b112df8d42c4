// Package authorities replaces the cluster's certificate authority while all runs (SAFETY S24). The leader takes the step that
// server/rotation decides, a person the first and the last; each server follows the record, says what it trusts, and notes which
// nodes have come with a certificate of the new authority.
package authorities

import (
	"context"
	"log/slog"
	"time"

	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/store"
)

const (
	// lookEvery is how often it is looked again, whatever was heard of.
	lookEvery = 5 * time.Second
	// Settle is how long servers of which the store knows nothing have to say what they trust.
	Settle = 10 * time.Second
)

// Config is what a Service needs.
type Config struct {
	Store     store.Store
	Cache     cache.Reader
	Authority *access.Authority // nil: no other host is listened to
	Server    string            // its name
	// Started are the authorities by which the store of this server knows its peers until it is started again; nil: it has none.
	Started []sealing.AuthorityID
	// Kept has what this server keeps and shows beside the store be as the authority is; nil: it keeps nothing.
	Kept func(context.Context) error
	// Settle takes the place of the time above; zero: that.
	Settle time.Duration
	Logger *slog.Logger
}

// Service replaces the authority. It implements proto.AuthorityServer.
type Service struct {
	proto.UnimplementedAuthorityServer
	cfg  Config
	kept store.Rev // of the record as it was kept last
}

// New starts nothing.
func New(cfg Config) *Service {
	if cfg.Settle == 0 {
		cfg.Settle = Settle
	}
	return &Service{cfg: cfg}
}

// look is what the cache has about the authority.
func (s *Service) look() (a cache.AuthorityState) {
	s.cfg.Cache.Look(func(v cache.View) { a = cache.AuthorityOf(v) })
	return a
}

// decided is what steps are decided by; of clients it has none.
func (s *Service) decided(a cache.AuthorityState) rotation.AuthorityWorld {
	w := rotation.AuthorityWorld{Servers: a.Servers, Said: a.Said}
	if a.Record == nil {
		return w
	}
	w.Now = access.AuthorityID(a.Record.Certificate)
	if next := a.Record.Next; next != nil {
		w.Next, w.Issuing, w.Without = access.AuthorityID(next.Certificate), next.Issuing, next.Without
	}
	for _, n := range a.Nodes {
		w.Nodes = append(w.Nodes, rotation.CertifiedNode{Name: n.Name, By: n.By})
	}
	return w
}

// Run has this server follow the authority as the store has it, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	if s.cfg.Authority == nil {
		<-ctx.Done()
		return nil
	}
	sub := s.cfg.Cache.Subscribe()
	defer sub.Close()
	var last trouble.Last
	for {
		if err := s.own(ctx); last.IsErr(err) && ctx.Err() == nil {
			s.cfg.Logger.Warn("authority of this server is not as it should be", "err", err)
		}
		if !await(ctx, sub, s.cfg.Authority.Arrivals.C()) {
			return nil
		}
	}
}

// await returns when something about servers moved, a node came, or it is time to look again; false: ctx ended.
func await(ctx context.Context, sub *cache.Subscription, arrivals <-chan struct{}) bool {
	again := time.NewTimer(lookEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
			return true
		case <-arrivals:
			return true
		case <-sub.C():
			if ch := sub.Take(); ch.All || ch.Servers {
				return true
			}
		}
	}
}

// Lead takes the step of a rotation while this server leads.
func (s *Service) Lead(ctx context.Context, term store.Leadership) {
	if s.cfg.Authority == nil {
		return
	}
	sub := s.cfg.Cache.Subscribe()
	defer sub.Close()
	var last trouble.Last
	var next sealing.AuthorityID
	var since time.Time
	for {
		a := s.look()
		if w := s.decided(a); w.Next != next {
			next, since = w.Next, time.Now()
		}
		err := s.step(ctx, term, a, time.Since(since) >= s.cfg.Settle)
		if last.IsErr(err) && ctx.Err() == nil {
			s.cfg.Logger.Warn("rotation of the authority waits", "err", err)
		}
		if !await(ctx, sub, nil) {
			return
		}
	}
}
