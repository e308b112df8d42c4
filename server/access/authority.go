package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// The kinds of refusal; their texts may be sent to the caller.
var (
	// ErrToken: the join token is not known, or not to this machine.
	ErrToken = errors.New("the join token is not known: it is wrong, was used or revoked, or its time is over; make another with 'stead token create'")
	// ErrTaken: another machine has the name.
	ErrTaken = errors.New("the name is not this machine's")
	// ErrMachine: the machine is another node already.
	ErrMachine = errors.New("this machine has joined under another name; give it that name, or start it with an empty --root to make it a new node")
	// ErrForgotten: the node that wants its next certificate has no record.
	ErrForgotten = errors.New("no such node is known: it was removed, or the store was restored from before it joined; it has to join again")
	// ErrJoined: the node needs a join token of its own to come back.
	ErrJoined = errors.New("the node has joined before; to let it in again, name it: 'stead token create --node NAME'")
	// ErrRevoked: the uid may do nothing any more.
	ErrRevoked = errors.New("what this certificate allowed was revoked")
	// ErrRequest: what was asked cannot be meant so.
	ErrRequest = errors.New("the request is not right")
)

const (
	// DefaultLife is how long certificates of nodes and servers last.
	DefaultLife = 24 * time.Hour
	// authorityLife is how long the authority itself lasts.
	authorityLife = 20 * 365 * 24 * time.Hour
	// leeway is how far the clock of a host may be behind: a certificate begins that much before it was made. Its
	// beginning protects nothing: what was not signed yet does not exist.
	leeway = 30 * 24 * time.Hour
)

// AuthorityConfig is what an Authority needs.
type AuthorityConfig struct {
	Store store.Store
	// Key seals the authority's key; every server of the cluster has the same.
	Key *seal.Key
	// Server is the name of this server.
	Server string
	// Addresses are those at which others reach it, host:port; Peer, if given, is another at
	// which its certificate is good, that of the store's peers.
	Addresses []string
	Peer      string
	// Life of the certificates of nodes and servers. Zero: DefaultLife.
	Life   time.Duration
	Logger *slog.Logger
}

// Authority signs. It is safe for concurrent use.
type Authority struct {
	// Arrivals are the nodes that came to this server.
	Arrivals *Arrivals

	cfg      AuthorityConfig
	cluster  string
	standing atomic.Pointer[standing]
	serving  *own        // by which others know this server
	calling  *own        // by which it calls others
	retired  atomic.Bool // see Retired
}

// OpenAuthority reads the cluster's authority, or makes it: of several servers one does, and
// all get the same. It fails with seal.ErrKey where the key is not the cluster's.
func OpenAuthority(ctx context.Context, cfg AuthorityConfig) (*Authority, error) {
	if cfg.Life == 0 {
		cfg.Life = DefaultLife
	}
	for {
		_, kvs, err := cfg.Store.Get(ctx, store.AuthorityKey, store.ClusterKey, store.KeyringKey)
		if err != nil {
			return nil, fmt.Errorf("read the authority: %w", err)
		}
		cluster := string(kvs[store.ClusterKey].Value)
		if cluster == "" {
			return nil, errors.New("read the authority: the store has no cluster yet")
		}
		if kv, ok := kvs[store.AuthorityKey]; ok {
			record, err := store.Decode[sealing.Authority](kv)
			if err != nil {
				return nil, err
			}
			return newOpened(cfg, cluster, record)
		}
		ring, err := store.DecodeIn[sealing.Ring](kvs, store.KeyringKey)
		if err == nil && ring != nil {
			err = cfg.Key.Use(ring.Sealing)
		}
		if err != nil {
			return nil, fmt.Errorf("make the authority: %w", err)
		}
		record := sealing.Authority{}
		if record.Certificate, record.Sealed, err = makeAuthority(cluster, cfg.Key); err != nil {
			return nil, fmt.Errorf("make the authority: %w", err)
		}
		_, err = cfg.Store.Commit(ctx, store.Txn{
			If: []store.Compare{store.Absent(store.AuthorityKey), store.Created(store.ClusterKey, kvs[store.ClusterKey].Create),
				store.Seen(store.KeyringKey, kvs[store.KeyringKey].Mod)},
			Then: []store.Op{store.Put(store.AuthorityKey, store.Encode(record))},
		})
		switch {
		case err == nil:
			cfg.Logger.Info("authority made")
		case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown):
			return nil, fmt.Errorf("write the authority: %w", err)
		}
	}
}

