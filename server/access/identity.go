package access

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// ServerIdentity is what a server of several needs before it can read the store, because by it
// other servers know it: a copy of the cluster's authority, whose key is sealed as in the
// store. It is kept beside the key that opens it.
type ServerIdentity struct {
	Cluster   string            `json:"cluster"`
	Authority records.Authority `json:"authority"`
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
	ca, key, err := unsealAuthority(i.Authority, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("open the authority: %w", err)
	}
	if cfg.Life == 0 {
		cfg.Life = DefaultLife
	}
	return &Authority{cfg: cfg, cluster: i.Cluster, record: i.Authority, ca: ca, key: key}, nil
}

// Identity is what a server with this data directory, which has the uid, keeps of a.
func (a *Authority) Identity(uid spec.UID) ServerIdentity {
	return ServerIdentity{Cluster: a.cluster, Authority: a.record, UID: uid}
}
