package proof

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

// SilenceNeeded is how long a node must have been without session until its lives of this
// bound have ended: each ends at its bound after its node was last confirmed, which is
// not after the session was seen gone. The margin is for clocks that differ and for
// killers that need a moment.
func SilenceNeeded(bound time.Duration) time.Duration {
	return bound + max(time.Second, bound/100) + time.Second
}

// Silence judges a life whose node has no session: the proof by deadline (SAFETY S5, S6,
// S8), and nothing else is proof here. While more than half of the known nodes are silent
// at once nothing is proven: it is more likely us than them.
func (j *Judge) Silence(m *records.Member, r *records.Report) Silence {
	n := j.Node(m.Node)
	if n != nil && n.Session != nil && n.Session.UID == m.NodeUID {
		return Silence{} // it was heard of
	}
	if text := j.unproven(m, r, n); text != "" {
		return Silence{Text: fmt.Sprintf("its node %s is silent, ", m.Node) + text}
	}
	wait := SilenceNeeded(m.Bound)
	if n.Gone < wait {
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

// unproven says why time proves nothing about a life on a silent node; "": it does.
func (j *Judge) unproven(m *records.Member, r *records.Report, n *Node) string {
	switch {
	case n == nil || n.Node.UID != m.NodeUID || n.Session != nil:
		return fmt.Sprintf("which proves nothing about token %s", m.Token)
	case m.Bound == 0:
		return fmt.Sprintf("which proves nothing about token %s; if it is off for good: stead node fence %s --i-have-powered-off", m.Token, m.Node)
	case n.Facts == nil || n.Facts.UID != m.NodeUID || n.Facts.Epoch != j.epoch || m.Token.Epoch != j.epoch:
		return fmt.Sprintf("and the store was restored since token %s was begun or its node last heard of: time proves nothing about it", m.Token)
	case !n.Facts.Guards || r != nil && r.Bound != m.Bound:
		return fmt.Sprintf("and did not say that it guards token %s: time proves nothing about it", m.Token)
	case writesArriveLate(m):
		return fmt.Sprintf("and its volume is shared, and was not declared to fence by itself (--fenced-class): what token %s wrote may arrive late. If it is off: stead node fence %s --i-have-powered-off",
			m.Token, m.Node)
	case 2*j.silent > j.known:
		return fmt.Sprintf("as are %d of %d nodes: while more than half are, nothing is replaced. If it is off: stead node fence %s --i-have-powered-off",
			j.silent, j.known, m.Node)
	}
	return ""
}

// writesArriveLate reports whether what the life wrote may arrive after it ended by itself, in
// a volume that others may have by then (SAFETY S14).
func writesArriveLate(m *records.Member) bool {
	return slices.ContainsFunc(m.Volumes, func(v records.MemberVolume) bool { return v.Shared && !v.Fenced })
}
