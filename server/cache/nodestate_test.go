package cache

import (
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestNodeStates(t *testing.T) {
	const bound = time.Minute
	facts := records.NodeFacts{Name: "n1", UID: "x", Epoch: 1, Guards: true}
	stray := facts
	stray.Strays = []spec.LifeID{{ID: db0, Token: token(3)}}
	older := facts
	older.Epoch = 0
	life := func(ordinal int, bound time.Duration) store.Op {
		id := spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
		return put(store.MemberKey(id), records.Member{ID: id, Token: token(1), Goal: records.GoalRun, Node: "n1", NodeUID: "x", Bound: bound})
	}
	report := func(ordinal int, n int64, bound time.Duration, p records.Phase) store.Op {
		id := spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
		return put(store.ReportKey(id), records.Report{ID: id, Token: token(n), Node: "n1", Bound: bound, Phase: p})
	}
	for _, c := range []struct {
		name        string
		facts       records.NodeFacts
		ops         []store.Op
		state, says string
		later       string // the state when the bound is over
	}{
		{"a session", facts, []store.Op{life(0, bound), put(store.SessionKey("n1"), records.Session{Node: "n1", UID: "x"})}, NodeReady, "", NodeReady},
		{"nothing on it", facts, nil, NodeLost, "", NodeLost},
		{"a life that may run", facts, []store.Op{life(0, 0)}, NodeSilent, "of its lives: 1 may still run, until the node reconnects or 'stead node fence' proves it off", NodeSilent},
		{"a life that ended", facts, []store.Op{life(0, 0), report(0, 1, 0, records.PhaseStopped)}, NodeLost, "of its lives: 1 ended", NodeLost},
		{"another life ended", facts, []store.Op{life(0, 0), report(0, 9, 0, records.PhaseStopped)}, NodeSilent, "of its lives: 1 may still run, until the node reconnects or 'stead node fence' proves it off", NodeSilent},
		{"guarded lives", facts, []store.Op{life(0, bound), report(0, 1, bound, records.PhaseRunning), life(1, 10*bound), life(2, 0), report(2, 1, 0, records.PhaseStopped)},
			NodeSilent, "of its lives: 2 will have ended at their deadline in 10m7s, 1 ended", NodeLost},
		{"a guarded life and another", facts, []store.Op{life(0, bound), life(1, 0)},
			NodeSilent, "of its lives: 1 may still run, until the node reconnects or 'stead node fence' proves it off, 1 will have ended at their deadline in 1m2s", NodeSilent},
		{"a stray", stray, nil, NodeSilent, "", NodeSilent},
		{"not heard of since the store was restored", older, nil, NodeSilent, "", NodeSilent},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			defer s.Close()
			rev := commit(t, s, append(c.ops, store.Put(store.EpochKey, []byte("1")),
				put(store.NodeKey("n1"), records.Node{Name: "n1", UID: "x"}), put(store.FactsKey("n1"), c.facts),
				put(store.NodeKey("n2"), records.Node{Name: "n2", UID: "y"}), put(store.FactsKey("n2"), records.NodeFacts{Name: "n2", UID: "y", Epoch: 1}),
				put(store.SessionKey("n2"), records.Session{Node: "n2", UID: "y"}))...)
			cache, _ := start(t, s)
			wait(t, cache, rev)
			cache.Look(func(v View) {
				got := NodeStates(v, v.Nodes())
				if got[0].State != c.state || got[0].Waits != c.says || got[1].State != NodeReady {
					t.Errorf("got %s %q and %s, want %s %q", got[0].State, got[0].Waits, got[1].State, c.state, c.says)
				}
				nodes := v.Nodes()
				after := append(nodes[:0:0], nodes...)
				after[0].Gone = time.Hour
				if got := NodeStates(v, after)[0]; got.State != c.later {
					t.Errorf("an hour later it is %s, want %s", got.State, c.later)
				}
			})
		})
	}
}

// A node that was let in and said nothing yet is seen as such; one whose facts cannot be read
// may run lives that nobody knows.
func TestANodeOfWhichLittleIsKnown(t *testing.T) {
	for _, c := range []struct {
		name   string
		ops    []store.Op
		state  string
		unread bool
	}{
		{"it said nothing yet", nil, NodeEnrolled, false},
		{"its facts cannot be read", []store.Op{store.Put(store.FactsKey("n1"), []byte("{damaged"))}, NodeSilent, true},
		{"its facts are another machine's", []store.Op{put(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "before"})}, NodeEnrolled, false},
	} {
		s := memstore.New()
		cache, _ := start(t, s)
		wait(t, cache, commit(t, s, append(c.ops, put(store.NodeKey("n1"), records.Node{Name: "n1", UID: "x"}))...))
		cache.Look(func(v View) {
			if got := NodeStates(v, v.Nodes())[0]; got.State != c.state || got.Node.Unread != c.unread {
				t.Errorf("%s: got %s, unread %v", c.name, got.State, got.Node.Unread)
			}
		})
	}
}
