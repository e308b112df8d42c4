package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stead-project/stead/internal/backoff"
)

// essential are the kinds of keys that may be written into the last tenth of a store: by
// which nodes keep their sessions, so that what they guard runs on; by which they say what
// became of lives; by which a server leads, a person ends what somebody may do, and a
// restore is declared. Each has one record for a node, a life or the cluster.
var essential = []string{
	KindSession, KindFacts, KindNode, KindFence, KindReport, KindLeader, KindEpoch, KindCluster, KindRevoked,
	KindContinuity, KindHold, KindCount, KindHellos, KindKnown, KindFormat,
}

// lookEvery is how often Reserve asks how full the store is.
const lookEvery = 2 * time.Second

// Reserve is a store that keeps the last tenth of its quota for what must continue when it is
// full: other writes fail with ErrNoSpace before etcd refuses all of them. Deletions are
// never refused. A store whose quota is not known has no reserve.
type Reserve struct {
	Store

	mu     sync.Mutex
	seen   Status // as of the last look
	before int64  // bytes written here between the two last looks, which seen may not show yet
	since  int64  // bytes written here since the last look
}

// NewReserve keeps the reserve of s; Run has to look how full it is.
func NewReserve(s Store) *Reserve { return &Reserve{Store: s} }

// Run looks how full the store is, again and again, until ctx ends. It returns nil.
func (r *Reserve) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		r.Look(ctx)
		backoff.Sleep(ctx, lookEvery)
	}
	return nil
}

// Look asks how full the store is; what was known stays if it does not say.
func (r *Reserve) Look(ctx context.Context) {
	if st, err := r.Store.Status(ctx); err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen, r.before, r.since = st, r.since, 0
	}
}

// Tight reports whether only what is essential may be written: nine tenths of the quota are
// in use, or the file, which etcd compares with the quota, has no room for two of the largest
// transactions. more was written since st was told.
func (st Status) Tight(more int64) bool {
	return st.QuotaBytes > 0 && (st.UsedBytes+more >= st.QuotaBytes/10*9 || st.SizeBytes+more >= st.QuotaBytes-2*MaxBytes)
}

// Commit implements Store.
func (r *Reserve) Commit(ctx context.Context, t Txn) (Rev, error) {
	r.mu.Lock()
	seen, more := r.seen, r.before+r.since
	r.mu.Unlock()
	if !isEssential(t) && seen.Tight(more+int64(t.bytes())) {
		return 0, fmt.Errorf("commit: %d of %d bytes are used, and the rest is kept for the sessions of nodes: %w", seen.UsedBytes, seen.QuotaBytes, ErrNoSpace)
	}
	rev, err := r.Store.Commit(ctx, t)
	if err == nil {
		r.mu.Lock()
		r.since += int64(t.bytes())
		r.mu.Unlock()
	}
	return rev, err
}

// isEssential: it writes keys of no other kinds.
func isEssential(t Txn) bool {
	return !slices.ContainsFunc(t.Then, func(op Op) bool {
		kind, _ := Kind(op.Key)
		return !op.Delete && !slices.Contains(essential, kind)
	})
}

// Status implements Store: a store that takes no more but what is essential is full.
func (r *Reserve) Status(ctx context.Context) (Status, error) {
	st, err := r.Store.Status(ctx)
	if err == nil && st.Alarm == "" && st.Tight(0) {
		st.Alarm = NoSpaceAlarm
	}
	return st, err
}
