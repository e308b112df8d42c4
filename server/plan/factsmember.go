package plan

import (
	"fmt"
	"maps"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// memberFacts is one ordinal and what is known of its life. It does not change: what a step
// does to a member gives other facts, by one of the methods at the end of this file.
type memberFacts struct {
	wanted   bool // the set wants a member of this ordinal
	id       spec.Identity
	slot     *Slot // as it is stored; nil: nothing is
	identity *records.IdentityRecord
	member   *records.Member // nil: no life
	report   *records.Report // of this very life
	volumes  map[spec.ClaimName]*records.Volume
	said     map[spec.ClaimName]*records.VolumeReport // of these volumes
	asked    map[spec.ClaimName]*records.VolumeRequest
	strays   []NodeStray // lives of it that the store does not know
	gone     bool        // its life's record is removed in this very step

	proof.Life // of member
}

// seen is what one slot tells.
func seen(slot *Slot, judge *proof.Judge, minReady time.Duration) memberFacts {
	m := memberFacts{
		id: slot.ID, slot: slot, identity: slot.Identity, member: slot.Member, report: slot.Report,
		volumes: slot.Volumes, said: slot.Said, asked: slot.Asked,
	}
	for _, x := range slot.Strays {
		if m.member == nil || x.Stray.Token != m.member.Token || x.Node != m.member.Node {
			m.strays = append(m.strays, x)
		}
	}
	if m.member != nil {
		m.Life = judge.Life(m.member, m.report, minReady)
	}
	return m
}

// leftOn are the nodes with a volume of the identity that is in the way.
func (m *memberFacts) leftOn() []spec.NodeName {
	if m.slot == nil {
		return nil
	}
	return m.slot.Left
}

// restartAsked: a person asked for the restart of the life.
func (m *memberFacts) restartAsked() bool { return m.slot != nil && m.slot.Request != nil }

// vacant: no life, or one that is proven gone.
func (m *memberFacts) vacant() bool { return m.member == nil || m.Over }

// stopping: the life was told to end and is not proven gone.
func (m *memberFacts) stopping() bool {
	return m.member != nil && m.member.Goal == records.GoalStop && !m.Over
}

// lastToken is the newest token the identity ever had.
func (m *memberFacts) lastToken() spec.Token {
	var last spec.Token
	if m.identity != nil {
		last = m.identity.LastToken
	}
	if m.member != nil && m.member.Token.Compare(last) > 0 {
		last = m.member.Token
	}
	return last
}

// expired: the life is over by its deadline, and nobody said so.
func (m *memberFacts) expired() bool { return m.Silence.Over }

// lostTo names the node of a life that is over by its deadline, which must have no
// session still when what follows from it is written; "": there is another proof, or
// no life.
func (m *memberFacts) lostTo() spec.NodeName {
	if !m.expired() {
		return ""
	}
	return m.member.Node
}

// unseen: nothing is known of how the life is now. Its node is silent, has not reported on it in
// this session, or cannot see it, for its container runtime does not answer.
func (m *memberFacts) unseen() bool {
	return !m.Live || m.Stale || m.report != nil && m.report.Cause == causes.RuntimeUnavailable
}

// wasReady: in this life, as is marked, or as its report says before it is.
func (m *memberFacts) wasReady() bool {
	return m.identity != nil && m.identity.ReadyToken == m.member.Token || m.report != nil && (m.report.Ready || m.report.ReadyOnce)
}

// pending: something is to be done about a volume of the identity.
func (m *memberFacts) pending() bool {
	for _, v := range m.volumes {
		if v.Fate != records.FateKeep {
			return true
		}
	}
	return len(m.asked) > 0
}

// strayText says which life of a member the store does not know.
func (m *memberFacts) strayText() string {
	x := m.strays[0]
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
	case m.report.Message != "":
		return string(m.report.Cause) + ": " + m.report.Message
	case m.report.Cause != "":
		return string(m.report.Cause)
	}
	return string(m.report.Phase)
}

// proofText is why the life counts as over.
func (m *memberFacts) proofText() string {
	if m.expired() {
		return m.Silence.Text
	}
	return fmt.Sprintf("node %s reported token %s as %s", m.member.Node, m.member.Token, m.report.Phase)
}

// What follows are the facts after an action.

// afterStart: a life begins.
func (m memberFacts) afterStart(a *Start) *memberFacts {
	m.member, m.identity, m.report = &a.Member, &a.Identity, nil
	m.Life = proof.Life{Live: true}
	return &m
}

// afterStop: the life is told to end.
func (m memberFacts) afterStop(reason records.Reason) *memberFacts {
	member := *m.member
	member.Goal, member.StopReason = records.GoalStop, reason
	m.member, m.Ready, m.Available = &member, false, false
	return &m
}

// afterForget: the record of the life goes.
func (m memberFacts) afterForget() *memberFacts {
	m.member, m.report, m.Life, m.gone = nil, nil, proof.Life{}, true
	return &m
}

// withIdentity: the identity's record is replaced.
func (m memberFacts) withIdentity(rec *records.IdentityRecord) *memberFacts {
	m.identity = rec
	return &m
}

// withVolume: the claim has this volume.
func (m memberFacts) withVolume(v *records.Volume) *memberFacts {
	m.volumes = maps.Clone(m.volumes)
	if m.volumes == nil {
		m.volumes = map[spec.ClaimName]*records.Volume{}
	}
	m.volumes[v.Claim] = v
	return &m
}

// withAnswer: what was asked about the claim is done, after which it has this volume.
func (m memberFacts) withAnswer(v *records.Volume) *memberFacts {
	m.asked = maps.Clone(m.asked)
	delete(m.asked, v.Claim)
	return m.withVolume(v)
}

// withWord: this was said of the volume of a claim that has no record.
func (m memberFacts) withWord(claim spec.ClaimName, said *records.VolumeReport) *memberFacts {
	m.said = map[spec.ClaimName]*records.VolumeReport{claim: said}
	return &m
}
