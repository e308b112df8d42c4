package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// Fence takes by's word that a silent node is off for proof that its lives are over
// (SAFETY S10): each gets a report of its own token that says so, and to the question what
// else it runs since the store was restored the answer is nothing. It ends lives that
// the store knows now and no later ones. Repeated, it ends what was left.
//
// It fails with NOT_FOUND without such a node, and with FAILED_PRECONDITION while it has
// a session: then it is on.
func Fence(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName, by string) (*records.Fence, error) {
	c, err := OpenFence(ctx, s, w, node)
	if err != nil {
		return nil, err
	}
	return c.Close(ctx, s, w, by)
}

// FenceCase is a silent node as it was before somebody turned to it: what may be proven
// of it by then is no more.
type FenceCase struct {
	Node  spec.NodeName
	UID   spec.UID
	Facts records.NodeFacts // zero: it never said hello
	Lives []spec.LifeID     // not over yet

	heard store.Rev // when it last said hello
	epoch int64
}

// OpenFence reads what there is to fence; it fails as Fence does.
func OpenFence(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) (*FenceCase, error) {
	t, facts, err := readFenced(ctx, s, w, node)
	if err != nil {
		return nil, err
	}
	c := &FenceCase{Node: node, UID: t.node.UID, heard: t.keys[store.FactsKey(node)].Mod, epoch: t.epoch}
	if facts != nil {
		c.Facts = *facts
	}
	w.Look(func(v cache.View) {
		for _, id := range v.MembersOn(node) {
			if m, _ := v.Member(id); m.NodeUID == c.UID && !overIn(v, m) {
				c.Lives = append(c.Lives, spec.LifeID{ID: id, Token: m.Token})
			}
		}
	})
	return c, nil
}

func readFenced(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) (threshold, *records.NodeFacts, error) {
	t, err := readSilent(ctx, s, w, node)
	if err != nil {
		return t, nil, err
	}
	facts, err := decodeIf[records.NodeFacts](t.keys, store.FactsKey(node))
	if err != nil { // what it runs is over with it; its facts are written anew
		facts = &records.NodeFacts{Name: node, UID: t.node.UID}
	}
	return t, facts, nil
}

// overIn reports whether the life is over by a report of its own token.
func overIn(v cache.View, m *records.Member) bool {
	r, _ := v.Report(m.ID)
	return r != nil && r.Token == m.Token && r.Phase.Over()
}

// Close takes by's word that the node was off at some moment since the case was opened for
// proof that the lives it found are over, and of no later ones; also is what must hold
// besides. It reads again: ABORTED if the node said hello meanwhile, or is another.
func (c *FenceCase) Close(ctx context.Context, s store.Store, w cache.Reader, by string, also ...store.Guard) (*records.Fence, error) {
	node := c.Node
	t, facts, err := readFenced(ctx, s, w, node)
	if err != nil {
		return nil, err
	}
	if t.node.UID != c.UID || t.epoch != c.epoch || t.keys[store.FactsKey(node)].Mod != c.heard {
		return nil, status.Errorf(codes.Aborted, "node %s was heard of, or the store was restored meanwhile; look again", node)
	}
	f := &records.Fence{Node: node, UID: c.UID, Boot: c.Facts.Boot, By: by, At: time.Now().UTC()}
	var ends []store.Txn
	w.Look(func(v cache.View) {
		for _, l := range c.Lives {
			if end, ok := fenced(v, l, f); ok {
				ends = append(ends, end)
			}
		}
	})
	word := store.Txn{
		If:   []store.Guard{store.Seen(store.FenceKey(node), t.keys[store.FenceKey(node)].Mod)},
		Then: []store.Op{store.Put(store.FenceKey(node), store.Encode(f))},
	}
	if facts != nil {
		facts.Epoch, facts.Strays = t.epoch, nil
		word.Then = append(word.Then, store.Put(store.FactsKey(node), store.Encode(facts)))
	}
	t.also = append(also, store.Seen(store.FactsKey(node), t.keys[store.FactsKey(node)].Mod))
	rev, err := t.write(ctx, s, w, word)
	if err != nil {
		return f, err
	}
	// Each of the ends, which may be more than a transaction holds, compares that the node was
	// not heard of since: a hello removes the fence and writes the facts.
	t.also = append(also, store.Seen(store.FenceKey(node), rev))
	if facts != nil {
		t.also = append(t.also, store.Seen(store.FactsKey(node), rev))
	}
	_, err = t.write(ctx, s, w, ends...)
	return f, err
}

