package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// mirror is a cache that is moved by hand, and a clock.
type mirror struct {
	t     testing.TB
	mem   *memstore.Store
	cache *cache.Cache
	seen  store.Rev
	s     silences
	now   time.Time
}

func newMirror(t testing.TB) *mirror {
	var options []memstore.Option
	if _, counted := t.(*testing.B); !counted {
		options = append(options, memstore.WithCheckedRecords())
	}
	m := &mirror{t: t, mem: memstore.New(options...), now: time.Unix(1000, 0)}
	m.cache = cache.New(m.mem, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = m.mem.Close() })
	m.commit(store.Put(store.LeaderKey, []byte("a")), store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})), m.session())
	m.load()
	return m
}

func (m *mirror) session() store.Op {
	return store.Put(store.SessionKey("n1"), store.Encode(records.Session{Node: "n1", UID: "x"}))
}

func (m *mirror) commit(ops ...store.Op) {
	m.t.Helper()
	if _, err := m.mem.Commit(m.t.Context(), store.Txn{Then: ops}); err != nil {
		m.t.Fatal(err)
	}
}

// load takes a fresh snapshot; follow takes over all that happened since, at once.
func (m *mirror) load() {
	m.t.Helper()
	rev, kvs, err := m.mem.Snapshot(m.t.Context(), "")
	if err == nil {
		err = m.cache.Load(rev, kvs)
	}
	m.seen = rev
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *mirror) follow() {
	m.t.Helper()
	w, err := m.mem.Watch(m.t.Context(), "", m.seen)
	if err != nil {
		m.t.Fatal(err)
	}
	defer w.Close()
	end, _, err := m.mem.Snapshot(m.t.Context(), "")
	for err == nil && m.seen < end {
		var b store.Batch
		b, err = w.Next(m.t.Context())
		if err == nil {
			m.seen, err = b.Rev, m.cache.Apply(b)
		}
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// gone is how long n1 has been silent, measured by a look that began after the last one.
func (m *mirror) gone() (d time.Duration) {
	m.cache.Look(func(v cache.View) {
		d = m.s.measure(v, v.Nodes(), m.now, func() time.Time { return m.now })[0].Gone
	})
	return d
}

// TestSilenceIsMeasuredFromWhenItWasSeen: never from earlier, and anew whenever there may
// have been a session in between.
func TestSilenceIsMeasuredFromWhenItWasSeen(t *testing.T) {
	lose := store.Del(store.SessionKey("n1"))
	for _, c := range []struct {
		name string
		then func(m *mirror) // while it has been silent for a minute
		want time.Duration   // a minute later
	}{
		{"it goes on", func(m *mirror) {}, 2 * time.Minute},
		{"something else happens", func(m *mirror) {
			m.commit(store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "y"})))
			m.follow()
		}, 2 * time.Minute},
		{"a session comes", func(m *mirror) { m.commit(m.session()); m.follow() }, 0},
		{"a session comes and goes, and nobody looks meanwhile", func(m *mirror) { m.commit(m.session()); m.commit(lose); m.follow() }, time.Minute},
		{"a session comes and goes, and the watch fails meanwhile", func(m *mirror) { m.commit(m.session()); m.commit(lose); m.load() }, time.Minute},
		{"the watch fails", func(m *mirror) { m.commit(store.Put("status/x", nil)); m.load() }, time.Minute},
		{"another leads", func(m *mirror) {
			m.commit(store.Del(store.LeaderKey))
			m.commit(store.Put(store.LeaderKey, []byte("a")))
			m.follow()
		}, time.Minute},
		{"a session that cannot be read", func(m *mirror) { m.commit(store.Put(store.SessionKey("n1"), []byte("{"))); m.follow() }, 0},
		{"the session of another machine", func(m *mirror) {
			m.commit(store.Put(store.SessionKey("n1"), store.Encode(records.Session{Node: "n1", UID: "other"})))
			m.follow()
		}, 0},
		{"the node joins again after it was removed with its session", func(m *mirror) {
			m.commit(m.session())
			m.commit(lose, store.Del(store.NodeKey("n1")))
			m.commit(store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})))
			m.follow()
		}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMirror(t)
			if got := m.gone(); got != 0 {
				t.Fatalf("with a session: %s", got)
			}
			m.now = m.now.Add(time.Hour)
			m.commit(lose)
			m.follow()
			if got := m.gone(); got != 0 {
				t.Fatalf("at once: %s", got)
			}
			m.now = m.now.Add(time.Minute)
			if got := m.gone(); got != time.Minute {
				t.Fatalf("after a minute: %s", got)
			}
			c.then(m)
			m.gone()
			m.now = m.now.Add(time.Minute)
			if got := m.gone(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestSilenceIsMeasuredFromWhenItWasFirstSeen: also in a cache that saw the store begin.
func TestSilenceIsMeasuredFromWhenItWasFirstSeen(t *testing.T) {
	m := &mirror{t: t, mem: memstore.New(), now: time.Unix(1000, 0)}
	defer m.mem.Close()
	m.cache = cache.New(m.mem, slog.New(slog.DiscardHandler))
	m.commit(store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "x"})))
	m.follow()
	if got := m.gone(); got != 0 {
		t.Errorf("a node that was just seen is said to be silent for %s", got)
	}
	m.now = m.now.Add(time.Minute)
	if got := m.gone(); got != time.Minute {
		t.Errorf("after a minute it is said to be silent for %s", got)
	}
}

