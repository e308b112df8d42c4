package dispatch

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

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
