package access

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
)

// OpenKey loads the key of Secrets and of the authority from file, or makes it where s holds
// nothing that is sealed yet. A key that does not open what is stored is not the cluster's:
// to continue with it would lose what is sealed. complete, if given, gets it what it lacks since a rotation, first.
func OpenKey(ctx context.Context, s store.Store, file string, complete func(*seal.Key) error) (*seal.Key, error) {
	found, _, err := readAll[records.SecretRecord](ctx, s, store.KindSecret)
	if err != nil {
		return nil, err
	}
	_, authority, err := s.Get(ctx, store.AuthorityKey)
	if err != nil {
		return nil, err
	}
	load := seal.Ensure
	if len(found)+len(authority) > 0 {
		load = seal.Load
	}
	key, err := load(file)
	if err == nil && complete != nil {
		err = complete(key)
	}
	if err != nil {
		return nil, err
	}
	sealed, err := store.DecodeIn[sealing.Authority](authority, store.AuthorityKey)
	if err != nil {
		return nil, err
	}
	id := sealing.KeyID("")
	if sealed != nil {
		id = key.Under(store.AuthorityKey, sealed.Sealed)
		if id == "" {
			return nil, fmt.Errorf("%s does not open the cluster's authority; put the cluster's own key there", file)
		}
	}
	for _, r := range found {
		if of := key.Under(store.SecretKey(r.Namespace, r.Name), r.Sealed); of != "" {
			return key, useUnrotated(ctx, s, key, cmp.Or(id, of))
		}
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s opens none of the %d Secrets in the store; put the cluster's own key there", file, len(found))
	}
	return key, useUnrotated(ctx, s, key, id)
}

// useUnrotated has the key seal by which something is sealed, in a store without a keyring: one that was restored
// from before a rotation.
func useUnrotated(ctx context.Context, s store.Store, key *seal.Key, id sealing.KeyID) error {
	_, kvs, err := s.Get(ctx, store.KeyringKey)
	if err != nil || id == "" || kvs[store.KeyringKey].Mod != 0 {
		return err
	}
	return key.Use(id)
}
