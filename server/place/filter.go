package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// filter is one thing that a node must have to take a life.
type filter struct {
	reason causes.BlockedReason
	// explain says why the node does not have it, a sentence without its subject; "": it does.
	explain func(*search, *proof.Node) string
	// fixed: it depends on the node, the template and Guarded alone, and not on what begins in this step.
	fixed bool
}

// filters are all of them, in the order in which they are asked; the first that refuses is
// what is said of the node. A node that is silent has no facts to judge.
var filters = [...]filter{
	{causes.BlockedNodeSilent, unless((*search).connected, "is unreachable"), true},
	{causes.BlockedCordoned, (*search).closed, true},
	{causes.BlockedNoGuard, unless((*search).guards, "does not guard lives, which nodeLoss Replace requires"), true},
	{causes.BlockedAgentTooOld, (*search).tooOld, true},
	{causes.BlockedNoNode, unless(addressed, "does not say its address, which hostNetwork requires: start its agent with --address"), true},
	{causes.BlockedReclaiming, unless((*search).cleared, "still has a volume of it that was lost with the host, which goes to the trash first"), false},
	{causes.BlockedNoClass, (*search).classMissing, false},
	{causes.BlockedNoNode, (*search).mislabelled, true},
	{causes.BlockedNoNode, (*search).tainted, true},
	{causes.BlockedPressure, short, false},
	{causes.BlockedNoRoom, (*search).full, false},
	{causes.BlockedHostPort, (*search).portTaken, false},
	{causes.BlockedNoNode, (*search).affinityForbids, false},
}

// unless explains with the same words whatever node does not have it.
func unless(has func(*search, *proof.Node) bool, words string) func(*search, *proof.Node) string {
	return func(s *search, n *proof.Node) string {
		if has(s, n) {
			return ""
		}
		return words
	}
}

func (s *search) connected(n *proof.Node) bool { return n.Connected() }
func (s *search) guards(n *proof.Node) bool    { return !s.Guarded || n.Facts != nil && n.Facts.Guards }

// closed says why the node takes no new lives.
func (s *search) closed(n *proof.Node) string {
	switch {
	case n.Facts.ShuttingDown() != nil:
		return "is being shut down"
	case n.Node.Drain != nil:
		return "is drained"
	case n.Node.Cordon:
		return "is cordoned"
	}
	return ""
}

// addressed: a member that is in the network of the node can have its address.
func addressed(s *search, n *proof.Node) bool {
	return !s.Template.HostNetwork || n.Facts.Address().Is4()
}

// tooOld says what of the template the node's agent would pass over without a word.
func (s *search) tooOld(n *proof.Node) string {
	if n.Facts.Carries(s.level) {
		return ""
	}
	return "has an agent that is too old for " + s.newest
}

// cleared: no volume is in the way, which the node does not move once a life has started there.
func (s *search) cleared(n *proof.Node) bool {
	return !slices.Contains(s.LeftOn, n.Node.Name) &&
		!slices.ContainsFunc(s.Objects, func(o Object) bool { return slices.Contains(o.LeftOn, n.Node.Name) })
}

// passes reports whether the node has all that is fixed, or all that is not.
func (s *search) passes(n *proof.Node, fixed bool) bool {
	for i := range filters {
		if filters[i].fixed == fixed && filters[i].explain(s, n) != "" {
			return false
		}
	}
	return true
}

// refused says why a node cannot take the life, as a reason and in words; "": it can.
func (s *search) refused(n *proof.Node) (reason causes.BlockedReason, words string) {
	for i := range filters {
		if words := filters[i].explain(s, n); words != "" {
			return filters[i].reason, words
		}
	}
	return "", ""
}

