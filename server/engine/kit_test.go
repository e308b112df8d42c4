package engine

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

var db = spec.SetRef{Namespace: "default", Name: "db"}

func member(ordinal int) spec.Identity {
	return spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
}

// cluster is a store with a node that does at once what it is told, and as many
// engines as the test starts.
type cluster struct {
	t     testing.TB
	store store.Store
	mem   *memstore.Store // the same, when it is in memory
	poll  time.Duration   // how often until looks
	cache *cache.Cache    // the test's own eyes and the node's
	node  *node
	// garbled: the test wrote nonsense into a history.
	garbled bool
}

// inCluster runs f in a bubble of its own time with a fresh cluster, and checks
// afterwards, over the whole history of the store, that no identity had two lives.
func inCluster(t *testing.T, f func(c *cluster)) {
	inStore(t, func(s store.Store) error {
		_, _, err := Init(t.Context(), s)
		return err
	}, f)
}

// inStore is inCluster with a store that prepare fills.
func inStore(t *testing.T, prepare func(store.Store) error, f func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.WithCheckedRecords())
		if err := prepare(mem); err != nil {
			t.Fatal(err)
		}
		c, stop := newCluster(t, mem)
		c.mem, c.poll = mem, 100*time.Millisecond
		watch, err := mem.Watch(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		f(c)
		stop()
		oneLife(t, watch, c.node.said, c.garbled)
		watch.Close()
		_ = mem.Close()
	})
}

// newCluster is a cluster on s with its node at work; stop ends the node.
func newCluster(t testing.TB, s store.Store) (c *cluster, stop func()) {
	c = &cluster{t: t, store: s, poll: 5 * time.Millisecond, cache: cache.New(s, slog.New(slog.DiscardHandler))}
	c.node = &node{c: c, name: "n1", act: map[int]string{}, gone: map[records.VolumeID]bool{}, said: map[string]bool{}}
	stopCache := c.run(c.cache.Run)
	c.node.join()
	stopNode := c.run(c.node.run)
	return c, func() { stopNode(); stopCache() }
}

// run starts f; the returned func ends it and waits.
func (c *cluster) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil {
			c.t.Errorf("run: %v", err)
		}
	}()
	return func() { cancel(); <-done }
}

// engine starts an engine with a cache of its own on s; stop ends both.
func (c *cluster) engine(id string, s store.Store) (e *Engine, stop func()) {
	cached := cache.New(s, slog.New(slog.DiscardHandler))
	e, err := New(Config{
		Store: cached.Writer(s), Cache: cached, ID: id, LeaseTTL: 3 * time.Second, CIDR: netip.MustParsePrefix("10.88.0.0/16"), Now: clock(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	stopCache, stopEngine := c.run(cached.Run), c.run(e.Run)
	return e, func() { stopEngine(); stopCache() }
}

// clock is an engine's. One that never rests keeps the bubble's time from passing, and the
// test from ending: it ends the test program.
func clock() func() time.Time {
	var mu sync.Mutex
	var last time.Time
	same := 0
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Equal(last) {
			same++
		} else {
			last, same = now, 0
		}
		if same == 100_000 {
			panic("the engine works without end")
		}
		return last
	}
}

// commit writes ops unguarded, as another writer of those keys would.
func (c *cluster) commit(ops ...store.Op) store.Rev {
	c.t.Helper()
	rev, err := c.store.Commit(c.t.Context(), store.Txn{Then: ops})
	if err != nil {
		c.t.Fatal(err)
	}
	return rev
}

// set writes the set's record as control does, and returns the revision.
func (c *cluster) set(replicas int, change ...func(*records.Set)) store.Rev {
	c.t.Helper()
	n := int32(replicas)
	s := records.Set{
		Ref: db, UID: "u1", Generation: 1, InitialReplicas: replicas,
		Spec: spec.SetSpec{
			Replicas: &n, PodManagementPolicy: spec.OrderedReady,
			Template: spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "c", Image: "i"}}}},
		},
	}
	_, kvs, err := c.store.Get(c.t.Context(), store.SetKey(db))
	if err != nil {
		c.t.Fatal(err)
	}
	if kv, ok := kvs[store.SetKey(db)]; ok {
		s, err = store.Decode[records.Set](kv)
		if err != nil {
			c.t.Fatal(err)
		}
		s.Spec.Replicas = &n
		s.Generation++
	}
	for _, f := range change {
		f(&s)
	}
	return c.commit(store.Put(store.SetKey(db), store.Encode(s)))
}

