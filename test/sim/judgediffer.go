package sim

import (
	"cmp"
	"slices"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// revisionKey names a revision of a set.
type revisionKey struct {
	ref  spec.SetRef
	set  spec.UID
	hash spec.RevisionHash
}

// revision notes what a revision says, of which the hash is the name for good.
func (j *judge) revision(e store.Event) {
	if r, ok := decoded[records.Revision](j, e); ok {
		j.revs[revisionKey{r.Ref, r.SetUID, r.Hash}] = &r
	}
}

// counts judges of which revision a life counts: of the one with which it began, or of one by which its member runs the same, from a
// write on that has nobody stop. The record keeps with which it began (SEMANTICS Part 3, Differences).
func (j *judge) counts(b store.Batch, old, m *records.Member, truth *lifeTruth) {
	began := cmp.Or(m.Began, m.Revision)
	if truth.began == "" {
		truth.began, truth.set = began, m.SetUID
	}
	if began != truth.began {
		j.w.fail("differences", "%s %s began with revision %s, and its record says %s", m.ID, m.Token, truth.began, began)
	}
	if j.w.restoring || old == nil || old.Token != m.Token || old.Revision == m.Revision {
		return
	}
	switch changed := len(truth.change.orders) > 0; {
	case changed:
		j.countsChanged(m)
	case j.runsBy(m.ID, m.SetUID, m.Revision) != j.runsBy(m.ID, m.SetUID, truth.began):
		j.w.fail("differences", "%s %s counts as one of revision %s, and runs what %s says", m.ID, m.Token, m.Revision, truth.began)
	}
	if old.Goal != records.GoalRun || m.Goal != records.GoalRun {
		j.w.fail("differences", "%s %s counts as one of revision %s, and is to stop", m.ID, m.Token, m.Revision)
	}
	for _, e := range b.Events {
		if kind, _ := store.Kind(e.Key); kind != store.KindMember || e.Delete {
			continue
		}
		if other, ok := decoded[records.Member](j, e); ok && other.Goal == records.GoalStop && j.goals[life{other.ID, other.Token}] != records.GoalStop {
			j.w.fail("differences", "%s is to stop in the write by which %s counts as one of revision %s", other.ID, m.ID, m.Revision)
		}
	}
	j.w.count("member reaches a revision as it is")
}

// runsBy is what a member runs by a revision; "": nobody knows.
func (j *judge) runsBy(id spec.Identity, set spec.UID, h spec.RevisionHash) string {
	if r := j.revs[revisionKey{id.Ref(), set, h}]; r != nil {
		return rules.Runs(&r.Template, r.Members, id.Ordinal)
	}
	return ""
}

// runs judges that a process runs what a revision says that its life may run, and reads the name of that with which the life began.
func (j *judge) runs(b *box, token spec.Token) {
	id, truth := b.p.id, j.life(b.p.id, token)
	may := j.mayRun(id, token)
	for _, r := range may {
		c := container(r, id, b.name)
		if c == nil || b.image != c.Image || b.resources != files.Resources(c) && b.part.role != spec.RoleInit || !slices.Equal(b.args, c.Args) {
			continue
		}
		if !slices.ContainsFunc(c.Env, func(e spec.EnvVar) bool { return !slices.Contains(b.env, e.Name+"="+e.Value) }) &&
			slices.Contains(b.env, "STEAD_REVISION="+string(truth.began)) {
			if rules.Runs(&r.Template, r.Members, id.Ordinal) != rules.Runs(&r.Template, nil, id.Ordinal) {
				j.w.count("member differs")
			}
			return
		}
	}
	j.w.fail("differences", "%s %s begins on %s with image %s, args %q, bounds %+v and variables %q: no revision says so that its life %s, begun with %s, may run (%d)",
		id.MemberName(), b.name, b.p.n.name, b.image, b.args, b.resources, b.env, token, truth.began, len(may))
}
