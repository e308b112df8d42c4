package records

import (
	"maps"
	"strconv"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
)

// Selects reports whether the service selects members of a set, and which: only is the ordinal of the one; nil: all. Its
// selector sees the labels of the set's template, and the name and the index that each member has as a label.
func (r *ServiceRecord) Selects(set *Set) (selects bool, only *int32) {
	selector := r.Spec.Selected()
	if r.Namespace != set.Ref.Namespace || len(selector) == 0 {
		return false, nil
	}
	name, byName := selector[netpol.LabelMemberName]
	index, byIndex := selector[netpol.LabelMemberIndex]
	if !byName && !byIndex {
		return spec.MatchesLabels(selector, set.Spec.Template.Metadata.Labels), nil
	}
	common := maps.Clone(selector)
	delete(common, netpol.LabelMemberName)
	delete(common, netpol.LabelMemberIndex)
	if len(common) > 0 && !spec.MatchesLabels(common, set.Spec.Template.Metadata.Labels) {
		return false, nil
	}
	if !byName {
		name = string(set.Ref.Name) + "-" + index
	}
	of, ordinal, err := spec.ParseMemberName(name)
	if err != nil || of != set.Ref.Name || byIndex && index != strconv.Itoa(ordinal) {
		return false, nil
	}
	one := int32(ordinal)
	return true, &one
}
