package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// apart is a server with embedded etcd in this process, and nodes in others.
type apart struct {
	*cluster
	dir    string
	socket string
	hosts  int
	nodes  *nodes
	stored *countedStore
	stop   func() // ends the server; may be called again
}

// newApart starts a server and that many nodes of a kind, "light" or "agent". It returns when all
// are connected.
func newApart(b *testing.B, kind string, hosts int) *apart {
	b.Helper()
	h := newServer(b)
	h.join(kind, hosts)
	return h
}

// newServer is newApart without nodes.
func newServer(b *testing.B) *apart {
	b.Helper()
	dir, err := os.MkdirTemp("", "stead-b") // short, for the socket's sake
	must(b, err)
	b.Cleanup(func() { must(b, os.RemoveAll(dir)) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	b.Cleanup(cancel)
	stored := &countedStore{Store: openStore(b, filepath.Join(dir, "etcd"))}
	h := &apart{cluster: &cluster{b: b, ctx: ctx, store: stored}, dir: dir, socket: filepath.Join(dir, "s.sock"), stored: stored}
	h.serve("s1")
	conn, err := server.Dial(h.socket)
	must(b, err)
	b.Cleanup(func() { must(b, conn.Close()) })
	h.api = proto.NewControlClient(conn)
	return h
}

// serve starts a server of that name, in place of the one before.
func (h *apart) serve(name string) {
	h.b.Helper()
	s, err := server.New(server.Config{
		Store: h.store, StoreName: "embedded etcd", Name: name, Version: "bench",
		Socket: h.socket, KeyFile: filepath.Join(h.dir, "secret.key"), SeenFile: filepath.Join(h.dir, "seen.json"),
	})
	must(h.b, err)
	ctx, cancel := context.WithCancel(h.ctx)
	end := make(chan error, 1)
	go func() { end <- s.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		must(h.b, <-end)
	})
	h.b.Cleanup(h.stop)
	select {
	case <-s.Serving():
	case <-time.After(patience):
		h.b.Fatal("the server does not serve")
	}
}

// join starts nodes and waits for all. What agents keep is on the disk if there is one host, and of many, which have a disk
// each, on a tmpfs.
func (h *apart) join(kind string, hosts int) {
	h.b.Helper()
	dir := h.dir
	if kind == "agent" && hosts > 1 {
		var err error
		dir, err = os.MkdirTemp("/dev/shm", "stead-b")
		must(h.b, err)
		h.b.Cleanup(func() { must(h.b, os.RemoveAll(dir)) })
	}
	h.hosts, h.nodes = hosts, startNodes(h.b, kind, hosts, h.socket, dir)
	h.connected("s1", hosts)
}

// connected waits until that many nodes have a session with the server of that name.
func (h *apart) connected(name string, want int) {
	h.b.Helper()
	h.within("the nodes are connected", func() bool {
		n := 0
		for _, s := range h.sessions() {
			if s.Server == name {
				n++
			}
		}
		return n == want
	})
}

func (h *apart) sessions() (all []records.Session) {
	h.b.Helper()
	_, kvs := h.snapshot(store.KindSession)
	for _, kv := range kvs {
		s, err := store.Decode[records.Session](kv)
		must(h.b, err)
		all = append(all, s)
	}
	return all
}

// within waits for up to ten minutes.
func (h *apart) within(what string, ok func() bool) {
	h.b.Helper()
	for began := time.Now(); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 10*time.Minute {
			h.b.Fatalf("%s: not within ten minutes; of the nodes: %+v", what, h.nodes.counts())
		}
	}
}

