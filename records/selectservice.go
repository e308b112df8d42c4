package records

import (
	"maps"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
)

// LabelRole is the label of the member that leads (Leader), and RoleLeader its value. A Service may select it beside
// labels of the set.
const (
	LabelRole  = "stead.dev/role"
	RoleLeader = "leader"
)

// SelectsLeader reports whether the service selects no member but the one that leads.
func (r *ServiceRecord) SelectsLeader() bool { return r.Spec.Selected()[LabelRole] == RoleLeader }

// Selects reports whether the service selects members of a set, and which: only is the ordinal of the one; nil: all. Its
// selector sees the labels of the set's template, and the name and the index that each member has as a label.
func (r *ServiceRecord) Selects(set *Set) (selects bool, only *int32) {
	selector := r.Spec.Selected()
	if role, by := selector[LabelRole]; by {
		if role != RoleLeader {
			return false, nil
		}
		selector = maps.Clone(selector)
		delete(selector, LabelRole)
	}
	if r.Namespace != set.Ref.Namespace || len(selector) == 0 {
		return false, nil
	}
	common, own := netpol.SplitOwn(&spec.LabelSelector{MatchLabels: selector})
	if !common.Matches(set.Spec.Template.Metadata.Labels) {
		return false, nil
	}
	if own == nil {
		return true, nil
	}
	name, byName := own.MatchLabels[netpol.LabelMemberName]
	if !byName {
		name = string(set.Ref.Name) + "-" + own.MatchLabels[netpol.LabelMemberIndex]
	}
	_, ordinal, err := spec.ParseMemberName(name)
	id := spec.Identity{Namespace: set.Ref.Namespace, Set: set.Ref.Name, Ordinal: ordinal}
	if err != nil || !own.Matches(netpol.MemberLabels(id)) {
		return false, nil
	}
	one := int32(ordinal)
	return true, &one
}
