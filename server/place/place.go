// Package place chooses the node of a new life, and says why none can take it. What a node
// must have are filters, values in a list, each with its own words. What the template prefers is rated as
// Kubernetes' scheduler does; between equals the ranks decide. Pure.
package place

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// Request is what a new life asks of its node.
type Request struct {
	ID       spec.Identity
	Template *spec.MemberSpec  // what it is to run
	Labels   map[string]string // of its set's members
	Revision spec.RevisionHash // that it is to run
	Guarded  bool              // it is to end by itself when its node is silent
	Isolated bool              // a NetworkPolicy selects members of its set
	Claims   []spec.ClaimTemplate
	Volumes  map[spec.ClaimName]*records.Volume // those it has
	// Objects are the PersistentVolumeClaims that it mounts, by name.
	Objects []Object
	// LeftOn are nodes that still have a volume of it that was lost with the host.
	LeftOn []spec.NodeName
	// Before is the node of the life before, as long as that has a record; "": it has none.
	// Ran is what that ran, and RanAlso what it was changed to in place (nil: it was not): its room there is kept for the new life.
	Before       spec.NodeName
	Ran, RanAlso *spec.MemberSpec
}

// Object is a PersistentVolumeClaim that a life mounts.
type Object struct {
	Name, Class string
	Volume      *records.Volume // nil: it is made on the node that is chosen
	// Many: lives of all nodes that share the class may have it (ReadWriteMany).
	Many bool
	// LeftOn are nodes that still have a volume of it that was lost with the host.
	LeftOn []spec.NodeName
}

// shared reports whether its volume binds a life to no node, but to those that share the class.
func (o *Object) shared() bool { return o.Many && (o.Volume == nil || o.Volume.Shared) }

// Refusal is why no node can take a life; Text is a sentence without its subject.
type Refusal struct {
	Reason causes.BlockedReason
	Text   string
}

// Placer chooses nodes for the lives of one set that begin in one step of the planner.
type Placer struct {
	nodes   []proof.Node          // in the order of names
	known   bool                  // it is known who runs on them
	folded  map[spec.NodeName]int // see New
	members map[spec.NodeName]int
	used    map[spec.NodeName]room             // by the lives that begin in this step
	begun   map[spec.NodeName][]proof.Resident // these lives, where it matters who they are
	fixed   map[fixedFor][]*proof.Node         // see candidates
	orders  map[fixedFor]*order                // of the candidates
	fit     []*proof.Node                      // of the choice that is made: kept for its room

	possible map[possible]bool // see Possible

	// What those who run say of those who come: see gather.
	gathered   bool
	others     []*otherTerms // in the order in which they were met
	byAffinity map[*spec.Affinity]*otherTerms
	ownLives   map[spec.Identity]otherLife // of the set itself
}

// fixedFor is what the filters that are fixed look at in a request.
type fixedFor struct {
	template *spec.MemberSpec
	guarded  bool
}

// room is what lives take of a node.
type room struct {
	lives                  int
	cpuMillis, memoryBytes int64
	hugePages              scalar.HugePages
}

// New returns a Placer over nodes, in the order of names. members counts members of the set by
// node, and the Placer owns it; folded counts more of them, and is not changed.
func New(nodes []proof.Node, folded, members map[spec.NodeName]int) *Placer {
	known := slices.ContainsFunc(nodes, func(n proof.Node) bool { return len(n.Residents) > 0 })
	return &Placer{nodes: nodes, folded: folded, members: members, known: known}
}

// Take notes that the life begins on a node: the next Choose counts it.
func (p *Placer) Take(r *Request, node spec.NodeName) {
	cpu, memory := r.Template.Requests()
	if p.used == nil {
		p.used, p.begun = map[spec.NodeName]room{}, map[spec.NodeName][]proof.Resident{}
	}
	u := p.used[node]
	p.members[node]++
	p.used[node] = room{u.lives + 1, u.cpuMillis + cpu, u.memoryBytes + memory, u.hugePages.Plus(r.Template.HugePages(), 1)}
	if r.Template.Constrained() {
		life := proof.Resident{ID: r.ID, Labels: r.Labels, Revision: r.Revision}.Running(r.Template)
		p.begun[node] = append(p.begun[node], life)
		if n := proof.FindNode(p.nodes, node); p.gathered && n != nil {
			p.count(r.ID.Ref(), n, &life)
		}
	}
	for _, o := range p.orders {
		o.take(node)
	}
}

