package dispatch

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// before does something once, just before the next call of a method of the store.
func (r *rig) before(method string, do func()) {
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == method {
			r.Store.Fail(nil)
			do()
		}
		return memstore.Fault{}
	})
}

// facts are what is stored of n1.
func (r *rig) facts() records.NodeFacts {
	r.t.Helper()
	kv, _ := r.Get(store.FactsKey("n1"))
	facts, err := store.Decode[records.NodeFacts](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return facts
}

// A session that is not the store's any more tells nothing.
func TestASessionThatIsNotTheStoresTellsNothing(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"another has its key":    func(r *rig) { r.change(func(s *records.Session) { s.ID++ }) },
		"its key is gone":        func(r *rig) { r.Commit(store.Del(store.SessionKey("n1"))) },
		"the store was restored": func(r *rig) { r.Put(store.EpochKey, []byte("2")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			h := r.hand(n1)
			change(r)
			if err := h.Send(); status.Code(err) != codes.Aborted || len(h.sent) != 0 {
				t.Errorf("got %v, told %v", err, h.sent)
			}
		})
	}
}

// What a node runs and the store does not know is stored as it changes, within bounds, and
// only for the session that the store knows.
func TestStraysAreStoredWhenTheyChange(t *testing.T) {
	strays := func(n int) (lives []spec.LifeID) {
		for i := range n {
			lives = append(lives, spec.LifeID{ID: ident(i), Token: token(1)})
		}
		return lives
	}
	for _, c := range []struct {
		name   string
		holds  []spec.LifeID
		before func(*rig)
		again  bool // it is tried again
		end    codes.Code
		want   int // strays that are stored
	}{
		{"they are the same", nil, func(r *rig) { r.failCommits(store.ErrUnavailable, false) }, false, codes.OK, 0},
		{"there is one more", strays(1), func(*rig) {}, false, codes.OK, 1},
		{"there are as many as may be", strays(maxUnknownLives), func(*rig) {}, false, codes.OK, maxUnknownLives},
		{"there are more than may be", strays(maxUnknownLives + 1), func(*rig) {}, false, codes.ResourceExhausted, 0},
		{"the store is away", strays(1), func(r *rig) { r.failCommits(store.ErrUnavailable, false) }, true, codes.OK, 0},
		{"nothing may be written now", strays(1), func(r *rig) { r.server.writes.charge("n1", 2*allowanceBytes) }, true, codes.OK, 0},
		{"another session took over", strays(1), func(r *rig) {
			r.before("Commit", func() { r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1"}) })
		}, false, codes.Aborted, 0},
		{"the facts were written meanwhile", strays(1), func(r *rig) {
			r.before("Commit", func() { r.Record(store.FactsKey("n1"), r.facts()) })
		}, true, codes.OK, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			h := r.hand(n1)
			h.tells()
			h.inventory(c.holds...)
			c.before(r)
			_, again, err := h.se.sendChanges(handStream{h: h}, h.state)
			if again != c.again || status.Code(err) != c.end {
				t.Errorf("again %v, %v", again, err)
			}
			r.Store.Fail(nil)
			if got := len(r.facts().Strays); got != c.want {
				t.Errorf("%d strays are stored", got)
			}
			if !c.again {
				return
			}
			r.server.writes.nodes["n1"] = balance{}
			if _, again, err := h.se.sendChanges(handStream{h: h}, h.state); again || err != nil || len(r.facts().Strays) != 1 {
				t.Errorf("later: again %v, %v, %v", again, err, r.facts())
			}
		})
	}
}

// While the store is held strays are stored as ever, for a person who decides needs them.
func TestWhileTheStoreIsHeldStraysAreStored(t *testing.T) {
	r := newStill(t)
	r.Record(store.HoldKey, records.Hold{Cause: "why", By: "server s2"})
	h := r.hand(n1)
	h.inventory(spec.LifeID{ID: ident(3), Token: token(3)})
	h.say(true)
	if now := h.tells(); now != (toldNow{}) || len(r.facts().Strays) != 1 {
		t.Errorf("told %+v, strays %v", now, r.facts().Strays)
	}
	if !h.se.volumeReports.full {
		t.Error("what it says of volumes was judged by a store that may be wrong")
	}
}

// A node learns from the first lists also that there is nothing.
func TestTheFirstListsAreWholeThoughEmpty(t *testing.T) {
	h := newStill(t).hand(n1)
	if now := h.tells(); !now.wanted.GetFull() || !now.pictures.GetFull() || !now.files.GetFull() {
		t.Errorf("told %+v", now)
	}
}

// What is told comes with nothing that did not change.
func TestASessionWithNothingNewSaysNothing(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.Record(store.FactsKey("n2"), records.NodeFacts{Name: "n2", UID: "uid2", HostIP: "192.0.2.2"})
	r.Record(store.NodeKey("n2"), records.Node{Name: "n2", UID: "uid2"})
	r.server.snapshots.round(cache.Changes{All: true})
	h := r.hand(n1)
	first := h.tells()
	if !first.wanted.GetFull() || len(first.pictures.GetPicturesJson()) != 1 || len(first.pictures.GetHosts()) != 1 || !first.files.GetFull() {
		t.Fatalf("at first: %+v", first)
	}
	if now := h.tells(); now != (toldNow{}) {
		t.Errorf("told %+v", now)
	}
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"a history of which no snapshot says yet", func() { r.tells(0, 1, 1) }, ""},
		{"a history", func() { r.server.snapshots.round(cache.Changes{Sets: map[spec.SetRef]bool{refDB: true}}) }, "pictures"},
		{"a host", func() {
			r.Record(store.FactsKey("n2"), records.NodeFacts{Name: "n2", UID: "uid2", HostIP: "192.0.2.3"})
			r.server.snapshots.round(cache.Changes{Nodes: map[spec.NodeName]bool{"n2": true}})
		}, "pictures"},
		{"a file", func() {
			r.Record(store.SecretKey("default", "pass"), records.SecretRecord{Meta: records.Meta{Namespace: "default", Name: "pass"}, Sealed: r.sealed("pass")})
		}, "files"},
	} {
		step.change()
		now := h.tells()
		if step.want == "" {
			if len(h.sent) > 0 {
				t.Errorf("%s: told %v", step.name, h.sent)
			}
			continue
		}
		if step.name == "a history" && len(now.pictures.GetHistoriesJson()) != 1 {
			t.Errorf("the history did not come: %v", h.sent)
		}
		if len(h.sent) != 1 || kindOf(h.sent[0]) != step.want || h.sent[0].GetFiles().GetFull() || h.sent[0].GetPictures().GetFull() {
			t.Errorf("%s: told %v", step.name, h.sent)
		}
	}
}

// sealed is a Secret of the rig's key.
func (r *rig) sealed(name string) []byte {
	r.t.Helper()
	sealed, err := r.key.Seal("default", name, map[string][]byte{"k": []byte("v")})
	if err != nil {
		r.t.Fatal(err)
	}
	return sealed
}
