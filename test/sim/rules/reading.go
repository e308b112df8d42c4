// Package rules judges plans by its own reading of SEMANTICS and SAFETY, with none of the
// planner's code.
package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Reading is a world read by SEMANTICS, with none of the planner's code.
type Reading struct {
	Slots  map[int]*plan.Slot
	Wanted []int // ordinals, ascending
	x      plan.World
	min    time.Duration
}

// Read reads a world.
func Read(x plan.World) *Reading {
	r := &Reading{x: x, Slots: map[int]*plan.Slot{}}
	for i := range x.Slots {
		r.Slots[x.Slots[i].ID.Ordinal] = &x.Slots[i]
	}
	if x.Set != nil {
		r.min = time.Duration(x.Set.Spec.MinReadySeconds) * time.Second
		if !x.Set.Deleting {
			r.Wanted = Ordinals(x.Set)
		}
	}
	return r
}

// Ordinals are those that a set wants: from its first one on, without the reserved ones.
func Ordinals(s *records.Set) []int {
	var list []int
	for o := s.Start(); len(list) < s.Replicas(); o++ {
		if !reserved(s, o) {
			list = append(list, o)
		}
	}
	return list
}

func reserved(s *records.Set, o int) bool {
	return s.Spec.Ordinals != nil && slices.ContainsFunc(s.Spec.Ordinals.Reserved, func(span spec.OrdinalSpan) bool {
		return int(span.First) <= o && o <= int(span.Last)
	})
}

// halted: the store went back, or was restored and has not heard every node since; nothing
// is decided, and no rollout is measured.
func (r *Reading) halted() bool {
	x := &r.x
	if x.Hold != nil || len(x.Awaited) > 0 || x.Count.Open(x.Epoch) {
		return true
	}
	done := x.Count != nil && x.Count.Epoch == x.Epoch && x.Count.Done
	return x.Epoch > 1 && !done && slices.ContainsFunc(x.Nodes, func(n plan.Node) bool { return n.Facts == nil || n.Facts.Epoch < x.Epoch })
}

// Orphaned: nobody owns the set, and nothing is done for it.
func Orphaned(s *records.Set) bool { return s != nil && s.Orphaned && !s.Deleting }

// Retention is what is to become of the volumes of members that leave the set: Retain
// or Delete; "" when the set does not have the claim.
func Retention(s *records.Set, claim spec.ClaimName) spec.Retention {
	if s == nil {
		return ""
	}
	for i := range s.Spec.VolumeClaimTemplates {
		if s.Spec.VolumeClaimTemplates[i].Metadata.Name != string(claim) {
			continue
		}
		p := s.Spec.Retention
		if p != nil && (s.Deleting && p.WhenDeleted == spec.Delete || !s.Deleting && p.WhenScaled == spec.Delete) {
			return spec.Delete
		}
		return spec.Retain
	}
	return ""
}

// Name is that of a member.
func (r *Reading) Name(o int) string { return fmt.Sprintf("%s-%d", r.x.Set.Ref.Name, o) }

// Slot is what is stored of an ordinal; an empty one when nothing is.
func (r *Reading) Slot(o int) *plan.Slot {
	if s := r.Slots[o]; s != nil {
		return s
	}
	return &plan.Slot{}
}

// IsWanted: the set wants a member of the ordinal.
func (r *Reading) IsWanted(o int) bool { return slices.Contains(r.Wanted, o) }

// live: the node of the life has a session, of the machine and boot of the life.
func (r *Reading) live(m *records.Member) bool {
	s := r.session(m.Node)
	return s != nil && s.UID == m.NodeUID && s.Boot == m.Boot
}

// told: the node said so in the session that it has now.
func (r *Reading) told(x *records.Report) bool {
	s := r.session(x.Node)
	return s != nil && s.ID == x.Session
}

// session is that of a node; nil: it has none.
func (r *Reading) session(name spec.NodeName) *records.Session {
	for _, n := range r.x.Nodes {
		if n.Node.Name == name {
			return n.Session
		}
	}
	return nil
}

// Vacant: there is no life, or it is proven over, by a report or its deadline.
func (r *Reading) Vacant(o int) bool {
	s := r.Slot(o)
	return s.Member == nil || s.Report != nil && s.Report.Token == s.Member.Token && s.Report.Phase.Over() || r.lapsed(s.Member, s.Report)
}

// Available: ready, for long enough, on a node with a session, and not told to stop.
func (r *Reading) Available(o int) bool {
	s := r.Slot(o)
	return s.Member != nil && s.Report != nil && s.Report.Token == s.Member.Token && s.Member.Goal == records.GoalRun && !r.changing(o) &&
		s.Report.Phase == records.PhaseRunning && s.Report.Ready && s.Report.ReadyFor >= r.min && r.live(s.Member) && r.told(s.Report)
}

