package proof

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec/scalar"
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
	life := fmt.Sprintf("token %s", m.Token)
	if text := j.unproven(m, r, n, life); text != "" {
		return Silence{Text: fmt.Sprintf("node %s is unreachable", m.Node) + text}
	}
	wait := SilenceNeeded(m.Bound)
	if n.Gone < wait {
		return Silence{
			Left: wait - n.Gone,
			Text: fmt.Sprintf("node %s is unreachable; %s is guarded, ends by itself, and counts as over after %s without contact", m.Node, life, scalar.Duration{Duration: wait}),
		}
	}
	return Silence{
		Over: true,
		Text: fmt.Sprintf("node %s had no session for %s; %s was guarded and has ended by itself", m.Node, scalar.Duration{Duration: wait}, life),
	}
}

// unproven says why time proves nothing about a life on an unreachable node, as the end of a
// sentence; "": it does.
func (j *Judge) unproven(m *records.Member, r *records.Report, n *Node, life string) string {
	off := fmt.Sprintf("; if the node is off for good: stead node fence %s --i-have-powered-off", m.Node)
	switch {
	case n == nil || n.Node.UID != m.NodeUID || n.Session != nil:
		return fmt.Sprintf("; %s may still be running there, so it is not replaced", life)
	case m.Bound == 0:
		return fmt.Sprintf("; %s may still be running there, so it is not replaced", life) + off
	case n.Facts == nil || n.Facts.UID != m.NodeUID || n.Facts.Epoch != j.epoch || m.Token.Epoch != j.epoch:
		return fmt.Sprintf("; the store was restored since %s started or the node last reported, so time proves nothing and it is not replaced", life)
	case !n.Facts.Guards || r != nil && r.Bound != m.Bound:
		return fmt.Sprintf(" and did not report that it guards %s, so time proves nothing and it is not replaced", life)
	case writesArriveLate(m):
		return fmt.Sprintf("; the volume of %s is shared and was not declared to fence by itself (--fenced-class), so late writes may still arrive", life) + off
	case 2*j.silent > j.known:
		return fmt.Sprintf(", as are %d of %d nodes; nothing is replaced while more than half are", j.silent, j.known) + off
	}
	return ""
}

// writesArriveLate reports whether what the life wrote may arrive after it ended by itself, in
// a volume that others may have by then (SAFETY S14).
func writesArriveLate(m *records.Member) bool {
	return slices.ContainsFunc(m.Volumes, func(v records.MemberVolume) bool { return v.Shared && !v.Fenced })
}
