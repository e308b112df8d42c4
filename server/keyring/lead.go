package keyring

import (
	"context"
	"errors"
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/store"
)

// batchRecords is how many records are sealed anew before it is looked who leads, and what came meanwhile.
const batchRecords = 64

// step takes the next step, as the leader of term. again: there may be another one at once.
func (s *Service) step(ctx context.Context, term store.Leadership, k cache.KeyState, settled bool) (again bool, err error) {
	d := decided(k)
	d.Settled = settled
	next := rotation.NextKeys(d)
	if !next.Look {
		return s.write(ctx, term, k, next)
	}
	// What is counted here is read after the keyring: whoever seals with another key compares an older one.
	all, err := s.sealed(ctx)
	if err != nil {
		return false, err
	}
	d.Under = all.under
	next = rotation.NextKeys(d)
	if next.Wait != "" {
		return false, errors.New(next.Wait)
	}
	if next.Reseal {
		return true, s.reseal(ctx, term, k, all)
	}
	return s.write(ctx, term, k, next)
}

func (s *Service) write(ctx context.Context, term store.Leadership, k cache.KeyState, next rotation.KeyStep) (again bool, err error) {
	if next.Write == nil {
		return false, nil
	}
	rev, err := s.cfg.Store.Commit(ctx, store.Txn{
		If:   []store.Compare{term.Compare(), store.NotHeld(), store.Seen(store.KeyringKey, k.RingRev)},
		Then: []store.Op{store.Put(store.KeyringKey, store.Encode(next.Write))},
	})
	if err != nil {
		return false, err
	}
	s.cfg.Logger.Info("key rotation continued", "reason", fmt.Sprintf("%s seals, resealing %v", next.Write.Sealing, next.Write.Resealing))
	return true, s.cfg.Cache.Wait(ctx, rev)
}

// sealedRecords are what the store has sealed.
type sealedRecords struct {
	authority *sealing.Authority
	at        store.Rev // its mod-revision
	secrets   []records.SecretRecord
	mods      []store.Rev
	under     map[sealing.KeyID]int
}

// sealed reads all that is sealed. A record that cannot be read is none that could be sealed anew: it is an error.
func (s *Service) sealed(ctx context.Context) (all sealedRecords, err error) {
	all.under = map[sealing.KeyID]int{}
	_, kvs, err := s.cfg.Store.Get(ctx, store.AuthorityKey)
	if err != nil {
		return all, err
	}
	if all.authority, err = store.DecodeIn[sealing.Authority](kvs, store.AuthorityKey); err != nil {
		return all, err
	}
	if all.authority != nil {
		all.at = kvs[store.AuthorityKey].Mod
		all.under[s.cfg.Key.Under(store.AuthorityKey, all.authority.Sealed)]++
		if next := all.authority.Next; next != nil {
			all.under[s.cfg.Key.Under(store.AuthorityKey, next.Sealed)]++
		}
	}
	_, list, err := s.cfg.Store.Snapshot(ctx, store.KindSecret+"/")
	if err != nil {
		return all, err
	}
	for _, kv := range list {
		r, err := store.Decode[records.SecretRecord](kv)
		if err != nil {
			return all, err
		}
		all.secrets, all.mods = append(all.secrets, r), append(all.mods, kv.Mod)
		all.under[s.cfg.Key.Under(kv.Key, r.Sealed)]++
	}
	return all, nil
}

// reseal seals anew what is under another key than the one that seals. Each record is compared with what was read of it.
func (s *Service) reseal(ctx context.Context, term store.Leadership, k cache.KeyState, all sealedRecords) error {
	if err := s.cfg.Key.Use(k.Ring.Sealing); err != nil {
		return err
	}
	shared := []store.Compare{term.Compare(), store.NotHeld(), store.Seen(store.KeyringKey, k.RingRev)}
	var units []store.Txn
	// again is something sealed, sealed anew; false: it is under the key that seals, or does not open, which is counted.
	again := func(key string, sealed []byte) ([]byte, bool) {
		if id := s.cfg.Key.Under(key, sealed); id == "" || id == k.Ring.Sealing {
			return nil, false
		}
		plain, err := s.cfg.Key.OpenAt(key, sealed)
		if err != nil {
			return nil, false
		}
		return s.cfg.Key.SealAt(key, plain), true
	}
	anew := func(key string, mod store.Rev, record any) {
		units = append(units, store.Txn{
			If:   []store.Compare{store.Seen(key, mod)},
			Then: []store.Op{store.Put(key, store.Encode(record))},
		})
	}
	if a := all.authority; a != nil {
		now := *a
		sealed, moved := again(store.AuthorityKey, a.Sealed)
		if moved {
			now.Sealed = sealed
		}
		if a.Next != nil {
			next := *a.Next
			if sealed, one := again(store.AuthorityKey, next.Sealed); one {
				next.Sealed, now.Next, moved = sealed, &next, true
			}
		}
		if moved {
			anew(store.AuthorityKey, all.at, now)
		}
	}
	for i, r := range all.secrets {
		key := store.SecretKey(r.Namespace, r.Name)
		if len(units) >= batchRecords {
			break
		}
		if sealed, moved := again(key, r.Sealed); moved {
			r.Sealed = sealed
			anew(key, all.mods[i], r)
		}
	}
	done := 0
	for _, o := range store.CommitAll(ctx, s.cfg.Store, shared, units) {
		switch {
		case o.Err == nil:
			done++
		case errors.Is(o.Err, store.ErrConflict): // somebody wrote it meanwhile; it is looked again
		default:
			return o.Err
		}
	}
	s.cfg.Logger.Info("records sealed again", "reason", fmt.Sprintf("%d of %d under key %s", done, len(units), k.Ring.Sealing))
	if done == 0 { // the keyring moved, or another leads
		return errors.New("what is sealed changes all the time, or another server leads")
	}
	return nil
}
