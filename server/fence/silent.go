package fence

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// storeTime bounds the calls to the store of one step.
const storeTime = 5 * time.Second

// silentNode is what the store says of a node without a session, read linearizably.
type silentNode struct {
	rev   store.Rev
	epoch int64
	keys  map[string]store.KV
	node  records.Node
	also  []store.Compare // what must hold besides when something is written
}

// readSilent reads a node that must be known and have no session, and waits until w shows
// what is as new.
func readSilent(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) (*silentNode, error) {
	read, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	n := &silentNode{}
	var err error
	n.rev, n.keys, err = s.Get(read, store.EpochKey, store.NodeKey(node), store.SessionKey(node),
		store.FactsKey(node), store.FenceKey(node), store.HoldKey, store.CountKey)
	if err != nil {
		return nil, storeError("read node", err)
	}
	if n.epoch, err = strconv.ParseInt(string(n.keys[store.EpochKey].Value), 10, 64); err != nil {
		return nil, status.Error(codes.Unavailable, "the store has no cluster yet")
	}
	if hold := store.HoldIn(n.keys); hold != nil {
		return nil, status.Error(codes.FailedPrecondition, hold.Refusal())
	}
	known, err := store.DecodeIn[records.Node](n.keys, store.NodeKey(node))
	switch _, session := n.keys[store.SessionKey(node)]; {
	case err != nil:
		return nil, status.Errorf(codes.Internal, "read node: %v", err)
	case known == nil:
		return nil, status.Errorf(codes.NotFound, "there is no node %s", node)
	case session:
		return nil, status.Errorf(codes.FailedPrecondition,
			"node %s has a live session: it is on. Power it off, and wait until 'stead get nodes' shows it as Silent", node)
	}
	n.node = *known
	return n, w.Wait(ctx, n.rev)
}

// facts are what the node said of itself; nil: it never did.
func (n *silentNode) facts() (*records.NodeFacts, error) {
	return store.DecodeIn[records.NodeFacts](n.keys, store.FactsKey(n.node.Name))
}

// seen compares that key was not written since n was read.
func (n *silentNode) seen(key string) store.Compare { return store.Seen(key, n.keys[key].Mod) }

// write commits txns, each guarded by what readSilent has seen, too, and returns the revision
// of the last, which w shows then.
func (n *silentNode) write(ctx context.Context, s store.Store, w cache.Reader, txns ...store.Txn) (store.Rev, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	name := n.node.Name
	shared := []store.Compare{
		n.seen(store.EpochKey), store.NotHeld(),
		n.seen(store.NodeKey(name)), store.Seen(store.SessionKey(name), 0),
	}
	shared = append(shared, n.also...)
	var last store.Rev
	for _, o := range store.CommitAll(ctx, s, shared, txns) {
		switch {
		case errors.Is(o.Err, store.ErrConflict):
			return 0, status.Errorf(codes.Aborted, "node %s, or a life on it, changed meanwhile; look again", name)
		case o.Err != nil:
			return 0, storeError("write node "+string(name), o.Err)
		}
		last = max(last, o.Rev)
	}
	return last, w.Wait(ctx, last)
}

// storeError tells a person that the store did not answer; what was asked may be asked again.
func storeError(verb string, err error) error {
	return status.Errorf(codes.Unavailable, "%s: %v", verb, err)
}
