package plan

import (
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// The simulation's view of updates: it judges each plan by its own reading of the
// rules, from what is stored and not from the planner's seats.

// bad: members of this revision crash, whatever is done.
func (s *sim) bad(h spec.RevisionHash) bool { return h == "h3" }

// targetOf is where an ordinal of the present set ends up.
func (s *sim) targetOf(ordinal int, p Plan) spec.RevisionHash {
	if s.w.Status != nil && s.w.Status.RolledBackFrom == s.w.TemplateHash {
		return s.currentBefore()
	}
	r := s.w.Set.Spec.UpdateStrategy.RollingUpdate
	if s.w.Status != nil && s.w.Status.CurrentCompleted && r != nil && r.Partition != nil && ordinal < s.w.Set.Start()+int(*r.Partition) {
		return s.currentBefore()
	}
	return s.w.TemplateHash
}

// slot is what is stored of an ordinal.
func (s *sim) slot(ordinal int) Slot {
	for _, slot := range s.w.Slots {
		if slot.ID.Ordinal == ordinal {
			return slot
		}
	}
	return Slot{}
}

// judgeBack: a template is given up only after a standstill, for a completed one, and is
// not current while it is.
func (s *sim) judgeBack(p Plan) {
	before := records.SetStatus{}
	if s.w.Status != nil {
		before = *s.w.Status
	}
	given := p.Status.RolledBackFrom
	switch {
	case given == "" || given == before.RolledBackFrom && given == s.w.TemplateHash && p.Status.CurrentRevision == before.CurrentRevision:
	case given == before.RolledBackFrom || s.w.Standstill == 0 || !before.CurrentCompleted || given != s.w.TemplateHash || len(p.Actions) > 0 && s.w.Set.Paused:
		s.fail("revision %s is given up after %s; before: %+v", given, s.w.Standstill, before)
	}
	s.w.Reached = p.Reached
	s.backs += one(given != "" && given != before.RolledBackFrom)
}

// heldAt: the pause keeps the ordinal from its target.
func (s *sim) heldAt(ordinal int, p Plan) bool {
	return s.w.Set.Paused && s.targetOf(ordinal, p) != s.currentBefore()
}

func (s *sim) currentBefore() spec.RevisionHash {
	if s.w.Status != nil {
		for _, r := range s.w.Revisions {
			if r.Hash == s.w.Status.CurrentRevision {
				return r.Hash
			}
		}
	}
	return s.w.TemplateHash
}

// judgeUpdates checks a plan: no healthy member on its target is ended, the budget
// is kept, under OnDelete nobody is, and each start is on the revision it is due.
func (s *sim) judgeUpdates(p Plan) {
	if s.w.Set == nil || s.w.Set.Deleting {
		return
	}
	u := s.w.Set.Spec.UpdateStrategy
	limit, down, ended := 1, 0, 0
	if u.RollingUpdate != nil && u.RollingUpdate.MaxUnavailable != nil {
		limit = int(u.RollingUpdate.MaxUnavailable.Number)
	}
	for _, o := range s.wanted() {
		if !s.available(o) && !s.hopelessAt(o, p) {
			down++
		}
	}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case Stop:
			if a.Reason == records.ReasonNodeShutdown {
				s.shutdowns++
				s.judgeShutdown(a, p, limit)
			}
			if a.Reason == records.ReasonDrain {
				s.drains++
				ended += s.judgeDrain(a, down, limit)
			}
			if a.Reason != records.ReasonUpdate {
				continue
			}
			m := s.slot(a.ID.Ordinal).Member
			if u.Type == spec.OnDeleteStrategy || m.Revision == s.targetOf(a.ID.Ordinal, p) || s.heldAt(a.ID.Ordinal, p) {
				s.fail("%s is ended for an update on revision %s", a.ID, m.Revision)
			}
			if s.available(a.ID.Ordinal) && !s.recreates() {
				ended++
				s.highestFirst(a.ID.Ordinal, p)
			}
		case Start:
			s.judgeStart(a, p)
		}
	}
	if ended > 0 && ended+down > limit {
		s.fail("%d members are down and %d more are ended; the budget is %d: %s", down, ended, limit, brief(p))
	}
}

