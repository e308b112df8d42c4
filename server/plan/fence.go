package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Silence is what is known of a life whose node has no session.
type Silence struct {
	// Over: the life is proven over. It was guarded, and its deadline is past.
	Over bool
	// Left is how long until it is; 0: it does not come by time alone.
	Left time.Duration
	// Text says what is waited for, or the proof: a sentence without its subject. It does
	// not change with time.
	Text string
}

// Patience is how long a node must have been without session until its lives of this
// bound have ended: each ends at its bound after its node was last confirmed, which is
// not after the session was seen gone. The margin is for clocks that differ and for
// killers that need a moment.
func Patience(bound time.Duration) time.Duration {
	return bound + max(time.Second, bound/100) + time.Second
}

// Silent judges lives whose node has no session: the proof by deadline (SAFETY S5, S6,
// S8), and nothing else is proof here. While more than half of the known nodes are silent
// at once nothing is proven: it is more likely us than them.
func Silent(nodes []Node, epoch int64) func(*records.Member, *records.Report) Silence {
	known, gone := silentNodes(nodes)
	return func(m *records.Member, r *records.Report) Silence {
		n := NodeOf(nodes, m.Node)
		wait := Patience(m.Bound)
		waits := func(format string, args ...any) Silence {
			return Silence{Text: fmt.Sprintf("its node %s is silent, ", m.Node) + fmt.Sprintf(format, args...)}
		}
		switch {
		case n != nil && n.Session != nil && n.Session.UID == m.NodeUID:
			return Silence{} // it was heard of
		case n == nil || n.Node.UID != m.NodeUID || n.Session != nil:
			return waits("which proves nothing about token %s", m.Token)
		case m.Bound == 0:
			return waits("which proves nothing about token %s; if it is off for good: stead node fence %s --i-have-powered-off", m.Token, m.Node)
		case n.Facts == nil || n.Facts.UID != m.NodeUID || n.Facts.Epoch != epoch || m.Token.Epoch != epoch:
			return waits("and the store was restored since token %s was begun or its node last heard of: time proves nothing about it", m.Token)
		case !n.Facts.Guards || r != nil && r.Bound != m.Bound:
			return waits("and did not say that it guards token %s: time proves nothing about it", m.Token)
		case late(m):
			return waits("and its volume is shared, and was not declared to fence by itself (--fenced-class): what token %s wrote may arrive late. If it is off: stead node fence %s --i-have-powered-off",
				m.Token, m.Node)
		case 2*gone > known:
			return waits("as are %d of %d nodes: while more than half are, nothing is replaced. If it is off: stead node fence %s --i-have-powered-off",
				gone, known, m.Node)
		case n.Gone < wait:
			return Silence{
				Left: wait - n.Gone,
				Text: fmt.Sprintf("its node %s is silent; token %s is guarded, ends by itself, and counts as over when that has lasted %s", m.Node, m.Token, spec.Duration{Duration: wait}),
			}
		}
		return Silence{
			Over: true,
			Text: fmt.Sprintf("its node %s had no session for %s; token %s, which is guarded, has ended by itself", m.Node, spec.Duration{Duration: wait}, m.Token),
		}
	}
}

// silentNodes counts the nodes that ever said what they are, and of them those without a
// session.
func silentNodes(nodes []Node) (known, gone int) {
	for i := range nodes {
		if n := &nodes[i]; n.Facts != nil {
			known++
			gone += one(n.Session == nil)
		}
	}
	return known, gone
}

// bound is that of the lives that the set begins; 0: they are not guarded.
func (s *step) bound() time.Duration { return s.w.Set.Spec.Bound() }

// unguarded says why a node cannot take a guarded life; "": it can, or it is none.
func (s *step) unguarded(n *Node) string {
	if s.bound() == 0 || n.Facts != nil && n.Facts.Guards {
		return ""
	}
	return "does not guard lives, which nodeLoss Replace needs"
}

// tellSilent says what a member on a silent node waits for, and how long still.
func (s *step) tellSilent(t *seat) {
	reason, text := BlockedNodeSilent, s.standing(t)
	if n := s.node(t.member.Node); n != nil && n.Fencing != "" && s.needsFence(t) {
		reason, text = BlockedFence, text+"; "+n.Fencing
	}
	s.block(t, reason, text)
	if left := t.silence.Left; left > 0 {
		s.plan.Blocked[len(s.plan.Blocked)-1].Left = left
		s.wake(left)
	}
}

// lostTo names the node of a life that is over by its deadline, which must have no
// session still when what follows from it is written; "": there is another proof, or
// no life.
func (t *seat) lostTo() spec.NodeName {
	if !t.expired() {
		return ""
	}
	return t.member.Node
}

// expired: the life is over by its deadline, and nobody said so.
func (t *seat) expired() bool { return t.silence.Over }

// late reports whether what the life wrote may arrive after it ended by itself, in a volume
// that others may have by then (SAFETY S14).
func late(m *records.Member) bool {
	return slices.ContainsFunc(m.Volumes, func(v records.MemberVolume) bool { return v.Shared && !v.Fenced })
}
