package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/server/quorum"
	"github.com/stead-project/stead/store"
)

// mostServers bounds the servers of a run.
const mostServers = 5

// What operators do with servers that have a store of their own.

// someMember is a server of which ok holds; nil: there is none, or nothing can be asked now.
func (w operator) someMember(ok func(*server) bool) *server {
	if w.q == nil || !w.q.ready() {
		return nil
	}
	at := w.r.IntN(len(w.servers))
	for i := range w.servers {
		if s := w.servers[(at+i)%len(w.servers)]; ok(s) {
			return s
		}
	}
	return nil
}

// addServer has a new server be there, which joins.
func (w operator) addServer() bool {
	if w.q == nil || len(w.servers) >= mostServers {
		return false
	}
	s := newServer(w.Cluster, fmt.Sprint("s", len(w.servers)))
	s.pace, s.uid, s.enters = somePace(w.r), w.q.newUID(), true
	w.servers = append(w.servers, s)
	w.note("%s is new", s.name)
	return true
}

// joinServer has a server without data do the next step of its join, as server/peers does when it is asked; it may break off after each.
func (w operator) joinServer() bool {
	s := w.someMember(func(s *server) bool { return s.enters && !s.cut })
	return s != nil && w.enter(s)
}

// enter does that step for a server.
func (w operator) enter(s *server) bool {
	step, why := quorum.Join(w.recordOf(s), w.q.members, s.record())
	switch step {
	case quorum.Refuse:
		w.note("%s may not join: %s", s.name, why)
		w.count("server refused that joins")
		return true
	case quorum.Add:
		w.commit(store.Put(store.ServerKey(s.name), store.Encode(s.record())))
		learner := slices.ContainsFunc(w.q.members, func(m stores.StoreMember) bool { return m.Learner })
		if learner || w.chance(4) {
			return true // one joins at a time; or it broke off
		}
		w.q.confirmed(w.latest())
		w.q.ids++
		w.q.members = append(w.q.members, stores.StoreMember{ID: fmt.Sprint(w.q.ids), Peer: s.record().Peer, Learner: true})
		w.note("%s is added as member %d", s.name, w.q.ids)
		w.count("server added")
		if w.chance(4) {
			return true
		}
	}
	for i := range w.q.members {
		if m := &w.q.members[i]; m.Peer == s.record().Peer {
			m.Name = s.name
			s.data, s.waits, s.enters = &member{id: m.ID}, true, false
			w.note("%s starts as member %s, without data", s.name, m.ID)
		}
	}
	return true
}

// recordOf is the record of a server's name; nil: there is none.
func (w operator) recordOf(s *server) *records.Server {
	_, kvs, err := w.mem.Get(w.ctx, store.ServerKey(s.name))
	must(err)
	if len(kvs) == 0 {
		return nil
	}
	r := got(store.Decode[records.Server](kvs[store.ServerKey(s.name)]))
	return &r
}

// removeServer has a server leave, if the rest can do without it.
func (w operator) removeServer() bool {
	s := w.someMember(func(s *server) bool { return w.q.memberOf(s) != nil })
	return s != nil && w.remove(s)
}

// replaceServer has the place of a server that lost its disk be free for one of its name.
func (w operator) replaceServer() bool {
	s := w.someMember(func(s *server) bool { return s.enters && (w.q.memberOf(s) != nil || w.recordOf(s) != nil) })
	if s == nil || !w.remove(s) {
		return false
	}
	w.count("server replaced by an empty one")
	return true
}

// memberOf is the member that has the server's name; nil: none has it.
func (q *raftStore) memberOf(s *server) *stores.StoreMember {
	for i := range q.members {
		if q.members[i].Name == s.name {
			return &q.members[i]
		}
	}
	return nil
}

// remove does what server/peers does when a server is to leave.
func (w operator) remove(s *server) bool {
	m := w.q.memberOf(s)
	if m == nil { // only its record is there
		w.commit(store.Del(store.ServerKey(s.name)))
		return true
	}
	alive := map[string]bool{}
	for _, m := range w.q.members {
		alive[m.ID] = w.q.present(w.q.with(m))
	}
	if why := quorum.MayRemove(w.q.members, alive, m.ID); why != "" && !w.plant.RemovesAny {
		w.note("%s stays: %s", s.name, why)
		w.count("removal of a server refused")
		return false
	}
	w.commit(store.Del(store.ServerKey(s.name)))
	if w.chance(4) {
		return false // it broke off
	}
	id := m.ID
	if w.q.ready() {
		w.q.confirmed(w.latest())
	}
	w.q.members = slices.DeleteFunc(w.q.members, func(m stores.StoreMember) bool { return m.ID == id })
	w.note("%s is removed, member %s", s.name, id)
	w.count("server removed")
	if s.data != nil && s.data.id == id {
		s.stop("it was removed")
		s.empty()
	}
	if !w.q.able() {
		w.fail("quorum", "%s was removed, and those that stay are no majority", s.name)
	}
	return true
}

