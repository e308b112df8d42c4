package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
)

// ErrWentBack: the answer is of another store than the one that is known, or of an
// earlier state of it. Nothing of it may be believed, and the process must not continue
// with what it remembers (SAFETY S8). Whether a write was done is not known.
var ErrWentBack = errors.New("the store went back")

// Origin is what a store says of itself with every answer.
type Origin struct {
	Cluster string // the id of the store's own cluster (not Stead's), made with it
	Member  string // the id of the member that answered
	Term    uint64 // raft's
	Rev     Rev
	// Current: Term and Rev are at least those of the moment at which the call started.
	// Otherwise they are of a member that may lag.
	Current bool
}

// Judge tells whether an answer is of the store that is known; nil: it is.
type Judge func(Origin) error

// Judged returns s with every answer judged: begin is called when a call starts (of a
// watch: each Next), and what it returns sees the origin of its answers before the caller
// sees anything of them. When it returns an error the call fails with that error, which
// is ErrWentBack then.
func Judged(s Store, begin func() Judge) Store { return judgedStore{s, begin} }

type judgeKey struct{}

// Answered has an answer judged. A body calls it with each answer that it gets, also with
// a refusal, before it returns.
func Answered(ctx context.Context, o Origin) error {
	judge, ok := ctx.Value(judgeKey{}).(Judge)
	if !ok {
		return nil
	}
	err := judge(o)
	if err != nil && !errors.Is(err, ErrWentBack) {
		err = fmt.Errorf("%w: %w", ErrWentBack, err)
	}
	return err
}

type judgedStore struct {
	store Store
	begin func() Judge
}

// with hands the judge to the body: the context reaches it through any other wrapping.
func (j judgedStore) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, judgeKey{}, j.begin())
}

func (j judgedStore) Snapshot(ctx context.Context, prefix string) (Rev, []KV, error) {
	return j.store.Snapshot(j.with(ctx), prefix)
}

func (j judgedStore) Get(ctx context.Context, keys ...string) (Rev, map[string]KV, error) {
	return j.store.Get(j.with(ctx), keys...)
}

func (j judgedStore) Commit(ctx context.Context, t Txn) (Rev, error) {
	return j.store.Commit(j.with(ctx), t)
}

func (j judgedStore) Grant(ctx context.Context, ttl time.Duration) (LeaseID, error) {
	return j.store.Grant(j.with(ctx), ttl)
}

func (j judgedStore) Renew(ctx context.Context, id LeaseID) error {
	return j.store.Renew(j.with(ctx), id)
}

func (j judgedStore) Revoke(ctx context.Context, id LeaseID) error {
	return j.store.Revoke(j.with(ctx), id)
}

func (j judgedStore) Status(ctx context.Context) (Status, error) { return j.store.Status(j.with(ctx)) }

func (j judgedStore) Close() error { return j.store.Close() }

func (j judgedStore) Watch(ctx context.Context, prefix string, from Rev) (Watch, error) {
	w, err := j.store.Watch(j.with(ctx), prefix, from)
	if err != nil {
		return nil, err
	}
	return judgedWatch{w, j}, nil
}

type judgedWatch struct {
	Watch
	by judgedStore
}

func (w judgedWatch) Next(ctx context.Context) (Batch, error) {
	return w.Watch.Next(w.by.with(ctx))
}

// NotHeld is what a transaction compares that begins, ends, places, frees or gives up
// lives, volumes or addresses, and each by which a person asks for that: while HoldKey
// exists, what this store says may not be so (SAFETY S8).
func NotHeld() Compare { return Absent(HoldKey) }

// HoldIn is the hold among what was read; nil: there is none. One that cannot be read holds
// as well.
func HoldIn(kvs map[string]KV) *records.Hold {
	kv, ok := kvs[HoldKey]
	if !ok {
		return nil
	}
	hold, err := Decode[records.Hold](kv)
	if err != nil {
		return &records.Hold{Cause: fmt.Sprintf("the store has a key %q, which cannot be read", HoldKey), By: "this server"}
	}
	return &hold
}
