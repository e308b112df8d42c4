package proof

import (
	"fmt"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Judge judges lives by all nodes as one leader knows them.
type Judge struct {
	nodes         []Node
	epoch         int64 // of the store
	known, silent int   // nodes that ever said what they are, and of them those without a session
}

// NewJudge returns a judge. The nodes, in the order of names, are shared and must not change.
func NewJudge(nodes []Node, epoch int64) *Judge {
	j := &Judge{nodes: nodes, epoch: epoch}
	j.known, j.silent = countSilent(nodes)
	return j
}

// Node finds a node by its name; nil: it is not known.
func (j *Judge) Node(name spec.NodeName) *Node { return FindNode(j.nodes, name) }

// MostSilent reports whether more than half of the nodes that ever said what they are have no
// session: it is more likely us than them.
func (j *Judge) MostSilent() bool { return 2*j.silent > j.known }

// Life is what is known of one life.
type Life struct {
	// Live: its node has a session of the boot in which the life was started (SAFETY S15).
	Live bool
	// Stale: and has not reported on the life in that session. What was reported in an
	// earlier one need not be so any more.
	Stale bool
	// Ready: its own node reported so in its present session, and nobody wants it stopped.
	Ready bool
	// Available: and has been so for the set's minReadySeconds.
	Available bool
	// Over: it is proven gone, by a report of its own token or by its deadline.
	Over bool
	// Silence is set while its node has no session and no report says that it is over.
	Silence Silence
}

// Life judges one life by its report, which is nil or of any token.
func (j *Judge) Life(m *records.Member, r *records.Report, minReady time.Duration) (l Life) {
	n := j.Node(m.Node)
	l.Live = n != nil && n.Session != nil && n.Session.UID == m.NodeUID && n.Session.Boot == m.Boot
	if r != nil && r.Token == m.Token {
		l.Over = r.Phase.Over()
		l.Stale = l.Live && !l.Over && r.Session != n.Session.ID
		l.Ready = l.Live && !l.Stale && m.Goal == records.GoalRun && r.Phase == records.PhaseRunning && r.Ready
		l.Available = l.Ready && r.ReadyFor >= minReady
	}
	if !l.Live && !l.Over {
		l.Silence = j.Silence(m, r)
		l.Over = l.Silence.Over
	}
	return l
}

// Over reports whether the life is proven gone, by its report or by its deadline.
func (j *Judge) Over(m *records.Member, r *records.Report) bool {
	return Ended(m, r) || j.Silence(m, r).Over
}

// Ended reports whether a report of the life's own token proves it gone.
func Ended(m *records.Member, r *records.Report) bool {
	return r != nil && r.Token == m.Token && r.Phase.Over()
}

// EffectiveReady tells whether the set's members, DNS and its history count a member as ready: its
// report says so, it is to run, and its node has a live session of the boot it runs in, which
// has reported so itself or took over from one that did (SAFETY S15). While more than half of
// the nodes are silent at once the last reports count: it is more likely us than them, and
// DNS keeps its answer. Life.Ready is stricter, for decisions.
func (j *Judge) EffectiveReady(m *records.Member, r *records.Report) bool {
	if r == nil || r.Token != m.Token || !r.Ready || r.Phase.Over() || m.Goal != records.GoalRun {
		return false
	}
	n := j.Node(m.Node)
	if n == nil || n.Session == nil {
		return j.MostSilent()
	}
	s := n.Session
	return s.Boot == m.Boot && s.UID == m.NodeUID && (s.Resumed || r.Session == s.ID)
}

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

// VolumeGone reports whether what a volume's node said proves that the volume is in its
// place no more, and will not be by an order that the node has.
func VolumeGone(v *records.Volume, said *records.VolumeReport) bool {
	if v == nil || said == nil || said.Volume != v.UID || said.Turn != v.Turn {
		return false
	}
	switch v.Fate {
	case records.FateReclaiming, records.FateLost:
		return said.State.Released()
	case records.FateRestoring:
		return said.State == records.VolumeAbsent
	}
	return false
}

// VolumeFound reports whether a volume's node said that it is in its place, which was said
// to be lost, or was in the trash.
func VolumeFound(v *records.Volume, said *records.VolumeReport) bool {
	return v != nil && said != nil && said.Volume == v.UID && said.Turn == v.Turn && said.State == records.VolumeFound &&
		(v.Fate == records.FateLost || v.Fate == records.FateRestoring)
}

// LostWithHost reports whether a volume is lost with its host: a person says both, that the
// host is off and that the volume is lost. Nobody can look for it once more; for a shared
// one somebody can.
func LostWithHost(v *records.Volume, n *Node) bool {
	return v != nil && !v.Shared && v.Fate == records.FateLost && n != nil && n.Fenced && n.Session == nil
}