// TestWhatIsMeasuredIsNotWrittenToTheView: which others read; and nodes that were removed
// are forgotten.
func TestWhatIsMeasuredIsNotWrittenToTheView(t *testing.T) {
	m := newMirror(t)
	node := func(name spec.NodeName) store.Op {
		return store.Put(store.NodeKey(name), store.Encode(records.Node{Name: name, UID: "x"}))
	}
	m.commit(node("n2"), store.Del(store.SessionKey("n1")))
	m.follow()
	m.gone()
	m.now = m.now.Add(time.Minute)
	m.cache.Look(func(v cache.View) {
		for i, n := range m.s.measure(v, v.Nodes(), m.now, func() time.Time { return m.now }) {
			if n.Gone != time.Minute || v.Nodes()[i].Gone != 0 {
				t.Errorf("%s is silent for %s, and the view says %s", n.Node.Name, n.Gone, v.Nodes()[i].Gone)
			}
		}
	})
	m.commit(store.Del(store.NodeKey("n1")), store.Del(store.NodeKey("n2")), node("n3"))
	m.follow()
	m.gone()
	if _, kept := m.s.byNode["n3"]; len(m.s.byNode) != 1 || !kept {
		t.Errorf("silences are kept of %v; want n3 alone", m.s.byNode)
	}
}

// TestSilenceIsNotStampedByAnOldClock: the process stood still between reading its clock
// and looking, and the session ended meanwhile.
func TestSilenceIsNotStampedByAnOldClock(t *testing.T) {
	m := newMirror(t)
	m.gone()
	began := m.now
	m.now = m.now.Add(time.Hour)
	m.commit(store.Del(store.SessionKey("n1")))
	m.follow()
	m.cache.Look(func(v cache.View) { m.s.measure(v, v.Nodes(), began, func() time.Time { return m.now }) })
	m.now = m.now.Add(time.Second)
	if m.gone() != time.Second {
		t.Errorf("got %s a second after it was seen", m.gone())
	}
}

