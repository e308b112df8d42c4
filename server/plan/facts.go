package plan

import (
	"fmt"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// facts is what is known of the set before anything is decided: the world, and what follows
// from it alone. newFacts derives all of it; nothing outside the files facts*.go assigns any of
// it (test/arch keeps that). What a step changes of it is in its draft.
type facts struct {
	templates
	world World
	judge *proof.Judge
	// asSeen holds every ordinal in range and every other one that has a record, ascending.
	asSeen []memberFacts
	size   int               // how many are wanted
	reach  spec.OrdinalRange // the ordinals wanted
	update spec.RevisionHash // the template's revision
	// current is the revision completed last; while none was, the first that is known.
	current spec.RevisionHash
	proven  bool // every member ran current and was available, once
	// targetRevision is where members go: the update revision, or after a rollback the current one.
	targetRevision spec.RevisionHash
	former         string // the service before a rename that is not complete
	leader         int    // with order LeaderLast the ordinal that leads, which goes down last; else NoOrdinal
	// apart: under Recreate, members of two revisions do not run beside each other. A member
	// keeps what it ran while others of another revision live, and, while the rollout is
	// paused, until one runs the update revision.
	apart bool
}

func newFacts(w World) *facts {
	f := newSetFacts(w)
	f.former = Former(w.Set, w.Status, w.Slots)
	f.see()
	f.leader = records.NoOrdinal
	if f.leaderLast() {
		f.leader = Leader(w.Slots, f.judge)
	}
	f.apart = f.recreates() && f.mixed()
	return f
}

// newSetFacts are the facts but for those that come from members.
func newSetFacts(w World) *facts {
	f := &facts{world: w, judge: proof.NewJudge(w.Nodes, w.Epoch), reach: w.Set.Range(), update: w.TemplateHash, templates: templates{set: w.Set, stored: w.Revisions}}
	if w.Set.Deleting {
		f.reach = w.Set.Spec.Ordinals.Range(0)
	}
	f.current = f.update
	if w.Status != nil && f.template(w.Status.CurrentRevision) != nil {
		f.current, f.proven = w.Status.CurrentRevision, w.Status.CurrentCompleted
	}
	f.targetRevision = f.update
	if w.Status != nil && w.Status.RolledBackFrom == f.update {
		f.targetRevision = f.current
	}
	if f.storedAs(f.update) == nil && !w.Set.Deleting && !w.Set.Orphaned {
		f.fresh = newRevision(&w)
	}
	return f
}

// see makes the members.
func (f *facts) see() {
	if f.world.Folded != nil {
		f.size = total(f.world.Folded.up) + total(f.world.Folded.vacant)
		f.asSeen = make([]memberFacts, 0, len(f.world.Slots))
		for _, slot := range f.world.Slots {
			f.asSeen = append(f.asSeen, f.seen(slot))
		}
	} else {
		f.asSeen = make([]memberFacts, 0, max(f.world.Set.Replicas(), len(f.world.Slots)))
		for slot := range slotsOf(f.reach, f.world.Set.Ref, f.world.Slots) {
			f.asSeen = append(f.asSeen, f.seen(slot))
		}
	}
	var unread []spec.NodeName
	for i := range f.world.Nodes {
		if n := &f.world.Nodes[i]; n.Unread {
			unread = append(unread, n.Node.Name)
		}
	}
	for i := range f.asSeen {
		m := &f.asSeen[i]
		f.size += one(m.wanted)
		for _, node := range unread {
			m.Strays = append(m.Strays, NodeStray{Node: node, Stray: spec.LifeID{ID: m.ID}})
		}
	}
}

// mixed: a life of another revision than the one where members go is there; or the rollout is
// paused, and nobody is up.
func (f *facts) mixed() bool {
	up := false
	for i := range f.asSeen {
		m := &f.asSeen[i]
		if m.vacant() {
			continue
		}
		if m.heads() != f.targetRevision {
			return true
		}
		up = up || m.wanted
	}
	return f.paused() && !up
}

// node finds a node of the world; nil: no such record.
func (f *facts) node(name spec.NodeName) *Node { return f.judge.Node(name) }

// ordered: members start and stop one at a time.
func (f *facts) ordered() bool { return f.world.Set.Spec.PodManagementPolicy != spec.Parallel }

// unreadable says why the records do not allow any decision; "": they do. One of the set
// cannot be read, or the store is of an older epoch than a life it knows.
func (f *facts) unreadable() string {
	switch {
	case len(f.world.Broken) > 0:
		return fmt.Sprintf("the stored record %s cannot be read; nothing is done for the set until it is repaired", f.world.Broken[0])
	case f.world.Epoch < 1:
		return "the store has no epoch; nothing is done until it has one"
	}
	for i := range f.asSeen {
		m := &f.asSeen[i]
		if last := m.lastToken(); last.Epoch > f.world.Epoch {
			return fmt.Sprintf("%s had a life of epoch %d, but the store is at epoch %d", m.ID.MemberName(), last.Epoch, f.world.Epoch)
		}
	}
	return ""
}

// memberFacts is one ordinal, what is stored of it, and what is known of its life. It does not
// change: what a step does to a member gives other facts, by one of the methods at the end of
// this file.
type memberFacts struct {
	Slot            // Report is of this very life, Said of these volumes
	wanted     bool // the set wants a member of this ordinal
	gone       bool // its life's record is removed in this very step
	proof.Life      // of Member; not available while it is changed in place
	changeFacts
}

// seen is what one slot tells. Of its strays those count that are not the life itself.
func (f *facts) seen(slot Slot) memberFacts {
	m := memberFacts{Slot: slot, wanted: f.reach.Has(slot.ID.Ordinal)}
	m.Strays = nil
	for _, x := range slot.Strays {
		if m.Member == nil || x.Stray.Token != m.Member.Token || x.Node != m.Member.Node {
			m.Strays = append(m.Strays, x)
		}
	}
	if m.Member != nil {
		m.Life = f.judge.Life(m.Member, m.Report, time.Duration(f.world.Set.Spec.MinReadySeconds)*time.Second)
		m.changeFacts = f.changeOf(m.Member, m.Report)
		m.Available = m.Available && !m.changing
	}
	return m
}

// vacant: no life, or one that is proven gone.
func (m *memberFacts) vacant() bool { return m.Member == nil || m.Over }

// stopping: the life is to end and is not proven gone.
func (m *memberFacts) stopping() bool {
	return m.Member != nil && m.Member.Goal == records.GoalStop && !m.Over
}

// lastToken is the newest token the identity ever had.
func (m *memberFacts) lastToken() spec.Token {
	var last spec.Token
	if m.Identity != nil {
		last = m.Identity.LastToken
	}
	if m.Member != nil && m.Member.Token.Compare(last) > 0 {
		last = m.Member.Token
	}
	return last
}

// expired: the life is over by its deadline, and nobody said so.
func (m *memberFacts) expired() bool { return m.Silence.Over }

// lostTo names the node of a life that is over by its deadline, which must still have no session
// when what follows from it is written; "": there is another proof, or no life.
func (m *memberFacts) lostTo() spec.NodeName {
	if !m.expired() {
		return ""
	}
	return m.Member.Node
}

// unseen: nothing is known of how the life is now. Its node is silent, has not reported on it in
// this session, or cannot see it, for its container runtime does not answer.
func (m *memberFacts) unseen() bool {
	return !m.Live || m.Stale || m.Report != nil && m.Report.Cause == causes.RuntimeUnavailable
}

// wasReady: in this life, as is marked, or as its report says before it is.
func (m *memberFacts) wasReady() bool {
	return m.Identity != nil && m.Identity.ReadyToken == m.Member.Token || m.Report != nil && (m.Report.Ready || m.Report.ReadyOnce)
}

// pending: something is to be done about a volume of the identity.
func (m *memberFacts) pending() bool {
	for _, v := range m.Volumes {
		if v.Fate != records.FateKeep {
			return true
		}
	}
	return len(m.Asked) > 0
}

// strayText says which life of a member the store does not know.
func (m *memberFacts) strayText() string {
	x := m.Strays[0]
	if x.Stray.Token.IsZero() {
		return fmt.Sprintf("the stored facts of node %s cannot be read, so it may run a life of this member; start its agent, or, if it is off: stead node fence %s --i-have-powered-off", x.Node, x.Node)
	}
	return fmt.Sprintf("node %s runs a life of it (token %s) that the store does not know", x.Node, x.Stray.Token)
}

// endedText is why the life, which is over, ended, from its last report.
func (m *memberFacts) endedText() string {
	switch {
	case m.expired():
		return m.Silence.Text
	case m.Report.Message != "":
		return string(m.Report.Cause) + ": " + m.Report.Message
	case m.Report.Cause != "":
		return string(m.Report.Cause)
	}
	return string(m.Report.Phase)
}

// proofText is why the life counts as over.
func (m *memberFacts) proofText() string {
	if m.expired() {
		return m.Silence.Text
	}
	return fmt.Sprintf("node %s reported token %s as %s", m.Member.Node, m.Member.Token, m.Report.Phase)
}

// What follows are the facts after an action.

// afterStart: a life begins.
func (m memberFacts) afterStart(a *Start) *memberFacts {
	m.Member, m.Identity, m.Report = &a.Member, &a.Identity, nil
	m.Life, m.changeFacts = proof.Life{Live: true}, changeFacts{}
	return &m
}

// afterStop: the life is to end.
func (m memberFacts) afterStop(a *Stop) *memberFacts {
	member := a.Record(*m.Member)
	m.Member, m.Ready, m.Available, m.changeFacts = &member, false, false, changeFacts{}
	return &m
}

// afterOrder: the life is to run a hook, or none.
func (m memberFacts) afterOrder(a *OrderHook) *memberFacts {
	member := a.Record(*m.Member)
	m.Member = &member
	return &m
}

// afterForget: the record of the life goes.
func (m memberFacts) afterForget(a *Forget) *memberFacts {
	m.Member, m.Report, m.Life, m.changeFacts, m.gone = nil, nil, proof.Life{}, changeFacts{}, true
	if a.Gone != nil && m.Identity != nil {
		rec := *m.Identity
		rec.Gone = a.Gone
		m.Identity = &rec
	}
	return &m
}

// withIdentity: the identity's record is replaced.
func (m memberFacts) withIdentity(rec *records.IdentityRecord) *memberFacts {
	m.Identity = rec
	return &m
}

// withVolume: the claim has this volume.
func (m memberFacts) withVolume(v *records.Volume) *memberFacts {
	m.Volumes = with(m.Volumes, v.Claim, v)
	return &m
}

// withAnswer: what was asked about the claim is done, after which it has this volume.
func (m memberFacts) withAnswer(v *records.Volume) *memberFacts {
	m.Asked = without(m.Asked, v.Claim)
	return m.withVolume(v)
}

// withWord: this was said of the volume of a claim that has no record.
func (m memberFacts) withWord(claim spec.ClaimName, said *records.VolumeReport) *memberFacts {
	m.Said = map[spec.ClaimName]*records.VolumeReport{claim: said}
	return &m
}
