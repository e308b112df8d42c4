package spec

import (
	"iter"
	"maps"
	"slices"
	"strconv"
)

// The labels that each member has beside its template's, as in Kubernetes: its name, its ordinal, and
// the name of its revision.
const (
	memberNameLabel = "statefulset.kubernetes.io/pod-name"
	ordinalLabel    = "apps.kubernetes.io/pod-index"
	revisionLabel   = "controller-revision-hash"
)

// NamespaceLabel is the one label that a namespace has: its name.
const NamespaceLabel = "kubernetes.io/metadata.name"

// The values of Spread.NodeAffinityPolicy and NodeTaintsPolicy.
const (
	policyHonor  = "Honor"
	policyIgnore = "Ignore"
)

// MemberLabels are all labels of a member: its template's, which are not changed, and those that
// Kubernetes gives each. Revision may be "".
func MemberLabels(id Identity, revision RevisionHash, template map[string]string) map[string]string {
	out := make(map[string]string, len(template)+3)
	maps.Copy(out, template)
	out[memberNameLabel], out[ordinalLabel] = id.MemberName(), strconv.Itoa(id.Ordinal)
	if revision != "" {
		out[revisionLabel] = string(id.Set) + "-" + string(revision)
	}
	return out
}

// OfMember reports whether s, which may be nil, asks for a label that Kubernetes gives each member.
func (s *LabelSelector) OfMember() bool {
	if s == nil {
		return false
	}
	given := func(key string) bool { return key == memberNameLabel || key == ordinalLabel || key == revisionLabel }
	for key := range s.MatchLabels {
		if given(key) {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(r SelectorRequirement) bool { return given(r.Key) })
}

// Avoiding reports whether the template has required anti-affinity.
func (s *MemberSpec) Avoiding() bool {
	return s.Affinity != nil && s.Affinity.PodAntiAffinity != nil && len(s.Affinity.PodAntiAffinity.Required) > 0
}

// HasMemberTerms reports whether the template has terms about members: required or preferred.
func (s *MemberSpec) HasMemberTerms() bool {
	for range s.memberTerms() {
		return true
	}
	return false
}

// memberTerms are all terms about members.
func (s *MemberSpec) memberTerms() iter.Seq[*MemberTerm] {
	return func(yield func(*MemberTerm) bool) {
		if s.Affinity == nil {
			return
		}
		for _, a := range []*MemberAffinity{s.Affinity.PodAffinity, s.Affinity.PodAntiAffinity} {
			if a == nil {
				continue
			}
			for i := range a.Required {
				if !yield(&a.Required[i]) {
					return
				}
			}
			for i := range a.Preferred {
				if !yield(&a.Preferred[i].Term) {
					return
				}
			}
		}
	}
}

// MayName reports whether a member that runs s, of a set of the namespace own, may have a term that names a
// member of a set of the namespace ns with these labels, whatever keys of labels narrow it.
func (s *MemberSpec) MayName(own, ns Namespace, labels map[string]string) bool {
	for t := range s.memberTerms() {
		if t.LabelSelector.OfMember() || t.Names(own, ns, labels) {
			return true
		}
	}
	return false
}

// AffinityOf is the affinity of a member that runs s, with its labels in place of their keys: its terms about
// members hold for those who come later, too. Members without such keys share it. nil: it has none about members.
// Labels are those of its set's members.
func (s *MemberSpec) AffinityOf(id Identity, revision RevisionHash, labels map[string]string) *Affinity {
	if !s.HasMemberTerms() {
		return nil
	}
	keyed := false
	for t := range s.memberTerms() {
		keyed = keyed || len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0
	}
	if !keyed {
		return s.Affinity
	}
	all := MemberLabels(id, revision, labels)
	return &Affinity{PodAffinity: s.Affinity.PodAffinity.narrowed(all), PodAntiAffinity: s.Affinity.PodAntiAffinity.narrowed(all)}
}

// narrowed is a, which may be nil, for a member with these labels.
func (a *MemberAffinity) narrowed(labels map[string]string) *MemberAffinity {
	if a == nil {
		return nil
	}
	out := &MemberAffinity{Required: make([]MemberTerm, len(a.Required)), Preferred: slices.Clone(a.Preferred)}
	for i := range a.Required {
		out.Required[i] = a.Required[i].For(labels)
	}
	for i := range out.Preferred {
		out.Preferred[i].Term = out.Preferred[i].Term.For(labels)
	}
	return out
}

// For is t as it is for a member with these labels: with its keys as a part of its selector, as
// Kubernetes stores it with the pod. t is not changed.
func (t MemberTerm) For(labels map[string]string) MemberTerm {
	t.LabelSelector = narrowed(narrowed(t.LabelSelector, In, t.MatchLabelKeys, labels), NotIn, t.MismatchLabelKeys, labels)
	t.MatchLabelKeys, t.MismatchLabelKeys = nil, nil
	return t
}

// narrowed is s with a requirement for each of keys that is among labels. s, which may be nil, is not changed.
func narrowed(s *LabelSelector, operator string, keys []string, labels map[string]string) *LabelSelector {
	for _, key := range keys {
		value, has := labels[key]
		if !has || s == nil {
			continue
		}
		r := SelectorRequirement{Key: key, Operator: operator, Values: []string{value}}
		s = &LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: append(slices.Clip(s.MatchExpressions), r)}
	}
	return s
}

// Names reports whether t names a member of that namespace with these labels; own is
// the namespace of the set that t stands in. t has no keys any more: see For.
func (t *MemberTerm) Names(own, ns Namespace, labels map[string]string) bool {
	in := slices.Contains(t.Namespaces, ns)
	switch {
	case t.NamespaceSelector != nil:
		in = in || t.NamespaceSelector.Matches(map[string]string{NamespaceLabel: string(ns)})
	case len(t.Namespaces) == 0:
		in = ns == own
	}
	return in && t.LabelSelector.Matches(labels)
}

// Unsatisfiable is WhenUnsatisfiable or its default.
func (t *Spread) Unsatisfiable() string {
	if t.WhenUnsatisfiable == ScheduleAnyway {
		return ScheduleAnyway
	}
	return DoNotSchedule
}

// Domains is MinDomains or its default.
func (t *Spread) Domains() int {
	if t.MinDomains == nil {
		return 1
	}
	return int(*t.MinDomains)
}

// HonorsAffinity reports whether nodes that the node affinity excludes do not count.
func (t *Spread) HonorsAffinity() bool { return t.NodeAffinityPolicy != policyIgnore }

// HonorsTaints reports whether nodes with a taint that is not tolerated do not count.
func (t *Spread) HonorsTaints() bool { return t.NodeTaintsPolicy == policyHonor }

// SelectorFor is LabelSelector for a member with these labels: with those of MatchLabelKeys.
func (t *Spread) SelectorFor(labels map[string]string) *LabelSelector {
	return narrowed(t.LabelSelector, In, t.MatchLabelKeys, labels)
}
