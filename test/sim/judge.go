package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// judge knows the truth, from the hosts, and judges what is written and planned.
type judge struct {
	w        *Cluster
	settling bool
	rules    *rules.Judge                 // of plans
	alive    map[spec.Identity]run        // the process that runs
	newest   map[spec.Identity]spec.Token // ever, of any store
	lives    map[life]*lifeTruth
	volumes  map[records.VolumeID]*volumeTruth
	former   []map[records.VolumeID]records.VolumeFate // what stores had of volumes that went back, or were replaced, since one was declared
	offered  []cache.JudgedReport                      // that a leader is about to store with what follows
	had      map[spec.UID]time.Time                    // when a store had a session of the machine last
	may      map[telling]string                        // what a life may be told of its new volumes at most
	lineages map[records.VolumeID]*lineage
	arrived  map[records.VolumeID]bool // copies of moves that were ever in their place
	backs    map[moves.MoveID]bool     // went back, in any history of the store
	has      map[moves.MoveID]bool     // their sources had all volumes when they said so to an abort
	forgotBy map[string]bool           // who has left, and was forgotten by another
	jobs     map[spec.SetRef]*jobsTruth
	revs     map[revisionKey]*records.Revision // all there ever were
	stored
}

// stored is what the present store has said.
type stored struct {
	lasts   map[spec.Identity]spec.Token // the newest token written of each
	goals   map[life]records.Goal
	ends    map[life]bool     // it was told that they are over
	numbers map[numberKey]int // the highest of each claim
	counted counted
}

func newStored() stored {
	return stored{map[spec.Identity]spec.Token{}, map[life]records.Goal{}, map[life]bool{}, map[numberKey]int{}, newCounted()}
}

// lifeTruth is what there ever was of a life.
type lifeTruth struct {
	first    run // where and in which boot it was first started
	over     bool
	left     bool          // its hook decommission has succeeded
	stopped  bool          // a store asked for its end
	byHost   bool          // its host goes down, and ended it without one
	resolved bool          // an operator ended it by hand
	fenced   bool          // somebody said that its machine was off
	bound    time.Duration // of a guarded one
	service  *string       // under which it was told to be found
	start    *startTruth
	claims   []records.VolumeID // of PersistentVolumeClaims, that it was given
	set      spec.UID           // of which it is,
	began    spec.RevisionHash  // and with which revision it began
	change   changeTruth
}

// volumeTruth is what there ever was of a volume.
type volumeTruth struct {
	known     bool          // a store had it
	owner     spec.Identity // that had it last, on node; node "": nobody
	node      spec.NodeName
	handed    bool     // a life had it, and it was not erased since
	used      spec.UID // under which set it was ready first
	going     bool     // a store said that it is reclaimed
	toGo      bool     // the store says that it is to be, by policy or by a user's word
	behind    bool     // left on a host that was off: to the trash, should it return
	destroyed bool     // its disk died
}

// run is a process: of which life, on which host, in which boot.
type run struct {
	token spec.Token
	node  spec.NodeName
	uid   spec.UID
	boot  spec.BootID
}

func newJudge(w *Cluster) *judge {
	j := &judge{
		w: w, alive: map[spec.Identity]run{}, newest: map[spec.Identity]spec.Token{}, lives: map[life]*lifeTruth{},
		volumes: map[records.VolumeID]*volumeTruth{}, had: map[spec.UID]time.Time{}, may: map[telling]string{}, stored: newStored(),
		lineages: map[records.VolumeID]*lineage{}, arrived: map[records.VolumeID]bool{}, backs: map[moves.MoveID]bool{}, has: map[moves.MoveID]bool{}, forgotBy: map[string]bool{},
		jobs: map[spec.SetRef]*jobsTruth{}, revs: map[revisionKey]*records.Revision{},
	}
	j.rules = &rules.Judge{Fail: w.fail, Count: w.count, Alive: func(id spec.Identity) spec.Token { return j.alive[id].token }}
	j.rules.Changed = func(id spec.Identity, token spec.Token, to spec.RevisionHash) bool {
		return slices.ContainsFunc(j.life(id, token).change.orders, func(o inplace.ChangeOrder) bool { return o.Revision == to })
	}
	j.rules.Restored()
	return j
}

func (j *judge) life(id spec.Identity, token spec.Token) *lifeTruth {
	return entry(j.lives, life{id, token})
}

func (j *judge) volume(id records.VolumeID) *volumeTruth { return entry(j.volumes, id) }

