package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// guest is a hello, decoded.
type guest struct {
	seat
	boot    spec.BootID
	cluster string
	facts   records.NodeFacts
	holding map[life]bool
	known   records.Known // the highest that it heard, from any message
	resumed bool          // see records.Session
	gap     string        // why the store is not the continuation of what it knows; "": it is
}

func readHello(h *proto.Hello) (guest, error) {
	g := guest{
		seat: seat{spec.NodeName(h.GetNode()), spec.UID(h.GetUid())}, boot: spec.BootID(h.GetBoot()),
		cluster: h.GetCluster(), holding: holdings(h.GetInventory()),
		known: wire.ToKnown(h.GetKnown()).Add(records.Known{At: wire.ToSequence(h.GetNewest())}),
	}
	if g.node == "" || g.uid == "" || g.boot == "" {
		return g, status.Error(codes.InvalidArgument, "hello names no node, uid or boot")
	}
	if why := tooMuch(h.GetInventory(), h.GetFactsJson()); why != "" {
		return g, status.Errorf(codes.ResourceExhausted, "hello of node %s is refused: %s", g.node, why)
	}
	if err := json.Unmarshal(h.GetFactsJson(), &g.facts); err != nil {
		return g, status.Errorf(codes.InvalidArgument, "hello of node %s: decode facts: %v", g.node, err)
	}
	g.facts.Name, g.facts.UID, g.facts.Boot = g.node, g.uid, g.boot
	return g, nil
}

func holdings(i *proto.Inventory) map[life]bool {
	holds := make(map[life]bool, len(i.GetHoldings()))
	for _, h := range i.GetHoldings() {
		holds[life{ID: wire.ToIdentity(h.GetId()), Token: wire.ToToken(h.GetToken())}] = true
	}
	return holds
}

// threshold is what the store says about a guest, read linearizably.
type threshold struct {
	rev     store.Rev
	epoch   int64
	cluster string
	chain   records.Chain
	keys    map[string]store.KV
	node    *records.Node    // nil: never joined
	session *records.Session // nil: none lives
	hold    *records.Hold    // nil: nobody says that the store went back
}

func readThreshold(ctx context.Context, s store.Store, node spec.NodeName) (t threshold, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	t.rev, t.keys, err = s.Get(ctx, store.ClusterKey, store.EpochKey, store.NodeKey(node), store.SessionKey(node),
		store.FactsKey(node), store.FenceKey(node), store.HoldKey, store.CountKey, store.ContinuityKey)
	if err != nil {
		return t, storeError("read node", err)
	}
	t.cluster = string(t.keys[store.ClusterKey].Value)
	if t.epoch, err = strconv.ParseInt(string(t.keys[store.EpochKey].Value), 10, 64); err != nil || t.cluster == "" {
		return t, status.Error(codes.Unavailable, "the store has no cluster yet")
	}
	t.hold = store.HoldIn(t.keys)
	if chain, _ := store.DecodeIn[records.Chain](t.keys, store.ContinuityKey); chain != nil { // an unreadable one has no links
		t.chain = *chain
	}
	if kv, ok := t.keys[store.NodeKey(node)]; ok {
		n, err := store.Decode[records.Node](kv)
		if err != nil {
			return t, status.Errorf(codes.Internal, "read node: %v", err)
		}
		t.node = &n
	}
	if kv, ok := t.keys[store.SessionKey(node)]; ok {
		se, err := store.Decode[records.Session](kv)
		if err != nil {
			return t, status.Errorf(codes.Internal, "read session: %v", err)
		}
		t.session = &se
	}
	return t, nil
}

// admit tells why g may not have a session, or nil (SAFETY S9). One that knows more of the
// store than the store itself may: what it runs is needed most (see gap).
func admit(g guest, t threshold) error {
	switch {
	case g.cluster != "" && g.cluster != t.cluster:
		return status.Errorf(codes.FailedPrecondition,
			"node %s belongs to cluster %s, this is cluster %s", g.node, g.cluster, t.cluster)
	case t.node != nil && t.node.UID != g.uid:
		return status.Errorf(codes.AlreadyExists,
			"the name %s belongs to another machine (uid %s); give this one another name", g.node, t.node.UID)
	case t.session != nil && (t.session.UID != g.uid || t.session.Boot != g.boot):
		return status.Errorf(codes.FailedPrecondition,
			"node %s still has a live session of another boot; try again", g.node)
	}
	return nil
}

// alias is the other name under which uid has joined; "": none.
func alias(v cache.View, g guest) spec.NodeName {
	for _, n := range v.Nodes() {
		if n.Node.UID == g.uid && n.Node.Name != g.node {
			return n.Node.Name
		}
	}
	return ""
}

