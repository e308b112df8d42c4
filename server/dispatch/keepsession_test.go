package dispatch

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// full makes the store refuse what a full one refuses: leases, and transactions that put.
func (r *rig) full() {
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		puts := c.Method == "Grant"
		for _, op := range c.Txn.Then {
			puts = puts || !op.Delete
		}
		if puts {
			return memstore.Fault{Err: store.ErrNoSpace}
		}
		return memstore.Fault{}
	})
}

// A node whose agent begins anew while the store is full has its pings answered: what it
// guards must not end for want of room.
func TestANodeGoesOnWithItsSessionWhileTheStoreIsFull(t *testing.T) {
	r := newRig(t)
	r.begin()
	first := r.connect(n1)
	was := first.welcome()
	first.wanted()
	r.full()
	again := r.connect(n1)
	if now := again.welcome(); now.GetSession() != was.GetSession() {
		t.Errorf("session %d; want it to go on with %d", now.GetSession(), was.GetSession())
	}
	if lives := again.lives(again.wanted()); len(lives) != 1 {
		t.Errorf("told %d lives", len(lives))
	}
	again.ping(7)
	if id := again.pong(); id != 7 {
		t.Errorf("pong %d", id)
	}
	if err := first.ended(); err == nil {
		t.Error("the one before goes on")
	}
	r.Store.Fail(nil)
	again.report(records.Report{ID: ident(0), Token: token(10), Seq: 1, Phase: records.PhaseRunning})
	if got := again.stored(); got.GetStale() {
		t.Errorf("when there is room its reports are not stored: %v", got)
	}
}

func TestNoSessionGoesOnWhoseHelloWouldWriteAnotherThing(t *testing.T) {
	stray := spec.LifeID{ID: ident(5), Token: token(3)}
	for _, c := range []struct {
		name   string
		hello  hello
		change func(*rig)
	}{
		{"there is none", n2, func(*rig) {}},
		{"it is another server's", n1, func(r *rig) {
			r.change(func(s *records.Session) { s.Server = "s2" })
		}},
		{"it runs what the store does not know", hello{node: "n1", uid: "uid1", boot: "b1", cluster: "c1", holds: []spec.LifeID{stray}}, func(*rig) {}},
		{"the store was restored since", n1, func(r *rig) {
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1"})
		}},
		{"a person says that it is off", n1, func(r *rig) { r.Record(store.FenceKey("n1"), records.Fence{Node: "n1"}) }},
		{"what is stored of it is of another machine", n1, func(r *rig) {
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid2", Boot: "b1", Epoch: 1})
		}},
		{"what is stored of it is of another boot", n1, func(r *rig) {
			r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b0", Epoch: 1})
		}},
		{"nothing is stored of it", n1, func(r *rig) { r.Commit(store.Del(store.FactsKey("n1"))) }},
		{"it knows more than the store", hello{node: "n1", uid: "uid1", boot: "b1", cluster: "c1",
			known: records.Known{At: spec.Sequence{Epoch: 2, Rev: 1}}}, func(*rig) {}},
		{"the store is held", n1, func(r *rig) { r.Record(store.HoldKey, records.Hold{Cause: "why", By: "server s2"}) }},
		{"nodes are counted", n1, func(r *rig) { r.Record(store.CountKey, records.Count{Epoch: 1}) }},
		{"nobody can read whether nodes are counted", n1, func(r *rig) { r.Put(store.CountKey, []byte("{")) }},
		{"its lease ended", n1, func(r *rig) {
			kv, _ := r.Get(store.SessionKey("n1"))
			record, err := store.Decode[records.Session](kv)
			if err != nil {
				r.t.Fatal(err)
			}
			record.ID = 4711
			r.Record(store.SessionKey("n1"), record)
		}},
		{"its facts cannot be read", n1, func(r *rig) { r.Put(store.FactsKey("n1"), []byte("{")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newStill(t)
			r.admit()
			c.change(r)
			r.full()
			if _, _, err := r.server.join(t.Context(), c.hello.message()); err == nil || !strings.Contains(err.Error(), "out of space") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Which of a hello's steps fails makes no difference, and what failed in another way is told
// as it was.
func TestASessionGoesOnForWantOfRoomOnly(t *testing.T) {
	for _, method := range []string{"Grant", "Commit"} {
		for err, goesOn := range map[error]bool{store.ErrNoSpace: true, store.ErrUnavailable: false} {
			r := newStill(t)
			was := r.admit().id
			r.Store.Fail(func(c memstore.Call) memstore.Fault {
				if c.Method == method {
					return memstore.Fault{Err: err}
				}
				return memstore.Fault{}
			})
			se, _, got := r.server.join(t.Context(), helloOf())
			switch {
			case goesOn && (got != nil || se.id != was):
				t.Errorf("%s has no room: got %v, %v; want session %d to go on", method, se, got, was)
			case !goesOn && (status.Code(got) != codes.Unavailable || !strings.Contains(got.Error(), err.Error())):
				t.Errorf("%s fails: got %v; want %v", method, got, err)
			}
		}
	}
}

// The first list has to be of a revision after the hello (SAFETY S1).
func TestNoSessionGoesOnThatTheWorldDoesNotShow(t *testing.T) {
	r := newStill(t)
	r.admit()
	r.full()
	r.server.cfg.Cache = deaf{r.Cache}
	if _, _, err := r.server.join(t.Context(), helloOf()); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "it lags") {
		t.Errorf("got %v", err)
	}
}

// change rewrites n1's session under the lease that it has.
func (r *rig) change(f func(*records.Session)) {
	r.t.Helper()
	kv, _ := r.Get(store.SessionKey("n1"))
	record, err := store.Decode[records.Session](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	f(&record)
	rev, err := r.Store.Commit(r.t.Context(), store.Txn{Then: []store.Op{store.PutLeased(store.SessionKey("n1"), store.Encode(record), kv.Lease)}})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := r.Cache.Wait(ctx, rev); err != nil {
		r.t.Fatal(err)
	}
}
