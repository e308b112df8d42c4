package spec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stead-project/stead/spec/scalar"
)

// Affinity draws a member to nodes, and to other members or away from them. What is
// required is looked at when a life begins; a life that runs stays where it is.
type Affinity struct {
	NodeAffinity    *NodeAffinity   `json:"nodeAffinity,omitempty"`
	PodAffinity     *MemberAffinity `json:"podAffinity,omitempty"`
	PodAntiAffinity *MemberAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity chooses nodes by their labels.
type NodeAffinity struct {
	Required  *NodeSelector   `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []PreferredNode `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeSelector is satisfied by a node that any of its terms matches.
type NodeSelector struct {
	NodeSelectorTerms []NodeTerm `json:"nodeSelectorTerms"`
}

// NodeTerm matches a node that satisfies all of it; an empty one matches none.
type NodeTerm struct {
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`
	// MatchFields knows metadata.name alone.
	MatchFields []SelectorRequirement `json:"matchFields,omitempty"`
}

// PreferredNode adds Weight, 1 to 100, to the nodes that Preference matches.
type PreferredNode struct {
	Weight     int32    `json:"weight"`
	Preference NodeTerm `json:"preference"`
}

// MemberAffinity chooses nodes by the members that run on them.
type MemberAffinity struct {
	Required  []MemberTerm      `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []PreferredMember `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// MemberTerm names members, and by TopologyKey the nodes that count as one place:
// those with the same value of that label.
type MemberTerm struct {
	LabelSelector *LabelSelector `json:"labelSelector,omitempty"`
	// Namespaces of the members, beside those that NamespaceSelector selects. Without both: that of
	// the set.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// NamespaceSelector selects namespaces by their labels; {}: all. A namespace has one label
	// here: kubernetes.io/metadata.name, which is its name.
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	TopologyKey       string         `json:"topologyKey"`

	// MatchLabelKeys narrow LabelSelector to members that have the same value of these labels as
	// the member itself, MismatchLabelKeys to those that have not. A label that it does not have counts not.
	MatchLabelKeys    []string `json:"matchLabelKeys,omitempty"`
	MismatchLabelKeys []string `json:"mismatchLabelKeys,omitempty"`
}

// PreferredMember adds Weight, 1 to 100, to a place for each member there that its term names.
type PreferredMember struct {
	Weight int32      `json:"weight"`
	Term   MemberTerm `json:"podAffinityTerm"`
}

// Toleration lets a member onto nodes with a taint.
type Toleration struct {
	// Key empty with operator Exists: every taint.
	Key string `json:"key,omitempty"`
	// Operator is Equal (default) or Exists.
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	// Effect empty: all effects.
	Effect            string `json:"effect,omitempty"`
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty" stead:"ignored"`
}

// Spread bounds how unevenly the set's members lie over places.
type Spread struct {
	// MaxSkew, at least 1, is how many more matching members a place may have than
	// the one with the fewest.
	MaxSkew     int32  `json:"maxSkew"`
	TopologyKey string `json:"topologyKey"`
	// WhenUnsatisfiable is DoNotSchedule (default) or ScheduleAnyway.
	WhenUnsatisfiable string         `json:"whenUnsatisfiable,omitempty"`
	LabelSelector     *LabelSelector `json:"labelSelector,omitempty"`

	// MinDomains, at least 1 (the default): with fewer places than that, the fewest members
	// of a place count as 0. With DoNotSchedule only.
	MinDomains *int32 `json:"minDomains,omitempty"`
	// NodeAffinityPolicy: with Honor (default) nodes that nodeSelector and the node affinity exclude do not
	// count; with Ignore they do.
	NodeAffinityPolicy string `json:"nodeAffinityPolicy,omitempty"`
	// NodeTaintsPolicy: with Ignore (default) nodes count whatever taints they have; with Honor not those
	// with a taint that is not tolerated, nor such as are cordoned or unreachable.
	NodeTaintsPolicy string `json:"nodeTaintsPolicy,omitempty"`
	// MatchLabelKeys narrow LabelSelector to members that have the same value of these labels as
	// the member itself; controller-revision-hash: of its revision.
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`
}

// Taint keeps members away from a node that do not tolerate it.
type Taint struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, or PreferNoSchedule: only when no other node can take it.
	Effect string `json:"effect"`
}

// String is the taint as the command line has it: key=value:effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// ParseTaint reads what String writes.
func ParseTaint(text string) (Taint, error) {
	pair, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	t := Taint{Key: key, Value: value, Effect: effect}
	if why := checkTaint(t); why != "" {
		return Taint{}, scalar.Hint(scalar.Quote(text)+" is not a taint", why)
	}
	return t, nil
}

// The effects of taints. NoExecute stands in tolerations of manifests only: no node
// can have such a taint.
const (
	NoSchedule       = "NoSchedule"
	PreferNoSchedule = "PreferNoSchedule"
	NoExecute        = "NoExecute"
)

// What a Spread does that cannot be kept.
const (
	DoNotSchedule  = "DoNotSchedule"
	ScheduleAnyway = "ScheduleAnyway"
)

// The operators that a NodeTerm has beside those of selectors, and a Toleration's.
const (
	Gt    = "Gt"
	Lt    = "Lt"
	Equal = "Equal"
)

// HostnameLabel is on every node: its name.
const HostnameLabel = "kubernetes.io/hostname"

// Matches reports whether a node of these labels (see Node.AllLabels) satisfies s.
func (s *NodeSelector) Matches(labels map[string]string) bool {
	return slices.ContainsFunc(s.NodeSelectorTerms, func(t NodeTerm) bool { return t.Matches(labels) })
}

// Matches reports whether a node of these labels satisfies all of t.
func (t NodeTerm) Matches(labels map[string]string) bool {
	name := map[string]string{"metadata.name": labels[HostnameLabel]}
	return len(t.MatchExpressions)+len(t.MatchFields) > 0 &&
		!slices.ContainsFunc(t.MatchExpressions, func(r SelectorRequirement) bool { return !r.matchesNode(labels) }) &&
		!slices.ContainsFunc(t.MatchFields, func(r SelectorRequirement) bool { return !r.matches(name) })
}

func (r SelectorRequirement) matchesNode(labels map[string]string) bool {
	if r.Operator != Gt && r.Operator != Lt {
		return r.matches(labels)
	}
	have, err1 := strconv.ParseInt(labels[r.Key], 10, 64)
	want, err2 := strconv.ParseInt(r.Values[0], 10, 64)
	return err1 == nil && err2 == nil && (r.Operator == Gt && have > want || r.Operator == Lt && have < want)
}

// Tolerates reports whether a member with these tolerations bears the taint.
func Tolerates(tolerations []Toleration, t Taint) bool {
	return slices.ContainsFunc(tolerations, func(l Toleration) bool {
		return (l.Effect == "" || l.Effect == t.Effect) && (l.Key == t.Key || l.Key == "" && l.Operator == Exists) &&
			(l.Operator == Exists || l.Value == t.Value)
	})
}

// Constrained reports whether it matters to the members which others run where.
func (s *MemberSpec) Constrained() bool {
	return len(s.HostPorts()) > 0 || s.Affinity != nil && (s.Affinity.PodAffinity != nil || s.Affinity.PodAntiAffinity != nil) || len(s.TopologySpreadConstraints) > 0
}

// checkTaint says what is wrong with a taint of a node, and what to write; "": nothing.
func checkTaint(t Taint) string {
	switch {
	case !scalar.ValidLabelKey(t.Key) || !scalar.ValidLabelValue(t.Value):
		return "write key:Effect or key=value:Effect, of letters, digits, -, _ and ."
	case t.Effect == NoExecute:
		return NoExecute + " is not supported yet; write " + NoSchedule + ", which leaves running members alone"
	case t.Effect != NoSchedule && t.Effect != PreferNoSchedule:
		return "write the effect " + NoSchedule + " or " + PreferNoSchedule
	}
	return ""
}
