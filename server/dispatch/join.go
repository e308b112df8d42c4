package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
func (s *Server) checkJoin(req joinRequest, stored storedNode) error {
	switch {
	case req.cluster != "" && req.cluster != stored.cluster:
		return status.Errorf(codes.FailedPrecondition,
			"node %s belongs to cluster %s, this is cluster %s", req.node, req.cluster, stored.cluster)
	case stored.node != nil && stored.node.UID != req.uid:
		return status.Error(codes.AlreadyExists, stored.node.Taken())
	case stored.session != nil && (stored.session.UID != req.uid || stored.session.Boot != req.boot && !s.rebooted(req, stored.session)):
		return status.Errorf(codes.FailedPrecondition,
			"node %s still has a live session of another boot; try again", req.node)
	}
	return nil
}

// rebooted reports whether no agent can have the session any more: it was of this server, which has no connection
// of it, and the agent that asks runs on this server's own host, in its present boot. So what was there before it
// ended with the boot before. Of an agent on another host only the end of the session's lease shows that.
func (s *Server) rebooted(req joinRequest, before *records.Session) bool {
	return s.cfg.Boot != "" && req.boot == s.cfg.Boot && before.Server == s.cfg.Name && !s.connected(req.node)
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
	req, stored, err := s.judgeHello(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	req.facts.Epoch = stored.epoch
	req.gap = s.gap(req, stored)
	if req.gap != "" {
		req.facts.Known = &req.known
	}
	var other spec.NodeName
	s.cfg.Cache.Look(func(v cache.View) {
		other = otherName(v, req)
		req.facts.Tunnel = saneTunnel(v, &req.facts)
		req.facts.MoveReports = ownMoves(v, req.machine, req.moves)
		req.resumed = stored.session != nil && stored.session.Boot == req.boot || !proof.MostHeard(v.Nodes())
		for l := range req.holding {
			if isUnknown(v, req.machine, l) {
				req.facts.Strays = append(req.facts.Strays, l)
			}
		}
		slices.SortFunc(req.facts.Strays, compareLives)
		req.facts.UnknownVolumes = onlyUnknown(v, req.node, req.volumes)
		if req.facts.ListsVolumes {
			req.facts.AbsentVolumes = absentOf(v, req.node, req.volumes)
		}
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
	case tooManyUnknown(len(req.facts.UnknownVolumes)) != "":
		why = tooManyUnknown(len(req.facts.UnknownVolumes))
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
		Domain: s.cfg.Domain, Epoch: stored.epoch, Server: s.cfg.Name, Cidr: s.cfg.CIDR, ServiceCidr: s.cfg.ServiceCIDR, Held: held,
	}
	if !held {
		w.Known = wire.Known(s.cfg.Known())
	}
	return w
}

// Join implements proto.NodesServer: it judges a hello as Session does and writes nothing.
func (s *Server) Join(ctx context.Context, h *proto.Hello) (*proto.Welcome, error) {
	_, stored, err := s.judgeHello(ctx, h)
	if err != nil {
		return nil, err
	}
	return s.welcome(stored, 0, stored.hold != nil), nil
}

// judgeHello decodes a hello, reads what is stored of its node, and fails if it may not join.
func (s *Server) judgeHello(ctx context.Context, h *proto.Hello) (req joinRequest, stored storedNode, err error) {
	req, err = decodeJoinRequest(h)
	if err == nil {
		stored, err = readStoredNode(ctx, s.cfg.Store, req.node)
	}
	if err == nil {
		err = s.checkJoin(req, stored)
	}
	return req, stored, err
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
		// The session, if it was written at all, is known to no one: end it.
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

// gap says why the store is not the continuation of what a node knows of it, "": it is
// (SAFETY S8). Such a node gets its session, and what it runs is stored; but the
// store is held, so no node is sent what is in it.
func (s *Server) gap(req joinRequest, stored storedNode) string {
	now := s.cfg.Known() // no older than t
	now.Cluster, now.At = stored.cluster, spec.Sequence{Epoch: stored.epoch, Rev: int64(stored.rev)}
	if now.Term == 0 { // this server knows none
		now.Term = req.known.Term
	}
	return req.known.Gap(now, stored.chain)
}

// holdStore adds a hold of the store to the transaction of a join.
func (req *joinRequest) holdStore(txn *store.Txn) {
	txn.If = append(txn.If, store.NotHeld())
	txn.Then = append(txn.Then, store.Put(store.HoldKey, store.Encode(records.Hold{
		Cause: fmt.Sprintf("the node has seen more than this store has: %s", req.gap),
		By:    fmt.Sprintf("node %s", req.node), At: time.Now().UTC(),
	})))
}

// keepSession lets a node keep the session that it has, when the store is too full for a new
// one: else no ping is answered, and its guarded lives end on a healthy host. Nothing is
// written, so nothing may differ from what the hello would write: the session is of this
// server, boot and epoch, and the unknown lives are those that are stored. Otherwise it fails with
// cause.
func (s *Server) keepSession(ctx context.Context, req joinRequest, stored storedNode, cause error, full bool) (*session, error) {
	facts, _ := store.DecodeIn[records.NodeFacts](stored.keys, store.FactsKey(req.node)) // unreadable ones would be written over
	count, unread := stored.openCount()
	switch old := stored.session; {
	case !full || old == nil || old.Server != s.cfg.Name || facts == nil:
		return nil, cause
	case facts.UID != req.uid || facts.Boot != req.boot || facts.Epoch != stored.epoch || !slices.Equal(facts.Strays, req.facts.Strays):
		return nil, cause
	case !slices.Equal(facts.UnknownVolumes, req.facts.UnknownVolumes):
		return nil, cause
	case req.gap != "" || stored.hold != nil || count != nil || unread != nil || stored.keys[store.FenceKey(req.node)].Mod != 0:
		return nil, cause
	}
	wait, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := s.cfg.Store.Renew(wait, store.LeaseID(stored.session.ID)); err != nil {
		return nil, cause
	}
	// The first list is of a revision after the hello, as that of a new session.
	if err := s.cfg.Cache.Wait(wait, stored.rev); err != nil {
		return nil, storeError("keep the session", err)
	}
	req.facts = *facts
	s.cfg.Logger.Warn("session kept, the store is full", "node", req.node)
	se := s.newSession(ctx, req, *stored.session, stored.keys[store.SessionKey(req.node)].Mod, stored.epoch)
	se.factsRev = stored.keys[store.FactsKey(req.node)].Mod
	return se, nil
}

// addToCount adds to the transaction of a join what others decide by: that a node is new or runs
// other lives that the store does not know, or has other volumes (see noteHello), and that a restore's count, while
// it is open, waits for this node, too (SAFETY S8). A join that changes neither costs no
// write besides its own.
func (req *joinRequest) addToCount(stored storedNode, txn *store.Txn) error {
	facts, _ := store.DecodeIn[records.NodeFacts](stored.keys, store.FactsKey(req.node)) // unreadable ones are written over
	if stored.node == nil || facts == nil || !slices.Equal(facts.Strays, req.facts.Strays) || !slices.Equal(facts.UnknownVolumes, req.facts.UnknownVolumes) {
		txn.Then = append(txn.Then, noteHello(req.node))
	}
	count, err := stored.openCount()
	if count == nil {
		return err
	}
	if with := count.With(records.FromHello, map[spec.NodeName]spec.UID{req.node: req.uid}); len(with.Nodes) > len(count.Nodes) {
		txn.If = append(txn.If, store.Seen(store.CountKey, stored.keys[store.CountKey].Mod))
		txn.Then = append(txn.Then, store.Put(store.CountKey, store.Encode(with)))
	}
	return nil
}

// noteHello changes the key that every transaction compares which relies on no node running a life, or having a volume,
// that the store does not know.
func noteHello(node spec.NodeName) store.Op { return store.Put(store.HellosKey, []byte(node)) }