// Choose returns the node of a new life: the one that holds its volumes; else, of those that
// pass every filter, the best. Without one it says why.
func (p *Placer) Choose(r *Request) (*proof.Node, *Refusal) {
	home, refusal := r.home()
	if refusal != nil {
		return nil, refusal
	}
	s := p.search(r)
	if home != "" {
		s.home = true
		return s.at(home)
	}
	if n := stays(s); n != nil {
		return n, nil
	}
	if n, found := s.firstInOrder(); found {
		return n, nil
	}
	p.fit = p.fit[:0]
	for _, n := range s.candidates() {
		if s.passes(n, false) {
			p.fit = append(p.fit, n)
		}
	}
	switch {
	case len(p.fit) > 0:
		return s.best(p.fit), nil
	case len(p.nodes) == 0:
		return nil, &Refusal{causes.BlockedNoNode, "no node has joined yet"}
	}
	var no refusals
	for i := range p.nodes {
		reason, words := s.refused(&p.nodes[i])
		no.add(p.nodes[i].Node.Name, reason, words)
	}
	refusal = &Refusal{no.reason(), "no node can take it: " + no.text()}
	if refusal.Reason == causes.BlockedNoClass {
		refusal.Text += "; known storage classes are " + records.KnownClasses(p.facts())
	}
	return nil, refusal
}

// Takes says why a node cannot take a life; nil: it can.
func (p *Placer) Takes(r *Request, node spec.NodeName) *Refusal {
	home, refusal := r.home()
	n := proof.FindNode(p.nodes, node)
	switch {
	case refusal != nil:
		return refusal
	case n == nil:
		return &Refusal{causes.BlockedNoNode, fmt.Sprintf("node %s is not known", node)}
	case home != "" && home != node:
		return &Refusal{causes.BlockedVolume, fmt.Sprintf("a volume that it mounts is bound to node %s", home)}
	}
	reason, words := p.search(r).refused(n)
	if reason == "" {
		return nil
	}
	return &Refusal{reason, fmt.Sprintf("node %s %s", node, words)}
}

// candidates are the nodes that pass what is fixed, in their order. They are found once for the lives of a
// template: what else begins in this step changes nothing of it.
func (s *search) candidates() []*proof.Node {
	key := fixedFor{s.Template, s.Guarded}
	list, known := s.fixed[key]
	if known {
		return list
	}
	for i := range s.nodes {
		if s.passes(&s.nodes[i], true) {
			list = append(list, &s.nodes[i])
		}
	}
	if s.fixed == nil {
		s.fixed = map[fixedFor][]*proof.Node{}
	}
	s.fixed[key] = list
	return list
}

// home is the node to which volumes bind the life; "": none does.
func (r *Request) home() (home spec.NodeName, no *Refusal) {
	for i := range r.Claims {
		v := r.Volumes[spec.ClaimName(r.Claims[i].Metadata.Name)]
		switch {
		case v == nil || v.Node == "" || v.Shared:
		case home != "" && v.Node != home:
			return "", &Refusal{causes.BlockedVolume, fmt.Sprintf("its volumes are on two nodes, %s and %s", home, v.Node)}
		default:
			home = v.Node
		}
	}
	for _, o := range r.Objects {
		switch {
		case o.Volume == nil || o.shared():
		case home != "" && o.Volume.Node != home:
			return "", &Refusal{causes.BlockedVolume, fmt.Sprintf(
				"the volume of the PersistentVolumeClaim %s is on node %s, and another volume that it mounts on node %s", o.Name, o.Volume.Node, home)}
		default:
			home = o.Volume.Node
		}
	}
	return home, nil
}

