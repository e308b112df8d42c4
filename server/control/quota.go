package control

import (
	"context"
	"slices"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/tally"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/quota"
	"github.com/stead-project/stead/store"
)

// bounds are the quotas of a namespace and what it holds, at one revision.
type bounds struct {
	ns     spec.Namespace
	held   tally.Contents // empty: there is no quota
	quotas []*records.QuotaRecord
	unread []string      // quotas that cannot be read
	seen   store.Compare // nothing that counts has changed since
}

// none: nothing bounds the namespace.
func (b *bounds) none() bool { return len(b.quotas)+len(b.unread) == 0 }

// guard compares in t all that was decided by b and, where there are quotas, makes the next decision compare this one.
func (b *bounds) guard(t *store.Txn) {
	t.If = append(t.If, b.seen)
	if !b.none() {
		t.Then = append(t.Then, store.Put(b.seen.Key, []byte("changed")))
	}
}

// refuses is why the namespace may not come from held to after; nil: it may.
func (b *bounds) refuses(after *tally.Contents) (out []tally.Excess) {
	was, now := b.held.Totals(), after.Totals()
	out = tally.Exceeded(was, now, b.quotas)
	for _, name := range b.unread {
		for _, resource := range quota.Resources {
			if now.Amounts[resource] > was.Amounts[resource] {
				out = append(out, tally.Excess{Quota: string(b.ns) + "/" + name, Resource: resource, Unread: true})
			}
		}
	}
	return out
}

// bounds reads what a decision about the quotas of a namespace relies on. The view shows what was read at seen. Without a quota, and
// where the caller brings none, only the comparison is needed. again: it was in vain before, so that the view may be old.
func (s *shared) bounds(ctx context.Context, ns spec.Namespace, seen store.Rev, brings, again bool) (b bounds, err error) {
	look := func() {
		s.cfg.Cache.Look(func(v cache.View) {
			b = bounds{ns: ns, seen: v.Seen(store.QuotaChangeKey(ns))}
			b.quotas, b.unread = cache.Quotas(v, ns)
			if brings || !b.none() {
				b.held = cache.HeldIn(v, ns)
			}
		})
	}
	look()
	if b.none() && !brings && !again {
		return b, nil
	}
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	_, kvs, err := s.cfg.Store.Get(ctx, store.QuotaChangeKey(ns))
	if err == nil {
		err = s.cfg.Cache.Wait(ctx, max(seen, kvs[store.QuotaChangeKey(ns)].Mod))
	}
	look()
	return b, err
}

// editCounted is editSet for a change that quotas may refuse.
func (s *shared) editCounted(ctx context.Context, ref spec.SetRef, change func(*records.Set) (bool, error)) error {
	again := false
	return editRecord(ctx, s, store.SetKey(ref), "set "+ref.String(), notFound(proto.KindSet, ref.Namespace, string(ref.Name)), change,
		func(ctx context.Context, seen store.Rev, now *records.Set) (t store.Txn, err error) {
			b, err := s.bounds(ctx, ref.Namespace, seen, false, again)
			if err != nil {
				return t, err
			}
			again = true
			after := b.held.Clone()
			if !b.none() {
				after.PutSet(now)
			}
			if out := b.refuses(&after); len(out) > 0 {
				return t, precondition("set %s: %s; %s; nothing was changed", ref, out[0], out[0].Fix())
			}
			b.guard(&t)
			return t, nil
		})
}

// restores guards a request to bring a volume back from the trash, which counts as soon as it is asked for; nil: nothing more counts.
func (s *shared) restores(ctx context.Context, said *records.VolumeReport, t *store.Txn) error {
	if said == nil {
		return nil
	}
	b, err := s.bounds(ctx, said.ID.Namespace, 0, false, false)
	if err != nil {
		return err
	}
	after := b.held.Clone()
	after.Volumes = append(after.Volumes, tally.CountedVolume{ID: said.ID, Claim: said.Claim, Bytes: said.SizeBytes})
	if out := b.refuses(&after); len(out) > 0 {
		return precondition("volume %s: %s; %s; nothing was changed", records.VolumeName(said.ID, said.Claim), out[0], out[0].Fix())
	}
	b.guard(t)
	return nil
}

func quotaEdit(m quota.ResourceQuota, kvs map[string]store.KV) (edit, error) {
	type record = records.QuotaRecord
	now := &record{Meta: records.MetaOf(m.Metadata), Spec: m.Spec}
	return objectEdit(proto.KindQuota, kvs, now,
		func(old *record) bool { return sameJSON(old.Spec, now.Spec) }, func(r *record) any { return manifest.OfQuota(r) })
}

// unbound is what the deletion of a quota writes besides: its namespace's key goes with the last one.
func (s objects) unbound(ctx context.Context, ns spec.Namespace, name string, t *store.Txn) error {
	key := store.QuotaChangeKey(ns)
	_, kvs, err := s.cfg.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	all, err := s.snapshot(ctx, store.KindQuota, ns) // compared by the key, which each quota writes
	if err != nil {
		return err
	}
	t.If = append(t.If, store.Seen(key, kvs[key].Mod))
	op := store.Del(key)
	if slices.ContainsFunc(all, func(kv store.KV) bool { return kv.Key != store.QuotaKey(ns, name) }) {
		op = store.Put(key, []byte("changed"))
	}
	t.Then = append(t.Then, op)
	return nil
}
