package access

import (
	"context"
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/store"
)

// OpenKey loads the key of Secrets and of the authority from file, or makes it where s holds
// nothing that is sealed yet. A key that does not open what is stored is not the cluster's:
// to continue with it would lose what is sealed.
func OpenKey(ctx context.Context, s store.Store, file string) (*seal.Key, error) {
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
	if err != nil {
		return nil, err
	}
	sealed, err := store.DecodeIn[records.Authority](authority, store.AuthorityKey)
	if err != nil {
		return nil, err
	}
	if sealed != nil {
		if _, err := key.OpenAt(store.AuthorityKey, sealed.Sealed); err != nil {
			return nil, fmt.Errorf("%s does not open the cluster's authority; put the cluster's own key there", file)
		}
	}
	for _, r := range found {
		if _, err := key.Open(&r); err == nil {
			return key, nil
		}
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s opens none of the %d Secrets in the store; put the cluster's own key there", file, len(found))
	}
	return key, nil
}