// judgeDrain: the node of the member is drained, its end is within the budget, and surplus members go before. It counts one that
// the budget has to pay for.
func (s *sim) judgeDrain(a Stop, down, limit int) int {
	m := s.slot(a.ID.Ordinal).Member
	d := proof.FindNode(s.w.Nodes, m.Node).Node.Drain
	ordered := s.w.Set.Spec.PodManagementPolicy != spec.Parallel
	if ordered {
		limit = 1
	}
	switch available := s.available(a.ID.Ordinal); {
	case d == nil || !s.hostOf(m.Node).up || m.Boot != s.hostOf(m.Node).bootID():
		s.fail("%s is ended, and its node is not drained", a.ID)
	case d.AtOnce:
	case ordered && slices.ContainsFunc(s.w.Slots, func(x Slot) bool { return !s.w.Set.Range().Has(x.ID.Ordinal) && !s.vacantAt(x.ID.Ordinal) }):
		s.fail("%s is drained before surplus members are gone", a.ID)
	case available && down >= limit, !available && down > limit:
		s.fail("%s is drained, and %d members are down; the budget is %d", a.ID, down, limit)
	case available:
		return 1
	}
	return 0
}

// shutHost has a host say that it is being shut down, or that it is not.
func (s *sim) shutHost(h *host, is, atOnce bool) {
	s.w.Nodes = slices.Clone(s.w.Nodes)
	n := proof.FindNode(s.w.Nodes, h.name)
	n.Facts = shutDown(n.Facts, is, atOnce)
}

// judgeShutdown: the host of the member is being shut down; in order those above on it are gone; and not more of those elsewhere
// are down than the budget allows, unless its time is nearly over.
func (s *sim) judgeShutdown(a Stop, p Plan, limit int) {
	m := s.slot(a.ID.Ordinal).Member
	ends := proof.FindNode(s.w.Nodes, m.Node).Facts.ShuttingDown()
	if ends == nil || !s.hostOf(m.Node).up || m.Boot != s.hostOf(m.Node).bootID() {
		s.fail("%s is ended, and its host is not being shut down", a.ID)
	}
	if ends == nil || ends.AtOnce || s.drainedAtOnce(m.Node) {
		return
	}
	ordered := s.w.Set.Spec.PodManagementPolicy != spec.Parallel
	if ordered {
		limit = 1
	}
	down := 0
	for _, o := range s.wanted() {
		other := s.slot(o)
		here := other.Member != nil && other.Member.Node == m.Node
		if ordered && here && o > a.ID.Ordinal && !s.vacantAt(o) {
			s.fail("%s is ended with its host before db-%d is gone", a.ID, o)
		}
		goes := here && (!s.vacantAt(o) || other.Member.StopReason == records.ReasonNodeShutdown ||
			other.Member.StopReason == records.ReasonDrain && proof.FindNode(s.w.Nodes, m.Node).Node.Drain != nil)
		if !goes && !s.available(o) && !s.hopelessAt(o, p) {
			down++
		}
	}
	if down >= limit {
		s.fail("%s is ended with its host, and %d members are down elsewhere; the budget is %d", a.ID, down, limit)
	}
}

func (s *sim) drainedAtOnce(node spec.NodeName) bool {
	d := proof.FindNode(s.w.Nodes, node).Node.Drain
	return d != nil && d.AtOnce
}

// leader is who leads by the claims that were told: the ready one with the highest term, if no other has it.
func (s *sim) leader() int {
	best, ordinal := -1, -1
	for _, slot := range s.w.Slots {
		if m := slot.Member; m == nil || m.Goal != records.GoalRun || !s.available(slot.ID.Ordinal) || !slot.Report.Claim.Leads {
			continue
		}
		switch term := int(slot.Report.Claim.Term); {
		case term > best:
			best, ordinal = term, slot.ID.Ordinal
		case term == best:
			ordinal = -1
		}
	}
	return ordinal
}

