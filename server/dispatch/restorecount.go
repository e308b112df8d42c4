package dispatch

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// addToCount adds to the transaction of a join what others decide by: that a node is new or runs
// other lives that the store does not know (see noteHello), and that a restore's count, while
// it is open, waits for this node, too (SAFETY S8). A join that changes neither costs no
// write besides its own.
func (req *joinRequest) addToCount(stored storedNode, txn *store.Txn) error {
	facts, _ := store.DecodeIn[records.NodeFacts](stored.keys, store.FactsKey(req.node)) // unreadable ones are written over
	if stored.node == nil || facts == nil || !slices.Equal(facts.Strays, req.facts.Strays) {
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

// noteHello changes the key that every transaction compares which relies on no node running a life
// that the store does not know.
func noteHello(node spec.NodeName) store.Op { return store.Put(store.HellosKey, []byte(node)) }

// restoreOpen: a restore waits for nodes (SAFETY S8). Until it is complete a node is sent the lives
// that it has, and nothing that would start, end or be given up.
func restoreOpen(v cache.View) bool {
	count, _ := v.Count()
	return count.Open(v.Epoch())
}

// mayLiveElsewhere: to order m, which its node has not started, could start a second life. A
// store that went back may have a life that was ordered and never started, and replaced since.
// One that was started, as a report says, no node starts twice: it is sent, for an answer.
func mayLiveElsewhere(v cache.View, m *records.Member) bool {
	if r, _ := v.Report(m.ID); r != nil && r.Token == m.Token && r.Phase.Rank() > records.PhasePreparing.Rank() {
		return false
	}
	return restoreOpen(v) || len(v.UnknownLives(m.ID)) > 0
}