func parallel(s *records.Set) { s.Spec.PodManagementPolicy = spec.Parallel }
func deleting(s *records.Set) { s.Deleting = true }
func replace(bound time.Duration) func(*records.Set) {
	return func(s *records.Set) {
		s.Spec.NodeLoss = &spec.NodeLoss{Policy: spec.NodeLossReplace, After: &scalar.Duration{Duration: bound}}
	}
}
func retention(scaled, deleted spec.Retention) func(*records.Set) {
	return func(s *records.Set) {
		s.Spec.Retention = &spec.RetentionPolicy{WhenScaled: scaled, WhenDeleted: deleted}
	}
}
func volumes(s *records.Set) {
	s.Spec.VolumeClaimTemplates = []spec.ClaimTemplate{{
		Metadata: spec.ObjectMeta{Name: "data"},
		Spec:     spec.ClaimSpec{Resources: spec.VolumeResources{Requests: map[string]scalar.Quantity{"storage": {Milli: 1 << 40}}}},
	}}
}

// until waits until cond holds of the cache, for up to an hour of the bubble.
func (c *cluster) until(what string, cond func(v cache.View) bool) {
	c.t.Helper()
	for range int(time.Hour / (100 * time.Millisecond)) {
		ok := false
		c.cache.Look(func(v cache.View) { ok = cond(v) })
		if ok {
			return
		}
		time.Sleep(c.poll)
	}
	c.cache.Look(func(v cache.View) {
		st := v.Status(db)
		c.t.Fatalf("%s: did not come within an hour; history %q, status %s", what, told(v), store.Encode(st))
	})
}

// ready: exactly the first n ordinals have a life, all ready.
func ready(n int) func(cache.View) bool {
	return func(v cache.View) bool {
		lives := 0
		for _, s := range v.World(db).Slots {
			if s.Member == nil {
				continue
			}
			lives++
			if s.ID.Ordinal >= n || s.Member.Goal != records.GoalRun || s.Report == nil || !s.Report.Ready {
				return false
			}
		}
		return lives == n
	}
}

// node stands for a host, its agent and dispatch: it reports each life Ready at
// once and Stopped when told to stop, unless act says otherwise for the ordinal:
// "hold" (nothing is reported) or "refuse" (Failed).
type node struct {
	c    *cluster
	name spec.NodeName
	mu   sync.Mutex
	act  map[int]string
	gone map[records.VolumeID]bool // volumes whose directory is not there
	bad  spec.RevisionHash         // never ready, whoever runs it
	seq  int64
	said map[string]bool // the ends of lives that it offered
	// offer takes reports before the node stores them itself; nil: it does not.
	offer func(context.Context, []cache.JudgedReport) []store.Rev
}

func (n *node) behave(ordinal int, how string) {
	n.mu.Lock()
	n.act[ordinal] = how
	n.mu.Unlock()
	n.report()
}

func (n *node) join() {
	uid := spec.UID("uid-" + n.name)
	n.c.commit(
		store.Put(store.NodeKey(n.name), store.Encode(records.Node{Name: n.name, UID: uid})),
		store.Put(store.FactsKey(n.name), store.Encode(records.NodeFacts{Name: n.name, UID: uid, Boot: "boot1", Epoch: 1, Guards: true, Level: spec.Level})),
		store.Put(store.SessionKey(n.name), store.Encode(records.Session{Node: n.name, UID: uid, Boot: "boot1", ID: 1})),
	)
}

func (n *node) run(ctx context.Context) error {
	sub := n.c.cache.Subscribe()
	defer sub.Close()
	for looks := 0; ; looks++ {
		if looks == 20_000 { // in the bubble no time passes meanwhile, and the test never ends
			panic("the store is written without end")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C():
			sub.Take()
		}
		n.report()
	}
}

