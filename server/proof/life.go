package proof

import (
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
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

// Life is what is known of one life.
type Life struct {
	// Live: its node has a session of the boot in which the life was begun (SAFETY S15).
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

// EffectiveReady tells whether the set's members, DNS and its history count a member as
// ready: its report says so, nobody wants it stopped, and its node has a live session
// of the boot it runs in, which has reported so itself or took over from one that did (SAFETY
// S15). While more than half of the nodes are silent at once the last reports count:
// it is more likely us than them, and DNS keeps its answer. Life.Ready is stricter, for
// decisions.
func (j *Judge) EffectiveReady(m *records.Member, r *records.Report) bool {
	if r == nil || r.Token != m.Token || !r.Ready || r.Phase.Over() || m.Goal != records.GoalRun {
		return false
	}
	n := j.Node(m.Node)
	if n == nil || n.Session == nil {
		return 2*j.silent > j.known
	}
	s := n.Session
	return s.Boot == m.Boot && s.UID == m.NodeUID && (s.Resumed || r.Session == s.ID)
}
