package control

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// watchGap is the least time between two looks of one watch: what changes
// meanwhile is sent as one.
const watchGap = 50 * time.Millisecond

// Watch implements proto.ControlServer.
func (s queries) Watch(r *proto.ListRequest, stream proto.Control_WatchServer) error {
	q, err := listQuery(r)
	if err != nil {
		return err
	}
	// Who waits for something must not find it done in a picture from before.
	if err := s.fresh(stream.Context(), q, waitTime); err != nil {
		return err
	}
	sub := s.cfg.Cache.Subscribe() // before the first look, so that no change is missed
	defer sub.Close()
	ctx := stream.Context()
	sent := map[string][]byte{}
	for first := true; ; first = false {
		if err := s.sendChanges(ctx, q, sent, stream); err != nil {
			return err
		}
		if first {
			if err := stream.Send(&proto.WatchEvent{Synced: true}); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C():
			sub.Take()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchGap):
		}
	}
}

// sendChanges sends what differs from sent, and keeps it in step.
func (s queries) sendChanges(ctx context.Context, q query, sent map[string][]byte, stream proto.Control_WatchServer) error {
	items, err := s.read(ctx, q)
	if err != nil {
		return err
	}
	present := make(map[string]bool, len(items))
	for _, i := range items {
		o, err := i.wire()
		if err != nil {
			return err
		}
		key := o.GetNamespace() + "/" + o.GetName()
		present[key] = true
		if bytes.Equal(sent[key], o.GetJson()) {
			continue
		}
		sent[key] = o.GetJson()
		if err := stream.Send(&proto.WatchEvent{Object: o}); err != nil {
			return err
		}
	}
	for key := range sent {
		if present[key] {
			continue
		}
		delete(sent, key)
		ns, name := cutKey(key)
		gone := &proto.WatchEvent{Gone: true, Object: &proto.Object{Kind: q.kind, Namespace: ns, Name: name}}
		if err := stream.Send(gone); err != nil {
			return err
		}
	}
	return nil
}

// cutKey splits "namespace/name".
func cutKey(key string) (ns, name string) {
	ns, name, _ = strings.Cut(key, "/")
	return ns, name
}

// freshTime bounds how long a read waits for the store, beyond which people are shown what
// is known: they look at members also while the store is away.
const freshTime = 2 * time.Second

// freshen is fresh where an answer from before is better than none.
func (s queries) freshen(ctx context.Context, q query) {
	if err := s.fresh(ctx, q, freshTime); err != nil {
		s.cfg.Logger.Warn("read without the store: what is shown may be out of date", "err", err)
	}
}

// fresh waits until the world shows the set that q names, or whose members it names, as it
// is stored now: this server may have been cut off from its store, and another one may
// have written meanwhile. So whoever changed a set by one server waits for the change at
// any other. It fails with Unavailable when that takes longer than limit. Of queries about
// many sets nothing is promised, nor while the store is held, as nobody changes anything then.
func (s queries) fresh(ctx context.Context, q query, limit time.Duration) error {
	switch q.kind {
	case proto.KindSet, proto.KindMember, proto.KindVolume, proto.KindQuota:
	default: // not read from the world
		return nil
	}
	ref, ok := q.ref()
	keys, what := []string{store.SetKey(ref), store.StatusKey(ref)}, "set "+ref.String()
	if q.kind == proto.KindQuota {
		ok, keys, what = q.ns != "", []string{store.QuotaChangeKey(q.ns)}, "quotas of namespace "+string(q.ns)
	}
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, kvs, err := s.cfg.Store.Get(ctx, keys...)
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
		return unavailable("read %s as it is stored now: %v", what, err)
	}
	return nil
}

// ref is the one set that q is about; false: it is about many, or none.
func (q query) ref() (spec.SetRef, bool) {
	ref := spec.SetRef{Namespace: q.ns, Name: q.set}
	if ref.Name == "" && (q.kind == proto.KindSet || q.kind == proto.KindMember) {
		ref.Name = q.named()
	}
	return ref, ref.Namespace != "" && ref.Name != ""
}
