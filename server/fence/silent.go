package fence

import (
	"context"
	"errors"
	"slices"
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
	for _, key := range []string{store.NodeKey(node), store.FactsKey(node), store.FenceKey(node), store.CertifiedKey(node)} {
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
	over := false
	w.Look(func(v cache.View) {
		on = v.MembersOn(node)
		over = !slices.ContainsFunc(on, func(id spec.Identity) bool { return !lifeOver(v, id) })
	})
	if len(on) > 0 && !over {
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
				"node %s has volumes, such as %[2]s of namespace %[3]s, which would be lost with it ('stead volume ls -A' lists them). If its disk is gone for good: "+
					"stead volume reclaim %[2]s -n %[3]s --lost, for each", node, records.VolumeName(vol.ID, vol.Claim), vol.ID.Namespace), nil
		}
	}
	if len(on) > 0 { // the leader has not assigned them again yet, or cannot
		return status.Errorf(codes.FailedPrecondition, "members of node %s, such as %s, are not assigned to another one yet: 'stead explain' says why", node, on[0]), nil
	}
	return nil, nil
}

// lifeOver reports whether the life that an identity has is known to be over, as by a fence.
func lifeOver(v cache.View, id spec.Identity) bool {
	m, r := v.Member(id), v.Report(id)
	return m != nil && r != nil && r.Token == m.Token && r.Phase.Over()
}