// empty has a server's directory be a new one.
func (s *server) empty() {
	s.kept, s.data, s.waits, s.uid = records.Known{}, nil, false, s.w.q.newUID()
	if s.w.q.leader == s {
		s.w.q.leader = nil
	}
}

// comeBack has one that was removed join again, with an empty directory.
func (w operator) comeBack() bool {
	s := w.someMember(func(s *server) bool { return s.data == nil && !s.enters })
	if s == nil {
		return false
	}
	s.enters = true
	w.note("%s is to join again, with an empty directory", s.name)
	w.count("removed server joins again")
	return true
}

// loseServer has a server's disk be replaced by an empty one; that of the last one with data stays, for else there is a backup only.
func (w *Cluster) loseServer() bool {
	s := w.someServer()
	if w.q == nil || s.data == nil {
		return false
	}
	there := w.q.count(func(s *server) bool { return s != nil })
	if m := w.q.of(s); m != nil && !m.Learner && there <= w.q.most() && (there == 1 || !w.chance(6)) {
		return false
	}
	s.losesDisk()
	if behind := w.q.behind(); behind != nil && w.chance(3) {
		for _, m := range w.q.members { // others go with it before the one that lacks something has it
			if x := w.q.with(m); x != nil && x != behind {
				x.losesDisk()
			}
		}
	}
	return true
}

func (s *server) losesDisk() {
	s.stop("its disk is replaced")
	s.empty()
	s.enters = true
	s.w.note("%s has lost its disk", s.name)
	s.w.count("disk of a server lost")
}

// behind is the server of a voter whose data lacks what others confirmed; nil: there is none.
func (q *raftStore) behind() *server {
	for _, m := range q.members {
		if s := q.with(m); s != nil && !m.Learner && s.data.rev < q.w.latest() {
			return s
		}
	}
	return nil
}

// recover goes on with the data of one server, when those of most are lost: stead server recover.
func (w *Cluster) recover() bool {
	q := w.q
	if q == nil || q.count(func(s *server) bool { return s != nil }) >= q.most() {
		return false
	}
	var have []*server
	for _, m := range q.members {
		if s := q.with(m); s != nil && !m.Learner {
			have = append(have, s)
		}
	}
	if len(have) == 0 {
		return false
	}
	s := have[w.r.IntN(len(have))]
	w.note("%s goes on alone with the store of revision %d of %d", s.name, s.data.rev, w.latest())
	w.count("store goes on with one server")
	if s.data.rev < w.latest() {
		w.count("store goes on without what others had confirmed")
	}
	kvs := slices.DeleteFunc(q.stateAt(s.data.rev), func(kv store.KV) bool { return kv.Lease != 0 })
	w.unpack(saved{rev: s.data.rev, kvs: kvs, epoch: epochIn(kvs), raft: w.raft}, !w.plant.RecoversUnmarked)
	for _, x := range w.servers { // they are named, and none answers: their data is put away
		x.enters = x.enters || x != s && x.data != nil
	}
	q.reset([]*server{s})
	if w.chance(4) {
		s.loseMemory()
	}
	s.start()
	w.recovered = true
	if w.chance(2) {
		operator{w}.declared()
	}
	return true
}

// epochIn is the epoch of a store.
func epochIn(kvs []store.KV) int64 {
	for _, kv := range kvs {
		if kv.Key == store.EpochKey {
			return got(strconv.ParseInt(string(kv.Value), 10, 64))
		}
	}
	return 0
}

// heal has the store have all its servers again but those that were removed.
func (q *raftStore) heal() {
	w := operator{q.w}
	for _, s := range w.servers {
		s.cut, s.waits = false, s.data != nil && !s.up
	}
	w.recover()
	if !q.ready() {
		q.elect()
	}
	for w.arrives() {
	}
	q.tick(0)
	for range 100 {
		for _, s := range w.servers {
			switch {
			case w.over() || !q.ready():
				return
			case s.enters:
				if r := w.recordOf(s); q.memberOf(s) != nil || r != nil && r.UID != s.uid {
					w.remove(s)
				}
				w.enter(s)
			case q.present(s):
				q.catchUp(s)
			}
		}
		q.tick(0)
	}
}
