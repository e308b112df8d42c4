package sim

import (
	"fmt"
	"maps"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// It is what server/memory has as files and a goroutine, with the same decision
// (records.Known.Gap). What is heard is on disk at once; there it may take a second.

// said is what the store says of itself now.
func (w *Cluster) said() (records.Known, records.Chain) {
	rev, kvs, err := w.mem.Get(w.ctx, store.ContinuityKey, store.EpochKey)
	must(err)
	var chain records.Chain
	if kv, ok := kvs[store.ContinuityKey]; ok {
		chain = got(store.Decode[records.Chain](kv))
	}
	return records.Known{
		Cluster: clusterID, Origin: fmt.Sprint("etcd", w.origin), Term: w.raft,
		At: spec.Sequence{Epoch: w.epoch, Rev: int64(rev)}, Link: chain.Newest(),
	}, chain
}

// gap says why the store is not the continuation of what is known; "": it is.
func (w *Cluster) gap(known records.Known) string {
	if w.plant.NoticesNothing {
		return ""
	}
	return w.lost(known)
}

// lost is gap, whatever is noticed.
func (w *Cluster) lost(known records.Known) string {
	now, chain := w.said()
	return known.Gap(now, chain)
}

// meet is what a server does first: it judges the store by what the one before knew, holds it
// if it went back, and says what only it knows.
func (s *server) meet() {
	w := s.w
	cause, lost := w.gap(s.kept), w.lost(s.kept)
	now, _ := w.said()
	if cause != "" && !w.held() {
		w.note("%s holds the store", s.name)
		w.count("store held by a server")
		w.commit(store.Put(store.HoldKey, store.Encode(records.Hold{Cause: cause, By: "server " + s.name, At: w.clock})))
	}
	w.judge.holds(s.name, lost)
	if s.kept.At.Epoch != 0 && (w.held() || now.At.Epoch > s.kept.At.Epoch && w.counting()) {
		w.judge.remembered(s.kept.Nodes)
		told := s.kept
		if w.plant.CountsTheBackup {
			told.Nodes = nil
		}
		w.commit(store.Put(store.KnownKey(s.name), store.Encode(told)), store.Put(store.HellosKey, []byte(s.name)))
	}
	s.heard = now
	s.remember(now)
}

// loseMemory has the disk of a server replaced by an empty one.
func (s *server) loseMemory() bool {
	if s.kept.At.Epoch == 0 {
		return false
	}
	s.stop("its disk is replaced")
	s.kept = records.Known{}
	s.w.note("%s has lost what it knew", s.name)
	s.w.forgot = s.w.forgot || s.w.back
	return true
}

// remember takes over what the store shows, unless it is held.
func (s *server) remember(now records.Known) {
	if s.w.held() {
		return
	}
	nodes := map[spec.NodeName]spec.UID{}
	if s.w.counting() {
		maps.Copy(nodes, s.kept.Nodes)
	}
	for _, n := range s.w.view().Nodes() {
		nodes[n.Node.Name] = n.Node.UID
	}
	s.heard = s.heard.Add(now)
	s.kept = s.kept.Add(now)
	s.kept.Nodes = nodes
}

// lookBack looks at the store, and ends the server when that went back.
func (s *server) lookBack() {
	switch {
	case !s.up || s.hung || s.apart():
	case s.stale:
		s.w.count("server ends: the store went back")
		s.stop("the store went back")
	default:
		now, _ := s.w.said()
		s.remember(now)
	}
}

// knows is what the server knows of the store, for nodes.
func (s *server) knows() records.Known {
	known := s.heard
	known.Nodes = nil
	return known
}

func (w *Cluster) held() bool { return w.has(store.HoldKey) }

func (w *Cluster) has(key string) bool {
	_, kvs, err := w.mem.Get(w.ctx, key)
	return err == nil && len(kvs) > 0
}

// counting: a restore waits for nodes.
func (w *Cluster) counting() bool {
	count := w.view().Count()
	return count.Open(w.view().Epoch())
}