// join admits a node: it writes session key, facts and (the first time) the node
// in one transaction, and returns when the world shows it, so that the first list
// is of a revision after it (SAFETY S1).
func (s *Server) join(ctx context.Context, h *proto.Hello) (*session, *proto.Welcome, error) {
	g, err := readHello(h)
	if err != nil {
		return nil, nil, err
	}
	t, err := readThreshold(ctx, s.cfg.Store, g.node)
	if err != nil {
		return nil, nil, err
	}
	if err := admit(g, t); err != nil {
		return nil, nil, err
	}
	g.facts.Epoch = t.epoch
	if g.gap = s.gap(g, t); g.gap != "" {
		g.facts.Known = &g.known
	}
	var other spec.NodeName
	s.cfg.Cache.Look(func(v cache.View) {
		other, g.resumed = alias(v, g), t.session != nil || !proof.MostHeard(v.Nodes())
		g.facts.Strays = strays(v, g.seat, g.holding)
	})
	if other != "" {
		return nil, nil, status.Errorf(codes.FailedPrecondition,
			"this machine has joined as %s; it cannot also be %s", other, g.node)
	}
	if err := s.afford(g); err != nil {
		return nil, nil, err
	}
	se, err := s.enter(ctx, g, t)
	if err != nil {
		return nil, nil, err
	}
	s.writes.spend(g.node, len(store.Encode(g.facts)))
	if g.gap != "" {
		s.cfg.Logger.Error("store held", "node", g.node, "err", g.gap)
	}
	return se, s.welcome(t, se.id, g.gap != "" || t.hold != nil), nil
}

// afford refuses a node that has had more written than it may, or whose strays are more
// than it may have.
func (s *Server) afford(g guest) error {
	limit, why := LimitHello, ""
	switch n := len(g.facts.Strays); {
	case n > maxStrays:
		why = fmt.Sprintf("it says that it runs %d lives that the store does not know, of at most %d", n, maxStrays)
	case !s.writes.may(g.node):
		limit, why = LimitRate, "it had more written than the store can keep; it may come again in a while"
	default:
		return nil
	}
	s.refusals.add(g.node, limit, 1, why)
	return status.Errorf(codes.ResourceExhausted, "node %s: %s", g.node, why)
}

func (s *Server) welcome(t threshold, session spec.SessionID, held bool) *proto.Welcome {
	w := &proto.Welcome{
		Cluster: t.cluster, Session: int64(session), TtlMillis: s.cfg.TTL.Milliseconds(),
		Domain: s.cfg.Domain, Epoch: t.epoch, Server: s.cfg.Name, Cidr: s.cfg.CIDR, Held: held,
	}
	if !held {
		w.Known = wire.Known(s.cfg.Known())
	}
	return w
}

// Join implements proto.NodesServer: it judges a hello as Session does and writes nothing.
func (s *Server) Join(ctx context.Context, h *proto.Hello) (*proto.Welcome, error) {
	g, err := readHello(h)
	if err != nil {
		return nil, err
	}
	t, err := readThreshold(ctx, s.cfg.Store, g.node)
	if err != nil {
		return nil, err
	}
	if err := admit(g, t); err != nil {
		return nil, err
	}
	return s.welcome(t, 0, t.hold != nil), nil
}

// enter writes what a session is, guarded by all that admit has looked at. With a gap it
// holds the store.
func (s *Server) enter(ctx context.Context, g guest, t threshold) (*session, error) {
	wait, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	lease, err := s.cfg.Store.Grant(wait, s.cfg.TTL)
	if err != nil {
		return s.goOn(ctx, g, t, storeError("grant session", err), errors.Is(err, store.ErrNoSpace))
	}
	record := records.Session{Node: g.node, UID: g.uid, Boot: g.boot, ID: spec.SessionID(lease), Server: s.cfg.Name, At: strings.Join(s.cfg.Addresses, ","), Resumed: g.resumed}
	nodeKey, sessionKey := store.NodeKey(g.node), store.SessionKey(g.node)
	txn := store.Txn{
		If: []store.Guard{
			store.Seen(store.ClusterKey, t.keys[store.ClusterKey].Mod),
			store.Seen(store.EpochKey, t.keys[store.EpochKey].Mod),
			store.Created(nodeKey, t.keys[nodeKey].Create), // 0: absent
			store.Seen(sessionKey, t.keys[sessionKey].Mod),
		},
		Then: []store.Op{
			store.PutLeased(sessionKey, store.Encode(record), lease),
			store.Put(store.FactsKey(g.node), store.Encode(g.facts)),
		},
	}
	if fence := store.FenceKey(g.node); t.keys[fence].Mod != 0 { // it is not off
		txn.Then = append(txn.Then, store.Del(fence))
	}
	if t.node == nil {
		txn.Then = append(txn.Then, store.Put(nodeKey, store.Encode(records.Node{Name: g.node, UID: g.uid})))
	}
	if err := g.tellCount(t, &txn); err != nil {
		return nil, err
	}
	if g.gap != "" && t.hold == nil {
		g.hold(&txn)
	}
	rev, err := s.cfg.Store.Commit(wait, txn)
	if err == nil {
		err = s.cfg.Cache.Wait(wait, rev)
	}
	if err != nil {
		// The session, if it was written at all, is told to nobody: end it.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
		defer cancel()
		full := errors.Is(err, store.ErrNoSpace)
		err = errors.Join(err, s.cfg.Store.Revoke(undo, lease))
		if errors.Is(err, store.ErrConflict) {
			return nil, status.Error(codes.Aborted, "the node changed meanwhile; say hello again")
		}
		return s.goOn(ctx, g, t, storeError("begin session", err), full)
	}
	return s.newSession(ctx, g, record, rev, t.epoch), nil
}