func (s *search) classMissing(n *proof.Node) string {
	for i := range s.Claims {
		class, v := s.Claims[i].Spec.Class(), s.Volumes[spec.ClaimName(s.Claims[i].Metadata.Name)]
		switch {
		case !n.Facts.HasClass(class):
			return "has no storage class " + class
		case v != nil && v.Shared && !n.Facts.SharesClass(class):
			return "does not share its storage class " + class
		}
	}
	for _, o := range s.Objects {
		switch {
		case !n.Facts.HasClass(o.Class):
			return "has no storage class " + o.Class
		case o.shared() && !n.Facts.SharesClass(o.Class):
			return fmt.Sprintf("does not share its storage class %s, and the PersistentVolumeClaim %s is %s", o.Class, o.Name, spec.ReadWriteMany)
		}
	}
	return ""
}

// mislabelled says which labels of the node are not those that this life must have.
func (s *search) mislabelled(n *proof.Node) string {
	first, lacks := "", false // by key
	for key, want := range s.Template.NodeSelector {
		if n.Labels[key] != want && (!lacks || key < first) {
			first, lacks = key, true
		}
	}
	if lacks {
		return fmt.Sprintf("has no label %s=%s", first, s.Template.NodeSelector[first])
	}
	if f := s.Template.Affinity; f != nil && f.NodeAffinity != nil && f.NodeAffinity.Required != nil && !f.NodeAffinity.Required.Matches(n.Labels) {
		return "does not have the labels that the node affinity requires"
	}
	return ""
}

func (s *search) tainted(n *proof.Node) string {
	for _, taint := range n.Node.Taints {
		if taint.Effect == spec.NoSchedule && !spec.Tolerates(s.Template.Tolerations, taint) {
			return "has the taint " + taint.String() + ", which is not tolerated"
		}
	}
	return ""
}

// short says what the node is short of. It keeps away who would be new there: not who was there before, for
// its room is taken already, nor whose volumes are there. Without a network it keeps all away.
func short(s *search, n *proof.Node) string {
	if n.Facts == nil {
		return ""
	}
	returns := s.home || s.Before == n.Node.Name
	for i := range n.Facts.Conditions {
		c := &n.Facts.Conditions[i]
		if returns && c.Type != records.NetworkUnavailable {
			continue
		}
		if c.Known() && (c.Class == "" || fills(s.Request, c.Class)) && !spec.Tolerates(s.Template.Tolerations, c.Taint()) {
			return "has " + c.Type + ": " + c.Message
		}
	}
	return ""
}

// fills reports whether a volume of the class is to be made for the life.
func fills(r *Request, class string) bool {
	for i := range r.Claims {
		if r.Claims[i].Spec.Class() == class && r.Volumes[spec.ClaimName(r.Claims[i].Metadata.Name)] == nil {
			return true
		}
	}
	return slices.ContainsFunc(r.Objects, func(o Object) bool { return o.Class == class && o.Volume == nil })
}

// full says of what the node has too little left for this life. What its life before
// took there is kept for it: that record stays until the new life takes its place. A
// node that does not say how much it has takes all.
func (s *search) full(n *proof.Node) string {
	if n.Facts == nil {
		return ""
	}
	used := s.used[n.Node.Name]
	used.cpuMillis += n.CPUMillis
	used.memoryBytes += n.MemoryBytes
	used.hugePages = used.hugePages.Plus(n.HugePages, 1)
	if s.Before == n.Node.Name {
		cpu, memory := s.Ran.Requests()
		if s.RanAlso != nil {
			c, m := s.RanAlso.Requests()
			cpu, memory = max(cpu, c), max(memory, m)
		}
		pages := s.Ran.HugePages()
		if s.cpuMillis <= cpu && s.memoryBytes <= memory && s.hugePages.Within(pages) {
			return "" // also where the node has promised too much
		}
		used.cpuMillis, used.memoryBytes = used.cpuMillis-cpu, used.memoryBytes-memory
		used.hugePages = used.hugePages.Plus(pages, -1)
	}
	var lacking []string
	if left := n.Facts.CPUMillis - used.cpuMillis; n.Facts.CPUMillis > 0 && s.cpuMillis > max(left, 0) {
		lacking = append(lacking, fmt.Sprintf("%s of %s cpu left, %s requested",
			cpuText(left), cpuText(n.Facts.CPUMillis), cpuText(s.cpuMillis)))
	}
	if left := n.Facts.MemoryBytes - used.memoryBytes; n.Facts.MemoryBytes > 0 && s.memoryBytes > max(left, 0) {
		lacking = append(lacking, fmt.Sprintf("%s of %s memory left, %s requested",
			bytesText(left), bytesText(n.Facts.MemoryBytes), bytesText(s.memoryBytes)))
	}
	lacking = append(lacking, pagesLacking(n.Facts.HugePages, used.hugePages, s.hugePages)...)
	if len(lacking) == 0 {
		return ""
	}
	return "has " + strings.Join(lacking, ", and ")
}

