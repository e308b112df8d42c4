package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// helloOf is the hello of n1, as Join and join are given it.
func helloOf() *proto.Hello {
	return &proto.Hello{Node: "n1", Uid: "uid1", Boot: "b1", Cluster: "c1", FactsJson: []byte("{}")}
}

// What Join says of a hello is what Session does with it, and who is refused has written nothing.
func TestWhoIsRefusedIsRefusedByBothCallsAndWritesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		hello   func(*proto.Hello)
		prepare func(*rig)
		code    codes.Code
		text    string
	}{
		"no name":             {func(h *proto.Hello) { h.Node = "" }, nil, codes.InvalidArgument, "must name node, uid and boot"},
		"no uid":              {func(h *proto.Hello) { h.Uid = "" }, nil, codes.InvalidArgument, "must name node, uid and boot"},
		"no boot":             {func(h *proto.Hello) { h.Boot = "" }, nil, codes.InvalidArgument, "must name node, uid and boot"},
		"facts that are none": {func(h *proto.Hello) { h.FactsJson = []byte("{") }, nil, codes.InvalidArgument, "decode facts"},
		"a store without a cluster": {nil, func(r *rig) { r.Commit(store.Del(store.ClusterKey)) },
			codes.Unavailable, "no cluster yet"},
		"a store without an epoch": {nil, func(r *rig) { r.Commit(store.Del(store.EpochKey)) }, codes.Unavailable, "no cluster yet"},
		"a damaged epoch":          {nil, func(r *rig) { r.Put(store.EpochKey, []byte("x")) }, codes.Unavailable, "no cluster yet"},
		"a damaged record of it":   {nil, func(r *rig) { r.Put(store.NodeKey("n1"), []byte("{")) }, codes.Internal, "read node"},
		"a damaged session of it":  {nil, func(r *rig) { r.Put(store.SessionKey("n1"), []byte("{")) }, codes.Internal, "read session"},
		"a session of another machine, which has no record any more": {nil, func(r *rig) {
			r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid2", Boot: "b1", ID: 5})
		}, codes.FailedPrecondition, "another boot"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			h := helloOf()
			if c.hello != nil {
				c.hello(h)
			}
			if c.prepare != nil {
				c.prepare(r)
			}
			before, _, _ := r.Store.Snapshot(t.Context(), "")
			_, err := r.server.Join(t.Context(), h)
			_, _, err2 := r.server.join(t.Context(), h)
			for _, err := range []error{err, err2} {
				if status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v; want %v: %s", err, c.code, c.text)
				}
			}
			if after, _, _ := r.Store.Snapshot(t.Context(), ""); after != before {
				t.Errorf("the store moved from %d to %d", before, after)
			}
		})
	}
}

// A count that cannot be read may be one that has to wait for this node.
func TestNoNodeComesWhileTheCountCannotBeRead(t *testing.T) {
	r := newRig(t)
	r.Put(store.CountKey, []byte("{"))
	if _, _, err := r.server.join(t.Context(), helloOf()); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "count") {
		t.Errorf("got %v", err)
	}
	if _, there := r.Get(store.SessionKey("n1")); there {
		t.Error("it has a session")
	}
}

// A hello reads and writes in a few steps: one that fails leaves no session, and the next one
// gets in.
func TestAHelloThatFailsHalfwayLeavesNoSession(t *testing.T) {
	for at := 1; ; at++ {
		r := newRig(t)
		r.FailAt(at)
		_, _, err := r.server.join(t.Context(), helloOf())
		if err == nil {
			if at < 4 {
				t.Errorf("a hello has %d steps; want a read, a lease and a write at least", at-1)
			}
			return
		}
		if _, there := r.Get(store.SessionKey("n1")); status.Code(err) != codes.Unavailable || there {
			t.Errorf("step %d failed: got %v, and there is a session: %v", at, err, there)
		}
		if _, _, err := r.server.join(t.Context(), helloOf()); err != nil {
			t.Errorf("step %d had failed, and it came again: %v", at, err)
		}
	}
}

// deaf is a world that never shows what was written.
type deaf struct{ cache.Reader }

func (deaf) Wait(context.Context, store.Rev) error { return errors.New("it lags") }

// The first list has to be of a revision after the session (SAFETY S1).
func TestASessionThatTheWorldDoesNotShowIsEnded(t *testing.T) {
	r := newRig(t)
	r.server.cfg.Cache = deaf{r.Cache}
	if _, _, err := r.server.join(t.Context(), helloOf()); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "it lags") {
		t.Errorf("got %v", err)
	}
	if _, there := r.Get(store.SessionKey("n1")); there {
		t.Error("a session that nobody knows of was left")
	}
}

func TestAHelloOfANodeThatWasFencedEndsTheFence(t *testing.T) {
	r := newRig(t)
	r.Record(store.FenceKey("n1"), records.Fence{Node: "n1", UID: "uid1"})
	r.connect(n1).welcome()
	if _, there := r.Get(store.FenceKey("n1")); there {
		t.Error("the node is on, and the fence stands")
	}
}

// All nodes that know more are heard, not only the first, whose hello holds the store; one
// that only asks to join learns of the hold, too, and nothing of the store.
func TestWhileTheStoreIsHeldNodesThatKnowMoreAreHeard(t *testing.T) {
	r := newRig(t)
	h := n1
	h.known = records.Known{At: spec.Sequence{Epoch: 2, Rev: 1}}
	if asked, err := r.server.Join(t.Context(), helloOf()); err != nil || asked.GetHeld() || asked.GetKnown() == nil {
		t.Errorf("before the hold: Join says %v, %v", asked, err)
	}
	if strings.Contains(r.logs.String(), "store held") {
		t.Error("the log says that the store is held before it is")
	}
	for _, name := range []string{"n1", "n2"} {
		h.node, h.uid = name, "uid of "+name
		if w := r.connect(h).welcome(); !w.GetHeld() || w.GetSession() == 0 {
			t.Errorf("%s is welcomed with %v", name, w)
		}
	}
	kv, _ := r.Get(store.HoldKey)
	if hold, err := store.Decode[records.Hold](kv); err != nil || hold.By != "node n1" {
		t.Errorf("the hold is %+v, %v; want it of the first", hold, err)
	}
	if !strings.Contains(r.logs.String(), "store held") {
		t.Error("the log does not say that the store is held")
	}
	if asked, err := r.server.Join(t.Context(), &proto.Hello{Node: "n3", Uid: "uid3", Boot: "b1", FactsJson: []byte("{}")}); err != nil || !asked.GetHeld() || asked.GetKnown() != nil {
		t.Errorf("Join says %v, %v", asked, err)
	}
}

// The bounds themselves are allowed.
func TestAHelloMayBeAsLargeAsItsBounds(t *testing.T) {
	inventory := func(n int) *proto.Inventory {
		i := &proto.Inventory{}
		for ordinal := range n {
			i.Holdings = append(i.Holdings, &proto.Holding{Id: wire.Identity(ident(ordinal)), Token: wire.Token(token(1))})
		}
		return i
	}
	if why := overLimit(inventory(maxHoldings), make([]byte, factsBytes)); why != "" {
		t.Errorf("refused: %s", why)
	}
	g := joinRequest{machine: machine{"n1", "uid1"}}
	g.facts.Strays = make([]spec.LifeID, maxUnknownLives)
	if err := newStill(t).server.checkLimits(g); err != nil {
		t.Errorf("with %d strays it is refused: %v", maxUnknownLives, err)
	}
}
