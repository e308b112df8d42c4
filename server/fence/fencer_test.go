package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// stand is a store with nodes n1 to n5, of which n1 has db-0 and db-1, and a fencer of
// the present leader, in time of its own.
type stand struct {
	t     *testing.T
	store *memstore.Store
	cache *cache.Cache
	term  store.Leadership

	mu    sync.Mutex
	gone  map[spec.NodeName]time.Time // since when
	calls []spec.NodeName
	at    []time.Time
	told  *Outcomes
	says  func(context.Context, *Case) error
}

func member(ordinal int) spec.Identity {
	return spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
}

func token(n int64) spec.Token { return spec.Token{Epoch: 1, Number: n} }

// in runs f with a fencer at work; begin fills the store before.
func in(t *testing.T, begin func(*stand), f func(*stand)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stand{t: t, store: memstore.New(), gone: map[spec.NodeName]time.Time{}, told: NewOutcomes(),
			says: func(context.Context, *Case) error { return nil }}
		s.cache = cache.New(s.store, slog.New(slog.DiscardHandler))
		s.fill()
		begin(s)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { _ = s.cache.Run(ctx) })
		fencer := New(Config{Store: s.store, Cache: s.cache, Nodes: s.nodes, Outcomes: s.told, Call: s.call})
		group.Go(func() { fencer.Run(ctx, s.term) })
		f(s)
		cancel()
		group.Wait()
		if left := shown(s.told); len(left) > 0 {
			t.Errorf("left to be shown: %v", left)
		}
		_ = s.store.Close()
	})
}

func (s *stand) put(key string, record any) {
	s.t.Helper()
	s.commit(store.Put(key, store.Encode(record)))
}

func (s *stand) commit(ops ...store.Op) store.Rev {
	s.t.Helper()
	rev, err := s.store.Commit(s.t.Context(), store.Txn{Then: ops})
	if err != nil {
		s.t.Fatal(err)
	}
	return rev
}

// fill writes a cluster at rest.
func (s *stand) fill() {
	s.commit(store.Put(store.ClusterKey, []byte("c")), store.Put(store.EpochKey, []byte("1")))
	s.term = store.Leadership{Value: "s1", Created: s.commit(store.Put(store.LeaderKey, []byte("s1")))}
	for i := range 5 {
		n := spec.NodeName(fmt.Sprint("n", i+1))
		s.put(store.NodeKey(n), records.Node{Name: n, UID: spec.UID("uid-" + n)})
		s.put(store.FactsKey(n), records.NodeFacts{Name: n, UID: spec.UID("uid-" + n), Boot: "b", HostIP: "192.0.2.1", Epoch: 1})
		s.back(n)
	}
	s.set(spec.NodeLossReplace)
	for i := range 2 {
		s.put(store.MemberKey(member(i)), records.Member{ID: member(i), SetUID: "u", Token: token(int64(10 + i)), Goal: records.GoalRun, Node: "n1", NodeUID: "uid-n1", Boot: "b"})
	}
	s.put(store.ReportKey(member(1)), records.Report{ID: member(1), Token: token(11), Phase: records.PhaseStopped, Message: "its own"})
}

// set writes the set with its policy.
func (s *stand) set(policy string) {
	two := int32(2)
	ref := member(0).Ref()
	s.put(store.SetKey(ref), records.Set{Ref: ref, UID: "u", Generation: 1, Spec: spec.SetSpec{Replicas: &two, NodeLoss: &spec.NodeLoss{Policy: policy}}})
}

func (s *stand) back(n spec.NodeName) {
	s.put(store.SessionKey(n), records.Session{Node: n, UID: spec.UID("uid-" + n), Boot: "b", ID: 7})
}

// lose ends the sessions of nodes.
func (s *stand) lose(nodes ...spec.NodeName) {
	for _, n := range nodes {
		s.commit(store.Del(store.SessionKey(n)))
	}
}

// nodes measures silence as an engine does.
func (s *stand) nodes(v cache.View) []plan.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(v.Nodes())
	for i := range list {
		name := list[i].Node.Name
		if list[i].Session != nil {
			delete(s.gone, name)
			continue
		}
		if _, known := s.gone[name]; !known {
			s.gone[name] = time.Now()
		}
		list[i].Gone = time.Since(s.gone[name])
	}
	return list
}

func (s *stand) call(ctx context.Context, c *Case) error {
	s.mu.Lock()
	s.calls, s.at = append(s.calls, c.Node), append(s.at, time.Now())
	s.mu.Unlock()
	return s.says(ctx, c)
}

