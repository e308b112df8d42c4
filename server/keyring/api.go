package keyring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/rotation"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
)

// List implements proto.KeyringServer.
func (s *Service) List(context.Context, *proto.ListKeysRequest) (*proto.ListKeysResponse, error) {
	k := s.look()
	d := decided(k)
	uses := map[sealing.KeyID]string{}
	for _, id := range s.cfg.Key.IDs() {
		uses[id] = "unused"
	}
	out := &proto.ListKeysResponse{}
	if k.Ring == nil {
		uses[s.cfg.Key.Sealing()] = "seals"
	} else {
		for _, said := range k.Said {
			for _, id := range said.Has {
				uses[id] = "unused"
			}
		}
		for _, id := range k.Ring.Opening {
			uses[id] = "opens"
		}
		uses[k.Ring.Sealing] = "seals"
		if k.Ring.Next != "" {
			uses[k.Ring.Next] = "next"
		}
		out.Wait = rotation.NextKeys(d).Wait
		if k.Ring.Resealing {
			out.Wait = "Secrets and the authority's key are being sealed with " + string(k.Ring.Sealing)
		}
		for _, name := range d.Lacking(k.Ring.Sealing) {
			if out.Wait == "" {
				out.Wait = fmt.Sprintf("%s has not said that it has %s: start it", name, k.Ring.Sealing)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(uses)) {
		out.Keys = append(out.Keys, &proto.SealKey{Id: string(id), Use: uses[id], Servers: have(k, id)})
	}
	return out, nil
}

// have are the servers that said that they have id.
func have(k cache.KeyState, id sealing.KeyID) []string {
	var out []string
	for name, said := range k.Said {
		if slices.Contains(said.Has, id) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// fresh is what the store has about keys, no older than now.
func (s *Service) fresh(ctx context.Context) (cache.KeyState, error) {
	rev, _, err := s.cfg.Store.Get(ctx, store.KeyringKey)
	if err == nil {
		err = s.cfg.Cache.Wait(ctx, rev)
	}
	return s.look(), err
}

// Rotate implements proto.KeyringServer.
func (s *Service) Rotate(ctx context.Context, r *proto.RotateKeyRequest) (*proto.RotateKeyResponse, error) {
	k, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range r.GetWithout() {
		if !slices.Contains(k.Servers, name) {
			return nil, status.Errorf(codes.NotFound, "no server %s is known; known are %v", name, k.Servers)
		}
		if name == s.cfg.Server {
			return nil, status.Errorf(codes.FailedPrecondition, "server %s is the one that you ask", name)
		}
	}
	if next, goesOn := rotation.Without(decided(k), r.GetWithout()); goesOn {
		return &proto.RotateKeyResponse{Id: string(next.Next)}, s.commit(ctx, k, next)
	}
	if _, err := rotation.Rotate(decided(k), s.cfg.Key.Sealing(), "", nil); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if n := len(s.cfg.Key.IDs()); n >= seal.MaxKeys {
		return nil, status.Errorf(codes.FailedPrecondition, "secret.key holds %d keys already, which is the most: 'stead keyring remove' those that no backup needs", n)
	}
	if k.Ring != nil && !s.cfg.Key.Has(k.Ring.Sealing) {
		return nil, status.Errorf(codes.Unavailable, "this server lacks the key %s, which seals", k.Ring.Sealing)
	}
	id, err := s.cfg.Key.Make() // in this server's file before anybody hears of it
	if err != nil {
		return nil, err
	}
	next, err := rotation.Rotate(decided(k), s.cfg.Key.Sealing(), id, r.GetWithout())
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	next.At = time.Now().UTC()
	err = s.commit(ctx, k, next)
	if errors.Is(err, store.ErrConflict) || status.Code(err) == codes.Aborted {
		err = errors.Join(err, s.cfg.Key.Drop(id))
	}
	return &proto.RotateKeyResponse{Id: string(id)}, err
}

// commit writes the keyring as a person wants it.
func (s *Service) commit(ctx context.Context, k cache.KeyState, next *sealing.Ring) error {
	rev, err := s.cfg.Store.Commit(ctx, store.Txn{
		If:   []store.Compare{store.NotHeld(), store.Seen(store.KeyringKey, k.RingRev)},
		Then: []store.Op{store.Put(store.KeyringKey, store.Encode(next))},
	})
	switch {
	case errors.Is(err, store.ErrConflict):
		return status.Error(codes.Aborted, "the keyring changed meanwhile, or the store is held; nothing was written, try again")
	case err != nil:
		return err
	}
	return s.cfg.Cache.Wait(ctx, rev)
}

// Remove implements proto.KeyringServer.
func (s *Service) Remove(ctx context.Context, r *proto.RemoveKeyRequest) (*proto.RemoveKeyResponse, error) {
	k, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.sealed(ctx)
	if err != nil {
		return nil, err
	}
	d := decided(k)
	d.Under = all.under
	next, err := rotation.RemoveKey(d, sealing.KeyID(r.GetId()))
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if next == nil {
		return &proto.RemoveKeyResponse{}, nil
	}
	return &proto.RemoveKeyResponse{}, s.commit(ctx, k, next)
}
