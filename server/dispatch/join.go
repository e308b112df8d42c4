package dispatch

import (
	"context"
	"errors"
	"fmt"
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

// checkJoin says why req may not have a session, or nil (SAFETY S9). One that knows more of the
// store than the store itself may: what it runs matters most (see gap).
func checkJoin(req joinRequest, stored storedNode) error {
	switch {
	case req.cluster != "" && req.cluster != stored.cluster:
		return status.Errorf(codes.FailedPrecondition,
			"node %s belongs to cluster %s, this is cluster %s", req.node, req.cluster, stored.cluster)
	case stored.node != nil && stored.node.UID != req.uid:
		return status.Errorf(codes.AlreadyExists,
			"the name %s belongs to another machine (uid %s); give this one another name", req.node, stored.node.UID)
	case stored.session != nil && (stored.session.UID != req.uid || stored.session.Boot != req.boot):
		return status.Errorf(codes.FailedPrecondition,
			"node %s still has a live session of another boot; try again", req.node)
	}
	return nil
}

// otherName is the other name under which the machine has joined; "": none.
func otherName(v cache.View, req joinRequest) spec.NodeName {
	for _, n := range v.Nodes() {
		if n.Node.UID == req.uid && n.Node.Name != req.node {
			return n.Node.Name
		}
	}
	return ""
}

// join lets a node in: it writes session key, facts and (the first time) the node
// in one transaction, and returns when the cache shows it, so that the first list
// is of a revision after it (SAFETY S1).
func (s *Server) join(ctx context.Context, h *proto.Hello) (*session, *proto.Welcome, error) {
	req, err := decodeJoinRequest(h)
	if err != nil {
		return nil, nil, err
	}
	stored, err := readStoredNode(ctx, s.cfg.Store, req.node)
	if err != nil {
		return nil, nil, err
	}
	if err := checkJoin(req, stored); err != nil {
		return nil, nil, err
	}
	req.facts.Epoch = stored.epoch
	req.gap = s.gap(req, stored)
	if req.gap != "" {
		req.facts.Known = &req.known
	}
	var other spec.NodeName
	s.cfg.Cache.Look(func(v cache.View) {
		other, req.resumed = otherName(v, req), stored.session != nil || !proof.MostHeard(v.Nodes())
		req.facts.Strays = unknownLives(v, req.machine, req.holding)
	})
	if other != "" {
		return nil, nil, status.Errorf(codes.FailedPrecondition,
			"this machine has joined as %s; it cannot also be %s", other, req.node)
	}
	if err := s.checkLimits(req); err != nil {
		return nil, nil, err
	}
	se, err := s.startSession(ctx, req, stored)
	if err != nil {
		return nil, nil, err
	}
	s.writes.charge(req.node, len(store.Encode(req.facts)))
	if req.gap != "" {
		s.cfg.Logger.Error("store held", "node", req.node, "err", req.gap)
	}
	return se, s.welcome(stored, se.id, req.gap != "" || stored.hold != nil), nil
}

// checkLimits refuses a node that has had more written than it may, or runs more unknown lives
// than it may.
func (s *Server) checkLimits(req joinRequest) error {
	limit, why := LimitHello, ""
	switch n := len(req.facts.Strays); {
	case n > maxUnknownLives:
		why = fmt.Sprintf("it runs %d lives that the store does not know, of at most %d", n, maxUnknownLives)
	case !s.writes.mayWrite(req.node):
		limit, why = LimitRate, "it had more written than the store can keep; try again later"
	default:
		return nil
	}
	s.refusals.add(req.node, limit, 1, why)
	return status.Errorf(codes.ResourceExhausted, "node %s: %s", req.node, why)
}

func (s *Server) welcome(stored storedNode, session spec.SessionID, held bool) *proto.Welcome {
	w := &proto.Welcome{
		Cluster: stored.cluster, Session: int64(session), TtlMillis: s.cfg.TTL.Milliseconds(),
		Domain: s.cfg.Domain, Epoch: stored.epoch, Server: s.cfg.Name, Cidr: s.cfg.CIDR, Held: held,
	}
	if !held {
		w.Known = wire.Known(s.cfg.Known())
	}
	return w
}

// Join implements proto.NodesServer: it judges a hello as Session does and writes nothing.
func (s *Server) Join(ctx context.Context, h *proto.Hello) (*proto.Welcome, error) {
	req, err := decodeJoinRequest(h)
	if err != nil {
		return nil, err
	}
	stored, err := readStoredNode(ctx, s.cfg.Store, req.node)
	if err != nil {
		return nil, err
	}
	if err := checkJoin(req, stored); err != nil {
		return nil, err
	}
	return s.welcome(stored, 0, stored.hold != nil), nil
}

// startSession writes what a session is, if all that checkJoin relied on is as it was. With a gap it
// holds the store.
func (s *Server) startSession(ctx context.Context, req joinRequest, stored storedNode) (*session, error) {
	wait, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	lease, err := s.cfg.Store.Grant(wait, s.cfg.TTL)
	if err != nil {
		return s.keepSession(ctx, req, stored, storeError("grant session", err), errors.Is(err, store.ErrNoSpace))
	}
	record := records.Session{Node: req.node, UID: req.uid, Boot: req.boot, ID: spec.SessionID(lease), Server: s.cfg.Name, At: strings.Join(s.cfg.Addresses, ","), Resumed: req.resumed}
	nodeKey, sessionKey := store.NodeKey(req.node), store.SessionKey(req.node)
	txn := store.Txn{
		If: []store.Compare{
			store.Seen(store.ClusterKey, stored.keys[store.ClusterKey].Mod),
			store.Seen(store.EpochKey, stored.keys[store.EpochKey].Mod),
			store.Created(nodeKey, stored.keys[nodeKey].Create), // 0: absent
			store.Seen(sessionKey, stored.keys[sessionKey].Mod),
		},
		Then: []store.Op{
			store.PutLeased(sessionKey, store.Encode(record), lease),
			store.Put(store.FactsKey(req.node), store.Encode(req.facts)),
		},
	}
	if fence := store.FenceKey(req.node); stored.keys[fence].Mod != 0 { // it is not off
		txn.Then = append(txn.Then, store.Del(fence))
	}
	if stored.node == nil {
		txn.Then = append(txn.Then, store.Put(nodeKey, store.Encode(records.Node{Name: req.node, UID: req.uid})))
	}
	if err := req.addToCount(stored, &txn); err != nil {
		return nil, err
	}
	if req.gap != "" && stored.hold == nil {
		req.holdStore(&txn)
	}
	rev, err := s.cfg.Store.Commit(wait, txn)
	if err == nil {
		err = s.cfg.Cache.Wait(wait, rev)
	}
	if err != nil {
		// The session, if it was written at all, is known to nobody: end it.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
		defer cancel()
		full := errors.Is(err, store.ErrNoSpace)
		err = errors.Join(err, s.cfg.Store.Revoke(undo, lease))
		if errors.Is(err, store.ErrConflict) {
			return nil, status.Error(codes.Aborted, "the node changed meanwhile; reconnect")
		}
		return s.keepSession(ctx, req, stored, storeError("start session", err), full)
	}
	return s.newSession(ctx, req, record, rev, stored.epoch), nil
}
