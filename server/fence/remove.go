package fence

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// RemoveNode forgets a silent node of which nothing is left: no life, no volume, and nothing
// that it has not said. FAILED_PRECONDITION names what is left.
func RemoveNode(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) error {
	n, err := readSilent(ctx, s, w, node)
	if err != nil {
		return err
	}
	facts, err := n.facts()
	if err != nil {
		return status.Errorf(codes.Internal, "read facts: %v", err)
	}
	count, err := store.DecodeIn[records.Count](n.keys, store.CountKey)
	if err != nil {
		return status.Errorf(codes.Internal, "read the count of the restore: %v", err)
	}
	left, err := leftOn(ctx, s, w, node)
	switch {
	case err != nil:
		return err
	case count.Open(n.epoch):
		return status.Errorf(codes.FailedPrecondition,
			"the store was restored, and which nodes may run what it does not know is being counted: no node is removed before that is complete ('stead restore --status')")
	case left != nil:
		return left
	case facts != nil && (facts.Epoch < n.epoch || len(facts.Strays) > 0):
		return status.Errorf(codes.FailedPrecondition,
			"node %s may run lives that this store does not know; if it is off: stead node fence %s --i-have-powered-off", node, node)
	}
	record := store.Txn{If: []store.Compare{n.seen(store.FactsKey(node))}}
	for _, key := range []string{store.NodeKey(node), store.FactsKey(node), store.FenceKey(node)} {
		record.Then = append(record.Then, store.Del(key))
	}
	var txns []store.Txn
	w.Look(func(v cache.View) {
		for _, r := range v.VolumeReportsOn(node) { // its trash goes with it
			txns = append(txns, store.Txn{Then: []store.Op{store.Del(store.VolumeReportKey(r.ID, r.Claim, r.Volume))}})
		}
	})
	_, err = n.write(ctx, s, w, append(txns, record)...) // the node's record last, for it guards all
	return err
}

// leftOn tells what is on a node still. Volumes of sets that are gone count, too, and so does
// what cannot be read.
func leftOn(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) (left, err error) {
	var on []spec.Identity
	w.Look(func(v cache.View) { on = v.MembersOn(node) })
	if len(on) > 0 {
		return status.Errorf(codes.FailedPrecondition,
			"node %s has the lives of %d members, such as %s; if it is off: stead node fence %s --i-have-powered-off", node, len(on), on[0], node), nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_, members, err := s.Snapshot(ctx, store.KindMember+"/")
	if err != nil {
		return nil, storeError("read members", err)
	}
	for _, kv := range members {
		if _, err := store.Decode[records.Member](kv); err != nil {
			return status.Errorf(codes.FailedPrecondition, "the stored record %s cannot be read; it may be of a life on node %s", kv.Key, node), nil
		}
	}
	_, volumes, err := s.Snapshot(ctx, store.KindVolume+"/")
	if err != nil {
		return nil, storeError("read volumes", err)
	}
	for _, kv := range volumes {
		vol, err := store.Decode[records.Volume](kv)
		if err != nil {
			return status.Errorf(codes.FailedPrecondition, "the stored record %s cannot be read; it may be of a volume on node %s", kv.Key, node), nil
		}
		if vol.Node == node {
			return status.Errorf(codes.FailedPrecondition,
				"node %s has volumes, such as %s-%s, which would be lost with it: give them up first", node, vol.Claim, vol.ID.MemberName()), nil
		}
	}
	return nil, nil
}
