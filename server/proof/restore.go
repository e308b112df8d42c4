package proof

import (
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// FirstEpoch is the epoch of a store that was never restored.
const FirstEpoch = 1

// MissingNodes are the nodes that have to say, after a restore, what they run, and have not
// (SAFETY S8): those that the count names, and any other that the store knows. Excused ones
// are left out. It is empty once the count is done, and in a store that was never restored.
// A machine is known by its uid: it may come back under another name.
func MissingNodes(epoch int64, count *records.Count, nodes []Node) (missing []records.CountNode) {
	var list []records.CountNode
	switch {
	case count != nil && count.Epoch == epoch && count.Done:
		return nil
	case count != nil && count.Epoch == epoch:
		list = count.Nodes
	case epoch <= FirstEpoch:
		return nil
	}
	heard, listed := map[spec.UID]bool{}, map[spec.UID]bool{}
	for i := range nodes {
		if n := &nodes[i]; n.Facts != nil && n.Facts.Epoch >= epoch {
			heard[n.Node.UID] = true
		}
	}
	for _, c := range list {
		listed[c.UID] = true
		if c.Off == "" && !heard[c.UID] {
			missing = append(missing, c)
		}
	}
	for i := range nodes {
		if n := nodes[i].Node; !listed[n.UID] && !heard[n.UID] {
			missing = append(missing, records.CountNode{Name: n.Name, UID: n.UID, From: records.FromStore})
		}
	}
	slices.SortStableFunc(missing, func(a, b records.CountNode) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return missing
}
