package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// placementChecks checks the fields that decide on which nodes members run.
type placementChecks struct{ *checks }

// placement checks all of them.
func (c placementChecks) placement(at string, s *spec.MemberSpec) {
	c.labels(at+".nodeSelector", s.NodeSelector)
	if a := s.Affinity; a != nil {
		c.nodeAffinity(at+".affinity.nodeAffinity", a.NodeAffinity)
		c.memberAffinity(at+".affinity.podAffinity", a.PodAffinity)
		c.memberAffinity(at+".affinity.podAntiAffinity", a.PodAntiAffinity)
	}
	for i := range s.Tolerations {
		c.toleration(index(at+".tolerations", i), &s.Tolerations[i])
	}
	seen := map[string]bool{}
	for i := range s.TopologySpreadConstraints {
		p, t := index(at+".topologySpreadConstraints", i), &s.TopologySpreadConstraints[i]
		c.between(p+".maxSkew", int64(t.MaxSkew), 1, 1<<31-1)
		c.topologyKey(p+".topologyKey", t.TopologyKey)
		c.choice(p+".whenUnsatisfiable", t.WhenUnsatisfiable, []string{spec.DoNotSchedule, spec.ScheduleAnyway})
		c.memberSelector(p+".labelSelector", t.LabelSelector)
		c.once(p+".topologyKey", t.TopologyKey+" "+t.WhenUnsatisfiable, seen)
		c.spread(p, t)
	}
}

// spread checks which nodes count, and for whom.
func (c placementChecks) spread(at string, t *spec.Spread) {
	if t.MinDomains != nil {
		c.between(at+".minDomains", int64(*t.MinDomains), 1, 1<<31-1)
		if *t.MinDomains > 1 && t.WhenUnsatisfiable == spec.ScheduleAnyway {
			c.fail(at+".minDomains", "has no meaning with "+spec.ScheduleAnyway, "remove it, or write whenUnsatisfiable: "+spec.DoNotSchedule)
		}
	}
	policies := []string{"Honor", "Ignore"}
	c.choice(at+".nodeAffinityPolicy", cmp.Or(t.NodeAffinityPolicy, policies[0]), policies)
	c.choice(at+".nodeTaintsPolicy", cmp.Or(t.NodeTaintsPolicy, policies[1]), policies)
	c.narrows(at+".matchLabelKeys", t.MatchLabelKeys, t.LabelSelector)
	c.notSelected(at+".matchLabelKeys", t.MatchLabelKeys, t.LabelSelector)
}

// narrows checks keys of labels that narrow a selector.
func (c placementChecks) narrows(at string, keys []string, s *spec.LabelSelector) {
	if len(keys) > 0 && s == nil {
		c.fail(at, "narrows labelSelector, which is missing", "write labelSelector: {} for all members, or remove it")
	}
	for i, key := range keys {
		c.labelKey(index(at, i), key)
	}
}

// notSelected refuses keys that the selector has itself: Kubernetes would create no pod.
func (c placementChecks) notSelected(at string, keys []string, s *spec.LabelSelector) {
	if s == nil {
		return
	}
	for i, key := range keys {
		_, selected := s.MatchLabels[key]
		if selected || slices.ContainsFunc(s.MatchExpressions, func(r spec.SelectorRequirement) bool { return r.Key == key }) {
			c.fail(index(at, i), scalar.Quote(key)+" is in labelSelector, too", "remove one of them")
		}
	}
}

func (c placementChecks) nodeAffinity(at string, a *spec.NodeAffinity) {
	if a == nil {
		return
	}
	if a.Required != nil {
		p := at + ".requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
		if len(a.Required.NodeSelectorTerms) == 0 {
			c.fail(p, "is missing", "write at least one term")
		}
		for i := range a.Required.NodeSelectorTerms {
			c.nodeTerm(index(p, i), &a.Required.NodeSelectorTerms[i])
		}
	}
	for i := range a.Preferred {
		p := index(at+".preferredDuringSchedulingIgnoredDuringExecution", i)
		c.between(p+".weight", int64(a.Preferred[i].Weight), 1, 100)
		c.nodeTerm(p+".preference", &a.Preferred[i].Preference)
	}
}