// at judges the only node that a life may have.
func (s *search) at(home spec.NodeName) (*proof.Node, *Refusal) {
	n := proof.FindNode(s.nodes, home)
	if n == nil {
		return nil, &Refusal{causes.BlockedNoNode, fmt.Sprintf("its volumes are on node %s, which is not known", home)}
	}
	reason, words := s.refused(n)
	switch reason {
	case "":
		return n, nil
	case causes.BlockedNodeSilent:
		return nil, &Refusal{reason, fmt.Sprintf("its volumes are on node %s, which %s: it starts there when the host is back. %s", home, words, givingUp(n))}
	}
	return nil, &Refusal{reason, fmt.Sprintf("its volumes are on node %s, which %s", home, words) + comingBack(n)}
}

// comingBack says when a life starts on the only node that it may have, and whose members are to stop.
func comingBack(n *proof.Node) string {
	if n.Facts.ShuttingDown() != nil {
		return ": it starts there after the boot"
	}
	if n.Node.Drain != nil {
		return fmt.Sprintf(": it starts there after 'stead uncordon %s'", n.Node.Name)
	}
	return ""
}

// givingUp says what a person can do about volumes on a silent node.
func givingUp(n *proof.Node) string {
	if n.Fenced {
		return "If the data are lost with it: stead volume reclaim --lost"
	}
	return fmt.Sprintf("If the host and the data are lost for good: stead node fence %s --i-have-powered-off, then stead volume reclaim --lost", n.Node.Name)
}

// facts is what the nodes say of themselves.
func (p *Placer) facts() []*records.NodeFacts {
	out := make([]*records.NodeFacts, 0, len(p.nodes))
	for i := range p.nodes {
		out = append(out, p.nodes[i].Facts)
	}
	return out
}

// search is one choice of a node.
type search struct {
	*Placer
	*Request
	cpuMillis, memoryBytes int64
	hugePages              scalar.HugePages
	ports                  []spec.HostPort
	level                  int               // of templates that the agent must know
	newest                 string            // the field that asks for it
	allLabels              map[string]string // see labels
	home                   bool              // its volumes leave it no other node
	affinity
}

func (p *Placer) search(r *Request) *search {
	s := &search{Placer: p, Request: r, ports: r.Template.HostPorts()}
	s.cpuMillis, s.memoryBytes = r.Template.Requests()
	s.hugePages = r.Template.HugePages()
	s.level, s.newest = r.Template.Needs()
	if r.Isolated && s.level < records.PolicyLevel {
		s.level, s.newest = records.PolicyLevel, "the NetworkPolicies of the set"
	}
	s.affinity = s.countAffinity()
	return s
}

// best is the node that the points speak for, then the ranks, then its name.
func (s *search) best(fit []*proof.Node) (best *proof.Node) {
	points := s.points(fit)
	var least score
	for i, n := range fit {
		sc := s.score(n)
		if points != nil {
			sc[0] = -points[i]
		}
		if best == nil || sc.less(least) {
			best, least = n, sc
		}
	}
	return best
}

// score is what speaks against a node: its points, negative, and one figure a rank. Less is better, the first
// difference decides.
type score [1 + len(ranks)]int64

func (a score) less(b score) bool {
	return slices.Compare(a[:], b[:]) < 0
}

// ranks are what decides between nodes of which none is preferred, by weight.
var ranks = [...]func(*search, *proof.Node) int64{
	(*search).membersBeside,
	(*search).moved,
	(*search).livesThere,
}

// score has no points yet.
func (s *search) score(n *proof.Node) (sc score) {
	for i, rank := range ranks {
		sc[i+1] = rank(s, n)
	}
	return sc
}

// membersBeside counts the other members of the set on the node.
func (s *search) membersBeside(n *proof.Node) int64 {
	beside := s.members[n.Node.Name] + s.folded[n.Node.Name]
	if s.Before == n.Node.Name {
		beside--
	}
	return int64(beside)
}

// moved is 1 where the life before was not.
func (s *search) moved(n *proof.Node) int64 {
	if s.Before == n.Node.Name {
		return 0
	}
	return 1
}

// livesThere counts the lives of all sets.
func (s *search) livesThere(n *proof.Node) int64 {
	return int64(n.Lives + s.used[n.Node.Name].lives)
}
