package dispatch

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// tellCount adds to a hello's transaction what others decide by: that a node is new or runs
// other lives that the store does not know (see heardOf), and that a restore's count, while
// it is open, waits for this node, too (SAFETY S8). A hello that changes neither costs no
// write besides its own.
func (g *guest) tellCount(t threshold, txn *store.Txn) error {
	facts, _ := store.DecodeIn[records.NodeFacts](t.keys, store.FactsKey(g.node)) // unreadable ones are written over
	if t.node == nil || facts == nil || !slices.Equal(facts.Strays, g.facts.Strays) {
		txn.Then = append(txn.Then, heardOf(g.node))
	}
	count, err := t.openCount()
	if count == nil {
		return err
	}
	if with := count.With(records.FromHello, map[spec.NodeName]spec.UID{g.node: g.uid}); len(with.Nodes) > len(count.Nodes) {
		txn.If = append(txn.If, store.Seen(store.CountKey, t.keys[store.CountKey].Mod))
		txn.Then = append(txn.Then, store.Put(store.CountKey, store.Encode(with)))
	}
	return nil
}

// openCount is the count of this epoch's restore; nil: there is none, or it is done.
func (t *threshold) openCount() (*records.Count, error) {
	count, err := store.DecodeIn[records.Count](t.keys, store.CountKey)
	switch {
	case err != nil:
		return nil, status.Errorf(codes.Internal, "read the count of the restore: %v", err)
	case !count.Open(t.epoch):
		return nil, nil
	}
	return count, nil
}

// heardOf moves the key that every transaction compares which relies on it that no node
// runs a life that the store does not know.
func heardOf(node spec.NodeName) store.Op { return store.Put(store.HellosKey, []byte(node)) }

// counting: a restore waits for nodes (SAFETY S8). Until it is complete a node is told of
// the lives that it has, and of nothing that would begin, end or be given up.
func counting(v cache.View) bool {
	count, _ := v.Count()
	return count.Open(v.Epoch())
}

// mayLiveElsewhere: to order m, which its node has not begun, could begin a second life. A
// store that went back may have a life that was ordered and never begun, and replaced since.
// One that was begun, as a report says, is begun by no node twice: it is told, for an answer.
func mayLiveElsewhere(v cache.View, m *records.Member) bool {
	if r, _ := v.Report(m.ID); r != nil && r.Token == m.Token && r.Phase.Rank() > records.PhasePreparing.Rank() {
		return false
	}
	return counting(v) || len(v.UnknownLives(m.ID)) > 0
}
