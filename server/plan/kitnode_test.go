package plan

import (
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// node reads one node's word, such as n1~.
func (k *kit) node(word string) {
	name := spec.NodeName(strings.TrimRight(word, "~!%^"))
	n := Node{
		Node:    &records.Node{Name: name, UID: spec.UID("uid-" + name), Cordon: strings.HasSuffix(word, "!")},
		Session: &records.Session{Node: name, UID: spec.UID("uid-" + name), Boot: "boot1", ID: 5},
	}
	if strings.HasSuffix(word, "~") {
		n.Session = nil
	}
	if strings.Contains(word, "%") {
		n.Node.Cordon, n.Node.Drain = true, &records.Drain{AtOnce: strings.Contains(word, "%%")}
	}
	if strings.Contains(word, "^") {
		n.Facts = shutDown(n.Facts, true, strings.Contains(word, "^^"))
	}
	k.w.Nodes = append(k.w.Nodes, n)
}

// shutDown is what a node says whose host is being shut down, or is not.
func shutDown(f *records.NodeFacts, is, atOnce bool) *records.NodeFacts {
	var out records.NodeFacts
	if f != nil {
		out = *f
	}
	out.Conditions = nil
	if is {
		out.Conditions = []records.NodeCondition{{Type: records.ShuttingDown, Status: "True", AtOnce: atOnce}}
	}
	return &out
}