// report tells all that is new of the node's lives, in as few writes as dispatch.
func (n *node) report() {
	n.mu.Lock()
	defer n.mu.Unlock()
	var units []store.Txn
	var reports []cache.JudgedReport
	n.c.cache.Look(func(v cache.View) {
		for _, id := range v.MembersOn(n.name) {
			if r, ok := n.news(v, id); ok {
				reports = append(reports, cache.JudgedReport{Report: &r, If: []store.Compare{v.Seen(store.MemberKey(id)), v.Seen(store.ReportKey(id))}})
			}
		}
	})
	var stored []store.Rev
	if n.offer != nil {
		stored = n.offer(n.c.t.Context(), reports)
	}
	for i, rev := range stored {
		if r := reports[i].Report; rev > 0 && r.Phase.Over() {
			n.said["over"+memberOf(r.ID)+r.Token.String()] = true
		}
	}
	for i, r := range reports {
		if len(stored) == 0 || stored[i] == 0 {
			units = append(units, store.Txn{If: r.If, Then: []store.Op{store.Put(store.ReportKey(r.Report.ID), store.Encode(r.Report))}})
		}
	}
	n.c.cache.Look(func(v cache.View) { units = append(units, n.trash(v)...) })
	for _, o := range store.CommitAll(n.c.t.Context(), n.c.store, nil, units) {
		if o.Err != nil && !errors.Is(o.Err, store.ErrConflict) {
			n.c.t.Errorf("report: %v", o.Err)
		}
	}
}

// trash does with volumes what it is told, and says how they are then.
func (n *node) trash(v cache.View) (units []store.Txn) {
	for _, vol := range v.VolumesOn(n.name) {
		w := v.World(vol.ID.Ref())
		r := records.VolumeReport{
			ID: vol.ID, Claim: vol.Claim, Volume: vol.UID, Number: vol.Number, Class: vol.Class, Node: n.name,
			State: records.VolumeTrashed, Turn: vol.Turn, SizeBytes: vol.SizeBytes,
		}
		switch gone := n.gone[vol.UID]; {
		case vol.Fate == records.FateRestoring || vol.Fate == records.FateLost && !gone:
			r.State = records.VolumeFound
		case vol.Fate == records.FateLost:
			r.State = records.VolumeAbsent
		case gone:
			r.State, r.Cause, r.Message = records.VolumeRefused, causes.VolumeMissing, "it is not there"
		}
		if old := w.Said(vol.ID, vol.Claim); old != nil && *old == r {
			continue
		}
		key := store.VolumeReportKey(vol.ID, vol.Claim, vol.UID)
		units = append(units, store.Txn{
			If:   []store.Compare{v.Seen(key)},
			Then: []store.Op{store.Put(key, store.Encode(r))},
		})
	}
	return units
}

// lose takes the directory of a volume away.
func (n *node) lose(id records.VolumeID) {
	n.mu.Lock()
	n.gone[id] = true
	n.mu.Unlock()
	n.report()
}

// news is the report of a life that says more than the stored one.
func (n *node) news(v cache.View, id spec.Identity) (next records.Report, ok bool) {
	m, r := v.Member(id), v.Report(id)
	if r != nil && r.Token != m.Token {
		r = nil
	}
	next = records.Report{ID: id, Token: m.Token, Node: n.name, Session: 1, Phase: records.PhaseRunning, Ready: true, Bound: m.Bound}
	switch {
	case r != nil && r.Phase.Over(), n.act[id.Ordinal] == "hold":
		return next, false
	case m.Goal == records.GoalStop:
		next.Phase, next.Ready = records.PhaseStopped, false
	case n.misses(m) && (r == nil || !r.Ready):
		next.Phase, next.Ready, next.Cause = records.PhasePreparing, false, causes.VolumeMissing
		if r != nil && r.Phase == next.Phase {
			return next, false
		}
	case n.act[id.Ordinal] == "refuse":
		next.Phase, next.Ready, next.Cause = records.PhaseFailed, false, "VolumeRefused"
	case m.Change != nil && r != nil && r.Ready && r.Change.ID != m.Change.ID:
		next.Change = inplace.ChangeResult{ID: m.Change.ID, Revision: m.Change.Revision, Done: true}
	case r != nil && (r.Ready || m.Revision == n.bad):
		return next, false
	case m.Revision == n.bad:
		next.Ready, next.Cause, next.Message = false, "CrashLoop", "a bad revision"
	}
	n.seq++
	next.Seq = n.seq
	return next, true
}

// misses: a volume of the life is not there.
func (n *node) misses(m *records.Member) bool {
	return slices.ContainsFunc(m.Volumes, func(v records.MemberVolume) bool { return n.gone[v.ID] })
}

// epochAt is the text of an epoch.
func epochAt(n int) []byte { return []byte(strconv.Itoa(n)) }