func (c placementChecks) nodeTerm(at string, t *spec.NodeTerm) {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		c.fail(at, "matches no node", "write matchExpressions")
	}
	for i, r := range t.MatchExpressions {
		p := index(at+".matchExpressions", i)
		if r.Operator != spec.Gt && r.Operator != spec.Lt {
			c.requirement(p, r)
			continue
		}
		c.labelKey(p+".key", r.Key)
		if len(r.Values) != 1 || !isNumber(r.Values[0]) {
			c.fail(p+".values", r.Operator+" compares with one whole number", "")
		}
	}
	for i, r := range t.MatchFields {
		p := index(at+".matchFields", i)
		c.choice(p+".key", r.Key, []string{"metadata.name"})
		c.choice(p+".operator", r.Operator, []string{spec.In, spec.NotIn})
		if len(r.Values) != 1 {
			c.fail(p+".values", fmt.Sprintf("has %d values", len(r.Values)), "write the name of one node")
		}
	}
}

func isNumber(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

func (c placementChecks) memberAffinity(at string, a *spec.MemberAffinity) {
	if a == nil {
		return
	}
	for i := range a.Required {
		c.memberTerm(index(at+".requiredDuringSchedulingIgnoredDuringExecution", i), &a.Required[i])
	}
	for i := range a.Preferred {
		p := index(at+".preferredDuringSchedulingIgnoredDuringExecution", i)
		c.between(p+".weight", int64(a.Preferred[i].Weight), 1, 100)
		c.memberTerm(p+".podAffinityTerm", &a.Preferred[i].Term)
	}
}

func (c placementChecks) memberTerm(at string, t *spec.MemberTerm) {
	c.topologyKey(at+".topologyKey", t.TopologyKey)
	c.memberSelector(at+".labelSelector", t.LabelSelector)
	for i, ns := range t.Namespaces {
		c.label(index(at+".namespaces", i), string(ns))
	}
	if t.NamespaceSelector != nil {
		c.namespaceSelector(at+".namespaceSelector", t.NamespaceSelector)
	}
	c.narrows(at+".matchLabelKeys", t.MatchLabelKeys, t.LabelSelector)
	c.notSelected(at+".matchLabelKeys", t.MatchLabelKeys, t.LabelSelector)
	c.narrows(at+".mismatchLabelKeys", t.MismatchLabelKeys, t.LabelSelector)
	for i, key := range t.MismatchLabelKeys {
		if slices.Contains(t.MatchLabelKeys, key) {
			c.fail(index(at+".mismatchLabelKeys", i), scalar.Quote(key)+" is in matchLabelKeys, too", "remove one of them")
		}
	}
}

// namespaceSelector warns of labels that no namespace has.
func (c placementChecks) namespaceSelector(at string, s *spec.LabelSelector) {
	c.selector(at, s)
	lacks := func(path, key string) {
		if key != spec.NamespaceLabel {
			c.warn(path, "no namespace has the label "+scalar.Quote(key)+" here", "write "+spec.NamespaceLabel+", which is the name of each, or namespaces")
		}
	}
	for _, key := range sortedKeys(s.MatchLabels) {
		lacks(at+".matchLabels["+showKey(key)+"]", key)
	}
	for i, r := range s.MatchExpressions {
		lacks(index(at+".matchExpressions", i)+".key", r.Key)
	}
}

// memberSelector: without a selector, no member is selected, as in Kubernetes.
func (c placementChecks) memberSelector(at string, s *spec.LabelSelector) {
	if s == nil {
		c.warn(at, "is missing, so that no member is selected", "write matchLabels with labels of members")
		return
	}
	c.selector(at, s)
}

func (c placementChecks) topologyKey(at, key string) {
	c.given(at, key, scalar.ValidLabelKey, "label key", "write "+spec.HostnameLabel+", or a label that the nodes have")
}

func (c placementChecks) toleration(at string, t *spec.Toleration) {
	c.choice(at+".operator", t.Operator, []string{spec.Equal, spec.Exists})
	c.choice(at+".effect", t.Effect, []string{"", spec.NoSchedule, spec.PreferNoSchedule, spec.NoExecute})
	switch {
	case t.Key == "" && t.Operator == spec.Equal:
		c.fail(at+".key", "is missing", "write the key of a taint, or operator: Exists for all")
	case t.Key != "":
		c.valid(at+".key", t.Key, scalar.ValidLabelKey, "taint key", prefixed)
	}
	if t.Operator == spec.Exists && t.Value != "" {
		c.fail(at+".value", "has no effect with "+spec.Exists, "remove it")
		return
	}
	c.valid(at+".value", t.Value, scalar.ValidLabelValue, "taint value", "")
}
