package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/people"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// issueClient signs the certificate of a client file, and records that.
func (a *Authority) issueClient(ctx context.Context, request []byte, s trust.Subject, life time.Duration, c people.ClientFile) ([]byte, error) {
	_, same, err := a.fresh(ctx)
	if err != nil {
		return nil, err
	}
	der, err := a.Issue(request, s, life)
	if err != nil {
		return nil, err
	}
	c.Authority = string(a.Signs())
	return der, keepClient(ctx, a.cfg.Store, c, same)
}

// keepClient records that a client file is given.
func keepClient(ctx context.Context, s store.Store, c people.ClientFile, same ...store.Compare) error {
	key := store.ClientKey(c.ID)
	_, err := s.Commit(ctx, store.Txn{If: append(same, store.Absent(key)), Then: []store.Op{store.Put(key, store.Encode(c))}})
	if errors.Is(err, store.ErrConflict) {
		err = errReplaced
	}
	if err != nil {
		return fmt.Errorf("record the client: %w", err)
	}
	return nil
}

// admit adds to txn, which uses a join token, that the machine is let in by it.
func (a *Authority) admit(ctx context.Context, e Enrollment, by spec.UID, txn *store.Txn) error {
	key := store.AdmissionKey(e.UID)
	_, kvs, err := a.cfg.Store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read admissions: %w", err)
	}
	there, err := store.DecodeIn[people.Admission](kvs, key)
	if err != nil {
		return err
	}
	now := people.Admission{UID: e.UID}
	if there != nil {
		now = *there
	}
	now.Node = e.Node
	now = now.With(people.TokenUse{Token: e.Token, By: by, At: time.Now().UTC()})
	txn.If = append(txn.If, store.Seen(key, kvs[key].Mod))
	txn.Then = append(txn.Then, store.Put(key, store.Encode(now)))
	return nil
}

// LetIn is what the tokens of a client let in.
type LetIn struct {
	// Tokens of it are unused.
	Tokens []string
	// Nodes joined by them, the first time or again; a node that was removed, too: its certificate may not have ended.
	Nodes []Admitted
}

// Admitted is a node that was let in.
type Admitted struct {
	Name spec.NodeName
	UID  spec.UID
	// Again: the node was there before, and whoever had the token got its name.
	Again, Revoked bool
}

// Clients is what the store has of all clients, by id.
type Clients struct {
	Known map[spec.UID]people.ClientFile
	// LetIn is by the client's id, also of clients that are not known: they were made by an earlier version.
	LetIn   map[spec.UID]*LetIn
	Revoked map[spec.UID]bool
	// Unrecorded are nodes of which only the first join is known: they were let in by an earlier version.
	Unrecorded []spec.NodeName

	tokens []records.JoinToken // all, used ones too
}

// Clients reads what clients there are, and what they let in.
func (a *Authority) Clients(ctx context.Context) (Clients, error) {
	c := Clients{Known: map[spec.UID]people.ClientFile{}, LetIn: map[spec.UID]*LetIn{}}
	known, unread, err := readAll[people.ClientFile](ctx, a.cfg.Store, store.KindClient)
	if err == nil {
		c.Revoked, err = a.Revoked(ctx)
	}
	if err == nil {
		c.tokens, err = a.Tokens(ctx)
	}
	var nodes []records.Node
	var unreadNodes error
	if err == nil {
		nodes, unreadNodes, err = readAll[records.Node](ctx, a.cfg.Store, store.KindNode)
	}
	var admissions []people.Admission
	var unreadAdmissions error
	if err == nil {
		admissions, unreadAdmissions, err = readAll[people.Admission](ctx, a.cfg.Store, store.KindAdmission)
	}
	if err = errors.Join(err, unread, unreadNodes, unreadAdmissions); err != nil {
		return c, err
	}
	for _, k := range known {
		c.Known[k.ID] = k
		c.of(k.ID)
	}
	for _, t := range c.tokens {
		if t.By != "" && t.UsedBy == "" {
			c.of(t.By).Tokens = append(c.of(t.By).Tokens, t.ID)
		}
	}
	c.addNodes(nodes, admissions)
	return c, nil
}

func (c *Clients) of(id spec.UID) *LetIn {
	if c.LetIn[id] == nil {
		c.LetIn[id] = &LetIn{}
	}
	return c.LetIn[id]
}

// addNodes adds each node to what the clients let in by whose tokens it came.
func (c *Clients) addNodes(nodes []records.Node, admissions []people.Admission) {
	add := func(by spec.UID, n Admitted) {
		if of := c.of(by); by != "" && !slices.ContainsFunc(of.Nodes, func(o Admitted) bool { return o.UID == n.UID }) {
			n.Revoked = c.Revoked[n.UID]
			of.Nodes = append(of.Nodes, n)
		}
	}
	recorded := map[spec.UID]bool{}
	first := map[spec.UID]spec.UID{}
	for _, n := range nodes {
		first[n.UID] = n.EnrolledBy
		add(n.EnrolledBy, Admitted{Name: n.Name, UID: n.UID})
	}
	for _, a := range admissions {
		for i, e := range a.Entries {
			_, there := first[a.UID]
			add(e.By, Admitted{Name: a.Node, UID: a.UID, Again: i > 0 || there && first[a.UID] != e.By})
		}
		recorded[a.UID] = true
	}
	for _, n := range nodes {
		if !recorded[n.UID] {
			c.Unrecorded = append(c.Unrecorded, n.Name)
		}
	}
	delete(c.LetIn, "")
	for _, l := range c.LetIn {
		slices.SortFunc(l.Nodes, func(a, b Admitted) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// RevokeClient voids a client's certificates, permanently, and its join tokens, also those that
// it makes at this moment; with also, the certificates of the nodes that its tokens let in, too. It returns the unused
// tokens that ended so, those nodes, and what is known of all.
func (a *Authority) RevokeClient(ctx context.Context, client spec.UID, also bool) (LetIn, Clients, error) {
	if err := a.Revoke(ctx, client); err != nil {
		return LetIn{}, Clients{}, err
	}
	c, err := a.Clients(ctx) // no token of the client lets in anybody from here on
	if err != nil {
		return LetIn{}, c, err
	}
	for _, t := range c.tokens {
		if t.By == client {
			if _, err := a.RevokeToken(ctx, t.ID); err != nil {
				return LetIn{}, c, err
			}
		}
	}
	gone := *c.of(client)
	for i, n := range gone.Nodes {
		if !also || n.Revoked {
			continue
		}
		if err := a.Revoke(ctx, n.UID); err != nil {
			return gone, c, err
		}
		gone.Nodes[i].Revoked = true
	}
	return gone, c, nil
}
