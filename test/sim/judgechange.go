package sim

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/agent/files"
	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/sim/rules"
)

// changeTruth is what there ever was of changes in place of a life (SEMANTICS Part 3, In place).
type changeTruth struct {
	orders []inplace.ChangeOrder // that any store had
	took   spec.Sequence         // the newest that its agent said that it took
}

// ordersChange judges an order that is written: of a life that is to run, on a node that takes such orders, newer than what was taken.
func (j *judge) ordersChange(v cache.View, old, m *records.Member, truth *lifeTruth) {
	if m.Change == nil {
		return
	}
	if m.Goal != records.GoalRun {
		j.w.fail("in place", "%s %s is to stop, and has the order to change to %s", m.ID, m.Token, m.Change.Revision)
	}
	if slices.Contains(truth.change.orders, *m.Change) {
		return
	}
	truth.change.orders = append(truth.change.orders, *m.Change)
	j.w.note("%s %s is ordered to change in place to %s (order %d.%d)", m.ID.MemberName(), m.Token, m.Change.Revision, m.Change.ID.Epoch, m.Change.ID.Rev)
	if j.w.restoring {
		return
	}
	j.w.count("change ordered")
	if old != nil && old.Token == m.Token && old.Change != nil {
		j.w.count("change ordered in place of another")
	}
	all := v.Nodes()
	if i := slices.IndexFunc(all, func(n plan.Node) bool { return n.Node.Name == m.Node }); i < 0 || !all[i].Facts.ChangesInPlace() {
		j.w.fail("in place", "%s %s gets an order that its node %s does not know", m.ID, m.Token, m.Node)
	}
}

// mayRun are the revisions that a container of a life may run: those of orders no older than the newest that was taken, and until one is
// taken that with which it began.
func (j *judge) mayRun(id spec.Identity, token spec.Token) (list []*records.Revision) {
	truth := j.life(id, token)
	add := func(h spec.RevisionHash) {
		if r := j.revs[revisionKey{id.Ref(), truth.set, h}]; r != nil {
			list = append(list, r)
		}
	}
	if truth.change.took == (spec.Sequence{}) {
		add(truth.began)
	}
	for _, o := range truth.change.orders {
		if o.ID.Compare(truth.change.took) >= 0 {
			add(o.Revision)
		}
	}
	return list
}

// container is that of a member by a revision; nil: it has no such one.
func container(r *records.Revision, id spec.Identity, name string) *spec.Container {
	t := rules.MemberTemplate(&r.Template, r.Members, id.Ordinal)
	for c := range t.Spec.All() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// resizes judges that a container gets the bounds of an order.
func (j *judge) resizes(b *box, r runtime.Resources) {
	if !slices.ContainsFunc(j.mayRun(b.p.id, b.alive), func(rev *records.Revision) bool {
		c := container(rev, b.p.id, b.name)
		return c != nil && files.Resources(c) == r
	}) {
		j.w.fail("in place", "%s %s gets other bounds on %s, and nobody ordered that", b.p.id.MemberName(), b.name, b.p.n.name)
	}
	j.w.count("bounds changed in place")
}

// endsForChange judges that a container is ended for a change: an order has another image for it, which can be had.
func (j *judge) endsForChange(b *box) {
	if !slices.ContainsFunc(j.mayRun(b.p.id, b.alive), func(rev *records.Revision) bool {
		c := container(rev, b.p.id, b.name)
		return c != nil && c.Image != b.image && !strings.HasPrefix(c.Image, "missing")
	}) {
		j.w.fail("in place", "%s ends %s %s (%s) for a change, and nobody ordered one, or its image cannot be had", b.p.n.name, b.p.id.MemberName(), b.name, b.image)
	}
	j.w.count("container ended for a change")
}

// differsFrom is a container of a life that is not as a revision says; "": all that there are are.
func (p *place) differsFrom(r *records.Revision, token spec.Token) string {
	for _, b := range p.boxes {
		c := container(r, p.id, b.name)
		if b.state == "" || b.token != token || b.part.role == spec.RoleInit || c == nil {
			continue
		}
		if b.image != c.Image || b.resources != files.Resources(c) {
			return b.name
		}
	}
	return ""
}

// saysChanged judges what a node says of changes in a life: done when all of its containers are as the order says.
func (j *judge) saysChanged(p *place, m *records.Report) {
	truth, said := j.life(m.ID, m.Token), m.Change
	if m.Phase.Over() {
		return
	}
	if said.ID.Compare(truth.change.took) < 0 {
		j.w.fail("in place", "%s says that %s %s took the change %v, and before %v", p.n.name, m.ID, m.Token, said.ID, truth.change.took)
	}
	if said.ID.Compare(truth.change.took) > 0 {
		j.w.count("change taken")
		j.w.note("%s has taken order %d.%d of %s %s", p.n.name, said.ID.Epoch, said.ID.Rev, m.ID.MemberName(), m.Token)
	}
	truth.change.took = said.ID
	r := j.revs[revisionKey{m.ID.Ref(), truth.set, said.Revision}]
	if !said.Done || r == nil {
		return
	}
	if name := p.differsFrom(r, m.Token); name != "" {
		j.w.fail("in place", "%s says that %s %s is changed to %s, and %s is not", p.n.name, m.ID, m.Token, said.Revision, name)
	}
}

// countsChanged judges that a life which was changed counts as one of a revision only when all of its containers are as that says.
func (j *judge) countsChanged(m *records.Member) {
	truth := j.life(m.ID, m.Token)
	r, n := j.revs[revisionKey{m.ID.Ref(), truth.set, m.Revision}], j.w.machineOfLife(m)
	if r == nil || n == nil || n.places[m.ID] == nil {
		return
	}
	if name := n.places[m.ID].differsFrom(r, m.Token); name != "" {
		j.w.fail("in place", "%s %s counts as one of revision %s, and %s on %s is not as it says", m.ID, m.Token, m.Revision, name, n.name)
	}
	j.w.count("change done")
}

// machineOfLife is the machine on which a life is; nil: there is none.
func (w *Cluster) machineOfLife(m *records.Member) *node {
	if i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.uid == m.NodeUID }); i >= 0 {
		return w.nodes[i]
	}
	return nil
}
