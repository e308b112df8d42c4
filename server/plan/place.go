package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// place chooses the node of a new life: the one that holds its volumes; else, of
// those that can take it, the one that its preferences, then the spread of the set, then
// that of all sets speak for, by name.
func (s *step) place(t *seat) (n *Node, reason, text string) {
	home, reason, text := s.home(t)
	if reason != "" {
		return nil, reason, text
	}
	a := s.ask(t)
	var best rank
	var no refusals
	for i := range s.w.Nodes {
		c := &s.w.Nodes[i]
		if home != "" && c.Node.Name != home {
			continue
		}
		why, words := s.whyNot(c, a)
		switch {
		case why == BlockedNodeSilent && home != "":
			return nil, why, fmt.Sprintf("its volumes are on node %s, which %s: it begins there when the host is back. %s", home, words, givingUp(c))
		case why != "" && home != "":
			return nil, why, fmt.Sprintf("its volumes are on node %s, which %s", home, words)
		case why != "":
			no.add(c.Node.Name, why, words)
		default:
			if r := s.rank(c, a); n == nil || r.compare(best) < 0 {
				n, best = c, r
			}
		}
	}
	switch {
	case n != nil:
		return n, "", ""
	case home != "":
		return nil, BlockedNoNode, fmt.Sprintf("its volumes are on node %s, which is not known", home)
	case len(no.words) == 0:
		return nil, BlockedNoNode, "no node has joined yet"
	}
	text = "no node can take it: " + no.text()
	if no.reason() == BlockedNoClass {
		text += "; known storage classes are " + records.KnownClasses(s.facts())
	}
	return nil, no.reason(), text
}

// givingUp says what a person can do about volumes on a silent node.
func givingUp(n *Node) string {
	if n.Fenced {
		return "If the data are lost with it: stead volume reclaim --lost"
	}
	return fmt.Sprintf("If that and the data are lost for good: stead node fence %s --i-have-powered-off, then stead volume reclaim --lost", n.Node.Name)
}

// home is the node to which the volumes bind the member; "": none does.
func (s *step) home(t *seat) (home spec.NodeName, reason, text string) {
	for i := range s.w.Set.Spec.VolumeClaimTemplates {
		v := t.volumes[spec.ClaimName(s.w.Set.Spec.VolumeClaimTemplates[i].Metadata.Name)]
		switch {
		case v == nil || v.Node == "" || v.Shared:
		case home != "" && v.Node != home:
			return "", BlockedVolume, fmt.Sprintf("its volumes are on two nodes, %s and %s", home, v.Node)
		default:
			home = v.Node
		}
	}
	return home, "", ""
}

// whyNot says why a node cannot take a new life, as a reason and in words; "": it can.
func (s *step) whyNot(n *Node, a *ask) (reason, words string) {
	switch {
	case n.Session == nil || n.Session.UID != n.Node.UID:
		return BlockedNodeSilent, "is silent"
	case n.Node.Cordon:
		return BlockedCordoned, "is cordoned"
	}
	if words := s.unguarded(n); words != "" {
		return BlockedNoGuard, words
	}
	// The node moves nothing out of the way of a life that has begun there.
	if slices.Contains(s.seatOf(a.id.Ordinal).leftOn, n.Node.Name) {
		return BlockedReclaiming, "still has a volume of it that was lost with the host, which goes to the trash first"
	}
	for i := range s.w.Set.Spec.VolumeClaimTemplates {
		if class := s.w.Set.Spec.VolumeClaimTemplates[i].Spec.Class(); !n.Facts.HasClass(class) {
			return BlockedNoClass, "has no storage class " + class
		} else if v := s.seatOf(a.id.Ordinal).volumes[spec.ClaimName(s.w.Set.Spec.VolumeClaimTemplates[i].Metadata.Name)]; v != nil && v.Shared && !n.Facts.SharesClass(class) {
			return BlockedNoClass, "does not share its storage class " + class
		}
	}
	if words := a.refused(n); words != "" {
		return BlockedNoNode, words
	}
	if words := s.lacks(n, a); words != "" {
		return BlockedNoRoom, words
	}
	if words := s.portTaken(n, a); words != "" {
		return BlockedHostPort, words
	}
	if words := a.company.refused(n); words != "" {
		return BlockedNoNode, words
	}
	return "", ""
}

// facts is what the nodes say of themselves.
func (s *step) facts() []*records.NodeFacts {
	out := make([]*records.NodeFacts, 0, len(s.w.Nodes))
	for i := range s.w.Nodes {
		out = append(out, s.w.Nodes[i].Facts)
	}
	return out
}

// rank is what speaks for a node among those that can take a life: less is better,
// the first difference decides.
type rank struct {
	against int64 // what is preferred elsewhere, less what is preferred here
	skew    int   // over what ScheduleAnyway would bound
	members int   // of the set, that are there beside it
	away    int   // 1: its life before was elsewhere
	lives   int   // of all sets
}

func (r rank) compare(o rank) int {
	return slices.Compare([]int64{r.against, int64(r.skew), int64(r.members), int64(r.away), int64(r.lives)},
		[]int64{o.against, int64(o.skew), int64(o.members), int64(o.away), int64(o.lives)})
}

func (s *step) rank(n *Node, a *ask) rank {
	pull, skew := a.company.pull(n)
	r := rank{against: a.dislike(n) - pull, skew: skew, members: s.spread[n.Node.Name], lives: n.Lives + s.begun[n.Node.Name].lives}
	if t := s.seatOf(a.id.Ordinal); t.member == nil || t.member.Node != n.Node.Name {
		r.away = 1
	} else {
		r.members--
	}
	return r
}

// refusals are what the nodes say that cannot take a life, each word once.
type refusals struct {
	words   []string
	nodes   map[string][]spec.NodeName
	reasons map[string]bool
}

func (r *refusals) add(n spec.NodeName, reason, words string) {
	if r.nodes == nil {
		r.nodes, r.reasons = map[string][]spec.NodeName{}, map[string]bool{}
	}
	if r.reasons[reason] = true; r.nodes[words] == nil {
		r.words = append(r.words, words)
	}
	r.nodes[words] = append(r.nodes[words], n)
}

// reason: a class that is missing anywhere is told, for it is misspelt most likely; that
// there is no room, no host port or no guard, or a volume in the way, when that is all that is
// missing somewhere.
func (r *refusals) reason() string {
	for _, reason := range []string{BlockedNoClass, BlockedNoRoom, BlockedHostPort, BlockedNoGuard, BlockedReclaiming} {
		if r.reasons[reason] {
			return reason
		}
	}
	return BlockedNoNode
}

// mostNamed bounds the nodes that are named for one word.
const mostNamed = 3

func (r *refusals) text() string {
	parts := make([]string, len(r.words))
	for i, words := range r.words {
		nodes := r.nodes[words]
		parts[i] = fmt.Sprintf("node %s %s", nodes[0], words)
		if others := nodes[1:]; len(others) > mostNamed {
			parts[i] += fmt.Sprintf(" (so say %d others)", len(others))
		} else if len(others) > 0 {
			parts[i] += fmt.Sprintf(" (so say %s)", names(others))
		}
	}
	return strings.Join(parts, "; ")
}

func names(nodes []spec.NodeName) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}
