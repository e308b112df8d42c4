package sim

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/sim/rules"
)

// tick is how late a killer may come, and drifted a time on the slowest clock as the
// fastest one counts it.
const tick = 2100 * time.Millisecond

func drifted(d time.Duration) time.Duration { return d + d/100 }

// seeSessions notes which nodes the store has a session of, and judges that no guarded
// life outlives its bound: it runs at most that long after the last moment at which the
// store had a session of its node.
func (j *judge) seeSessions() {
	v := j.w.view()
	for _, n := range j.w.nodes {
		if s := v.Session(n.name); s != nil && s.UID == n.uid {
			j.had[n.uid] = j.w.clock
		}
	}
	for _, id := range sortedKeys(j.alive) {
		j.inBound(id, j.alive[id])
	}
}

func (j *judge) inBound(id spec.Identity, r run) {
	bound := j.life(id, r.token).bound
	if age := j.w.clock.Sub(j.had[r.uid]); bound > 0 && age > drifted(bound)+tick {
		j.w.fail("bound", "%s %s of bound %s runs on %s, which had no session for %s", id, r.token, bound, r.node, age)
	}
}

// expired judges the end of a guarded life by its killers: no sooner than its bound after
// a ping that was answered, and never of a life without one.
func (j *judge) expired(n *node, id spec.Identity, token spec.Token) {
	l := j.life(id, token)
	age := j.w.clock.Sub(n.guard.evidence)
	if l.bound == 0 || drifted(age) < l.bound {
		j.w.fail("hold", "%s %s of bound %s is killed on %s, which was confirmed %s ago", id, token, l.bound, n.name, age)
	}
	l.resolved = true
}

// lapsed: a guarded life whose node has no session, for so long that its bound is past.
// Nothing of it may run from then on.
func (j *judge) lapsed(v cache.View, m *records.Member) bool {
	s := v.Session(m.Node)
	if m.Bound == 0 || rules.Late(m) || s != nil && s.UID == m.NodeUID || j.w.clock.Sub(j.had[m.NodeUID]) < m.Bound {
		return false
	}
	j.w.count("life over by its deadline")
	j.life(m.ID, m.Token).over = true
	return true
}

// mounted judges that a volume is used by its owner alone, on the host it is on, and
// that the store has it and does not give it up.
func (j *judge) mounted(n *node, id spec.Identity, token spec.Token, v records.MemberVolume) {
	j.mountedBy(n, id, spec.LifeID{ID: id, Token: token}, v)
}

// mountedBy is mounted for a life, which may not be one of the owner.
func (j *judge) mountedBy(n *node, id spec.Identity, user spec.LifeID, v records.MemberVolume) {
	token := user.Token
	truth := j.volume(v.ID)
	before, known := *truth, truth.node != ""
	if known && (before.owner != id || before.node != n.name && !v.Shared) {
		j.w.fail("volumes", "%s uses volume %s on %s; it is of %s on %s", id, v.ID, n.name, before.owner, before.node)
	}
	if other, runs := j.alive[id]; runs && other.node != n.name {
		j.w.fail("volumes", "%s uses volume %s on %s while %s runs on %s", id, v.ID, n.name, other.token, other.node)
	}
	if known && before.node != n.name {
		j.w.count("shared volume used on another node")
	}
	truth.owner, truth.node, truth.handed = id, n.name, true
	if token.Epoch != j.w.epoch {
		return // the store was restored since, and may not know it
	}
	if j.w.back && j.formerly(v.ID, func(had bool, fate records.VolumeFate) bool { return had && !fate.Ordered() }) {
		return // its order may be of the store before, which had it (S2: absence is no order)
	}
	if r := j.w.view().Volume(id, v.Claim); r == nil || r.UID != v.ID || r.Node != n.name || r.Fate.Ordered() {
		j.w.fail("volumes", "%s uses volume %s on %s, which the store gave up, or has elsewhere", id, v.ID, n.name)
	}
}

// formerly: of a store that the present one has replaced, and nobody has declared that yet.
func (j *judge) formerly(id records.VolumeID, is func(had bool, fate records.VolumeFate) bool) bool {
	return slices.ContainsFunc(j.former, func(store map[records.VolumeID]records.VolumeFate) bool {
		fate, had := store[id]
		return is(had, fate)
	})
}

// missing and foreign judge that a life finds its volumes; not so after a restore, which
// knows of volumes as they were once, nor when their disk died or their node lied.
func (j *judge) missing(n *node, id spec.Identity, v records.MemberVolume) {
	if j.volume(v.ID).destroyed {
		j.w.count("life waits for a volume that is lost")
	}
	if j.w.restores == 0 && !j.excused(n, v.ID) {
		j.w.fail("volumes", "%s is to run on %s with volume %s, which was used and is not there", id, n.name, v.ID)
	}
}

func (j *judge) foreign(n *node, id spec.Identity, v records.MemberVolume, have dir) {
	if j.w.restores == 0 && !j.excused(n, v.ID) && !n.lies[have.id] {
		j.w.fail("volumes", "%s is to run on %s with volume %s, and in its place is %s", id, n.name, v.ID, have.id)
	}
}

// moved judges that what goes to the trash is what a store gave up, and used by nobody: what
// was left behind is not what a life elsewhere uses.
func (j *judge) moved(n *node, key volumeKey, d dir) {
	truth := j.volume(d.id)
	if !truth.going && !n.lies[d.id] {
		j.w.fail("volumes", "%s moves volume %s of %s to the trash, and nobody gave it up", n.name, d.id, key.id)
	}
	for _, l := range j.usersOf(d.id) {
		if r := j.alive[l.id]; r.node == n.name {
			j.w.fail("claims", "%s moves volume %s of %s to the trash while %s of %s runs", n.name, d.id, key.id, r.token, l.id)
		}
	}
	if r, ok := j.alive[key.id]; ok && !(truth.behind && r.node != n.name) {
		j.w.fail("volumes", "%s moves volume %s of %s to the trash while %s runs on %s", n.name, d.id, key.id, r.token, r.node)
	}
}

// erased judges that a volume lay in the trash for its time, and that it is forgotten.
func (j *judge) erased(n *node, epoch int64, b *bin) {
	if lay := j.w.clock.Sub(b.moved); lay < b.least && !n.lies[b.id] {
		j.w.fail("volumes", "%s erases volume %s after %s in the trash, and not %s", n.name, b.id, lay, b.least)
	}
	if epoch != j.w.epoch || n.lies[b.id] {
		return // it was forgotten by the store before this one
	}
	if j.w.back && j.formerly(b.id, func(had bool, fate records.VolumeFate) bool { return !had || fate == records.FateRestoring }) {
		return // likewise: the node was told so before, and is told nothing by a store that went back
	}
	if r := j.w.view().Volume(b.key.id, b.key.claim); r != nil && r.UID == b.id && r.Fate != records.FateRestoring { // its node may not have heard that
		j.w.fail("volumes", "%s erases volume %s, which has a record", n.name, b.id)
	}
}
