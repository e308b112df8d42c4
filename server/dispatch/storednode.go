package dispatch

import (
	"context"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

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
	if kv, ok := stored.keys[store.NodeKey(node)]; ok {
		n, err := store.Decode[records.Node](kv)
		if err != nil {
			return stored, status.Errorf(codes.Internal, "read node: %v", err)
		}
		stored.node = &n
	}
	if kv, ok := stored.keys[store.SessionKey(node)]; ok {
		se, err := store.Decode[records.Session](kv)
		if err != nil {
			return stored, status.Errorf(codes.Internal, "read session: %v", err)
		}
		stored.session = &se
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