// after lets time pass, and returns the calls until then.
func (s *stand) after(d time.Duration) []spec.NodeName {
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// over reports whether a life of db-0 is over by a fence.
func (s *stand) over() bool {
	_, kvs, err := s.store.Get(s.t.Context(), store.ReportKey(member(0)), store.ReportKey(member(1)))
	if err != nil {
		s.t.Fatal(err)
	}
	if r, err := store.Decode[records.Report](kvs[store.ReportKey(member(1))]); err != nil || r.Message != "its own" {
		s.t.Errorf("db-1 said itself that it is over, and is told as %+v, %v", r, err)
	}
	kv, there := kvs[store.ReportKey(member(0))]
	if !there {
		return false
	}
	r, err := store.Decode[records.Report](kv)
	if err != nil || r.Phase != records.PhaseStopped || r.Cause != causes.Fenced || !strings.Contains(r.Message, "the fence command") {
		s.t.Errorf("db-0 is told as %+v, %v", r, err)
	}
	return true
}

func nothing(*stand) {}

func TestASilentNodeIsFencedWhenItsTimeHasCome(t *testing.T) {
	in(t, nothing, func(s *stand) {
		if got := s.after(time.Hour); len(got) > 0 {
			t.Errorf("called for %v while all are there", got)
		}
		s.lose("n1", "n2") // n2 has no life
		if got := s.after(DefaultAfter - time.Second); len(got) > 0 || s.over() {
			t.Errorf("called for %v too early", got)
		}
		if got := s.after(2 * time.Second); !slices.Equal(got, []spec.NodeName{"n1"}) || !s.over() {
			t.Errorf("called for %v; over: %v", got, s.over())
		}
		if got := s.after(time.Hour); len(got) != 1 {
			t.Errorf("called again: %v", got)
		}
	})
}

// TestNodesThatAreNotFenced: each would be fenced but for one thing.
func TestNodesThatAreNotFenced(t *testing.T) {
	for name, begin := range map[string]func(*stand){
		"a set that holds": func(s *stand) { s.set(spec.NodeLossHold) },
		"more than half are silent": func(s *stand) {
			s.lose("n2", "n3")
		},
		"a volume that is bound to the node": func(s *stand) {
			s.put(store.VolumeKey(member(0), "data"), records.Volume{ID: member(0), Claim: "data", UID: "v", Node: "n1", Fate: records.FateKeep})
		},
		"a life that ends by itself": func(s *stand) {
			s.put(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid-n1", Boot: "b", Epoch: 1, Guards: true})
			s.put(store.MemberKey(member(0)), records.Member{ID: member(0), SetUID: "u", Token: token(10), Goal: records.GoalRun, Node: "n1", NodeUID: "uid-n1", Boot: "b", Bound: 5 * time.Minute})
		},
		"a machine that only has the name": func(s *stand) { s.put(store.NodeKey("n1"), records.Node{Name: "n1", UID: "other"}) },
		"a set that nobody owns": func(s *stand) {
			ref := member(0).Ref()
			s.put(store.SetKey(ref), records.Set{Ref: ref, UID: "u", Orphaned: true, Spec: spec.SetSpec{NodeLoss: &spec.NodeLoss{Policy: spec.NodeLossReplace}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(s *stand) { begin(s); s.lose("n1") }, func(s *stand) {
				if got := s.after(time.Hour); len(got) > 0 || s.over() {
					t.Errorf("called for %v", got)
				}
			})
		})
	}
}

func TestWhatProvesNothingIsToldAndTriedAgainLater(t *testing.T) {
	in(t, nothing, func(s *stand) {
		s.says = func(context.Context, *Case) error { return errors.New("exit status 1: no such plug") }
		s.lose("n1")
		calls := s.after(DefaultAfter + time.Hour)
		if len(calls) < 5 || len(calls) > 20 || s.over() {
			t.Errorf("%d calls in an hour; over: %v", len(calls), s.over())
		}
		for i := 1; i < len(s.at); i++ {
			if pause := s.at[i].Sub(s.at[i-1]); pause < firstRetry || pause > lastRetry+time.Second || i > 1 && pause < s.at[i-1].Sub(s.at[i-2]) {
				t.Errorf("pause %d is %s", i, pause)
			}
		}
		if want := "the fence command proved nothing: exit status 1: no such plug; it is called again from time to time"; shown(s.told)["n1"] != want {
			t.Errorf("shown %q", shown(s.told))
		}
		s.back("n1")
		s.after(time.Second)
		if len(shown(s.told)) > 0 {
			t.Errorf("shown of a node that is back: %v", shown(s.told))
		}
		s.says = func(context.Context, *Case) error { return nil }
		s.lose("n1")
		s.after(DefaultAfter + time.Second)
		if !s.over() {
			t.Error("a new silence does not wait for the pause of the one before")
		}
	})
}

func TestOneTryOfANodeAtATimeAndNoneAfterTheTerm(t *testing.T) {
	in(t, func(s *stand) {
		s.put(store.MemberKey(member(1)), records.Member{ID: member(1), SetUID: "u", Token: token(21), Goal: records.GoalRun, Node: "n2", NodeUID: "uid-n2", Boot: "b"})
	}, func(s *stand) {
		under := map[spec.NodeName]int{}
		var mu sync.Mutex
		s.says = func(ctx context.Context, c *Case) error {
			mu.Lock()
			under[c.Node]++
			if under[c.Node] > 1 {
				t.Errorf("two tries of %s at once", c.Node)
			}
			mu.Unlock()
			<-ctx.Done() // hangs
			mu.Lock()
			under[c.Node]--
			mu.Unlock()
			return nil // a yes that comes too late
		}
		s.lose("n1", "n2")
		calls := s.after(DefaultAfter + DefaultTimeout/2)
		s.put(store.FactsKey("n3"), records.NodeFacts{Name: "n3", UID: "uid-n3", Epoch: 1}) // wakes it
		if again := s.after(time.Second); len(calls) != 2 || len(again) != 2 || !maps.Equal(under, map[spec.NodeName]int{"n1": 1, "n2": 1}) {
			t.Errorf("called %v, then %v; under way are %v", calls, again, under)
		}
	})
}

// shown is what o shows, by node.
func shown(o *Outcomes) map[spec.NodeName]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.of)
}
