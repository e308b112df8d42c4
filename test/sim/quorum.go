package sim

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/stores"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// raftStore is the servers' own store in the runs that have one. Each server is a member with a copy that may lag; what most voters have is
// confirmed, and is what Cluster.mem has. Raft itself is explored in test/sim/model/servers: here are what servers see of it, and
// the real decisions about members (server/quorum).
type raftStore struct {
	w       *Cluster
	members []stores.StoreMember
	leader  *server   // raft's; nil: there is none
	since   time.Time // when there last was one
	ids     int
	leases  []store.LeaseID
	late    []*proposal
	// The store at revision from was base; log is what followed.
	from store.Rev
	base []store.KV
	log  []store.Batch
}

// member is what a server has on its disk of the store.
type member struct {
	id  string
	rev store.Rev // up to which it has all
}

// withServers has the servers of this run have a store of their own. It is a choice of its own, so that runs that were kept before stay as
// they are.
func (w *Cluster) withServers() bool {
	if w.q != nil {
		return false
	}
	q := &raftStore{w: w}
	for most := 1 + 2*w.r.IntN(2); len(w.servers) < most; {
		s := newServer(w, fmt.Sprint("s", len(w.servers)))
		s.pace = somePace(w.r)
		w.servers = append(w.servers, s)
		s.start()
	}
	for _, s := range w.servers {
		s.uid = q.newUID()
		w.commit(store.Put(store.ServerKey(s.name), store.Encode(s.record())))
	}
	rev, kvs, err := w.mem.Snapshot(w.ctx, "")
	must(err)
	w.q = q
	q.rebase(rev, kvs)
	q.reset(w.servers)
	return true
}

func (q *raftStore) newUID() spec.UID {
	q.ids++
	return spec.UID(fmt.Sprintf("server-%d", q.ids))
}

func (s *server) record() records.Server {
	return records.Server{Name: s.name, UID: s.uid, Peer: s.name + ":1"}
}

// rebase notes the store that is put in the place of the one before.
func (q *raftStore) rebase(rev store.Rev, kvs []store.KV) {
	q.from, q.base, q.log, q.late = rev, kvs, nil, nil
}

// reset has these servers, and no others, be the voters, with all that the store has.
func (q *raftStore) reset(servers []*server) {
	q.members, q.leader = nil, nil
	for _, s := range q.w.servers {
		s.data, s.waits = nil, false
	}
	for _, s := range servers {
		q.ids++
		s.enters = false
		m := stores.StoreMember{ID: fmt.Sprint(q.ids), Name: s.name, Peer: s.record().Peer}
		q.members = append(q.members, m)
		s.data = &member{m.ID, q.w.latest()}
	}
	q.leader = servers[0]
}

// of is the member of the store that a server runs; nil: none.
func (q *raftStore) of(s *server) *stores.StoreMember {
	if s.data != nil {
		for i := range q.members {
			if q.members[i].ID == s.data.id {
				return &q.members[i]
			}
		}
	}
	return nil
}

// with is the server that has the data of a member; nil: it is lost.
func (q *raftStore) with(m stores.StoreMember) *server {
	for _, s := range q.w.servers {
		if s.data != nil && s.data.id == m.ID {
			return s
		}
	}
	return nil
}

// present: the server's member runs, and others reach it.
func (q *raftStore) present(s *server) bool {
	return s != nil && (s.up || s.waits) && !s.cut && q.of(s) != nil
}

// count counts the voters for whose servers ok holds; nil is that of a member whose data is lost.
func (q *raftStore) count(ok func(*server) bool) (n int) {
	for _, m := range q.members {
		if !m.Learner && ok(q.with(m)) {
			n++
		}
	}
	return n
}

// most is how many voters decide.
func (q *raftStore) most() int { return q.count(func(*server) bool { return true })/2 + 1 }

func (q *raftStore) able() bool { return q.count(q.present) >= q.most() }

// ready: something can be confirmed now.
func (q *raftStore) ready() bool { return q.present(q.leader) && q.able() }

