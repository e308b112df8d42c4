package control

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// behind is the world of a server that was cut off from its store: it follows only when
// somebody waits for it.
type behind struct {
	*cache.Cache
	follow func()
}

func (b behind) Wait(ctx context.Context, rev store.Rev) error {
	b.follow()
	return b.Cache.Wait(ctx, rev)
}

// newBehind is a server that knows the set db of generation 1, and whose store has 2.
func newBehind(t *testing.T) (*Server, *memstore.Store) {
	t.Helper()
	r := newRig(t)
	s := memstore.New()
	b := behind{Cache: cache.New(s, slog.New(slog.DiscardHandler))}
	b.follow = func() {
		rev, kvs, err := s.Snapshot(t.Context(), "")
		if err == nil {
			err = b.Load(rev, kvs)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for generation := range int64(2) {
		set := records.Set{Ref: spec.SetRef{Namespace: "default", Name: "db"}, UID: "u", Generation: generation + 1}
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(store.SetKey(set.Ref), store.Encode(set))}}); err != nil {
			t.Fatal(err)
		}
		if generation == 0 {
			b.follow()
		}
	}
	c, err := New(Config{Store: s, Cache: b, Planner: r, Nodes: new(dispatch.Broker), Key: r.key,
		About: &proto.InfoResponse{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// watcher takes the first object of a watch, and goes.
type watcher struct {
	grpc.ServerStream
	ctx   context.Context
	leave context.CancelFunc
	first *proto.Object
}

func (w *watcher) Context() context.Context { return w.ctx }

func (w *watcher) Send(e *proto.WatchEvent) error {
	if w.first == nil {
		w.first = e.GetObject()
	}
	w.leave()
	return nil
}

// Whoever changed a set by one server reads the change at another, which was cut off
// meanwhile: an update that has not begun is not told as done.
func TestWhatIsReadOfASetIsAsItIsStoredNow(t *testing.T) {
	newer := func(o *proto.Object, err error) {
		t.Helper()
		if err != nil || !bytes.Contains(o.GetJson(), []byte(`"generation":2`)) {
			t.Errorf("%v: %s; want generation 2", err, o.GetJson())
		}
	}
	c, _ := newBehind(t)
	newer(c.Get(t.Context(), &proto.GetRequest{Kind: "set", Name: "db"}))
	c, _ = newBehind(t)
	list, err := c.List(t.Context(), &proto.ListRequest{Kind: "set", Set: "db"})
	if len(list.GetObjects()) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	newer(list.GetObjects()[0], err)
	c, _ = newBehind(t)
	w := &watcher{}
	w.ctx, w.leave = context.WithCancel(t.Context())
	err = c.Watch(&proto.ListRequest{Kind: "set", Set: "db"}, w)
	newer(w.first, err)
}

// While the store is away people still see what is known; who waits is sent on.
func TestWhileTheStoreIsAwayOnlyWaitingIsRefused(t *testing.T) {
	c, s := newBehind(t)
	s.Fail(func(memstore.Call) memstore.Fault { return memstore.Fault{Err: store.ErrUnavailable} })
	if o, err := c.Get(t.Context(), &proto.GetRequest{Kind: "set", Name: "db"}); err != nil || o.GetName() != "db" {
		t.Errorf("%v, %v", o, err)
	}
	w := &watcher{}
	w.ctx, w.leave = context.WithCancel(t.Context())
	if err := c.Watch(&proto.ListRequest{Kind: "set", Set: "db"}, w); status.Code(err) != codes.Unavailable || w.first != nil {
		t.Errorf("%v, and %v was sent", err, w.first)
	}
}

func TestWhichSetAQueryIsAbout(t *testing.T) {
	db := spec.SetRef{Namespace: "default", Name: "db"}
	for _, c := range []struct {
		q    query
		want spec.SetRef
	}{
		{query{kind: proto.KindSet, ns: "default", name: "db"}, db},
		{query{kind: proto.KindMember, ns: "default", name: "db-1"}, db},
		{query{kind: proto.KindMember, ns: "default", set: "db"}, db},
		{query{kind: proto.KindRevision, ns: "default", set: "db", name: "h1"}, db},
		{query{kind: proto.KindMember, ns: "default", name: "db"}, spec.SetRef{}},
		{query{kind: proto.KindNode, name: "db"}, spec.SetRef{}},
		{query{kind: proto.KindSet, ns: "default"}, spec.SetRef{}},
		{query{kind: proto.KindSet, set: "db"}, spec.SetRef{}},
	} {
		if got, ok := c.q.ref(); ok != (c.want != spec.SetRef{}) || ok && got != c.want {
			t.Errorf("%+v: %v, %v", c.q, got, ok)
		}
	}
}
