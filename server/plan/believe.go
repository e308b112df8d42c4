package plan

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Believe tells whether the set's members, DNS and its history count a member as
// ready: its report says so, nobody wants it stopped, and its node has a live session
// of the boot it runs in, which has told so itself or took over from one that did (SAFETY
// S15). While more than half of the nodes are silent at once the last reports are believed:
// it is more likely us than them, and DNS keeps its answer. The rules of Next are stricter
// and do not use it.
func Believe(nodes []Node) func(*Slot) bool {
	live := map[spec.NodeName]*records.Session{}
	for _, n := range nodes {
		live[n.Node.Name] = n.Session
	}
	most := !MostHeard(nodes)
	return func(slot *Slot) bool {
		m, r := slot.Member, slot.Report
		if r == nil || r.Token != m.Token || !r.Ready || r.Phase.Over() || m.Goal != records.GoalRun {
			return false
		}
		if s := live[m.Node]; s != nil {
			return s.Boot == m.Boot && s.UID == m.NodeUID && (s.Resumed || r.Session == s.ID)
		}
		return most
	}
}
