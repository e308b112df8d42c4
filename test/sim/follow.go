package sim

import (
	"maps"
	"reflect"
	"slices"

	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/store"
)

// stateAt is the store as it was at a revision.
func (q *raftStore) stateAt(rev store.Rev) []store.KV {
	state := map[string]store.KV{}
	for _, kv := range q.base {
		state[kv.Key] = kv
	}
	for _, b := range q.log {
		if b.Rev > rev {
			break
		}
		for _, e := range b.Events {
			if e.Delete {
				delete(state, e.Key)
			} else {
				state[e.Key] = e.KV
			}
		}
	}
	kvs := make([]store.KV, 0, len(state))
	for _, key := range slices.Sorted(maps.Keys(state)) {
		kvs = append(kvs, state[key])
	}
	return kvs
}

// breakWatch has a server's watch end: what it needs is compacted, or the connection is lost.
func (s *server) breakWatch() bool {
	if s.w.q == nil || !s.up || s.deaf || s.stale {
		return false
	}
	s.deaf = true
	s.w.note("the watch of %s ends at revision %d", s.name, s.fed)
	s.w.count("watch broken")
	s.followed()
	return true
}

// resync loads a snapshot, as a server does whose watch has ended.
func (s *server) resync() {
	if s.apart() || s.storeLink.dead {
		return
	}
	s.deaf, s.data.rev = false, s.w.latest()
	s.w.count("store loaded anew")
	if s.w.plant.SkipsWhatItMissed {
		s.fed = s.w.latest()
		must(s.cache.Apply(store.Batch{Rev: s.fed}))
		return
	}
	rev, kvs, err := s.storeLink.Snapshot(s.w.ctx, "")
	must(err)
	if err := s.cache.Load(rev, kvs); err != nil {
		s.w.fail("cache", "%s: %v", s.name, err)
	}
	s.fed = rev
}

// followed judges what a server makes of its watch: what the store was at that revision (SAFETY S18).
func (s *server) followed() {
	w, fresh := s.w, cache.New(s.storeLink, discard)
	if s.fed < w.q.from {
		return
	}
	must(fresh.Load(s.fed, w.q.stateAt(s.fed)))
	for _, ref := range w.refs {
		var has, is plan.World
		s.cache.Look(func(v cache.View) { has = v.World(ref) })
		fresh.Look(func(v cache.View) { is = v.World(ref) })
		if !reflect.DeepEqual(has, is) {
			w.fail("follower", "%s shows %s otherwise than the store had it at revision %d", s.name, ref, s.fed)
		}
	}
}
