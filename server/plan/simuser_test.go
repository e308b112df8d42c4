package plan

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// user edits the set, or makes it anew once it is gone.
func (s *sim) user() {
	if s.w.Set == nil {
		s.uids++
		n := int32(s.r.IntN(s.most - 1))
		s.w.Set = &records.Set{
			Ref: spec.SetRef{Namespace: "default", Name: "db"}, UID: spec.UID(fmt.Sprint("again", s.uids)), InitialReplicas: int(n),
			Spec: spec.SetSpec{Replicas: &n, VolumeClaimTemplates: []spec.ClaimTemplate{claim("data", 10)}},
		}
		s.w.Bootstrapped = false
		return
	}
	set := *s.w.Set
	set.Orphaned = !set.Orphaned && !set.Deleting && s.r.IntN(18) == 0
	if set.Orphaned {
		s.w.Set = &set
		return
	}
	n := int32(s.r.IntN(s.most))                                                             // each edit adopts
	if st := s.w.Status; st != nil && st.ServiceName == set.Service() && s.r.IntN(12) == 0 { // as control allows it
		s.renames++
		set.Spec.ServiceName, s.w.TemplateHash = fmt.Sprint("s", s.renames), spec.RevisionHash(fmt.Sprint("renamed-", s.renames))
	}
	set.Spec.Replicas = &n
	switch s.r.IntN(18) {
	case 3, 4, 5, 6:
		s.w.TemplateHash = spec.RevisionHash(fmt.Sprint("h", 1+s.r.IntN(4)))
	case 7, 14, 15:
		p, limit := int32(s.r.IntN(4)), scalar.IntOrPercent{Number: int32(1 + s.r.IntN(2))}
		set.Spec.UpdateStrategy = spec.UpdateStrategy{RollingUpdate: &spec.RollingUpdate{Partition: &p, MaxUnavailable: &limit}}
		if s.r.IntN(3) > 0 {
			set.Spec.UpdateStrategy.RollingUpdate.OnFailure = spec.OnFailureRollback
		}
		if s.r.IntN(2) == 0 {
			set.Spec.UpdateStrategy.RollingUpdate.Order = spec.OrderLeaderLast
		}
	case 8:
		set.Spec.UpdateStrategy = spec.UpdateStrategy{Type: spec.OnDeleteStrategy}
	case 9:
		set.Spec.UpdateStrategy = spec.UpdateStrategy{}
	case 0:
		set.Spec.PodManagementPolicy = spec.Parallel
	case 1:
		set.Spec.PodManagementPolicy = spec.OrderedReady
	case 2:
		set.Deleting = true
	case 10, 11:
		set.Paused = !set.Paused
	case 16:
		set.Spec.Ordinals = &spec.Ordinals{Start: int32(s.r.IntN(3))}
		if first := int32(s.r.IntN(4)); s.r.IntN(2) == 0 {
			set.Spec.Ordinals.Reserved = []spec.OrdinalSpan{{First: first, Last: first + int32(s.r.IntN(2))}}
		}
	case 12, 13:
		set.Spec.UpdateStrategy = spec.UpdateStrategy{Type: spec.RecreateStrategy}
	}
	s.w.Set = &set
}

// judgeOrphaned: nobody starts, stops or loses anything while nobody owns the set.
func (s *sim) judgeOrphaned(p Plan) {
	if s.w.Set == nil || !s.w.Set.Orphaned {
		return
	}
	for _, a := range p.Actions {
		switch a.(type) {
		case MarkReady, MarkBootstrapped:
		default:
			s.fail("%T for an orphaned set: %s", a, brief(p))
		}
	}
	s.orphaned++
}

// judgeNames: every life is found under the name that it was begun with.
func (s *sim) judgeNames(p Plan) {
	if s.w.Set == nil {
		return
	}
	for _, slot := range s.w.Slots {
		if m := slot.Member; m != nil && m.Service != s.w.Set.Service() && m.Service != Former(s.w.Set, &p.Status, s.w.Slots) &&
			(slot.Report == nil || !slot.Report.Phase.Over()) {
			s.fail("%s runs as one of %s, and is found under %s and %q only", slot.ID, m.Service, s.w.Set.Service(), Former(s.w.Set, &p.Status, s.w.Slots))
		}
	}
}

// claim has one member say that it leads, in some term, or that it does not.
func (s *sim) claim() {
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: s.r.IntN(s.most)}
	leads, term := s.r.IntN(4) > 0, uint64(s.r.IntN(100))
	for _, h := range s.hosts {
		l := life{id, h.running[id]}
		delete(h.terms, l)
		if leads && !l.token.IsZero() {
			h.terms[l] = term
		}
	}
}

// fault is one thing that happens.
func (s *sim) fault() {
	h := s.hosts[s.r.IntN(len(s.hosts))]
	switch s.r.IntN(24) {
	case 0:
		h.up = !h.up
		s.sessions()
	case 1:
		h.reboot()
		s.shutHost(h, false, false)
		s.sessions()
	case 2:
		s.user()
	case 23:
		s.claim()
	case 21:
		s.w.Nodes = drained(s.w.Nodes, h.name, s.r.IntN(2) == 0, s.r.IntN(4) == 0)
	case 22:
		s.shutHost(h, h.up, s.r.IntN(4) == 0)
	case 20: // a long time without progress, or none
		s.w.Standstill = time.Hour - s.w.Standstill
	case 3, 4, 5, 6:
		if len(s.orders) > 0 {
			s.obey(s.orders[len(s.orders)-1-s.r.IntN(min(len(s.orders), 6))])
		}
	case 7, 8, 9, 10:
		for ordinal := range 10 { // in one order, or a seed would not come again
			id := spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
			h.ready[life{id, h.running[id]}] = s.r.IntN(4) > 0
		}
	case 11, 12, 13, 14:
		if len(s.w.Slots) > 0 {
			s.tell(s.r.IntN(len(s.w.Slots)))
		}
	default:
		s.plan(s.r.IntN(3) == 0)
	}
}
