package fence

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// Node takes by's word that a silent node is off for proof that its lives are over
// (SAFETY S10): each gets a report of its own token that says so, and to the question what
// else it runs since the store was restored the answer is nothing. It ends lives that
// the store knows now and no later ones. Repeated, it ends what was left.
//
// It fails with NOT_FOUND without such a node, and with FAILED_PRECONDITION while it has
// a session: then it is on.
func Node(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName, by string) (*records.Fence, error) {
	c, err := Open(ctx, s, w, node)
	if err != nil {
		return nil, err
	}
	return c.Close(ctx, s, w, by)
}

// Case is a silent node as it was before somebody turned to it: no more than this can be
// proven of it by what they find.
type Case struct {
	Node  spec.NodeName
	UID   spec.UID
	Facts records.NodeFacts // zero: it never said hello
	Lives []spec.LifeID     // not over yet

	heard store.Rev // of its last hello
	epoch int64
}

// Open reads what there is to fence; it fails as Node does.
func Open(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) (*Case, error) {
	n, facts, err := readFenced(ctx, s, w, node)
	if err != nil {
		return nil, err
	}
	c := &Case{Node: node, UID: n.node.UID, heard: n.keys[store.FactsKey(node)].Mod, epoch: n.epoch}
	if facts != nil {
		c.Facts = *facts
	}
	w.Look(func(v cache.View) {
		for _, id := range v.MembersOn(node) {
			if m := v.Member(id); m.NodeUID == c.UID && !overIn(v, m) {
				c.Lives = append(c.Lives, spec.LifeID{ID: id, Token: m.Token})
			}
		}
	})
	return c, nil
}

func readFenced(ctx context.Context, s store.Store, w cache.Reader, node spec.NodeName) (*silentNode, *records.NodeFacts, error) {
	n, err := readSilent(ctx, s, w, node)
	if err != nil {
		return nil, nil, err
	}
	facts, err := n.facts()
	if err != nil { // what it runs is over with it; its facts are written again
		facts = &records.NodeFacts{Name: node, UID: n.node.UID}
	}
	return n, facts, nil
}

// overIn reports whether the life is over by a report of its own token.
func overIn(v cache.View, m *records.Member) bool {
	r := v.Report(m.ID)
	return r != nil && r.Token == m.Token && r.Phase.Over()
}

// Close takes by's word that the node was off at some moment since the case was opened for
// proof that the lives it found are over, and of no later ones; also is what must hold
// besides. It reads again: ABORTED if the node said hello meanwhile, or is another.
func (c *Case) Close(ctx context.Context, s store.Store, w cache.Reader, by string, also ...store.Compare) (*records.Fence, error) {
	node := c.Node
	n, facts, err := readFenced(ctx, s, w, node)
	if err != nil {
		return nil, err
	}
	if n.node.UID != c.UID || n.epoch != c.epoch || n.keys[store.FactsKey(node)].Mod != c.heard {
		return nil, status.Errorf(codes.Aborted, "node %s was heard of, or the store was restored meanwhile; look again", node)
	}
	f := &records.Fence{Node: node, UID: c.UID, Boot: c.Facts.Boot, By: by, At: time.Now().UTC()}
	var ends []store.Txn
	w.Look(func(v cache.View) {
		for _, l := range c.Lives {
			if end, ok := endByFence(v, l, f); ok {
				ends = append(ends, end)
			}
		}
	})
	record := store.Txn{
		If:   []store.Compare{n.seen(store.FenceKey(node))},
		Then: []store.Op{store.Put(store.FenceKey(node), store.Encode(f))},
	}
	if facts != nil {
		facts.Epoch, facts.Strays = n.epoch, nil
		record.Then = append(record.Then, store.Put(store.FactsKey(node), store.Encode(facts)))
	}
	n.also = append(also, n.seen(store.FactsKey(node)))
	rev, err := n.write(ctx, s, w, record)
	if err != nil {
		return f, err
	}
	// Each of the ends, which may be more than a transaction holds, compares that the node was
	// not heard of since: a hello removes the fence and writes the facts.
	n.also = append(also, store.Seen(store.FenceKey(node), rev))
	if facts != nil {
		n.also = append(n.also, store.Seen(store.FactsKey(node), rev))
	}
	_, err = n.write(ctx, s, w, ends...)
	return f, err
}

// endByFence is the report that ends the life l, and names it in f; false: it is over already.
func endByFence(v cache.View, l spec.LifeID, f *records.Fence) (store.Txn, bool) {
	id := l.ID
	m, last := v.Member(id), v.Report(id)
	if m == nil || m.Token != l.Token || m.Node != f.Node || m.NodeUID != f.UID || overIn(v, m) {
		return store.Txn{}, false
	}
	r := records.Report{
		ID: id, Token: m.Token, Node: f.Node, Phase: records.PhaseStopped, Cause: causes.Fenced,
		Message: fmt.Sprintf("node %s was powered off, says %s", f.Node, f.By), At: f.At,
	}
	if last != nil && last.Token == m.Token {
		r.Seq, r.Containers = last.Seq, last.Containers
	}
	f.Lives = append(f.Lives, l)
	return store.Txn{
		If:   []store.Compare{v.Seen(store.MemberKey(id)), v.Seen(store.ReportKey(id))},
		Then: []store.Op{store.Put(store.ReportKey(id), store.Encode(r))},
	}, true
}
