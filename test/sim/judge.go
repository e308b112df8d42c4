package sim

import (
	"cmp"
	"time"

	"github.com/stead-project/stead/records"
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
	alive    map[spec.Identity]run        // the process that runs
	first    map[life]run                 // where and in which boot a life was first started
	over     map[life]bool                // a store was told that it is over
	ends     map[life]bool                // this store was told so
	stopped  map[life]bool                // a store ever asked for its end
	newest   map[spec.Identity]spec.Token // ever, of any store
	resolved map[life]bool                // an operator ended it by hand
	lasts    map[spec.Identity]spec.Token // the newest token written of each
	goals    map[life]records.Goal
	volumes  map[records.VolumeID]volumeRun
	former   []map[records.VolumeID]records.VolumeFate // what stores had of volumes that went back, or were replaced, since one was declared
	ids      map[records.VolumeID]bool                 // of all volumes there ever were
	used     map[records.VolumeID]spec.UID             // of those that were ready once: under which set first
	going    map[records.VolumeID]bool                 // a store ever said that it is reclaimed
	behind   map[records.VolumeID]bool                 // left on a host that was off: to the trash, should it return
	bounds   map[life]time.Duration                    // of guarded lives
	had      map[spec.UID]time.Time                    // when a store had a session of the machine last
	counted  counted
	fenced   map[life]bool // somebody said that its machine was off

	storageTruth
	rules *rules.Judge // of plans
}

// run is a process: of which life, on which host, in which boot.
type run struct {
	token spec.Token
	node  spec.NodeName
	uid   spec.UID
	boot  spec.BootID
}

type volumeRun struct {
	owner spec.Identity
	node  spec.NodeName
}

func newJudge(w *Cluster) *judge {
	j := &judge{
		w: w, alive: map[spec.Identity]run{}, first: map[life]run{}, over: map[life]bool{}, ends: map[life]bool{},
		stopped: map[life]bool{}, newest: map[spec.Identity]spec.Token{}, resolved: map[life]bool{},
		lasts: map[spec.Identity]spec.Token{}, goals: map[life]records.Goal{},
		volumes: map[records.VolumeID]volumeRun{}, going: map[records.VolumeID]bool{}, behind: map[records.VolumeID]bool{}, ids: map[records.VolumeID]bool{}, used: map[records.VolumeID]spec.UID{},
		bounds: map[life]time.Duration{}, had: map[spec.UID]time.Time{}, counted: newCounted(), fenced: map[life]bool{},

		storageTruth: newStorageTruth(),
	}
	j.rules = &rules.Judge{Fail: w.fail, Count: w.count, Alive: func(id spec.Identity) spec.Token { return j.alive[id].token }}
	j.rules.Restored()
	return j
}

// restored: another store takes the place of the one that is shown. It may say again what was
// said before; what hosts did stays, and what they were told by the one before.
func (j *judge) restored() {
	if !j.w.back {
		j.former = nil
	}
	had := map[records.VolumeID]records.VolumeFate{}
	for _, ref := range j.w.refs {
		for _, vol := range j.w.view().Volumes(ref) {
			had[vol.UID] = vol.Fate
		}
	}
	j.former = append(j.former, had)
	j.lasts, j.goals = map[spec.Identity]spec.Token{}, map[life]records.Goal{}
	j.ends = map[life]bool{}
	j.numbers = map[numberKey]int{}
	j.counted = newCounted()
	j.rules.Restored()
}

// started judges the begin of a process: no other of the identity runs anywhere, the
// life was never told to be over, and was never started elsewhere or in another boot.
func (j *judge) started(p *place, token spec.Token) {
	l, now := life{p.id, token}, run{token, p.n.name, p.n.uid, p.n.boot()}
	if other, ok := j.alive[p.id]; ok && !j.beside(l, life{p.id, other.token}, other.uid) && !j.beside(life{p.id, other.token}, l, now.uid) {
		j.w.fail("one life", "%s starts %s on %s while %s runs on %s", p.id, token, now.node, other.token, other.node)
	}
	if j.over[l] {
		j.w.fail("one life", "%s starts %s on %s, which was told to be over", p.id, token, now.node)
	}
	if before, ok := j.first[l]; ok && before != now {
		j.w.fail("token once", "%s starts %s on %s in %s; it was started on %s in %s", p.id, token, now.node, now.boot, before.node, before.boot)
	}
	j.first[l], j.alive[p.id] = now, now
	j.inBound(p.id, now)
	j.w.count("process started")
}

// ended takes note of the end of a process.
func (j *judge) ended(l life) {
	if j.alive[l.id].token == l.token {
		delete(j.alive, l.id)
	}
}

// ending judges that a process which an agent ends was asked to end: by name, or because
// the identity has had a newer life.
func (j *judge) ending(n *node, id spec.Identity, token spec.Token) {
	l := life{id, token}
	if !j.stopped[l] && !j.resolved[l] && j.newest[id].Compare(token) <= 0 {
		j.w.fail("absence", "%s ends %s %s, and nobody asked for it", n.name, id, token)
	}
}

