package fence

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// putSilentNode puts n1 into the store, silent, with the lives db-0 (running), db-1 (over) and,
// of another machine that had the name, db-2.
func putSilentNode(r *rig) {
	for i, uid := range []spec.UID{"uid1", "uid1", "before"} {
		r.Record(store.MemberKey(ident(i)), testMember(i, int64(10+i), "n1", uid))
	}
	r.Record(store.ReportKey(ident(0)), records.Report{ID: ident(0), Token: token(10), Phase: records.PhaseRunning, Ready: true, Seq: 7})
	r.Record(store.ReportKey(ident(1)), records.Report{ID: ident(1), Token: token(11), Phase: records.PhaseStopped, Seq: 3, Message: "its own word"})
	r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
	r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1", Epoch: 1, Strays: []spec.LifeID{{ID: ident(5), Token: token(5)}}})
}

// saidOf is the stored report of a member; zero: none.
func saidOf(r *rig, ordinal int) records.Report {
	r.t.Helper()
	kv, there := r.Get(store.ReportKey(ident(ordinal)))
	if !there {
		return records.Report{}
	}
	report, err := store.Decode[records.Report](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

// SAFETY S10: a person's word has a scope.
func TestAFenceEndsTheLivesThatItNamesAndNoOthers(t *testing.T) {
	r := newRig(t)
	putSilentNode(r)
	r.Put(store.EpochKey, []byte("2"))
	f, err := Node(t.Context(), r.Store, r.Cache, "n1", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Lives) != 1 || f.Lives[0] != (spec.LifeID{ID: ident(0), Token: token(10)}) || f.Boot != "b1" || f.By != "ann" {
		t.Errorf("the fence is %+v; want db-0 alone", f)
	}
	kv, _ := r.Get(store.FenceKey("n1"))
	if kept, err := store.Decode[records.Fence](kv); err != nil || len(kept.Lives) != 1 || kept.UID != "uid1" {
		t.Errorf("kept is %+v, %v", kept, err)
	}
	if got := saidOf(r, 0); got.Phase != records.PhaseStopped || got.Ready || got.Token != token(10) || got.Cause != causes.Fenced || !strings.Contains(got.Message, "ann") {
		t.Errorf("db-0 is told as %+v", got)
	}
	if got := saidOf(r, 1); got.Message != "its own word" {
		t.Errorf("db-1 said itself that it is over, and is told as %+v", got)
	}
	if got := saidOf(r, 2); got.Phase != "" {
		t.Errorf("db-2 was on another machine, and is told as %+v", got)
	}
	kv, _ = r.Get(store.FactsKey("n1"))
	if facts, err := store.Decode[records.NodeFacts](kv); err != nil || facts.Epoch != 2 || len(facts.Strays) != 0 {
		t.Errorf("facts are %+v, %v; want them heard in epoch 2, without strays", facts, err)
	}
	if again, err := Node(t.Context(), r.Store, r.Cache, "n1", "ann"); err != nil || len(again.Lives) != 0 {
		t.Errorf("again it ends %+v, %v", again, err)
	}
}

// racing is a store into which something is written just before a commit.
type racing struct {
	store.Store
	before func()
}

func (s *racing) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	return s.Store.Commit(ctx, t)
}

func TestAFenceComparesWhatItReliedOn(t *testing.T) {
	for name, meanwhile := range map[string]func(*rig){
		"the node is back": func(r *rig) {
			r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b2", ID: 5})
		},
		"another machine has the name": func(r *rig) { r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid2"}) },
		"the store was restored":       func(r *rig) { r.Put(store.EpochKey, []byte("2")) },
		"the store is held":            func(r *rig) { r.Record(store.HoldKey, records.Hold{Cause: "why", By: "server s1"}) },
		"the life is another":          func(r *rig) { r.Record(store.MemberKey(ident(0)), testMember(0, 99, "n1", "uid1")) },
		"the life said something": func(r *rig) {
			r.Record(store.ReportKey(ident(0)), records.Report{ID: ident(0), Token: token(10), Phase: records.PhaseStopping, Seq: 9})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			putSilentNode(r)
			_, err := Node(t.Context(), &racing{r.Store, func() { meanwhile(r) }}, r.Cache, "n1", "ann")
			if status.Code(err) != codes.Aborted {
				t.Errorf("got %v; want it aborted", err)
			}
			if got := saidOf(r, 0); got.Cause == causes.Fenced {
				t.Errorf("db-0 counts as over: %+v", got)
			}
		})
	}
}

func TestANodeIsRemovedOnlyWhenNothingOfItIsLeft(t *testing.T) {
	volume := records.Volume{ID: ident(9), Claim: "data", UID: "v1", Node: "n1"}
	for name, c := range map[string]struct {
		prepare func(*rig)
		want    string
	}{
		"lives":                          {func(*rig) {}, "lives of 3 members"},
		"a volume of a set that is gone": {func(r *rig) { r.deleteMembers(); r.Record(store.VolumeKey(ident(9), "data"), volume) }, "has volumes, such as data-db-9"},
		"a life, or not: its record cannot be read":   {func(r *rig) { r.deleteMembers(); r.Put(store.MemberKey(ident(9)), []byte("{")) }, "it may be of a life on node n1"},
		"a volume, or not: its record cannot be read": {func(r *rig) { r.deleteMembers(); r.Put(store.VolumeKey(ident(9), "data"), []byte("{")) }, "it may be of a volume on node n1"},
		"a volume, but on another node": {func(r *rig) {
			r.deleteMembers()
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Epoch: 1})
			elsewhere := volume
			elsewhere.Node = "n2"
			r.Record(store.VolumeKey(ident(9), "data"), elsewhere)
		}, ""},
		"lives that nobody knows": {(*rig).deleteMembers, "lives that this store does not know"},
		"a session": {func(r *rig) {
			r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 5})
		}, "it is on"},
		"another name": {func(r *rig) { r.Commit(store.Del(store.NodeKey("n1"))) }, "there is no node n1"},
		"a node that said nothing since the store was restored": {func(r *rig) {
			r.deleteMembers()
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Epoch: 1})
			r.Put(store.EpochKey, []byte("2"))
		}, "lives that this store does not know"},
		"a node that never said hello": {func(r *rig) { r.deleteMembers(); r.Commit(store.Del(store.FactsKey("n1"))) }, ""},
		"nothing": {func(r *rig) {
			r.deleteMembers()
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Epoch: 1})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			putSilentNode(r)
			c.prepare(r)
			err := RemoveNode(t.Context(), r.Store, r.Cache, "n1")
			if c.want == "" {
				if _, there := r.Get(store.NodeKey("n1")); err != nil || there {
					t.Errorf("%v, and the node is there: %v", err, there)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

func (r *rig) deleteMembers() {
	for i := range 3 {
		r.Commit(store.Del(store.MemberKey(ident(i))))
	}
}

// More lives than one transaction ends: a node that is heard of between two keeps those that
// are not ended by then.
func TestAFenceOfManyLivesComparesInEachTransaction(t *testing.T) {
	for name, back := range map[string]func(*rig){
		"it said hello": func(r *rig) {
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1", Epoch: 1})
			r.Commit(store.Del(store.FenceKey("n1")))
		},
		"it said hello, and its session is over again": func(r *rig) {
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1", Epoch: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			const lives = store.MaxOps
			for i := range lives {
				r.Record(store.MemberKey(ident(i)), testMember(i, int64(10+i), "n1", "uid1"))
			}
			r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1", Epoch: 1})
			s := &racing{Store: r.Store}
			s.before = func() { s.before = func() { s.before = func() { back(r) } } } // the word, some ends, and then
			_, err := Node(t.Context(), s, r.Cache, "n1", "ann")
			if status.Code(err) != codes.Aborted {
				t.Errorf("got %v; want it aborted", err)
			}
			ended := 0
			for i := range lives {
				if saidOf(r, i).Cause == causes.Fenced {
					ended++
				}
			}
			if ended == 0 || ended > store.MaxOps/2 {
				t.Errorf("%d lives count as over; want those of one transaction", ended)
			}
		})
	}
}

// What a node runs whose facts cannot be read ends with the word that it is off.
func TestANodeWhoseFactsCannotBeReadIsFenced(t *testing.T) {
	r := newRig(t)
	putSilentNode(r)
	r.Put(store.FactsKey("n1"), []byte("{damaged"))
	if _, err := Node(t.Context(), r.Store, r.Cache, "n1", "ann"); err != nil {
		t.Fatal(err)
	}
	kv, _ := r.Get(store.FactsKey("n1"))
	if facts, err := store.Decode[records.NodeFacts](kv); err != nil || facts.UID != "uid1" || facts.Epoch != 1 || len(facts.Strays) != 0 {
		t.Errorf("facts are %+v, %v", facts, err)
	}
	if got := saidOf(r, 0); got.Cause != causes.Fenced {
		t.Errorf("db-0 is told as %+v", got)
	}
}

func TestNoNodeIsRemovedWhileTheCountIsOpen(t *testing.T) {
	for _, done := range []bool{false, true} {
		r := newRig(t)
		putSilentNode(r)
		r.deleteMembers()
		r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Epoch: 1})
		r.Record(store.CountKey, records.Count{Epoch: 1, Nodes: []records.CountNode{{Name: "n1", UID: "uid1"}}, Done: done})
		err := RemoveNode(t.Context(), r.Store, r.Cache, "n1")
		if _, there := r.Get(store.NodeKey("n1")); (err == nil) != done || there == done {
			t.Errorf("count done %v: %v, and the node is there: %v", done, err, there)
		}
	}
}
