package spec

import (
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

// Avoids are the terms of required anti-affinity of a member that runs s: they hold for those who come
// later, too. Labels are those of its set's members.
func (s *MemberSpec) Avoids(id Identity, revision RevisionHash, labels map[string]string) []MemberTerm {
	if !s.Avoiding() {
		return nil
	}
	terms := s.Affinity.PodAntiAffinity.Required
	if !slices.ContainsFunc(terms, func(t MemberTerm) bool { return len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0 }) {
		return terms
	}
	out, all := make([]MemberTerm, len(terms)), MemberLabels(id, revision, labels)
	for i := range terms {
		out[i] = terms[i].For(all)
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
