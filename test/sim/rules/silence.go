package rules

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

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