// before judges one commit against what was stored before it.
func (j *judge) before(b store.Batch) {
	v := j.w.view()
	j.count(v, b)
	for _, e := range b.Events {
		switch kind, _ := store.Kind(e.Key); {
		case (kind == store.KindMember || kind == store.KindVolume) && j.ownerless(v, e.Key):
		case kind == store.KindMember:
			j.member(v, b, e)
		case kind == store.KindReport && !e.Delete:
			j.report(e)
		case kind == store.KindVolume:
			j.volume(v, b, e)
		case kind == store.KindIdentity && e.Delete:
			j.w.fail("identities", "%s is gone: its last token is not known any more", e.Key)
		case kind == store.KindIdentity:
			j.marked(v, e)
		}
	}
}

// ownerless: what is written is of an orphaned set, and wrong.
func (j *judge) ownerless(v cache.View, key string) bool {
	ref, _ := store.RefOfKey(key)
	set, _ := v.Set(ref)
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
	m, err := store.Decode[records.Member](e.KV)
	if err != nil {
		j.w.fail("records", "%v", err)
		return
	}
	l := life{m.ID, m.Token}
	switch last := j.lasts[m.ID]; {
	case m.Token.Compare(last) < 0 || m.Token != last && j.goals[l] != "":
		j.w.fail("tokens", "%s gets token %s after %s", m.ID, m.Token, last)
	case j.goals[l] == records.GoalStop && m.Goal != records.GoalStop:
		j.w.fail("tokens", "%s %s was told to stop and is wanted again", m.ID, m.Token)
	}
	if old, _ := v.Member(m.ID); old != nil && old.Token != m.Token && !j.proven(v, old) {
		j.w.fail("proof", "%s gets %s, and nothing proves that %s is over", m.ID, m.Token, old.Token)
	}
	if held := v.Addresses()[m.Address.String()]; held != nil && held.FreedAt == nil && held.ID != m.ID {
		j.w.fail("addresses", "%s gets the address %s of %s", m.ID, m.Address, held.ID)
	}
	if rec, _ := v.Identity(m.ID); rec != nil && rec.Address.IsValid() && rec.Address != m.Address {
		j.w.fail("addresses", "%s gets the address %s; it has %s", m.ID, m.Address, rec.Address)
	}
	if old, _ := v.Member(m.ID); old != nil && old.Token == m.Token && old.Bound != m.Bound {
		j.w.fail("bound", "the bound of %s %s becomes %s after %s", m.ID, m.Token, m.Bound, old.Bound)
	}
	if old, _ := v.Member(m.ID); old != nil && old.Bound > 0 && old.Node != m.Node && !j.ends[life{m.ID, old.Token}] {
		j.w.count("guarded life replaced elsewhere")
	}
	if old, _ := v.Member(m.ID); old != nil && old.Node != m.Node && j.fenced[life{m.ID, old.Token}] {
		j.w.count("fenced life replaced elsewhere")
	}
	if old, _ := v.Member(m.ID); old == nil || old.Token != m.Token {
		j.firstStart(v, &m)
		j.notes(v, &m)
		if !j.w.restoring {
			j.unknown(v, l)
		}
	}
	j.lasts[m.ID], j.goals[l], j.bounds[l] = m.Token, m.Goal, m.Bound
	if m.Token.Compare(j.newest[m.ID]) > 0 {
		j.newest[m.ID] = m.Token
	}
	if m.Goal == records.GoalStop && !j.stopped[l] {
		j.stopped[l] = true
		j.stops(v, b, &m)
	}
}

// forgotten: a life that is forgotten was proven over, and what becomes of its volumes
// was decided.
func (j *judge) forgotten(v cache.View, b store.Batch, key string) {
	ref, _ := store.RefOfKey(key)
	for _, s := range v.World(ref).Slots {
		if store.MemberKey(s.ID) == key && s.Member != nil && !j.proven(v, s.Member) {
			j.w.fail("proof", "%s %s is forgotten, and nothing proves that it is over", s.ID, s.Member.Token)
		}
		if store.MemberKey(s.ID) == key && s.Member != nil && s.Member.StopReason != records.ReasonScaleDown && s.Member.StopReason != records.ReasonDelete {
			j.undecided(v, b, &s)
		}
	}
}

// proven: the life runs nowhere, and never will.
func (j *judge) proven(v cache.View, m *records.Member) bool {
	return j.alive[m.ID].token != m.Token && (j.over[life{m.ID, m.Token}] || j.lapsed(v, m))
}

// report: what is told to be over does not run.
func (j *judge) report(e store.Event) {
	r, err := store.Decode[records.Report](e.KV)
	if err != nil {
		j.w.fail("records", "%v", err)
		return
	}
	l := life{r.ID, r.Token}
	if !r.Phase.Over() {
		if j.ends[l] {
			j.w.fail("reports", "%s %s is told to be %s after its end", r.ID, r.Token, r.Phase)
		}
		return
	}
	j.over[l], j.ends[l] = true, true
	if r.Cause == causes.Fenced {
		j.fenced[l] = true
		j.w.count("life over by a fence")
	}
	if j.alive[r.ID].token == r.Token {
		j.w.fail("one life", "%s %s is told to be over while it runs on %s", r.ID, r.Token, j.alive[r.ID].node)
	}
}

func (l life) compare(o life) int {
	return cmp.Or(l.id.Compare(o.id), l.token.Compare(o.token))
}
