package authorities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/store"
)

// own has this server follow the record, keep it, and only then say what it trusts; and note which nodes came.
func (s *Service) own(ctx context.Context) error {
	a := s.look()
	if a.Record == nil {
		return nil
	}
	if err := s.cfg.Authority.Follow(*a.Record); err != nil {
		return err
	}
	if s.cfg.Kept != nil && s.kept != a.Rev {
		if err := s.cfg.Kept(ctx); err != nil {
			return fmt.Errorf("keep the authority beside the store: %w", err)
		}
		s.kept = a.Rev
	}
	if a.Record.Next == nil && a.Record.Retired == nil {
		return nil
	}
	if err := s.say(ctx, a); err != nil {
		return err
	}
	return s.note(ctx, a)
}

// say writes what this server trusts, if the store has it otherwise.
func (s *Service) say(ctx context.Context, a cache.AuthorityState) error {
	now := sealing.ServerAuthorities{Server: s.cfg.Server, Trusts: s.cfg.Authority.IDs(), Calls: s.cfg.Authority.Signs(), Store: s.cfg.Started}
	if said := a.Said[s.cfg.Server]; said != nil && slices.Equal(said.Trusts, now.Trusts) && said.Calls == now.Calls && slices.Equal(said.Store, now.Store) {
		return nil
	}
	return s.put(ctx, store.ServerAuthoritiesKey(s.cfg.Server), now)
}

// note writes which nodes came to this server with a certificate of the authority that takes the place of the present one, or need none.
func (s *Service) note(ctx context.Context, a cache.AuthorityState) error {
	next := s.decided(a).Next
	if next == "" || !a.Record.Next.Issuing {
		return nil
	}
	for _, n := range a.Nodes {
		came := s.cfg.Authority.Arrivals.Has(n.Name, n.UID, next) || n.Server == s.cfg.Server && s.cfg.Authority.Arrivals.BySocket(n.Name, n.UID)
		if n.By == next || !came {
			continue
		}
		if err := s.put(ctx, store.CertifiedKey(n.Name), sealing.Certified{Node: n.Name, UID: n.UID, By: next}); err != nil {
			return err
		}
	}
	return nil
}

// put writes a key, whatever is there.
func (s *Service) put(ctx context.Context, key string, record any) error {
	_, err := s.cfg.Store.Commit(ctx, store.Txn{If: []store.Compare{store.NotHeld()}, Then: []store.Op{store.Put(key, store.Encode(record))}})
	if errors.Is(err, store.ErrConflict) {
		return errors.New("the store is held; see 'stead restore'")
	}
	return err
}

// step takes the next step, as the leader of term.
func (s *Service) step(ctx context.Context, term store.Leadership, a cache.AuthorityState, settled bool) error {
	w := s.decided(a)
	w.Settled = settled
	issue, _ := rotation.NextAuthority(w)
	if !issue {
		return nil
	}
	record, next := *a.Record, *a.Record.Next
	next.Issuing = true
	record.Next = &next
	txn, err := store.RaiseFormat(ctx, s.cfg.Store, store.Txn{
		If:   []store.Compare{term.Compare(), store.NotHeld(), store.Seen(store.AuthorityKey, a.Rev)},
		Then: []store.Op{store.Put(store.AuthorityKey, store.Encode(record))},
	}, store.AuthorityFormat)
	if err != nil {
		return err
	}
	rev, err := s.cfg.Store.Commit(ctx, txn)
	if err != nil {
		return err
	}
	s.cfg.Logger.Info("authority signs", "reason", string(w.Next))
	return s.cfg.Cache.Wait(ctx, rev)
}