// fenced is the report that ends the life l, and names it in f; false: it is over.
func fenced(v cache.View, l spec.LifeID, f *records.Fence) (store.Txn, bool) {
	id := l.ID
	m, member := v.Member(id)
	last, report := v.Report(id)
	if m == nil || m.Token != l.Token || m.Node != f.Node || m.NodeUID != f.UID || overIn(v, m) {
		return store.Txn{}, false
	}
	r := records.Report{
		ID: id, Token: m.Token, Node: f.Node, Phase: records.PhaseStopped, Cause: spec.CauseFenced,
		Message: fmt.Sprintf("node %s was powered off, says %s", f.Node, f.By), At: f.At,
	}
	if last != nil && last.Token == m.Token {
		r.Seq, r.Containers = last.Seq, last.Containers
	}
	f.Lives = append(f.Lives, l)
	return store.Txn{
		If:   []store.Guard{store.Seen(store.MemberKey(id), member), store.Seen(store.ReportKey(id), report)},
		Then: []store.Op{store.Put(store.ReportKey(id), store.Encode(r))},
	}, true
}

// Remove forgets a silent node of which nothing is left: no life, no volume, and nothing
// that it has not said. FAILED_PRECONDITION names what stands against it.
func Remove(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) error {
	t, err := readSilent(ctx, s, w, node)
	if err != nil {
		return err
	}
	facts, err := decodeIf[records.NodeFacts](t.keys, store.FactsKey(node))
	if err != nil {
		return status.Errorf(codes.Internal, "read facts: %v", err)
	}
	count, err := t.openCount()
	if err != nil {
		return err
	}
	left, err := leftOn(ctx, s, w, node)
	switch {
	case err != nil:
		return err
	case count != nil:
		return status.Errorf(codes.FailedPrecondition,
			"the store was restored, and which nodes may run what it does not know is being counted: no node is removed before that is complete ('stead restore --status')")
	case left != nil:
		return left
	case facts != nil && (facts.Epoch < t.epoch || len(facts.Strays) > 0):
		return status.Errorf(codes.FailedPrecondition,
			"node %s may run lives that this store does not know; if it is off: stead node fence %s --i-have-powered-off", node, node)
	}
	word := store.Txn{If: []store.Guard{store.Seen(store.FactsKey(node), t.keys[store.FactsKey(node)].Mod)}}
	for _, key := range []string{store.NodeKey(node), store.FactsKey(node), store.FenceKey(node)} {
		word.Then = append(word.Then, store.Del(key))
	}
	var txns []store.Txn
	w.Look(func(v cache.View) {
		for _, r := range v.VolumeReportsOn(node) { // its trash goes with it
			txns = append(txns, store.Txn{Then: []store.Op{store.Del(store.VolumeReportKey(r.ID, r.Claim, r.Volume))}})
		}
	})
	_, err = t.write(ctx, s, w, append(txns, word)...) // the node's record last, for it guards all
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

// readSilent is the threshold of a node that is known and has no session, with a world
// that is as new.
func readSilent(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) (threshold, error) {
	t, err := readThreshold(ctx, s, node)
	if err != nil {
		return t, err
	}
	switch {
	case t.hold != nil:
		return t, status.Error(codes.FailedPrecondition, t.hold.Refusal())
	case t.node == nil:
		return t, status.Errorf(codes.NotFound, "there is no node %s", node)
	case t.session != nil:
		return t, status.Errorf(codes.FailedPrecondition,
			"node %s has a live session: it is on. Power it off, and wait until 'stead get nodes' shows it as Silent", node)
	}
	return t, w.Wait(ctx, t.rev)
}

// write commits txns, each guarded by what readSilent has seen, too, and returns the revision
// of the last, which w shows then.
func (t *threshold) write(ctx context.Context, s store.Store, w cache.Reader, txns ...store.Txn) (store.Rev, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	node := store.NodeKey(t.node.Name)
	shared := []store.Guard{
		store.Seen(store.EpochKey, t.keys[store.EpochKey].Mod), store.NotHeld(),
		store.Seen(node, t.keys[node].Mod), store.Seen(store.SessionKey(t.node.Name), 0),
	}
	shared = append(shared, t.also...)
	var last store.Rev
	for _, o := range store.CommitAll(ctx, s, shared, txns) {
		switch {
		case errors.Is(o.Err, store.ErrConflict):
			return 0, status.Errorf(codes.Aborted, "node %s, or a life on it, changed meanwhile; look again", t.node.Name)
		case o.Err != nil:
			return 0, storeError("write node "+string(t.node.Name), o.Err)
		}
		last = max(last, o.Rev)
	}
	return last, w.Wait(ctx, last)
}
