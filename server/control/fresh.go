package control

import (
	"context"
	"errors"
	"time"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// freshTime bounds how long a read waits for the store, beyond which people are shown what
// is known: they look at members also while the store is away.
const freshTime = 2 * time.Second

// freshen is fresh where an answer from before is better than none.
func (s *Server) freshen(ctx context.Context, q query) {
	if err := s.fresh(ctx, q, freshTime); err != nil {
		s.cfg.Logger.Warn("read without the store: what is shown may be out of date", "err", err)
	}
}

// fresh waits until the world shows the set that q names, or whose members it names, as it
// is stored now: this server may have been cut off from its store, and another one may
// have written meanwhile. So whoever changed a set by one server waits for the change at
// any other. It fails with Unavailable when that takes longer than limit. Of queries about
// many sets nothing is promised, nor while the store is held, as nobody changes anything then.
func (s *Server) fresh(ctx context.Context, q query, limit time.Duration) error {
	switch q.kind {
	case kindSet, kindMember, kindVolume:
	default: // not read from the world
		return nil
	}
	ref, ok := q.ref()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, kvs, err := s.cfg.Store.Get(ctx, store.SetKey(ref), store.StatusKey(ref))
	if errors.Is(err, store.ErrWentBack) {
		return nil
	}
	var newest store.Rev
	for _, kv := range kvs {
		newest = max(newest, kv.Mod)
	}
	if err == nil {
		err = s.cfg.Cache.Wait(ctx, newest)
	}
	if err != nil {
		return unavailable("read set %s as it is stored now: %v", ref, err)
	}
	return nil
}

// ref is the one set that q is about; false: it is about many, or none.
func (q query) ref() (spec.SetRef, bool) {
	ref := spec.SetRef{Namespace: q.ns, Name: q.set}
	if ref.Name == "" && (q.kind == kindSet || q.kind == kindMember) {
		ref.Name = q.named()
	}
	return ref, ref.Namespace != "" && ref.Name != ""
}
