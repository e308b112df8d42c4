package engine

import (
	"context"
	"errors"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// completeCount records that the count of a restore is complete, once it is: each node has reported
// what it runs, or was excused. A node that joins meanwhile writes the count, and a server that
// reports which nodes it remembers writes the key of hellos: both are compared.
func (l *leader) completeCount(ctx context.Context) {
	var t store.Txn
	l.cfg.Cache.Look(func(v cache.View) {
		c, _ := v.Count()
		if !c.Open(v.Epoch()) || len(proof.MissingNodes(v.Epoch(), c, v.Nodes())) > 0 {
			return
		}
		done := *c
		done.Done = true
		t = store.Txn{
			If: []store.Compare{
				l.term.Compare(), v.Seen(store.EpochKey), store.NotHeld(), v.Seen(store.CountKey),
				v.Seen(store.HellosKey),
			},
			Then: []store.Op{store.Put(store.CountKey, store.Encode(done))},
		}
		for _, m := range v.Memories() { // they are in the count now, and of no other use
			t.If = append(t.If, store.Seen(store.KnownKey(m.Server), m.Rev))
			t.Then = append(t.Then, store.Del(store.KnownKey(m.Server)))
		}
	})
	if len(t.Then) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch _, err := l.cfg.Store.Commit(ctx, t); {
	case err == nil:
		l.log.Info("restore completed: every node reported or was excused")
	case !errors.Is(err, store.ErrConflict): // a conflict is news, which starts another evaluation
		l.wakeAt(spec.SetRef{}, l.cfg.Now().Add(lastPause)) // no set is meant
	}
}
