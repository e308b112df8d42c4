package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// joinRequest is a hello, decoded.
type joinRequest struct {
	machine
	boot    spec.BootID
	cluster string
	facts   records.NodeFacts
	holding map[spec.LifeID]bool
	known   records.Known // the highest that any message said
	resumed bool          // see records.Session
	// differences: it takes sets by difference.
	differences bool
	// interest: it takes in brief the sets that have no member on it and are not in asked.
	interest bool
	asked    map[spec.SetRef]bool
	// conditions are what the node is short of, also where the facts stay as they are stored.
	conditions []records.NodeCondition
	prepared   []records.Prepared // the same
	moves      []moves.MoveReport // the same
	volumes    []records.HostVolume
	gap        string // why the store is not the continuation of what it knows; "": it is
}

func decodeJoinRequest(h *proto.Hello) (joinRequest, error) {
	req := joinRequest{
		machine: machine{spec.NodeName(h.GetNode()), spec.UID(h.GetUid())}, boot: spec.BootID(h.GetBoot()),
		cluster: h.GetCluster(), holding: holdings(h.GetInventory()), differences: h.GetDifferences(),
		interest: h.GetDifferences() && h.GetInterest(), asked: askedSets(h.GetFollow()),
		known: wire.ToKnown(h.GetKnown()).Add(records.Known{At: wire.ToSequence(h.GetNewest())}),
	}
	if req.node == "" || req.uid == "" || req.boot == "" {
		return req, status.Error(codes.InvalidArgument, "hello must name node, uid and boot")
	}
	if why := cmp.Or(overLimit(h.GetInventory(), h.GetFactsJson()), overFollow(h.GetFollow())); why != "" {
		return req, status.Errorf(codes.ResourceExhausted, "hello of node %s is refused: %s", req.node, why)
	}
	if err := json.Unmarshal(h.GetFactsJson(), &req.facts); err != nil {
		return req, status.Errorf(codes.InvalidArgument, "hello of node %s: decode facts: %v", req.node, err)
	}
	var err error
	if req.volumes, err = hostVolumes(h); err != nil {
		return req, err
	}
	req.facts.UnknownVolumes, req.facts.AbsentVolumes = nil, nil
	req.facts.Conditions = saneConditions(req.facts.Conditions)
	req.conditions = req.facts.Conditions
	req.facts.Prepared = sanePrepared(req.facts.Prepared)
	req.prepared = req.facts.Prepared
	req.moves = saneMoves(req.facts.MoveReports)
	req.facts.Name, req.facts.UID, req.facts.Boot = req.node, req.uid, req.boot
	return req, nil
}

func holdings(i *proto.Inventory) map[spec.LifeID]bool {
	holds := make(map[spec.LifeID]bool, len(i.GetHoldings()))
	for _, h := range i.GetHoldings() {
		holds[spec.LifeID{ID: wire.ToIdentity(h.GetId()), Token: wire.ToToken(h.GetToken())}] = true
	}
	return holds
}

// storedNode is what the store says about the node of a join request, read linearizably.
type storedNode struct {
	rev     store.Rev
	epoch   int64
	cluster string
	chain   records.Chain
	keys    map[string]store.KV
	node    *records.Node    // nil: never joined
	session *records.Session // nil: none lives
	hold    *records.Hold    // nil: the store is not held
}

func readStoredNode(ctx context.Context, s store.Store, node spec.NodeName) (stored storedNode, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	stored.rev, stored.keys, err = s.Get(ctx, store.ClusterKey, store.EpochKey, store.NodeKey(node), store.SessionKey(node),
		store.FactsKey(node), store.FenceKey(node), store.HoldKey, store.CountKey, store.ContinuityKey)
	if err != nil {
		return stored, storeError("read node", err)
	}
	stored.cluster = string(stored.keys[store.ClusterKey].Value)
	stored.epoch, err = strconv.ParseInt(string(stored.keys[store.EpochKey].Value), 10, 64)
	if err != nil || stored.cluster == "" {
		return stored, status.Error(codes.Unavailable, "the store has no cluster yet")
	}
	stored.hold = store.HoldIn(stored.keys)
	if chain, _ := store.DecodeIn[records.Chain](stored.keys, store.ContinuityKey); chain != nil { // an unreadable one has no links
		stored.chain = *chain
	}
	if stored.node, err = store.DecodeIn[records.Node](stored.keys, store.NodeKey(node)); err != nil {
		return stored, status.Errorf(codes.Internal, "read node: %v", err)
	}
	if stored.session, err = store.DecodeIn[records.Session](stored.keys, store.SessionKey(node)); err != nil {
		return stored, status.Errorf(codes.Internal, "read session: %v", err)
	}
	return stored, nil
}

// openCount is the count of this epoch's restore; nil: there is none, or it is done.
func (stored *storedNode) openCount() (*records.Count, error) {
	count, err := store.DecodeIn[records.Count](stored.keys, store.CountKey)
	switch {
	case err != nil:
		return nil, status.Errorf(codes.Internal, "read the count of the restore: %v", err)
	case !count.Open(stored.epoch):
		return nil, nil
	}
	return count, nil
}