// entry is that of a key, made if need be.
func entry[K comparable, V any](m map[K]*V, k K) *V {
	if m[k] == nil {
		m[k] = new(V)
	}
	return m[k]
}

// restored: another store takes the place of the one that is shown. It may say again what was
// said before; what hosts did stays, and what they were told by the one before.
func (j *judge) restored() {
	if !j.w.back {
		j.former = nil
	}
	had := map[records.VolumeID]records.VolumeFate{}
	for _, ref := range j.w.withClaims() {
		for _, vol := range j.w.view().Volumes(ref) {
			had[vol.UID] = vol.Fate
		}
	}
	j.former = append(j.former, had)
	j.stored = newStored()
	j.jobsRestored()
	j.rules.Restored()
}

// started judges the begin of a process: no other of the identity runs anywhere, the
// life was never told to be over, and was never started elsewhere or in another boot.
func (j *judge) started(p *place, token spec.Token) {
	l, now := life{p.id, token}, run{token, p.n.name, p.n.uid, p.n.boot()}
	if other, ok := j.alive[p.id]; ok && other != now && !j.beside(l, life{p.id, other.token}, other.uid) && !j.beside(life{p.id, other.token}, l, now.uid) {
		j.w.fail("one life", "%s starts %s on %s while %s runs on %s", p.id, token, now.node, other.token, other.node)
	}
	truth := j.life(p.id, token)
	if truth.over {
		j.w.fail("one life", "%s starts %s on %s, which was told to be over", p.id, token, now.node)
	}
	if before := truth.first; before != (run{}) && before != now {
		j.w.fail("token once", "%s starts %s on %s in %s; it was started on %s in %s", p.id, token, now.node, now.boot, before.node, before.boot)
	}
	truth.first, j.alive[p.id] = now, now
	j.shared(l, now)
	j.inBound(p.id, now)
	j.w.count("process started")
}

// ended takes note of the end of a process.
func (j *judge) ended(l life) {
	if j.alive[l.id].token == l.token {
		delete(j.alive, l.id)
	}
}

// before judges one commit against what was stored before it.
func (j *judge) before(b store.Batch) {
	v := j.w.view()
	j.count(v, b)
	j.endsIn(v, b)
	for _, e := range b.Events {
		switch kind, _ := store.Kind(e.Key); {
		case kind == store.KindMember && j.ownerless(v, e.Key), kind == store.KindVolume && !endsMove(v, b, e.Key) && j.ownerless(v, e.Key):
		case kind == store.KindMember:
			j.member(v, b, e)
		case kind == store.KindReport && !e.Delete:
			j.report(e)
		case kind == store.KindVolume:
			j.written(v, b, e)
		case kind == store.KindJobs && !e.Delete:
			j.jobsWritten(v, e)
		case kind == store.KindSet && !e.Delete:
			j.jobsWanted(v, e)
		case kind == store.KindRevision && !e.Delete:
			j.revision(e)
		case kind == store.KindMove:
			j.move(v, b, e)
		case kind == store.KindIdentity && e.Delete:
			j.w.fail("identities", "%s is gone: its last token is not known any more", e.Key)
		case kind == store.KindIdentity:
			j.marked(v, b, e)
		}
	}
}

// decoded is the record that is written, which must be readable.
func decoded[T any](j *judge, e store.Event) (T, bool) {
	doc, err := store.Decode[T](e.KV)
	if err != nil {
		j.w.fail("records", "%v", err)
	}
	return doc, err == nil
}

// endsMove: the volume's record follows a move that was there: its copies are where the move says, whoever owns the set.
func endsMove(v cache.View, b store.Batch, key string) bool {
	ref, _ := store.RefOfKey(key)
	for _, s := range v.World(ref).Slots {
		if s.Move != nil && slices.ContainsFunc(s.Move.Claims, func(c moves.MoveClaim) bool { return store.VolumeKey(s.ID, c.Claim) == key }) {
			return slices.ContainsFunc(b.Events, func(e store.Event) bool { return e.Key == store.MoveKey(s.ID) })
		}
	}
	return false
}

// ownerless: what is written is of an orphaned set, and wrong.
func (j *judge) ownerless(v cache.View, key string) bool {
	ref, _ := store.RefOfKey(key)
	set := v.Set(ref)
	if !rules.Orphaned(set) || j.w.restoring {
		return false
	}
	j.w.fail("orphans", "%s is written, and nobody owns %s", key, ref)
	return true
}