// highestFirst: no member above is well and left on an old revision; but one that leads is left until no other is, if the set
// says so.
func (s *sim) highestFirst(ordinal int, p Plan) {
	leader := -1
	if r := s.w.Set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Order == spec.OrderLeaderLast {
		leader = s.leader()
	}
	for _, o := range s.wanted() {
		before := o > ordinal && o != leader || ordinal == leader && o < ordinal
		if !before || !s.available(o) || !s.hopelessAt(o, p) {
			s.deferred += one(o == leader && o > ordinal && s.available(o) && s.hopelessAt(o, p))
			continue
		}
		if !slices.ContainsFunc(p.Actions, func(a Action) bool { stop, ok := a.(Stop); return ok && stop.ID.Ordinal == o }) {
			s.fail("db-%d is updated before db-%d: %s", ordinal, o, brief(p))
		}
	}
}

// hopelessAt: the member runs and is off its target: it may be broken.
func (s *sim) hopelessAt(ordinal int, p Plan) bool {
	slot := s.slot(ordinal)
	m := slot.Member
	return m != nil && m.Goal == records.GoalRun && (slot.Report == nil || !slot.Report.Phase.Over()) && m.Revision != s.targetOf(ordinal, p)
}

// judgeStart: the life before and how it ended say on which revision the next is.
func (s *sim) judgeStart(a Start, p Plan) {
	if s.recreates() {
		s.judgeApart(a, p)
		return
	}
	slot := s.slot(a.Member.ID.Ordinal)
	target, before := s.targetOf(a.Member.ID.Ordinal, p), slot.Member
	if s.heldAt(a.Member.ID.Ordinal, p) {
		if ran := slot.Identity; a.Member.Revision != s.currentBefore() && (ran == nil || a.Member.Revision != ran.Due) {
			s.fail("%s starts on %s while the rollout is paused", a.Member.ID, a.Member.Revision)
		}
		return
	}
	onTarget := before == nil || before.StopReason == records.ReasonUpdate || s.w.Set.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy
	failed := before != nil && slot.Report.Phase == records.PhaseFailed
	abandoned := before != nil && slot.Identity.AvailableOn != before.Revision
	switch {
	case onTarget && a.Member.Revision != target:
		s.fail("%s starts on %s; its target is %s", a.Member.ID, a.Member.Revision, target)
	case !onTarget && a.Member.Revision != before.Revision && !(a.Member.Revision == target && (failed || abandoned)):
		s.fail("%s starts on %s, though it died on %s before its turn", a.Member.ID, a.Member.Revision, before.Revision)
	}
}

// passes: under OrderedReady a member may start before lower ones are available only
// on its target, and past those alone that may be broken.
func (s *sim) passes(m records.Member, below int, p Plan) bool {
	return m.Revision == s.targetOf(m.ID.Ordinal, p) && (s.hopelessAt(below, p) || s.vacantAt(below))
}

func (s *sim) vacantAt(ordinal int) bool {
	slot := s.slot(ordinal)
	return slot.Member == nil || slot.Report != nil && slot.Report.Phase.Over()
}

func (s *sim) recreates() bool {
	return !s.w.Set.Deleting && s.w.Set.Spec.UpdateStrategy.Type == spec.RecreateStrategy
}

// judgeApart: under Recreate nobody starts on the update revision while a member of
// another one lives, nor on another one after all were down, but for a pause.
func (s *sim) judgeApart(a Start, p Plan) {
	aim := s.targetOf(a.Member.ID.Ordinal, p)
	others := 0
	for _, slot := range s.w.Slots {
		if m := slot.Member; m != nil && (slot.Report == nil || !slot.Report.Phase.Over()) && m.Revision != aim {
			others++
		}
	}
	switch updated := a.Member.Revision == aim; {
	case updated && others > 0 && s.currentBefore() != aim && (s.slot(a.Member.ID.Ordinal).Identity == nil || s.slot(a.Member.ID.Ordinal).Identity.Due != aim):
		s.fail("%s starts on %s while %d members of other revisions live", a.Member.ID, a.Member.Revision, others)
	case !updated && others == 0 && !s.w.Set.Paused:
		s.fail("%s starts on %s, though no other runs it", a.Member.ID, a.Member.Revision)
	}
}
