package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/internal/backoff"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// own has this server take keys that it was given, use the one that seals, forget those that were removed, say what it has,
// and give to others.
func (s *Service) own(ctx context.Context) error {
	k := s.look()
	if k.Ring == nil {
		return nil
	}
	if err := s.take(ctx, k); err != nil {
		return err
	}
	if s.cfg.Key.Has(k.Ring.Sealing) {
		if err := s.cfg.Key.Use(k.Ring.Sealing); err != nil {
			return err
		}
	}
	if err := s.drop(ctx, k); err != nil {
		return err
	}
	if err := s.say(ctx, k); err != nil {
		return err
	}
	return s.giveAll(ctx, k)
}

func (s *Service) mine(k cache.KeyState) rotation.OwnKeys {
	return rotation.OwnKeys{Ring: k.Ring, Has: s.cfg.Key.IDs()}
}

// take takes the keys that this server was given.
func (s *Service) take(ctx context.Context, k cache.KeyState) error {
	given := k.Given[s.cfg.Server]
	if given == nil || !bytes.Equal(given.To, s.receiver.Public()) {
		return nil
	}
	for _, id := range s.mine(k).Missing() {
		sealed, ok := given.Keys[id]
		if !ok {
			continue
		}
		if err := s.receiver.AddTo(s.cfg.Key, id, sealed); err != nil {
			return err
		}
		s.cfg.Logger.Info("key taken", "reason", string(id))
	}
	return nil
}

// drop forgets removed keys; what this server keeps beside the store is under another one before.
func (s *Service) drop(ctx context.Context, k cache.KeyState) error {
	gone := s.mine(k).Drop()
	if len(gone) == 0 {
		return nil
	}
	if s.cfg.Moved != nil {
		if err := s.cfg.Moved(ctx); err != nil {
			return fmt.Errorf("seal again what this server keeps: %w", err)
		}
	}
	for _, id := range gone {
		if err := s.cfg.Key.Drop(id); err != nil {
			return err
		}
		s.cfg.Logger.Info("key removed", "reason", string(id))
	}
	return nil
}

// say writes which keys this server has, if the store has it otherwise, and where it can be given those that it lacks.
func (s *Service) say(ctx context.Context, k cache.KeyState) error {
	key := store.ServerKeysKey(s.cfg.Server)
	now := sealing.ServerKeys{Server: s.cfg.Server, Has: s.cfg.Key.IDs()}
	lacks := len(s.mine(k).Missing()) > 0
	if said := k.Said[s.cfg.Server]; said != nil && slices.Equal(said.Has, now.Has) && lacks == (len(said.Receiver) > 0) {
		if !lacks {
			return nil
		}
		if public, err := s.cfg.Key.OpenAt(key, said.Receiver); err == nil && bytes.Equal(public, s.receiver.Public()) {
			return nil
		}
	}
	if lacks {
		now.Receiver = s.cfg.Key.SealAt(key, s.receiver.Public())
	}
	return s.put(ctx, key, store.Encode(now))
}

// put writes a key of this server's, whatever is there.
func (s *Service) put(ctx context.Context, key string, value []byte) error {
	_, err := s.cfg.Store.Commit(ctx, store.Txn{If: []store.Compare{store.NotHeld()}, Then: []store.Op{store.Put(key, value)}})
	if errors.Is(err, store.ErrConflict) {
		return errors.New("the store is held; see 'stead restore'")
	}
	return err
}

// giveAll gives other servers the keys that they lack and this one has.
func (s *Service) giveAll(ctx context.Context, k cache.KeyState) error {
	for name, said := range k.Said {
		if name == s.cfg.Server || len(said.Receiver) == 0 {
			continue
		}
		public, err := s.cfg.Key.OpenAt(store.ServerKeysKey(name), said.Receiver)
		if err != nil {
			continue // it has none of this server's keys, and may be anybody
		}
		given := sealing.GivenKeys{Server: name, To: public, Keys: map[sealing.KeyID]scalar.Bytes{}}
		there := k.Given[name]
		fresh := there == nil || !bytes.Equal(there.To, public)
		for _, id := range (rotation.OwnKeys{Ring: k.Ring, Has: said.Has}).Missing() {
			if !s.cfg.Key.Has(id) {
				continue
			}
			if given.Keys[id], err = s.cfg.Key.GiveOne(id, public); err != nil {
				return err
			}
			fresh = fresh || there.Keys[id] == nil
		}
		if !fresh || len(given.Keys) == 0 {
			continue
		}
		if err := s.put(ctx, store.GivenKeysKey(name), store.Encode(given)); err != nil {
			return err
		}
		s.cfg.Logger.Info("key given to another server", "reason", name)
	}
	return nil
}

// Ready has this server get the key that seals, should it lack it, from other servers. It fails, with what to do, when
// none gives it in time.
func (s *Service) Ready(ctx context.Context) error {
	until := time.Now().Add(s.cfg.Ready)
	for first := true; ; first = false {
		err := s.own(ctx)
		k := s.look()
		if k.Ring == nil || s.cfg.Key.Has(k.Ring.Sealing) {
			return err
		}
		if first {
			s.cfg.Logger.Warn("key waited for", "reason", string(k.Ring.Sealing))
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return s.lacking(k)
		}
		backoff.Sleep(ctx, 100*time.Millisecond)
	}
}

// lacking says what to do about a server without the key that seals.
func (s *Service) lacking(k cache.KeyState) error {
	var have []string
	for name, said := range k.Said {
		if slices.Contains(said.Has, k.Ring.Sealing) {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	return fmt.Errorf("secret.key of this server lacks the key %s, which seals since the last rotation, and no server gave it: start one that has it (%s) and then this one; "+
		"if its keys were removed meanwhile, append the secret.key of that server to this one's (cat THEIRS >> OURS)", k.Ring.Sealing, strings.Join(have, ", "))
}