// settle waits until the store has not moved for that long.
func (h *apart) settle(rest time.Duration) {
	h.b.Helper()
	last, since := h.rev(), time.Now()
	h.within("the store rests", func() bool {
		if now := h.rev(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > rest
	})
}

func (h *apart) rev() store.Rev {
	h.b.Helper()
	rev, _ := h.snapshot(store.EpochKey)
	return rev
}

// snapshot is what is stored below a kind. It reads again while the store does not answer in time.
func (h *apart) snapshot(kind string) (rev store.Rev, kvs []store.KV) {
	h.b.Helper()
	h.within("the store answers", func() bool {
		var err error
		rev, kvs, err = h.store.Snapshot(h.ctx, kind+"/")
		if !errors.Is(err, store.ErrUnavailable) {
			must(h.b, err)
		}
		return err == nil
	})
	return rev, kvs
}

// lives are the tokens of the lives that are reported, and the revision.
func (h *apart) lives() (store.Rev, map[spec.Identity]spec.Token) {
	h.b.Helper()
	rev, kvs := h.snapshot(store.KindReport)
	tokens := make(map[spec.Identity]spec.Token, len(kvs))
	for _, kv := range kvs {
		r, err := store.Decode[records.Report](kv)
		must(h.b, err)
		tokens[r.ID] = r.Token
	}
	return rev, tokens
}

func (h *apart) restart(set string) {
	h.b.Helper()
	_, err := h.api.Restart(h.ctx, &proto.RestartRequest{Set: set})
	must(h.b, err)
}

// phase is one thing that is done to members; it is over when a report of each of n members came
// that is as wanted, before being the token of the member's life at first.
type phase struct {
	name   string
	n      int
	do     func()
	wanted func(r *records.Report, before spec.Token) bool
}

func ready(r *records.Report, _ spec.Token) bool         { return r.Ready }
func replaced(r *records.Report, before spec.Token) bool { return r.Ready && r.Token != before }
func stopped(r *records.Report, _ spec.Token) bool       { return r.Phase == records.PhaseStopped }

// follow reads reports until those of n members were as wanted, and returns of how many they were. The
// report of an end may be removed with its life's record, without having been stored.
func follow(ctx context.Context, w store.Watch, n int, before map[spec.Identity]spec.Token, wanted func(*records.Report, spec.Token) bool) (int, error) {
	done := make(map[string]bool, n) // by key
	for len(done) < n {
		batch, err := w.Next(ctx)
		if err != nil {
			return len(done), err
		}
		for _, ev := range batch.Events {
			r := records.Report{Phase: records.PhaseStopped}
			if !ev.Delete {
				r, err = store.Decode[records.Report](ev.KV)
				if err != nil {
					return len(done), err
				}
			}
			if wanted(&r, before[r.ID]) {
				done[ev.Key] = true
			}
		}
	}
	return len(done), nil
}

// phases are what is done to a set of n members: created in order, updated, scaled to zero; and
// to another one: created in parallel, scaled to zero.
func (h *apart) phases(n int) []phase {
	return []phase{
		{"ordered", n, func() { h.apply("ordered", "OrderedReady", n) }, ready},
		{"rolling", n, func() { h.restart("ordered") }, replaced},
		{"to-zero", n, func() { h.apply("ordered", "OrderedReady", 0) }, stopped},
		{"parallel", n, func() { h.apply("parallel", "Parallel", n) }, ready},
		{"parallel-to-zero", n, func() { h.apply("parallel", "Parallel", 0) }, stopped},
	}
}

// measure does p.
func (h *apart) measure(p phase) spent {
	h.b.Helper()
	from, before := h.lives()
	ctx, cancel := context.WithTimeout(h.ctx, 20*time.Minute)
	defer cancel()
	w, err := h.store.Watch(ctx, store.KindReport+"/", from)
	must(h.b, err)
	defer w.Close()
	s := spent{members: p.n, hop: h.hops() / hops}
	begin := h.now()
	began := time.Now()
	end := h.profile(p.name)
	p.do()
	if done, err := follow(ctx, w, p.n, before, p.wanted); err != nil {
		h.b.Fatalf("%s: %d of %d members: %v; of the nodes: %+v", p.name, done, p.n, err, h.nodes.counts())
	}
	s.took = time.Since(began)
	s.used = h.now().minus(begin)
	end()
	s.hop = (s.hop + h.hops()/hops) / 2
	return s
}

// profile writes what the processors of server and nodes do into the directory STEAD_PROFILES, if there is
// one, until end is called.
func (h *apart) profile(name string) (end func()) {
	h.b.Helper()
	dir := os.Getenv("STEAD_PROFILES")
	if dir == "" {
		return func() {}
	}
	var own profiles
	path := filepath.Join(dir, name)
	must(h.b, own.to(path))
	h.nodes.profile(path)
	return func() {
		must(h.b, own.to("-"))
		h.nodes.profile("")
	}
}

// now is what all has used so far.
func (h *apart) now() (u used) {
	h.b.Helper()
	c, err := ownCounts()
	must(h.b, err)
	u = used{server: c, nodes: h.nodes.counts(), revisions: h.rev(), written: h.stored.written.Load()}
	u.fsyncs, u.logged = storeLog(h.b)
	return u
}
