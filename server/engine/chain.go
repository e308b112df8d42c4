package engine

import (
	"context"
	"errors"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/store"
)

const (
	// chainEvery is how old at most the newest link is when the store changes: changes of
	// the last moments before a store went back may be missed by the chain alone.
	chainEvery = 5 * time.Second
	// chainLinks is how many links are kept: ten minutes of changes without a pause. Who was
	// away for longer compares revisions, terms and etcd's cluster id only.
	chainLinks = 128
)

// startChain makes the term's first link, before anything else is written in it: from then on two
// stores in which somebody led differ. False: the term is over.
func (l *leader) startChain(ctx context.Context) bool {
	warned := false
	for failures := 1; ctx.Err() == nil; failures++ {
		rev, err := l.link(ctx)
		if err == nil {
			l.linked = rev
			return true
		}
		pause := backoff.After(firstPause, lastPause, failures)
		if pause == lastPause && !warned && !errors.Is(err, store.ErrConflict) {
			l.log.Warn("chain of the store not continued, trying again", "err", err)
			warned = true
		}
		backoff.Sleep(ctx, pause)
	}
	return false
}

// chain adds a link whenever the store has changed since the newest, until ctx ends.
func (l *leader) chain(ctx context.Context) {
	last := l.linked
	for backoff.Sleep(ctx, chainEvery); ctx.Err() == nil; backoff.Sleep(ctx, chainEvery) {
		var now store.Rev
		l.cfg.Cache.Look(func(v cache.View) { now = v.Rev() })
		if now <= last {
			continue
		}
		if rev, err := l.link(ctx); err == nil {
			last = max(last, rev) // what failed is tried next time
		}
	}
}

// link adds a link to the store's chain, guarded by the term. While the store is held none
// is added, and the revision is 0.
func (l *leader) link(ctx context.Context) (store.Rev, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rev, kvs, err := l.cfg.Store.Get(ctx, store.ContinuityKey, store.EpochKey, store.HoldKey)
	if err != nil || store.HoldIn(kvs) != nil {
		return 0, err
	}
	var chain records.Chain
	if kv, ok := kvs[store.ContinuityKey]; ok {
		chain, err = store.Decode[records.Chain](kv)
		if err != nil {
			l.log.Error("chain of the store started again", "err", err)
			// Each link is a revision, so no chain has had a link of a higher number.
			chain = records.Chain{Links: []records.Link{{Number: int64(rev), Nonce: randomID()}}}
		}
	}
	chain.Links = append(chain.Links, records.Link{Number: chain.Newest().Number + 1, Nonce: randomID()})
	chain.Links = chain.Links[max(0, len(chain.Links)-chainLinks):]
	return l.cfg.Store.Commit(ctx, store.Txn{
		If: []store.Compare{
			l.term.Compare(), store.NotHeld(), store.Seen(store.EpochKey, kvs[store.EpochKey].Mod),
			store.Seen(store.ContinuityKey, kvs[store.ContinuityKey].Mod),
		},
		Then: []store.Op{store.Put(store.ContinuityKey, store.Encode(chain))},
	})
}
