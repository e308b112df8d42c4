package cache

import (
	"fmt"
	"strings"
	"time"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// The states of a node.
const (
	NodeReady  = "Ready"  // it has a session
	NodeSilent = "Silent" // it has none, and lives that were sent to it may run there
	NodeLost   = "Lost"   // it has none, and nothing that was sent to it can run there any more
	// NodeEnrolled: it was let in by a join token, and has not connected yet.
	NodeEnrolled = "Enrolled"
)

// NodeState is a node as people see it.
type NodeState struct {
	Node  plan.Node
	State string
	// Waits says what is known of its lives while it has no session; "": it has none.
	Waits string
}

// NodeStates judges nodes, which are those of v with the silence that was measured.
func NodeStates(v View, nodes []plan.Node) []NodeState {
	judge := proof.NewJudge(nodes, v.Epoch())
	list := make([]NodeState, len(nodes))
	for i, n := range nodes {
		list[i] = NodeState{Node: n, State: NodeReady}
		if n.Session != nil {
			continue
		}
		var c livesOf
		for _, id := range v.MembersOn(n.Node.Name) {
			c.count(v, id, judge)
		}
		list[i].State, list[i].Waits = NodeSilent, c.text()
		if c.held+c.ending == 0 && n.Facts != nil && n.Facts.Epoch == v.Epoch() && len(n.Facts.Strays) == 0 {
			list[i].State = NodeLost
		}
		if n.Facts == nil && !n.Unread && len(v.MembersOn(n.Node.Name)) == 0 {
			list[i].State = NodeEnrolled
		}
	}
	return list
}

// livesOf counts the lives of a node without a session.
type livesOf struct {
	held, ending, over int
	last               time.Duration // until all of those that are ending are over
}

func (c *livesOf) count(v View, id spec.Identity, judge *proof.Judge) {
	m := v.Member(id)
	if m == nil { // it cannot be read
		c.held++
		return
	}
	r := v.Report(id)
	if r != nil && r.Token != m.Token {
		r = nil
	}
	s := judge.Silence(m, r)
	switch {
	case r != nil && r.Phase.Over(), s.Over:
		c.over++
	case s.Left > 0:
		c.ending++
		c.last = max(c.last, s.Left)
	default:
		c.held++
	}
}

func (c *livesOf) text() string {
	var parts []string
	if c.held > 0 {
		parts = append(parts, fmt.Sprintf("%d may still run, until the node reconnects or 'stead node fence' proves it off", c.held))
	}
	if c.ending > 0 {
		parts = append(parts, fmt.Sprintf("%d will have ended at their deadline in %s", c.ending, scalar.Duration{Duration: c.last.Round(time.Second)}))
	}
	if c.over > 0 {
		parts = append(parts, fmt.Sprintf("%d ended", c.over))
	}
	if len(parts) == 0 {
		return ""
	}
	return "of its lives: " + strings.Join(parts, ", ")
}
