package dispatch

import (
	"strings"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// knows makes the rig's server know that of its store.
func (r *rig) knows(origin string, term uint64) {
	known := func() records.Known {
		rev, _, _ := r.Store.Get(r.t.Context())
		return records.Known{Origin: origin, Term: term, At: spec.Sequence{Epoch: 1, Rev: int64(rev)}, Link: records.Link{Number: 2, Nonce: "b"}}
	}
	r.server.cfg.Known, r.server.pings.known = known, known
	r.Record(store.ContinuityKey, records.Chain{Links: []records.Link{{Number: 1, Nonce: "a"}, {Number: 2, Nonce: "b"}}})
}

// hushed checks that the node was told nothing but welcome and pongs up to its last pong.
func (n *node) hushed() {
	n.r.t.Helper()
	for _, m := range n.hold {
		if m.GetWanted() != nil || m.GetPictures() != nil || m.GetFiles() != nil || m.GetStored() != nil {
			n.r.t.Errorf("while the store is held it is told %v", m)
		}
	}
}

// heldPong pings, and wants a pong that says that the store is held and nothing else of it.
func (n *node) heldPong(id int64) {
	n.r.t.Helper()
	n.ping(id)
	p := n.next("pong", func(m *proto.ToNode) bool { return m.GetPong() != nil }).GetPong()
	if p.GetId() != id || !p.GetHeld() || p.GetKnown() != nil || p.GetCurrent() {
		n.r.t.Errorf("got pong %v, want %d, held", p, id)
	}
}

func TestANodeThatKnowsMoreThanTheStoreIsHeard(t *testing.T) {
	at := func(epoch, rev int64) spec.Sequence { return spec.Sequence{Epoch: epoch, Rev: rev} }
	for name, c := range map[string]struct {
		hello hello
		why   string
	}{
		"a list of before, told by a server of an older version": {hello{newest: at(1, 1<<40)}, "revision"},
		"a later revision":       {hello{known: records.Known{At: at(1, 1<<40)}}, "revision"},
		"a later epoch":          {hello{known: records.Known{At: at(2, 1)}}, "epoch 2 is known"},
		"another etcd":           {hello{known: records.Known{Origin: "e0", At: at(1, 1)}}, "was e0"},
		"a later term":           {hello{known: records.Known{Origin: "e1", Term: 4, At: at(1, 1)}}, "term 4"},
		"a link that is missing": {hello{known: records.Known{At: at(1, 1), Link: records.Link{Number: 3, Nonce: "c"}}}, "missing"},
		"a link that is another": {hello{known: records.Known{At: at(1, 1), Link: records.Link{Number: 1, Nonce: "x"}}}, "others were made"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.begin()
			r.knows("e1", 3)
			stray := spec.LifeID{ID: ident(7), Token: token(1 << 30)}
			c.hello.node, c.hello.uid, c.hello.boot, c.hello.cluster, c.hello.holds = "n1", "uid1", "b1", "c1", []spec.LifeID{stray}
			n := r.connect(c.hello)
			if w := n.welcome(); !w.GetHeld() || w.GetKnown() != nil || w.GetSession() == 0 {
				t.Fatalf("it is welcomed with %v", w)
			}
			kv, _ := r.Get(store.HoldKey)
			hold, err := store.Decode[records.Hold](kv)
			if err != nil || hold.By != "node n1" || !strings.Contains(hold.Cause, c.why) {
				t.Errorf("the hold is %+v, %v; want one that says %q", hold, err, c.why)
			}
			kv, _ = r.Get(store.FactsKey("n1"))
			facts, err := store.Decode[records.NodeFacts](kv)
			if err != nil || len(facts.Strays) != 1 || facts.Strays[0] != stray || facts.Known == nil {
				t.Errorf("of the node %+v is stored, %v; want what it knows and its stray", facts, err)
			}
			n.heldPong(1)
			n.hushed()
		})
	}
}

func TestANodeThatKnowsNoMoreThanTheStoreHoldsNothing(t *testing.T) {
	r := newRig(t)
	r.begin()
	r.knows("e1", 3)
	h := n1
	h.known = wire.ToKnown(wire.Known(r.server.cfg.Known()))
	n := r.connect(h)
	w := n.welcome()
	if w.GetHeld() || wire.ToKnown(w.GetKnown()).Origin != "e1" {
		t.Errorf("it is welcomed with %v", w)
	}
	n.wanted()
	n.ping(1)
	p := n.next("pong", func(m *proto.ToNode) bool { return m.GetPong() != nil }).GetPong()
	if got := wire.ToKnown(p.GetKnown()); p.GetHeld() || got.Origin != "e1" || got.Term != 3 || got.At.Rev < 5 || got.Link.Number != 2 {
		t.Errorf("the pong is %v", p)
	}
	if _, held := r.Get(store.HoldKey); held {
		t.Error("the store is held")
	}
	kv, _ := r.Get(store.FactsKey("n1"))
	if facts, err := store.Decode[records.NodeFacts](kv); err != nil || facts.Known != nil {
		t.Errorf("facts are %+v, %v", facts, err)
	}
}

func TestWhileTheStoreIsHeldNodesAreToldNothing(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	n.next("files", func(m *proto.ToNode) bool { return m.GetFiles() != nil })
	n.hold = nil
	r.Record(store.HoldKey, records.Hold{Cause: "why", By: "server s2"})
	r.live(1, 11, "n1", "uid1")
	n.report(records.Report{ID: ident(0), Token: token(10), Seq: 1, Phase: records.PhaseRunning},
		records.Report{ID: ident(5), Token: token(5), Seq: 1, Phase: records.PhaseStopped}) // which this store does not know
	n.heldPong(1)
	n.heldPong(2)
	n.hushed()
	if report, stored := r.report(0); stored {
		t.Errorf("stored is %+v", report)
	}
	late := r.connect(hello{node: "n2", uid: "uid2", boot: "b1", cluster: "c1"})
	if w := late.welcome(); !w.GetHeld() {
		t.Errorf("another is welcomed with %v", w)
	}
	late.heldPong(1)
	late.hushed()
	r.Commit(store.Del(store.HoldKey))
	if lives := n.lives(n.wanted()); len(lives) != 2 {
		t.Errorf("when it ended, it is told %d lives, want both", len(lives))
	}
	r.until("the report is stored", func() bool { _, stored := r.report(0); return stored })
	late.wanted()
}
