package dispatch

import (
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

func TestAPingIsAnsweredAfterRenewalAndALinearizableRead(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	n.wanted()
	var renewed, read atomic.Int64 // the order of the calls
	var clock atomic.Int64
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		switch c.Method {
		case "Renew":
			renewed.Store(clock.Add(1))
		case "Get":
			read.Store(clock.Add(1))
		}
		return memstore.Fault{}
	})
	n.ping(7)
	if n.pong() != 7 || renewed.Load() == 0 || read.Load() <= renewed.Load() {
		t.Fatalf("renewed at %d, read at %d", renewed.Load(), read.Load())
	}
}

func TestWithoutALinearizableReadThereIsNoPong(t *testing.T) {
	for method, err := range map[string]error{"Get": store.ErrUnavailable, "Renew": store.ErrUnavailable} {
		t.Run(method+" fails", func(t *testing.T) {
			r := newRig(t)
			n := r.connect(n1)
			n.wanted()
			var tried atomic.Int64
			r.Store.Fail(func(c memstore.Call) memstore.Fault {
				if c.Method == method {
					tried.Add(1)
					return memstore.Fault{Err: err}
				}
				return memstore.Fault{}
			})
			n.ping(1)
			r.until("the server tried", func() bool { return tried.Load() > 0 })
			n.ping(2)
			r.until("the server tried again", func() bool { return tried.Load() > 1 })
			r.Store.Fail(nil)
			n.ping(3)
			if got := n.pong(); got != 3 {
				t.Fatalf("got pong %d, want 3 only", got)
			}
		})
	}
}

func TestAPingOfASessionThatIsNotTheStoresAnyMoreIsAborted(t *testing.T) {
	for name, c := range map[string]struct{ fail func(r *rig) }{
		"its lease is gone": {func(r *rig) {
			r.Store.Fail(func(c memstore.Call) memstore.Fault {
				if c.Method == "Renew" {
					return memstore.Fault{Err: store.ErrLeaseGone}
				}
				return memstore.Fault{}
			})
		}},
		"another session has the key, and this server's watch does not show it": {func(r *rig) {
			r.blindWatch()
			other := records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 999, Server: "s2"}
			if _, err := r.Store.Commit(r.t.Context(), store.Txn{Then: []store.Op{store.Put(store.SessionKey("n1"), store.Encode(other))}}); err != nil {
				r.t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			n := r.connect(n1)
			n.wanted()
			c.fail(r)
			n.ping(1)
			if err := n.ended(); status.Code(err) != codes.Aborted {
				t.Fatalf("got %v, want ABORTED", err)
			}
		})
	}
}

// blindWatch cuts the server's world off from the store, which goes on.
func (r *rig) blindWatch() {
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Watch" || c.Method == "Snapshot" {
			return memstore.Fault{Err: store.ErrUnavailable}
		}
		return memstore.Fault{}
	})
	r.Store.Break()
}

func TestANodeThatDoesNotPingLosesItsSession(t *testing.T) {
	r := newRig(t)
	n := r.connect(n1)
	session := n.welcome().GetSession()
	if err := r.Store.Revoke(t.Context(), store.LeaseID(session)); err != nil { // what an expiry does
		t.Fatal(err)
	}
	if err := n.ended(); status.Code(err) != codes.Aborted {
		t.Fatalf("got %v, want ABORTED", err)
	}
}

// The model check of test/sim found what happens otherwise: a node that was silent begins a
// guarded life that it was told of before, and that runs elsewhere by now.
func TestNoPongComesBeforeTheFirstList(t *testing.T) {
	o := newOutbox()
	o.addPong(pong{id: 7, read: 5})
	o.releasePong()
	if out, _ := o.take(5); len(out) > 0 {
		t.Fatalf("before anything was told: %v", out)
	}
	o.allowPongs()
	out, _ := o.take(5)
	if len(out) != 1 || out[0].GetPong().GetId() != 7 || !out[0].GetPong().GetCurrent() {
		t.Fatalf("when all was told: %v", out)
	}
}

// The revision alone would not do: a store that went back has another write at the same one.
func TestASessionOwnsItsKeyAsItWroteItOnly(t *testing.T) {
	se := &session{machine: machine{"n1", "uid1"}, boot: "b1", id: 7, rev: 5}
	record := records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 7, Server: "s1"}
	with := func(change func(*records.Session)) store.KV {
		other := record
		change(&other)
		return store.KV{Value: store.Encode(other), Mod: 5}
	}
	for name, c := range map[string]struct {
		kv   store.KV
		owns bool
	}{
		"as it wrote it":        {with(func(*records.Session) {}), true},
		"written again":         {store.KV{Value: store.Encode(record), Mod: 6}, false},
		"another session":       {with(func(s *records.Session) { s.ID = 8 }), false},
		"another machine's":     {with(func(s *records.Session) { s.UID = "uid2" }), false},
		"another boot's":        {with(func(s *records.Session) { s.Boot = "b2" }), false},
		"it cannot be read":     {store.KV{Value: []byte("{"), Mod: 5}, false},
		"a part cannot be read": {store.KV{Value: []byte(`{"node":"n1","uid":"uid1","boot":"b1","id":7,"server":1}`), Mod: 5}, false},
		"there is no key":       {store.KV{}, false},
	} {
		if got := se.owns(c.kv); got != c.owns {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
