package dispatch

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// gap says why the store is not the continuation of what a node knows of it, "": it is
// (SAFETY S8). Such a node is heard: it gets its session, and what it runs is stored; but
// the store is held, so nobody is told what is in it.
func (s *Server) gap(g guest, t threshold) string {
	now := s.cfg.Known() // no older than t
	now.Cluster, now.At = t.cluster, spec.Sequence{Epoch: t.epoch, Rev: int64(t.rev)}
	if now.Term == 0 { // this server knows none
		now.Term = g.known.Term
	}
	return g.known.Gap(now, t.chain)
}

// hold has a hello's transaction hold the store.
func (g *guest) hold(txn *store.Txn) {
	txn.If = append(txn.If, store.NotHeld())
	txn.Then = append(txn.Then, store.Put(store.HoldKey, store.Encode(records.Hold{
		Cause: fmt.Sprintf("the node was told more than this store has: %s", g.gap),
		By:    fmt.Sprintf("node %s", g.node), At: time.Now().UTC(),
	})))
}
