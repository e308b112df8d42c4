package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
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

// How long a join token may last.
const (
	minTokenTTL = time.Second
	maxTokenTTL = 7 * 24 * time.Hour
	// maxClientTokenTTL is that of a token which a client makes, and not root.
	maxClientTokenTTL = time.Hour
)

// CreateToken makes a join token that one machine may use once within ttl, by the
// store's clock: node, or when that is "", one that never joined. by is the client that
// makes it; "": root. Errors: ErrRequest, ErrRevoked.
func (a *Authority) CreateToken(ctx context.Context, ttl time.Duration, node spec.NodeName, by spec.UID) (trust.JoinToken, error) {
	switch {
	case by != "" && ttl > maxClientTokenTTL:
		return trust.JoinToken{}, fmt.Errorf("%w: a join token made with a client file lasts at most %s; root on a server's host may make a longer one", ErrRequest, maxClientTokenTTL)
	case ttl < minTokenTTL || ttl > maxTokenTTL:
		return trust.JoinToken{}, fmt.Errorf("%w: a join token lasts from %s to %s", ErrRequest, minTokenTTL, maxTokenTTL)
	case node != "" && !scalar.ValidSubdomain(string(node)):
		return trust.JoinToken{}, fmt.Errorf("%w: invalid node name %q", ErrRequest, node)
	}
	return a.makeToken(ctx, records.JoinToken{Node: node, By: by, TTL: scalar.Duration{Duration: ttl}})
}

// makeToken keeps a join token of which all is known but id and secret.
func (a *Authority) makeToken(ctx context.Context, record records.JoinToken) (trust.JoinToken, error) {
	by, ttl := record.By, record.TTL.Duration
	now, same, err := a.fresh(ctx)
	if err != nil {
		return trust.JoinToken{}, fmt.Errorf("make join token: %w", err)
	}
	token := trust.NewJoinToken(trust.PinOf(now.now.cert))
	lease, err := a.cfg.Store.Grant(ctx, ttl)
	if err != nil {
		return trust.JoinToken{}, fmt.Errorf("make join token: %w", err)
	}
	hash := sha256.Sum256(token.Secret)
	record.ID, record.Hash, record.CreatedAt = token.ID, hash[:], time.Now()
	key := store.TokenKey(token.ID)
	txn := store.Txn{If: []store.Compare{store.Absent(key), same}, Then: []store.Op{store.PutLeased(key, store.Encode(record), lease)}}
	if by != "" {
		txn.If = append(txn.If, store.Absent(store.RevokedKey(by)))
	}
	_, err = a.cfg.Store.Commit(ctx, txn)
	if errors.Is(err, store.ErrConflict) {
		return trust.JoinToken{}, whyNot(ctx, a.cfg.Store, by)
	}
	if err != nil {
		return trust.JoinToken{}, fmt.Errorf("write join token: %w", err)
	}
	return token, nil
}

// errReplaced: the same may succeed when it is asked again.
var errReplaced = fmt.Errorf("the authority was replaced, or its key sealed anew, at this moment; try again: %w", store.ErrConflict)

// whyNot is why what client by wanted was not written: it was revoked, or the authority changed.
func whyNot(ctx context.Context, s store.Store, by spec.UID) error {
	if by != "" {
		_, kvs, err := s.Get(ctx, store.RevokedKey(by))
		if err != nil {
			return fmt.Errorf("read revoked: %w", err)
		}
		if len(kvs) > 0 {
			return ErrRevoked
		}
	}
	return errReplaced
}

// Tokens are the join tokens that have not ended, by id.
func (a *Authority) Tokens(ctx context.Context) ([]records.JoinToken, error) {
	tokens, unread, err := readAll[records.JoinToken](ctx, a.cfg.Store, store.KindToken)
	return tokens, errors.Join(err, unread)
}

// RevokeToken ends a join token; there: it had not ended by itself.
func (a *Authority) RevokeToken(ctx context.Context, id string) (there bool, err error) {
	if !trust.ValidTokenID(id) {
		return false, nil
	}
	key := store.TokenKey(id)
	_, kvs, err := a.cfg.Store.Get(ctx, key)
	if err == nil && len(kvs) > 0 {
		_, err = a.cfg.Store.Commit(ctx, store.Txn{Then: []store.Op{store.Del(key)}})
	}
	if err != nil {
		return false, fmt.Errorf("revoke join token: %w", err)
	}
	return len(kvs) > 0, nil
}

// Enrollment is what a machine says of itself to be let in.
type Enrollment struct {
	Token   string // its id
	Secret  []byte
	Node    spec.NodeName
	UID     spec.UID
	Request []byte // PKCS #10
	From    string // where it asks from, for the log
}

