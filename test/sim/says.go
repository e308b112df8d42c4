package sim

import (
	"context"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// saying tells what a container says of its member (/run/stead/self).
type saying struct {
	ctx    context.Context
	report func(records.Claim)
	told   bool
	last   records.Claim
}

// follow has a worker of the node hear what a container says.
func (n *node) follow(ctx context.Context, id runtime.ContainerID, report func(records.Claim)) {
	n.agent.workers[id.ID].attend(id.Name).said = &saying{ctx: ctx, report: report}
}

// hear tells what the container says, when it is news.
func (s *saying) hear(b *box) (news bool) {
	if s == nil || s.ctx.Err() != nil || s.told && s.last == b.says {
		return false
	}
	s.told, s.last = true, b.says
	s.report(b.says)
	return true
}

// says has a member say something else of itself: mostly that it leads, in a term that may be another's, too.
func (n *node) says() bool {
	var all []*box
	for _, id := range sortedKeys(n.places) {
		all = append(all, n.places[id].running()...)
	}
	if len(all) == 0 {
		return false
	}
	b := all[n.w.r.IntN(len(all))]
	b.says = records.Claim{}
	if n.w.r.IntN(4) > 0 {
		b.says.Leads, b.says.Term = true, uint64(n.w.r.IntN(6))
	}
	if n.w.r.IntN(3) == 0 { // mostly until it is asked again, which may be never
		b.says.Busy = "busy"
	}
	n.w.note("%s %s says %+v", n.name, b.p.id.MemberName(), b.says)
	return true
}

// heed bounds for how long members that are busy are waited for: for less than a run lasts.
func (w user) heed(s *records.Set) {
	seconds := int32(60 * (1 + w.r.IntN(3)))
	s.Spec.Busy = &spec.Busy{MaxSeconds: &seconds}
}

// order has the leader go last in updates, or not, and asks for another template.
func (w user) order(s *records.Set) {
	r := rolling(&s.Spec.UpdateStrategy)
	r.Order = []string{spec.OrderLeaderLast, spec.OrderLeaderLast, spec.OrderLeaderLast, ""}[w.r.IntN(4)]
	s.Spec.Template.Spec.Containers[0].Image = images[w.r.IntN(4)]
	if w.chance(2) {
		w.heed(s)
	}
}
