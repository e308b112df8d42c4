package sim

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/engine"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var discard = slog.New(slog.DiscardHandler)

// server is one server process: real cache, engine and dispatch. Its cache is fed
// by hand, so that it may lie behind as far as a watch may.
type server struct {
	w      *Cluster
	name   string
	up     bool
	hung   bool // renews nothing
	cut    bool // from the store
	pace   pace
	pinged bool // since pings were answered

	publish func() // the snapshots of sets that changed
	joins   bool   // reports are offered to the leader
	trials  []trial
	folded  *plan.Plan // of a world that is about to be shown whole

	storeLink *storeLink
	cache     *cache.Cache
	fed       store.Rev
	eng       *engine.Engine
	nodes     *dispatch.Server
	term      *engine.ManualTerm // nil: it does not believe to lead
	lead      store.Leadership
	lease     store.LeaseID
	asked     time.Time // when the lease was last renewed

	kept  records.Known // on disk
	heard records.Known // of the store that answers the process
	stale bool          // the store went back under the process

	// Of a store of the servers' own.
	uid    spec.UID // of its directory
	data   *member  // nil: it has none
	waits  bool     // its member runs, and it does not serve yet
	enters bool     // it has no data, and asks to be added
	deaf   bool     // its watch has ended
}

func newServer(w *Cluster, name string) *server { return &server{w: w, name: name} }

// reader is the cache as dispatch sees it: waiting means being fed.
type reader struct {
	*cache.Cache
	s *server
}

// Wait implements cache.Reader. What a store has said that went back since is never shown: who
// waits for it does so until the process ends, which here is at once.
func (r reader) Wait(ctx context.Context, rev store.Rev) error {
	r.s.feedTo(rev)
	switch {
	case r.s.fed >= rev:
	case r.s.stale:
		return store.ErrWentBack
	case r.s.w.q != nil:
		return store.ErrUnavailable
	}
	return r.Cache.Wait(ctx, rev)
}

func (s *server) start() {
	w := s.w
	s.up, s.hung, s.term, s.stale, s.deaf = true, false, nil, false, false
	s.meet()
	if w.q != nil {
		s.data.rev = w.latest()
	}
	s.storeLink = &storeLink{Store: w.mem, w: w, s: s}
	s.cache = cache.New(s.storeLink, discard)
	rev, kvs, err := w.mem.Snapshot(w.ctx, "")
	must(err)
	must(s.cache.Load(rev, kvs))
	s.fed = rev
	s.eng = got(engine.New(engine.Config{
		Store: s.cache.Writer(s.storeLink), Cache: s.cache, ID: s.name, LeaseTTL: leaderTTL, CIDR: netip.MustParsePrefix("10.88.0.0/24"),
		Quarantine: time.Minute, VolumeID: w.newVolume, Now: s.now, Next: s.next, Cold: cold,
	}))
	s.eng.Start()
	s.nodes = got(dispatch.New(dispatch.Config{
		Store: s.cache.Writer(s.storeLink), Cache: reader{s.cache, s}, Offer: s.offer, Key: got(seal.NewKey(bytes.Repeat([]byte{7}, seal.KeyBytes))), Name: s.name, Domain: "cluster.local",
		CIDR: "10.88.0.0/24", TTL: sessionTTL, Logger: discard, Known: s.knows,
	}))
	s.publish = s.nodes.ManualPublisher()
}

// next is the planner behind the plant, before the judge.
func (s *server) next(x plan.World) plan.Plan {
	if x.Folded != nil {
		return s.planFolded(x)
	}
	p := plan.Next(s.w.plant.World(x))
	p = s.w.plant.Plan(x, p)
	if x.Set != nil {
		s.judgeFolded(x)
	}
	switch {
	case s.stale: // nothing of it can be written
	case s.joins:
		s.trials = append(s.trials, trial{x, p, s.now()})
	default:
		s.w.judge.rules.Plan(s.name, int64(s.lead.Created), s.now(), x, p)
	}
	return p
}

// stop ends the process as SIGKILL does; its leases run out by themselves.
func (s *server) stop(why string) bool {
	if !s.up && !s.waits {
		return false
	}
	s.waits = false
	s.w.note("%s ends: %s", s.name, why)
	s.up, s.term = false, nil
	for _, n := range s.w.nodes {
		if x := n.session(); x != nil && x.s == s {
			n.endSession("its server ended")
		}
	}
	return true
}

