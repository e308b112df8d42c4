package sim

import (
	"maps"
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
		if s, rev := v.Session(n.name); rev != 0 && s.UID == n.uid {
			j.had[n.uid] = j.w.clock
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(j.alive), spec.Identity.Compare) {
		j.inBound(id, j.alive[id])
	}
}

func (j *judge) inBound(id spec.Identity, r run) {
	bound := j.bounds[life{id, r.token}]
	if age := j.w.clock.Sub(j.had[r.uid]); bound > 0 && age > drifted(bound)+tick {
		j.w.fail("bound", "%s %s of bound %s runs on %s, which had no session for %s", id, r.token, bound, r.node, age)
	}
}

// expired judges the end of a guarded life by its killers: no sooner than its bound after
// a ping that was answered, and never of a life without one.
func (j *judge) expired(n *node, id spec.Identity, token spec.Token) {
	l := life{id, token}
	age := j.w.clock.Sub(n.guard.evidence)
	if bound := j.bounds[l]; bound == 0 || drifted(age) < bound {
		j.w.fail("hold", "%s %s of bound %s is killed on %s, which was confirmed %s ago", id, token, bound, n.name, age)
	}
	j.resolved[l] = true
}

// lapsed: a guarded life whose node has no session, for so long that its bound is past.
// Nothing of it may run from then on.
func (j *judge) lapsed(v cache.View, m *records.Member) bool {
	s, rev := v.Session(m.Node)
	if m.Bound == 0 || rules.Late(m) || rev != 0 && s.UID == m.NodeUID || j.w.clock.Sub(j.had[m.NodeUID]) < m.Bound {
		return false
	}
	j.w.count("life over by its deadline")
	j.over[life{m.ID, m.Token}] = true
	return true
}
