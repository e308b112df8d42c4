package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
)

// say gives every node something that it said of itself.
func say(w *World) {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Facts == nil {
			n.Facts = &records.NodeFacts{Name: n.Node.Name, UID: n.Node.UID, Epoch: w.Epoch, Guards: true}
		}
	}
}

// guard gives the set nodeLoss Replace, and all its lives the bound.
func guard(w *World, bound time.Duration) {
	say(w)
	w.Set.Spec.NodeLoss = &spec.NodeLoss{Policy: spec.NodeLossReplace, After: &scalar.Duration{Duration: bound}}
	for i := range w.Slots {
		if m := w.Slots[i].Member; m != nil {
			m.Bound = bound
		}
		if r := w.Slots[i].Report; r != nil {
			r.Bound = bound
		}
	}
}

// silence takes a node's session, so long ago.
func silence(w *World, name spec.NodeName, gone time.Duration) {
	n := proof.FindNode(w.Nodes, name)
	n.Session, n.Gone = nil, gone
}

// loss is nodeLoss in words.
func loss(words []string) *spec.NodeLoss {
	l := &spec.NodeLoss{Policy: words[0]}
	if len(words) > 1 {
		after, _ := scalar.ParseDuration(words[1])
		l.After = &after
	}
	return l
}

// node loses its session or has one again: back in the same boot, or boots.
func (s *stage) node(name spec.NodeName, how string) {
	s.w.Nodes = slices.Clone(s.w.Nodes)
	n := proof.FindNode(s.w.Nodes, name)
	if label, is := strings.CutPrefix(how, "disk="); is {
		n.Labels = map[string]string{"disk": label}
		return
	}
	if prepares(n, spec.SetRef{Namespace: "default", Name: "db"}, how) {
		return
	}
	if how == "in-place" || how == "old" {
		facts := *n.Facts
		facts.Level = map[string]int{"in-place": spec.Level, "old": 1}[how]
		n.Facts = &facts
		return
	}
	n.Session, n.Gone = nil, 0
	if how == "silent" {
		return
	}
	n.Fenced = how == "fenced"
	if n.Fenced {
		s.fence(name)
		return
	}
	n.Session = &records.Session{Node: name, UID: n.Node.UID, Boot: "boot1", ID: 5}
	if how == "boots" {
		n.Session.Boot = "boot2"
	}
	facts := *n.Facts
	facts.Epoch = s.w.Epoch
	n.Facts = &facts
}

// fence has the lives on a node be over, as a person says.
func (s *stage) fence(name spec.NodeName) {
	for i := range s.w.Slots {
		if m := s.w.Slots[i].Member; m != nil && m.Node == name {
			s.w.Slots[i].Report = &records.Report{ID: m.ID, Token: m.Token, Node: name, Phase: records.PhaseStopped, Cause: causes.Fenced}
		}
	}
}

// prepares has a node say that it prepares, or what it has of a revision; false: how says neither.
func prepares(n *Node, ref spec.SetRef, how string) bool {
	word, revision, _ := strings.Cut(how, "-")
	if word != "prepares" && word != "has" && word != "lacks" {
		return false
	}
	facts := *n.Facts
	facts.Prepares = true
	if word != "prepares" {
		said := records.Prepared{Ref: ref, Revision: spec.RevisionHash(revision), Done: word == "has"}
		if !said.Done {
			said.Cause, said.Message = causes.ImagePull, "the registry says no"
		}
		facts.Prepared = []records.Prepared{said}
	}
	n.Facts = &facts
	return true
}

// drain has a node drained, or ends that.
func (s *stage) drain(name spec.NodeName, wanted, atOnce bool) {
	s.w.Nodes = drained(s.w.Nodes, name, wanted, atOnce)
}

// drained is nodes with one of them drained, or not any more.
func drained(nodes []Node, name spec.NodeName, wanted, atOnce bool) []Node {
	nodes = slices.Clone(nodes)
	n := proof.FindNode(nodes, name)
	record := *n.Node
	record.Cordon, record.Drain = wanted, nil
	if wanted {
		record.Drain = &records.Drain{AtOnce: atOnce}
	}
	n.Node = &record
	return nodes
}

// anew is another leader, which has measured nothing yet; restored: in another epoch.
func (s *stage) anew(restored bool) {
	if restored {
		s.w.Epoch++
	}
	s.w.Nodes = slices.Clone(s.w.Nodes)
	for i := range s.w.Nodes {
		n := &s.w.Nodes[i]
		n.Gone = 0
		if n.Session != nil {
			s.node(n.Node.Name, "back")
		}
	}
	s.w.Standstill, s.w.Outages, s.w.Rest = 0, nil, nil
}

// silentFor lets time go by on silent nodes, whose guarded lives end by it.
func (s *stage) silentFor(d time.Duration) {
	s.w.Nodes = slices.Clone(s.w.Nodes)
	for i := range s.w.Nodes {
		n := &s.w.Nodes[i]
		if n.Session != nil {
			continue
		}
		n.Gone += d
		for _, slot := range s.w.Slots {
			if m := slot.Member; m != nil && m.Node == n.Node.Name && m.Bound > 0 && n.Gone >= m.Bound {
				s.ended[lifeOf(m)] = true
			}
		}
	}
}

// boots: the life is of the boot in which its node is.
func (s *stage) boots(m *records.Member) bool {
	n := proof.FindNode(s.w.Nodes, m.Node)
	return n.Session.Boot == m.Boot
}