// current is the last completed revision, or the template's when there is none.
func (r *Reading) current() spec.RevisionHash {
	if r.x.Status != nil && r.stored(r.x.Status.CurrentRevision) {
		return r.x.Status.CurrentRevision
	}
	return r.x.TemplateHash
}

func (r *Reading) stored(h spec.RevisionHash) bool {
	return slices.ContainsFunc(r.x.Revisions, func(v *records.Revision) bool { return v.Hash == h })
}

// target is the revision on which an ordinal ends up.
func (r *Reading) target(o int) spec.RevisionHash {
	if r.below(o) {
		return r.current()
	}
	return r.aim()
}

// below: the partition keeps the ordinal on the current revision, which was completed.
func (r *Reading) below(o int) bool {
	u := r.x.Set.Spec.UpdateStrategy
	return r.x.Status != nil && r.x.Status.CurrentCompleted && r.stored(r.x.Status.CurrentRevision) && u.Type != spec.OnDeleteStrategy && u.RollingUpdate != nil && u.RollingUpdate.Partition != nil &&
		o < r.x.Set.Start()+int(*u.RollingUpdate.Partition)
}

// aim is where the rollout goes: the template's revision, unless that was given up.
func (r *Reading) aim() spec.RevisionHash {
	if r.rolledBack() {
		return r.current()
	}
	return r.x.TemplateHash
}

func (r *Reading) rolledBack() bool {
	return r.x.Status != nil && r.x.Status.RolledBackFrom == r.x.TemplateHash
}

// obsolete: the member runs off its target: it may be broken, and replaced for it.
func (r *Reading) obsolete(o int) bool {
	m := r.Slot(o).Member
	return m != nil && m.Goal == records.GoalRun && !r.Vacant(o) && r.heads(o) != r.target(o)
}

// held: a paused rollout keeps the ordinal from its target.
func (r *Reading) held(o int) bool { return r.x.Set.Paused && r.target(o) != r.current() }

// Recreates: all members stop before any starts on another revision.
func (r *Reading) Recreates() bool { return r.x.Set.Spec.UpdateStrategy.Type == spec.RecreateStrategy }

// floor is how many members must stay available through all that is done of choice.
func (r *Reading) floor() int {
	d, n := r.x.Set.Spec.Disruption, len(r.Wanted)
	up := func(v *scalar.IntOrPercent) int {
		if v.Percent {
			return (n*int(v.Number) + 99) / 100
		}
		return int(v.Number)
	}
	switch {
	case d == nil:
		return 0
	case d.MinAvailable != nil:
		return up(d.MinAvailable)
	case d.MaxUnavailable != nil:
		return max(0, n-up(d.MaxUnavailable))
	}
	return 0
}

// Ordered: members begin and leave one after the other.
func (r *Reading) Ordered() bool { return r.x.Set.Spec.PodManagementPolicy != spec.Parallel }

// budget is how many members may be down for an update or a restart.
func (r *Reading) budget() int {
	u := r.x.Set.Spec.UpdateStrategy.RollingUpdate
	if u == nil || u.MaxUnavailable == nil {
		return 1
	}
	return max(1, u.MaxUnavailable.ScaledDown(len(r.Wanted)))
}

// SharedClass is the storage class that all nodes share. Only some runs have it fenced.
const SharedClass = "nfs"

// Late: the life wrote to storage that takes late writes, and others may have it by then
// (SAFETY S14).
func Late(m *records.Member) bool {
	return slices.ContainsFunc(m.Volumes, func(v records.MemberVolume) bool { return v.Class == SharedClass && !v.Fenced })
}

// lapsed is the proof by deadline as SAFETY has it (S5, S6, S8).
func (r *Reading) lapsed(m *records.Member, said *records.Report) bool {
	known, gone, proven := 0, 0, false
	for _, n := range r.x.Nodes {
		if n.Facts == nil {
			continue
		}
		known++
		if n.Session != nil {
			continue
		}
		gone++
		if n.Node.Name != m.Node || m.Bound == 0 || Late(m) || n.Gone < m.Bound+max(time.Second, m.Bound/100)+time.Second {
			continue
		}
		same := n.Node.UID == m.NodeUID && n.Facts.UID == m.NodeUID && n.Facts.Epoch == r.x.Epoch && m.Token.Epoch == r.x.Epoch
		proven = same && (said == nil && n.Facts.Guards || said != nil && said.Bound == m.Bound)
	}
	return proven && 2*gone <= known
}

// boundOf is that of lives which begin now, 0 when they are not guarded.
func boundOf(s *records.Set) time.Duration {
	switch l := s.Spec.NodeLoss; {
	case l == nil || l.Policy != spec.NodeLossReplace:
		return 0
	case l.After == nil:
		return 5 * time.Minute
	default:
		return l.After.Duration
	}
}