func newOpened(cfg AuthorityConfig, cluster string, record sealing.Authority) (*Authority, error) {
	s, err := openStanding(record, cfg.Key)
	if err != nil {
		return nil, err
	}
	a := &Authority{cfg: cfg, cluster: cluster, Arrivals: newArrivals()}
	a.serving, a.calling = a.ownCertificates()
	a.standing.Store(s)
	return a, nil
}

// newTemplate is a certificate that has no subject yet and lasts for life from now.
func newTemplate(life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{NotBefore: now.Add(-leeway), NotAfter: now.Add(life)}
}

// Cluster is the id of the cluster.
func (a *Authority) Cluster() string { return a.cluster }

// Certificate is that of the authority that signs, DER.
func (a *Authority) Certificate() []byte { return a.standing.Load().signs().cert.Raw }

// Addresses are those of this server.
func (a *Authority) Addresses() []string { return a.cfg.Addresses }

// Life of the certificates of nodes.
func (a *Authority) Life() time.Duration { return a.cfg.Life }

// Issue signs a certificate for the key of request (PKCS #10), which names s and is good
// for calling servers only. Errors: ErrRequest.
func (a *Authority) Issue(request []byte, s trust.Subject, life time.Duration) ([]byte, error) {
	key, err := keyOf(request)
	if err != nil {
		return nil, err
	}
	s.Cluster = a.cluster
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("%w: it may not name %s: %w", ErrRequest, s, err)
	}
	if s.Role == trust.RoleServer {
		return nil, fmt.Errorf("%w: it may not name %s", ErrRequest, s)
	}
	template := newTemplate(life)
	template.URIs = []*url.URL{s.URL()}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	by := a.standing.Load().signs()
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key, by.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return der, nil
}

// keyOf is the key that a request asks for, which its sender has.
func keyOf(request []byte) (*ecdsa.PublicKey, error) {
	csr, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it must be a signed request for a certificate", ErrRequest)
	}
	key, ok := csr.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: its key is not of ECDSA P-256", ErrRequest)
	}
	return key, nil
}

// Renew signs the next certificate of a node that is known. Errors: ErrRequest, ErrForgotten.
func (a *Authority) Renew(ctx context.Context, request []byte, s trust.Subject) ([]byte, error) {
	key := store.NodeKey(spec.NodeName(s.Name))
	_, kvs, err := a.cfg.Store.Get(ctx, key, store.AuthorityKey)
	if err != nil {
		return nil, fmt.Errorf("read node: %w", err)
	}
	if _, _, err := a.followed(kvs); err != nil {
		return nil, err
	}
	node, err := store.DecodeIn[records.Node](kvs, key)
	switch {
	case err != nil:
		return nil, err
	case node == nil || node.UID != s.UID:
		return nil, ErrForgotten
	}
	return a.Issue(request, s, a.cfg.Life)
}

// Revoke voids all certificates of uid, permanently.
func (a *Authority) Revoke(ctx context.Context, uid spec.UID) error {
	_, err := a.cfg.Store.Commit(ctx, store.Txn{
		Then: []store.Op{store.Put(store.RevokedKey(uid), store.Encode(records.Revoked{UID: uid, At: time.Now()}))},
	})
	if err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	return nil
}

// readAll are the records of one kind that can be read; unread says why others cannot.
func readAll[T any](ctx context.Context, s store.Store, kind string) (all []T, unread, err error) {
	_, kvs, err := s.Snapshot(ctx, kind+"/")
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", kind, err)
	}
	for _, kv := range kvs {
		record, err := store.Decode[T](kv)
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		all = append(all, record)
	}
	return all, unread, nil
}

// Revoked are the uids that were revoked, read linearizably.
func (a *Authority) Revoked(ctx context.Context) (map[spec.UID]bool, error) {
	_, kvs, err := a.cfg.Store.Snapshot(ctx, store.KindRevoked+"/")
	if err != nil {
		return nil, fmt.Errorf("read revoked: %w", err)
	}
	uids := map[spec.UID]bool{}
	for _, kv := range kvs {
		_, uid := store.Kind(kv.Key)
		uids[spec.UID(uid)] = true
	}
	return uids, nil
}

// Admit tells why the holder of a certificate that was verified may do nothing, or
// nil. It reads the store.
func (a *Authority) Admit(ctx context.Context, s trust.Subject) error {
	if s.Cluster != a.cluster {
		return ErrRevoked // of an authority of ours, and not of this cluster: never given
	}
	if s.Role == trust.RoleServer {
		return nil // it has no uid; who has one has the authority's key, too
	}
	_, kvs, err := a.cfg.Store.Get(ctx, store.RevokedKey(s.UID))
	if err != nil {
		return fmt.Errorf("read revoked: %w", err)
	}
	if len(kvs) > 0 {
		return ErrRevoked
	}
	return nil
}
