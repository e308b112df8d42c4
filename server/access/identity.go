package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// ServerIdentity is what a server of several needs before it can read the store, because by it
// other servers know it: a copy of the cluster's authority, whose key is sealed as in the
// store. It is kept beside the key that opens it.
type ServerIdentity struct {
	Cluster   string            `json:"cluster"`
	Authority sealing.Authority `json:"authority"`
	// UID is made with the data directory. See records.Server.
	UID spec.UID `json:"uid"`
}

func identityPath(dir string) string { return filepath.Join(dir, "identity.json") }

// LoadIdentity reads the identity in a server's data directory; nil: it has none yet.
func LoadIdentity(dir string) (*ServerIdentity, error) {
	var id ServerIdentity
	switch err := durable.GetJSON(identityPath(dir), &id); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read what this server is in its cluster: %w", err)
	}
	return &id, nil
}

// Save keeps it, durably.
func (i ServerIdentity) Save(dir string) error { return durable.PutJSON(identityPath(dir), i) }

// Open is the authority as far as it needs no store: it signs the certificates of the server
// that cfg names.
func (i ServerIdentity) Open(cfg AuthorityConfig) (*Authority, error) {
	if cfg.Life == 0 {
		cfg.Life = DefaultLife
	}
	return newOpened(cfg, i.Cluster, i.Authority)
}

// Stored is the authority as the store has it now, sealed with the key that seals now.
func (a *Authority) Stored(ctx context.Context) (sealing.Authority, error) {
	_, kvs, err := a.cfg.Store.Get(ctx, store.AuthorityKey)
	if err != nil {
		return sealing.Authority{}, fmt.Errorf("read the authority: %w", err)
	}
	record, err := store.DecodeIn[sealing.Authority](kvs, store.AuthorityKey)
	switch {
	case err != nil:
		return sealing.Authority{}, err
	case record == nil:
		return sealing.Authority{}, errors.New("read the authority: the store has none")
	}
	return *record, nil
}

// RenewIdentity has what a server keeps in dir, if it keeps it, be the authority as the store has it now.
func (a *Authority) RenewIdentity(ctx context.Context, dir string) error {
	id, err := LoadIdentity(dir)
	if err != nil || id == nil {
		return err
	}
	stored, err := a.Stored(ctx)
	if err != nil || bytes.Equal(store.Encode(stored), store.Encode(id.Authority)) {
		return err
	}
	id.Authority = stored
	if _, err := openStanding(id.Authority, a.cfg.Key); err != nil {
		return err
	}
	return id.Save(dir)
}

// Identity is what a server with this data directory, which has the uid, keeps of a.
func (a *Authority) Identity(uid spec.UID) ServerIdentity {
	return ServerIdentity{Cluster: a.cluster, Authority: a.standing.Load().record, UID: uid}
}