// pagesLacking says of which huge pages too few are left. A node that does not say that it has some has none.
func pagesLacking(all, used, requested scalar.HugePages) (lacking []string) {
	for _, size := range []struct {
		name  string
		bytes int64
	}{{"2Mi", scalar.Page2Mi}, {"1Gi", scalar.Page1Gi}} {
		if left := max(all.Of(size.bytes)-used.Of(size.bytes), 0); requested.Of(size.bytes) > left {
			lacking = append(lacking, fmt.Sprintf("%s of %s in huge pages of %s left, %s requested",
				bytesText(left), bytesText(all.Of(size.bytes)), size.name, bytesText(requested.Of(size.bytes))))
		}
	}
	return lacking
}

// portTaken says which host port of this life is another's at the node: until nothing is
// left of who has it.
func (s *search) portTaken(n *proof.Node) string {
	for _, list := range [][]proof.Resident{n.Residents, s.begun[n.Node.Name]} {
		for i := range list {
			for _, theirs := range list[i].Ports {
				if list[i].ID != s.ID && slices.ContainsFunc(s.ports, theirs.Meets) {
					return fmt.Sprintf("has its host port %s taken by %s", theirs, list[i].ID)
				}
			}
		}
	}
	return ""
}

func cpuText(millis int64) string { return scalar.Quantity{Milli: max(millis, 0)}.String() }

// bytesText is a size in MiB: requests are written so.
func bytesText(n int64) string { return fmt.Sprintf("%dMi", max(n, 0)>>20) }

// refusals are the words of the nodes that cannot take a life, each word once.
type refusals struct {
	words   []string
	nodes   map[string][]spec.NodeName
	reasons []causes.BlockedReason
}

func (r *refusals) add(n spec.NodeName, reason causes.BlockedReason, words string) {
	if r.nodes == nil {
		r.nodes = map[string][]spec.NodeName{}
	}
	if r.nodes[words] == nil {
		r.words = append(r.words, words)
	}
	r.nodes[words] = append(r.nodes[words], n)
	r.reasons = append(r.reasons, reason)
}

// reason is that of a class that is missing anywhere, for it is misspelt most likely; that
// a node is short of something, that there is no room, no host port or no guard, that agents are too old, or a volume in the way, when that is all that is
// missing somewhere.
func (r *refusals) reason() causes.BlockedReason {
	for _, reason := range []causes.BlockedReason{causes.BlockedNoClass, causes.BlockedPressure, causes.BlockedNoRoom, causes.BlockedHostPort, causes.BlockedNoGuard, causes.BlockedAgentTooOld, causes.BlockedReclaiming} {
		if slices.Contains(r.reasons, reason) {
			return reason
		}
	}
	return causes.BlockedNoNode
}

func (r *refusals) text() string {
	parts := make([]string, len(r.words))
	for i, words := range r.words {
		nodes := r.nodes[words]
		parts[i] = fmt.Sprintf("node %s %s", nodes[0], words)
		if others := nodes[1:]; len(others) > MostNamed {
			parts[i] += fmt.Sprintf(" (and %d other nodes)", len(others))
		} else if len(others) > 0 {
			parts[i] += fmt.Sprintf(" (also %s)", Names(others))
		}
	}
	return strings.Join(parts, "; ")
}

// MostNamed bounds the nodes that a sentence names.
const MostNamed = 3

// Names are the names of nodes as a sentence has them.
func Names(nodes []spec.NodeName) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}