// TestAMemberOfALostNodeStartsElsewhere: not before its bound and the margin are over by
// the clock of the server that leads, and never when it is not guarded.
func TestAMemberOfALostNodeStartsElsewhere(t *testing.T) {
	const bound = time.Minute
	for _, c := range []struct {
		name   string
		change []func(*records.Set)
		handed bool // to another server, half way
		want   time.Duration
	}{
		{"guarded", []func(*records.Set){replace(bound)}, false, proof.SilenceNeeded(bound)},
		{"guarded, and another server leads half way", []func(*records.Set){replace(bound)}, true, proof.SilenceNeeded(bound) + bound/2},
		{"not guarded", nil, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inCluster(t, func(k *cluster) {
				far := &node{c: k, name: "n2", act: map[int]string{}, gone: map[records.VolumeID]bool{}}
				far.join()
				stopFar := k.run(far.run)
				defer stopFar()
				_, stop := k.engine("a", k.store)
				defer func() { stop() }()
				k.set(2, c.change...)
				k.until("both run", ready(2))
				var before *records.Member
				k.cache.Look(func(v cache.View) { before = v.Member(member(1)) })
				began := time.Now()
				k.commit(store.Del(store.SessionKey(before.Node)))
				if c.handed {
					time.Sleep(bound / 2)
					stop()
					_, stop = k.engine("b", k.store)
				}
				again := func(v cache.View) bool { m := v.Member(member(1)); return m.Token != before.Token }
				for time.Since(began) < 10*bound && !k.sees(again) {
					time.Sleep(k.poll)
				}
				took := time.Since(began)
				if c.want == 0 {
					if k.sees(again) {
						t.Errorf("another life was begun after %s", took)
					}
					return
				}
				if !k.sees(again) || took < c.want || took > c.want+10*time.Second {
					t.Errorf("another life was begun: %v, after %s; want %s", k.sees(again), took, c.want)
				}
				k.until("it runs elsewhere", func(v cache.View) bool {
					m := v.Member(member(1))
					return ready(2)(v) && m.Node != before.Node && m.Address == before.Address
				})
			})
		})
	}
}

func (c *cluster) sees(cond func(cache.View) bool) (ok bool) {
	c.cache.Look(func(v cache.View) { ok = cond(v) })
	return ok
}

// TestExplainSaysHowLongStill: on every server.
func TestExplainSaysHowLongStill(t *testing.T) {
	inCluster(t, func(k *cluster) {
		_, stop := k.engine("a", k.store)
		defer stop()
		other, stopOther := k.engine("b", k.store)
		defer stopOther()
		k.set(1, replace(time.Minute))
		k.until("it runs", ready(1))
		k.commit(store.Put(store.NodeKey("n2"), store.Encode(records.Node{Name: "n2", UID: "y"})),
			store.Put(store.FactsKey("n2"), store.Encode(records.NodeFacts{Name: "n2", UID: "y", Epoch: 1})),
			store.Put(store.SessionKey("n2"), store.Encode(records.Session{Node: "n2", UID: "y"})), store.Del(store.SessionKey("n1")))
		time.Sleep(20 * time.Second)
		p, _ := other.Explain(db)
		if got := fmt.Sprint(p.Blocked[0].Reason, " ", p.Blocked[0].Left); got != "NodeSilent 42s" {
			t.Errorf("got %s", got)
		}
		k.cache.Look(func(v cache.View) {
			if got := cache.NodeStates(v, other.Nodes(v))[0]; got.State != cache.NodeSilent || got.Node.Gone != 20*time.Second || got.Waits != "of its lives: 1 will have ended at their deadline in 42s" {
				t.Errorf("got %+v", got)
			}
		})
		time.Sleep(time.Minute)
		k.cache.Look(func(v cache.View) {
			if got := cache.NodeStates(v, other.Nodes(v))[0]; got.State != cache.NodeLost || got.Waits != "of its lives: 1 ended" {
				t.Errorf("got %+v", got)
			}
		})
		p, _ = other.Explain(db)
		if p.Blocked[0].Reason != causes.BlockedNoGuard {
			t.Errorf("got %+v; want that the other node does not guard lives", p.Blocked[0])
		}
	})
}