// member: tokens grow and are of this epoch, and Stop is final.
func (j *judge) member(v cache.View, b store.Batch, e store.Event) {
	if e.Delete {
		j.forgotten(v, b, e.Key)
		return
	}
	m, ok := decoded[records.Member](j, e)
	if !ok {
		return
	}
	l := life{m.ID, m.Token}
	switch last := j.lasts[m.ID]; {
	case m.Token.Compare(last) < 0 || m.Token != last && j.goals[l] != "":
		j.w.fail("tokens", "%s gets token %s after %s", m.ID, m.Token, last)
	case j.goals[l] == records.GoalStop && m.Goal != records.GoalStop:
		j.w.fail("tokens", "%s %s was told to stop and is wanted again", m.ID, m.Token)
	}
	old := v.Member(m.ID)
	if old != nil && old.Token != m.Token && !j.proven(v, old) {
		j.w.fail("proof", "%s gets %s, and nothing proves that %s is over", m.ID, m.Token, old.Token)
	}
	if held := v.Addresses()[m.Address.String()]; held != nil && held.FreedAt == nil && held.ID != m.ID {
		j.w.fail("addresses", "%s gets the address %s of %s", m.ID, m.Address, held.ID)
	}
	if rec := v.Identity(m.ID); rec != nil && rec.Address.IsValid() && rec.Address != m.Address {
		j.w.fail("addresses", "%s gets the address %s; it has %s", m.ID, m.Address, rec.Address)
	}
	if old != nil && old.Token == m.Token && old.Bound != m.Bound {
		j.w.fail("bound", "the bound of %s %s becomes %s after %s", m.ID, m.Token, m.Bound, old.Bound)
	}
	if old != nil && old.Bound > 0 && old.Node != m.Node && !j.ends[life{m.ID, old.Token}] {
		j.w.count("guarded life replaced elsewhere")
	}
	if old != nil && old.Node != m.Node && j.life(m.ID, old.Token).fenced {
		j.w.count("fenced life replaced elsewhere")
	}
	if old == nil || old.Token != m.Token {
		j.firstStart(v, &m)
		j.notes(v, &m)
		if !j.w.restoring {
			j.startsWithClaims(v, &m)
			j.startsBesideMove(v, &m)
			j.unknown(v, l)
		}
	}
	truth := j.life(m.ID, m.Token)
	j.counts(b, old, &m, truth)
	j.ordersChange(v, old, &m, truth)
	j.lasts[m.ID], j.goals[l], truth.bound = m.Token, m.Goal, m.Bound
	if m.Token.Compare(j.newest[m.ID]) > 0 {
		j.newest[m.ID] = m.Token
	}
	if m.Goal == records.GoalStop && !truth.stopped {
		truth.stopped = true
		j.stops(v, b, &m)
	}
}

// forgotten: a life that is forgotten was proven over, and what becomes of its volumes
// was decided.
func (j *judge) forgotten(v cache.View, b store.Batch, key string) {
	ref, _ := store.RefOfKey(key)
	for _, s := range v.World(ref).Slots {
		if store.MemberKey(s.ID) != key || s.Member == nil {
			continue
		}
		if !j.proven(v, s.Member) {
			j.w.fail("proof", "%s %s is forgotten, and nothing proves that it is over", s.ID, s.Member.Token)
		}
		if !s.Member.StopReason.IsUnwanted() {
			j.undecided(v, b, &s)
		}
	}
}

// proven: the life runs nowhere, and never will.
func (j *judge) proven(v cache.View, m *records.Member) bool {
	return j.alive[m.ID].token != m.Token && (j.life(m.ID, m.Token).over || j.lapsed(v, m))
}

// report judges what is stored of a life.
func (j *judge) report(e store.Event) {
	if r, ok := decoded[records.Report](j, e); ok {
		j.said(&r)
	}
}

// said: what is told to be over does not run.
func (j *judge) said(r *records.Report) {
	l := life{r.ID, r.Token}
	if !r.Phase.Over() {
		if j.ends[l] {
			j.w.fail("reports", "%s %s is told to be %s after its end", r.ID, r.Token, r.Phase)
		}
		return
	}
	truth := j.life(r.ID, r.Token)
	truth.over, j.ends[l] = true, true
	if r.Cause == causes.Fenced {
		truth.fenced = true
		j.w.count("life over by a fence")
	}
	if j.alive[r.ID].token == r.Token {
		j.w.fail("one life", "%s %s is told to be over while it runs on %s", r.ID, r.Token, j.alive[r.ID].node)
	}
}

func (l life) compare(o life) int {
	return cmp.Or(l.id.Compare(o.id), l.token.Compare(o.token))
}
