package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// maxServerTokenTTL is that of a token which lets a server in: whoever has it is given the
// cluster's key.
const maxServerTokenTTL = time.Hour

// CreateServerToken makes a join token that the server of this name may use once within ttl.
// Only root may ask for one. Errors: ErrRequest.
func (a *Authority) CreateServerToken(ctx context.Context, ttl time.Duration, name string) (trust.JoinToken, error) {
	switch {
	case ttl < minTokenTTL || ttl > maxServerTokenTTL:
		return trust.JoinToken{}, fmt.Errorf("%w: a join token for a server lasts from %s to %s", ErrRequest, minTokenTTL, maxServerTokenTTL)
	case !scalar.ValidSubdomain(name):
		return trust.JoinToken{}, fmt.Errorf("%w: invalid server name %q", ErrRequest, name)
	}
	return a.makeToken(ctx, records.JoinToken{Server: name, TTL: scalar.Duration{Duration: ttl}})
}

// EnrollServer uses up a join token for a server, and gives the cluster's key to the receiver
// (the public half) that it asks with. An answer that was lost is given again to the same
// receiver. Errors: ErrToken, ErrRequest.
func (a *Authority) EnrollServer(ctx context.Context, id string, secret []byte, name string, receiver []byte, from string) (sealed []byte, err error) {
	if !trust.ValidTokenID(id) {
		return nil, ErrToken
	}
	mark := sha256.Sum256(receiver)
	key := store.TokenKey(id)
	for {
		_, kvs, err := a.cfg.Store.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("read join token: %w", err)
		}
		record, err := store.DecodeIn[records.JoinToken](kvs, key)
		if err != nil {
			return nil, err
		}
		if record == nil || !mayEnroll(*record, secret, name, mark[:]) {
			return nil, ErrToken
		}
		sealed, err := a.cfg.Key.Give(receiver)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		record.UsedBy, record.Key = spec.NodeName(name), mark[:]
		_, err = a.cfg.Store.Commit(ctx, store.Txn{
			If:   []store.Compare{store.Seen(key, kvs[key].Mod)},
			Then: []store.Op{store.PutLeased(key, store.Encode(record), kvs[key].Lease)},
		})
		switch {
		case err == nil:
			a.cfg.Logger.Info("server enrolled", "reason", fmt.Sprintf("%s, join token %s, at %s", name, id, from))
			return sealed, nil
		case errors.Is(err, store.ErrLeaseGone):
			return nil, ErrToken
		case !errors.Is(err, store.ErrConflict):
			return nil, err
		}
	}
}

// mayEnroll: the token is for a server, this one, and no other receiver has used it.
func mayEnroll(t records.JoinToken, secret []byte, name string, mark []byte) bool {
	hash := sha256.Sum256(secret)
	return subtle.ConstantTimeCompare(hash[:], t.Hash) == 1 && t.Server != "" && t.Server == name &&
		(t.UsedBy == "" || slices.Equal(t.Key, mark))
}

// AllAddresses are those of this server, and of all others that the store tells of.
func (a *Authority) AllAddresses(ctx context.Context) []string {
	all := slices.Clone(a.cfg.Addresses)
	others, _, err := readAll[records.Server](ctx, a.cfg.Store, store.KindServer)
	if err != nil {
		return all // this one answers, and that is enough
	}
	for _, s := range others {
		for _, at := range s.Addresses {
			if !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}