// Enroll gives a node its record and first certificate, and uses up the join token, all or
// nothing (SAFETY S9). An answer that was lost is given again to the same key. Errors:
// ErrToken, ErrTaken, ErrMachine, ErrJoined, ErrRevoked, ErrRequest.
func (a *Authority) Enroll(ctx context.Context, e Enrollment) ([]byte, error) {
	public, err := keyOf(e.Request)
	if err != nil {
		return nil, err
	}
	who := trust.Subject{Cluster: a.cluster, Role: trust.RoleNode, Name: string(e.Node), UID: e.UID}
	if err := who.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("%w: its key cannot be used", ErrRequest)
	}
	mark := sha256.Sum256(der)
	for {
		err := a.use(ctx, e, mark[:])
		switch {
		case err == nil:
			a.cfg.Logger.Info("node enrolled", "node", string(e.Node), "reason", fmt.Sprintf("join token %s, uid %s, at %s", e.Token, e.UID, e.From))
			return a.Issue(e.Request, who, a.cfg.Life)
		case !errors.Is(err, store.ErrConflict):
			return nil, err
		}
	}
}

// use marks the join token as used by the key that mark names. ErrConflict: look again.
func (a *Authority) use(ctx context.Context, e Enrollment, mark []byte) error {
	if !trust.ValidTokenID(e.Token) {
		return ErrToken
	}
	tokenKey, nodeKey, revokedKey := store.TokenKey(e.Token), store.NodeKey(e.Node), store.RevokedKey(e.UID)
	_, kvs, err := a.cfg.Store.Get(ctx, tokenKey, nodeKey, revokedKey, store.AuthorityKey)
	if err != nil {
		return fmt.Errorf("read join token: %w", err)
	}
	_, same, err := a.followed(kvs)
	if err != nil {
		return err
	}
	record, err := store.DecodeIn[records.JoinToken](kvs, tokenKey)
	switch {
	case err != nil:
		return err
	case record == nil:
		return ErrToken
	}
	hash := sha256.Sum256(e.Secret)
	used := record.UsedBy != ""
	switch {
	case subtle.ConstantTimeCompare(hash[:], record.Hash) != 1:
		return ErrToken
	case record.Server != "" || record.Node != "" && record.Node != e.Node:
		return ErrToken
	case used && (record.UsedBy != e.Node || !slices.Equal(record.Key, mark)):
		return ErrToken
	case kvs[revokedKey].Mod != 0:
		return ErrRevoked
	}
	if err := mayJoin(kvs, e, record.Node != "" || used); err != nil {
		return err
	}
	txn := store.Txn{If: []store.Compare{
		store.Seen(tokenKey, kvs[tokenKey].Mod), store.Created(nodeKey, kvs[nodeKey].Create), store.Absent(revokedKey), same,
	}}
	if record.By != "" {
		key := store.RevokedKey(record.By)
		switch _, kvs, err := a.cfg.Store.Get(ctx, key); {
		case err != nil:
			return fmt.Errorf("read revoked: %w", err)
		case kvs[key].Mod != 0:
			return ErrToken
		}
		txn.If = append(txn.If, store.Absent(key))
	}
	if err := a.admit(ctx, e, record.By, &txn); err != nil {
		return err
	}
	record.UsedBy, record.Key = e.Node, mark
	txn.Then = append(txn.Then, store.PutLeased(tokenKey, store.Encode(record), kvs[tokenKey].Lease))
	if kvs[nodeKey].Mod == 0 {
		if err := a.newMachine(ctx, e.UID); err != nil {
			return err
		}
		node := records.Node{Name: e.Node, UID: e.UID, EnrolledBy: record.By}
		txn.Then = append(txn.Then, store.Put(nodeKey, store.Encode(node)))
	}
	_, err = a.cfg.Store.Commit(ctx, txn)
	if errors.Is(err, store.ErrLeaseGone) {
		return ErrToken
	}
	return err
}

// newMachine fails if a node has the uid: to revoke one would be to revoke both.
func (a *Authority) newMachine(ctx context.Context, uid spec.UID) error {
	nodes, _, err := readAll[records.Node](ctx, a.cfg.Store, store.KindNode)
	if err == nil && slices.ContainsFunc(nodes, func(n records.Node) bool { return n.UID == uid }) {
		err = ErrMachine
	}
	return err
}

// mayJoin: a name belongs to its machine permanently; and a machine that has joined comes back
// by a token that names it only, for its uid is no secret. kvs has the node's record.
func mayJoin(kvs map[string]store.KV, e Enrollment, named bool) error {
	node, err := store.DecodeIn[records.Node](kvs, store.NodeKey(e.Node))
	switch {
	case err != nil:
		return err
	case node == nil:
		return nil
	case node.UID != e.UID:
		return fmt.Errorf("%w: %s", ErrTaken, node.Taken())
	case !named:
		return ErrJoined
	}
	return nil
}
