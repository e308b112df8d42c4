// Package keyring rotates the key of secret.key, which seals Secrets and the authority's key, while servers run. The
// leader takes the steps that server/rotation decides; each server gets keys that it lacks from those that have
// them, through the store, sealed for it alone, and forgets those that were removed.
package keyring

import (
	"context"
	"log/slog"
	"time"

	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
)

const (
	// lookEvery is how often it is looked again, whatever was heard of.
	lookEvery = 5 * time.Second
	// Settle is how long servers of which the store knows nothing have to say which keys they have.
	Settle = 10 * time.Second
	// readyTime is how long a server that starts waits for a key that it lacks.
	readyTime = 30 * time.Second
)

// Config is what a Service needs.
type Config struct {
	Store  store.Store
	Cache  cache.Reader
	Key    *seal.Key
	Server string // its name
	// Moved has what this server keeps beside the store sealed as in the store; nil: it keeps nothing.
	Moved func(context.Context) error
	// Settle and Ready take the place of the times above; zero: these.
	Settle, Ready time.Duration
	Logger        *slog.Logger
}

// Service rotates keys. It implements proto.KeyringServer.
type Service struct {
	proto.UnimplementedKeyringServer
	cfg      Config
	receiver seal.Receiver
}

// New starts nothing.
func New(cfg Config) (*Service, error) {
	if cfg.Settle == 0 {
		cfg.Settle = Settle
	}
	if cfg.Ready == 0 {
		cfg.Ready = readyTime
	}
	receiver, err := seal.NewReceiver()
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, receiver: receiver}, nil
}

// look is what the cache has about keys.
func (s *Service) look() (k cache.KeyState) {
	s.cfg.Cache.Look(func(v cache.View) { k = cache.KeysOf(v) })
	return k
}

// decided is what steps are decided by.
func decided(k cache.KeyState) rotation.KeyWorld {
	said := map[string][]sealing.KeyID{}
	for name, r := range k.Said {
		said[name] = r.Has
	}
	return rotation.KeyWorld{Ring: k.Ring, Servers: k.Servers, Said: said}
}

// Run has this server's keys be as the keyring says, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	sub := s.cfg.Cache.Subscribe()
	defer sub.Close()
	var last trouble.Last
	for {
		if err := s.own(ctx); last.IsErr(err) && ctx.Err() == nil {
			s.cfg.Logger.Warn("keys of this server are not as they should be", "err", err)
		}
		if !await(ctx, sub) {
			return nil
		}
	}
}

// await returns when something about servers moved, or it is time to look again; false: ctx ended.
func await(ctx context.Context, sub *cache.Subscription) bool {
	again := time.NewTimer(lookEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
			return true
		case <-sub.C():
			if ch := sub.Take(); ch.All || ch.Servers {
				return true
			}
		}
	}
}

// Lead takes the steps of a rotation while this server leads.
func (s *Service) Lead(ctx context.Context, term store.Leadership) {
	sub := s.cfg.Cache.Subscribe()
	defer sub.Close()
	var last trouble.Last
	var next sealing.KeyID
	var since time.Time
	for {
		k := s.look()
		if k.Ring != nil && k.Ring.Next != next {
			next, since = k.Ring.Next, time.Now()
		}
		again, err := s.step(ctx, term, k, time.Since(since) >= s.cfg.Settle)
		if last.IsErr(err) && ctx.Err() == nil {
			s.cfg.Logger.Warn("rotation of the key waits", "err", err)
		}
		if again && err == nil && ctx.Err() == nil {
			continue
		}
		if !await(ctx, sub) {
			return
		}
	}
}