// buried ends the process that died at one of its commits.
func (s *server) buried() bool {
	if s.storeLink.dead {
		s.stop("it crashed between two writes")
	}
	return s.storeLink.dead
}

// feedTo delivers the watch up to rev.
func (s *server) feedTo(rev store.Rev) {
	if s.stale {
		return // its watch broke
	}
	if s.w.q != nil {
		if s.data == nil {
			return
		}
		if s.deaf {
			s.resync()
			return
		}
		rev = min(rev, s.data.rev)
	}
	for _, b := range s.w.mem.Since(s.fed) {
		if b.Rev > rev {
			return
		}
		s.fed = b.Rev
		if err := s.cache.Apply(b); err != nil {
			s.w.fail("cache", "%s: %v", s.name, err)
		}
	}
}

// latest is the store's own revision.
func (w *Cluster) latest() store.Rev {
	if bs := w.mem.Since(w.seen); len(bs) > 0 {
		return bs[len(bs)-1].Rev
	}
	return w.seen
}

func (s *server) feed() bool {
	w := s.w
	behind := w.latest() - s.fed
	if !s.up || s.cut && w.q == nil || behind <= 0 {
		return false
	}
	if w.chance(3) {
		behind = 1 + store.Rev(w.r.IntN(int(behind)))
	}
	s.feedTo(s.fed + behind)
	return true
}

func (w *Cluster) turn() bool {
	s := w.someServer()
	if w.chance(2) { // more often one who leads
		for _, x := range w.servers {
			if x.term != nil {
				s = x
			}
		}
	}
	if !s.up || s.term == nil {
		return false
	}
	s.turn(w.someRef())
	return true
}

func (s *server) turn(ref spec.SetRef) {
	s.term.Reconcile(s.w.ctx, ref)
	s.buried()
}

// campaign tries once to lead, as store.Candidate does.
func (s *server) campaign() bool {
	w := s.w
	if !s.up || s.apart() || s.term != nil {
		return false
	}
	if _, kvs, err := w.mem.Get(w.ctx, store.LeaderKey); err != nil || len(kvs) > 0 {
		return false
	}
	lease := got(w.mem.Grant(w.ctx, leaderTTL))
	w.granted(lease)
	rev, err := s.storeLink.Commit(w.ctx, store.Txn{
		If:   []store.Compare{store.Absent(store.LeaderKey)},
		Then: []store.Op{store.PutLeased(store.LeaderKey, []byte(s.name), lease)},
	})
	if s.buried() || err != nil {
		return false
	}
	s.lead, s.lease, s.asked = store.Leadership{Value: s.name, Created: rev}, lease, w.clock
	s.feedTo(rev)
	s.term = s.eng.Begin(s.lead)
	w.note("%s leads", s.name)
	return true
}

// noticeLoss ends a term whose lease may be over or whose key is gone; until then a deposed
// leader believes to lead.
func (s *server) noticeLoss() bool {
	if !s.up || s.term == nil {
		return false
	}
	gone := s.w.clock.Sub(s.asked) > leaderTTL
	s.cache.Look(func(v cache.View) {
		gone = gone || v.Leader().Created != s.lead.Created
	})
	if gone {
		s.w.note("%s knows that it does not lead", s.name)
		s.term.End()
		s.term = nil
	}
	return gone
}

// keepAlive answers pings and renews the leader's lease in time, unless the process hangs.
func (s *server) keepAlive() {
	if !s.up || s.hung {
		return
	}
	s.answerPings()
	if s.apart() || s.term == nil || s.w.clock.Sub(s.asked) < leaderTTL/3 {
		return
	}
	if s.w.mem.Renew(s.w.ctx, s.lease) == nil {
		s.asked = s.w.clock
	}
}

// storeReports writes what nodes have reported; false: that was nothing.
func (s *server) storeReports() bool {
	if !s.up {
		return false
	}
	before := s.w.seen
	s.nodes.StoreReports(s.w.ctx)
	return s.buried() || s.w.seen > before
}

// link has a leader continue the chain of the store.
func (w *Cluster) link() bool {
	for _, s := range w.servers {
		if s.up && !s.apart() && !s.hung && s.term != nil {
			before := w.seen
			s.term.Link(w.ctx)
			s.buried()
			return w.seen > before
		}
	}
	return false
}
