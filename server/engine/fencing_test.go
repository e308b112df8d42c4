package engine

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// TestTheOutcomeOfAFenceIsShownAtTheMembersItConcerns: at once, in explain, in the status and
// as an event, and no longer than it holds.
func TestTheOutcomeOfAFenceIsShownAtTheMembersItConcerns(t *testing.T) {
	inCluster(t, func(k *cluster) {
		e, stop := k.engine("a", k.store)
		defer stop()
		k.set(1)
		k.until("it runs", ready(1))
		k.set(1, replace(time.Minute)) // the life that runs is not guarded
		k.commit(store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "y"})),
			store.Put(store.FactsKey("n2"), store.Encode(records.NodeFacts{Name: "n2", UID: "y", Epoch: 1})),
			store.Put(store.SessionKey("n2"), store.Encode(records.Session{Node: "n2", UID: "y"})), store.Del(store.SessionKey("n1")))
		told := func(reason causes.BlockedReason, text string) func(cache.View) bool {
			return func(v cache.View) bool {
				p, _ := e.Explain(db)
				status := v.Status(db)
				return len(p.Blocked) == 1 && p.Blocked[0].Reason == reason && strings.Contains(p.Blocked[0].Text, text) &&
					status != nil && strings.Contains(status.Members[0].Blocked, text)
			}
		}
		k.until("it waits", told(causes.BlockedNodeSilent, "may still be running there"))
		began := time.Now()
		e.cfg.Fencing.Set("n1", "the plug is stuck")
		k.until("it is told", told(causes.BlockedFence, "; the plug is stuck"))
		k.until("there is an event", func(v cache.View) bool {
			for _, x := range cache.OfSet(v, db).Events() {
				if x.Reason == string(causes.BlockedFence) && strings.Contains(x.Message, "the plug is stuck") {
					return true
				}
			}
			return false
		})
		if took := time.Since(began); took > 5*time.Second { // of the bubble
			t.Errorf("told after %s only", took)
		}
		e.cfg.Fencing.Set("n1", "")
		k.until("it is told no more", told(causes.BlockedNodeSilent, "may still be running there"))
	})
}

// TestWhatRunsBesideATermEndsWithIt: and the term waits for it.
func TestWhatRunsBesideATermEndsWithIt(t *testing.T) {
	inCluster(t, func(k *cluster) {
		started, ended := make(chan struct{}), false
		e, err := New(Config{
			Store: k.store, Cache: k.cache, ID: "a", CIDR: netip.MustParsePrefix("10.88.0.0/16"),
			WhileLeading: func(ctx context.Context, _ store.Leadership) {
				close(started)
				<-ctx.Done()
				ended = true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := k.run(e.Run)
		<-started
		stop()
		if !ended {
			t.Error("it continues after the term")
		}
	})
}
