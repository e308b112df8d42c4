package plan

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// What a preview assumes of nodes and of time.

// nodesAct lets each node that has a session do what the records ask of it, and say so; it reports
// whether any did.
func (p *previewRun) nodesAct() (any bool) {
	for i := range p.w.Slots {
		slot := &p.w.Slots[i]
		any = p.lifeActs(slot) || any
		if len(slot.Volumes) > 0 {
			any = p.volumesAct(slot) || any
		}
		left := slices.DeleteFunc(slices.Clone(slot.Left), func(name spec.NodeName) bool { return p.session(name) != nil })
		any = any || len(left) != len(slot.Left)
		slot.Left = left
	}
	return p.movesAct() || any
}

// session is a node's session; nil: it has none.
func (p *previewRun) session(name spec.NodeName) *records.Session {
	n := proof.FindNode(p.w.Nodes, name)
	if n == nil || !n.Connected() {
		return nil
	}
	return n.Session
}

// host is the session of the machine on which a life is; nil: it has none.
func (p *previewRun) host(m *records.Member) *records.Session {
	if s := p.session(m.Node); s != nil && s.UID == m.NodeUID {
		return s
	}
	return nil
}

// endBooted ends a life whose node has booted since.
func (p *previewRun) endBooted(slot *Slot) {
	m := slot.Member
	if m == nil || reportedOver(slot) {
		return
	}
	if session := p.host(m); session != nil && session.Boot != m.Boot {
		slot.Report = reported(m, session, records.PhaseStopped)
	}
}

// lifeActs ends a life that is to end.
func (p *previewRun) lifeActs(slot *Slot) bool {
	m, r := slot.Member, slot.Report
	if m == nil || reportedOver(slot) {
		return false
	}
	session := p.host(m)
	switch {
	case session == nil:
		return false
	case m.Goal == records.GoalStop:
		slot.Report = reported(m, session, records.PhaseStopped)
		return true
	case m.Hook != nil && r != nil && r.Phase == records.PhaseRunning && !m.HookResult(r).Done: // it succeeds
		again := *r
		again.Session, again.Hook = session.ID, hooks.HookResult{ID: m.Hook.ID, Done: true}
		slot.Report = &again
		return true
	case r != nil && r.Session != session.ID: // its node tells of it anew
		again := *r
		again.Session = session.ID
		slot.Report = &again
		return true
	}
	return false
}

func reportedOver(slot *Slot) bool { return slot.Report != nil && slot.Report.Phase.Over() }

func reported(m *records.Member, session *records.Session, phase records.Phase) *records.Report {
	return &records.Report{ID: m.ID, Token: m.Token, Node: m.Node, Session: session.ID, Phase: phase, Bound: m.Bound}
}

// available is the report of a life that is ready for as long as the set asks.
func (p *previewRun) available(m *records.Member, session *records.Session) *records.Report {
	r := reported(m, session, records.PhaseRunning)
	r.Ready, r.ReadyOnce = true, true
	if m.Change != nil {
		r.Change = inplace.ChangeResult{ID: m.Change.ID, Revision: m.Change.Revision, Done: true}
	}
	if p.w.Set != nil {
		r.ReadyFor = time.Duration(p.w.Set.Spec.MinReadySeconds) * time.Second
	}
	return r
}

// volumesAct has the nodes do what is ordered of volumes. One that they refused they refuse.
func (p *previewRun) volumesAct(slot *Slot) (any bool) {
	for _, claim := range inOrder(slot.Volumes) {
		v, said := slot.Volumes[claim], slot.Said[claim]
		answered := said != nil && said.Volume == v.UID && said.Turn == v.Turn
		if !v.Fate.Ordered() || answered || p.session(v.Node) == nil {
			continue
		}
		r := records.VolumeReport{ID: v.ID, Claim: claim, Volume: v.UID, Number: v.Number, Class: v.Class, Node: v.Node, Turn: v.Turn}
		switch v.Fate {
		case records.FateReclaiming:
			r.State = records.VolumeTrashed
		case records.FateLost:
			r.State = records.VolumeAbsent
		case records.FateRestoring:
			r.State = records.VolumeFound
		}
		slot.Said, any = with(slot.Said, claim, &r), true
	}
	return any
}

// start has the lives that began in the preview, or were changed in place, become available; it reports whether any did.
// They do last of all, so that as many are down at once as may be.
func (p *previewRun) start() (any bool) {
	for i := range p.w.Slots {
		slot := &p.w.Slots[i]
		m := slot.Member
		changed := m != nil && m.Change != nil && slot.Report != nil && p.ordered[m.ID] == m.Change.ID && !m.ChangeResult(slot.Report).Done
		if m == nil || slot.Report != nil && !changed || !changed && p.begun[m.ID] != m.Token || m.Goal != records.GoalRun {
			continue
		}
		if session := p.host(m); session != nil {
			slot.Report, any = p.available(m, session), true
		}
	}
	return any
}

// recover has those members become available that were not when the preview began, and for
// which something may wait: all that a plan names and whose nodes have a session.
func (p *previewRun) recover(next Plan) (any bool) {
	for _, b := range next.Blocked {
		if i, known := p.w.find(b.ID.Ordinal); known && p.recovers(&p.w.Slots[i]) {
			any = true
			p.first = append(p.first, b)
		}
	}
	return any
}

func (p *previewRun) recovers(slot *Slot) bool {
	m := slot.Member
	if m == nil || m.Goal != records.GoalRun || reportedOver(slot) || p.begun[m.ID] == m.Token {
		return false
	}
	session := p.host(m)
	if session == nil {
		return false
	}
	well := p.available(m, session)
	if r := slot.Report; r != nil && r.Ready && r.ReadyFor >= well.ReadyFor && m.ChangeResult(r).Done == (m.Change != nil) {
		return false
	}
	slot.Report = well
	return true
}

// rest has the members that are busy not be so any more; it reports whether any was.
func (p *previewRun) rest(next Plan) (any bool) {
	for i := range p.w.Slots {
		if r := p.w.Slots[i].Report; r != nil && r.Claim.Busy != "" {
			idle := *r
			idle.Claim.Busy = ""
			p.w.Slots[i].Report, any = &idle, true
		}
	}
	for _, b := range next.Blocked {
		if any && b.Reason == causes.BlockedBusy {
			p.first = append(p.first, b)
		}
	}
	return any
}

// pass lets the time go by after which a plan wants to be asked again; it reports whether any did.
func (p *previewRun) pass(next Plan) bool {
	d := next.Wake
	if d <= 0 {
		return false
	}
	p.after += d
	for _, b := range next.Blocked {
		if !forOthers(b.Reason) && !slices.ContainsFunc(p.first, func(known Blocked) bool { return known.ID == b.ID }) {
			p.first = append(p.first, b)
		}
	}
	if next.Clock {
		p.w.Standstill += d
	}
	p.lasted(next.Outages, d)
	for id, rest := range p.w.Rest {
		p.w.Rest[id] = rest - d
	}
	p.w.AwaitFor -= d
	if p.w.AwaitFor <= 0 {
		p.w.Awaited, p.w.AwaitFor = nil, 0
	}
	for i := range p.w.Nodes {
		if n := &p.w.Nodes[i]; n.Session == nil {
			n.Gone += d
		}
	}
	return true
}

// lasted makes the outages that a plan names d longer, and forgets all others.
func (p *previewRun) lasted(named []Outage, d time.Duration) {
	now := make(map[Outage]time.Duration, len(named))
	for _, o := range named {
		now[o] = p.w.Outages[o] + d
	}
	p.w.Outages = now
}