// apart: a server gets no answer from the store.
func (s *server) apart() bool { return s.cut || s.w.q != nil && !(s.w.q.ready() && s.w.q.present(s)) }

// tick is what members do by themselves as time goes.
func (q *raftStore) tick(d time.Duration) {
	w := q.w
	switch {
	case q.ready():
		q.since = w.clock
	case q.leader != nil:
		w.note("the store has no leader any more")
		w.count("store without a leader")
		q.leader = nil
	}
	if q.leader == nil {
		w.frozen += d // of leases nobody counts the time
		if !q.able() {
			w.count("store without a quorum")
		} else if w.clock.Sub(q.since) >= time.Second {
			q.elect()
		}
	}
	for _, s := range w.servers {
		if m := q.of(s); s.waits && m != nil && !m.Learner && !s.apart() {
			s.waits = false
			s.start()
			w.note("%s serves", s.name)
		}
	}
}

// elect has one of the voters lead that have all that most have.
func (q *raftStore) elect() bool {
	w := q.w
	var can []*server
	for _, m := range q.members {
		if s := q.with(m); !m.Learner && q.present(s) && q.count(func(x *server) bool { return q.present(x) && x.data.rev <= s.data.rev }) >= q.most() {
			can = append(can, s)
		}
	}
	if len(can) == 0 {
		return false
	}
	q.leader, q.since = can[w.r.IntN(len(can))], w.clock
	w.raft++
	w.note("%s leads the store in term %d", q.leader.name, w.raft)
	w.count("store led by the next")
	if q.leader.data.rev < w.latest() {
		w.fail("quorum", "%s leads the store and has all up to revision %d; %d was confirmed", q.leader.name, q.leader.data.rev, w.latest())
		return true
	}
	for _, id := range q.leases { // a new leader gives each its whole time
		_ = w.mem.Renew(w.ctx, id)
	}
	q.fates()
	return true
}

// saw takes in what was confirmed: the leader has it, and others until these are most.
func (q *raftStore) saw(b store.Batch) {
	q.log = append(q.log, b)
	if !q.w.restoring && q.leader != nil {
		q.confirmed(b.Rev)
	}
}

// confirmed has what is confirmed be where it is then. A change of the members is confirmed like a write.
func (q *raftStore) confirmed(rev store.Rev) {
	has := func(s *server) bool { return s != nil && s.data.rev >= rev }
	q.leader.data.rev = max(q.leader.data.rev, rev)
	at := q.w.r.IntN(len(q.w.servers))
	for i := range q.w.servers {
		s := q.w.servers[(at+i)%len(q.w.servers)]
		if m := q.of(s); m != nil && !m.Learner && q.present(s) && (q.count(has) < q.most() || q.w.chance(3)) {
			s.data.rev = max(s.data.rev, rev)
		}
	}
}

// replicate has a member catch up, and a learner become a voter then.
func (w *Cluster) replicate() bool {
	s := w.someServer()
	if w.q == nil || !w.q.ready() || !w.q.present(s) {
		return false
	}
	return w.q.catchUp(s)
}

func (q *raftStore) catchUp(s *server) bool {
	m, behind := q.of(s), s.data.rev < q.w.latest()
	s.data.rev = q.w.latest()
	if m.Learner {
		m.Learner = false
		q.w.note("%s votes", s.name)
		q.w.count("learner votes")
	}
	return behind
}

// newLeader has the store be led by another voter, or the same.
func (w *Cluster) newLeader() bool { return w.q != nil && w.q.able() && w.q.elect() }

// settle has every member that runs have all that there is.
func (q *raftStore) settle() {
	for _, s := range q.w.servers {
		if q.present(s) {
			q.catchUp(s)
		}
	}
}

// goneBack: all servers have what the store went back to.
func (q *raftStore) goneBack() {
	for _, s := range q.w.servers {
		if s.data != nil {
			s.data.rev = q.w.latest()
		}
	}
}
