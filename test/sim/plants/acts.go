package plants

import (
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// own has *p be a copy of what it points to, which may be changed; nil stays nil.
func own[T any](p **T) *T {
	if *p != nil {
		c := **p
		*p = &c
	}
	return *p
}

func setChange(change func(*records.Set)) func(*plan.World) {
	return func(w *plan.World) {
		if w.Set != nil {
			change(own(&w.Set))
		}
	}
}

func statusChange(change func(*records.SetStatus)) func(*plan.World) {
	return func(w *plan.World) {
		if w.Status != nil {
			change(own(&w.Status))
		}
	}
}

// rollingUpdate changes the limits of updates; those that are not set are empty.
func rollingUpdate(change func(*spec.RollingUpdate)) func(*plan.World) {
	return setChange(func(s *records.Set) {
		if own(&s.Spec.UpdateStrategy.RollingUpdate) == nil {
			s.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{}
		}
		change(s.Spec.UpdateStrategy.RollingUpdate)
	})
}

// notOfType has a set with this strategy update as others do.
func notOfType(strategy string) func(*plan.World) {
	return setChange(func(s *records.Set) {
		if s.Spec.UpdateStrategy.Type == strategy {
			s.Spec.UpdateStrategy.Type = ""
		}
	})
}

// forgetBusy has nobody be busy, busyOfLate has those that are be so since a moment ago.
func forgetBusy(_ *plan.World, s *plan.Slot) {
	if r := own(&s.Report); r != nil {
		r.Claim.Busy = ""
	}
}

func busyOfLate(_ *plan.World, s *plan.Slot) {
	if r := own(&s.Report); r != nil {
		r.Claim.BusyFor = 0
	}
}

// eachSlot changes what is known of each ordinal.
func eachSlot(change func(*plan.World, *plan.Slot)) func(*plan.World) {
	return func(w *plan.World) {
		for i := range w.Slots {
			change(w, &w.Slots[i])
		}
	}
}

// Silent changes what is known of nodes without a session.
func Silent(change func(*plan.World, *plan.Node)) func(*plan.World) {
	return func(w *plan.World) {
		for i := range w.Nodes {
			if n := &w.Nodes[i]; n.Session == nil {
				change(w, n)
			}
		}
	}
}

// NoMargin has deadlines count as past when they are; LongGone has a silence count before it
// was seen.
var (
	NoMargin = Silent(func(_ *plan.World, n *plan.Node) { n.Gone += 2 * time.Second })
	LongGone = Silent(func(_ *plan.World, n *plan.Node) { n.Gone = time.Hour })
)

// moreNodes adds some that nobody can use and that are never silent.
func moreNodes(w *plan.World) {
	for _, name := range []spec.NodeName{"x0", "x1", "x2", "x3"} {
		w.Nodes = append(w.Nodes, plan.Node{
			Node: &records.Node{Name: name, UID: spec.UID(name), Cordon: true}, Facts: &records.NodeFacts{Name: name, UID: spec.UID(name), Epoch: w.Epoch},
			Session: &records.Session{Node: name, UID: spec.UID(name)},
		})
	}
}

// allGuarded takes every life for one with a bound.
func allGuarded(_ *plan.World, s *plan.Slot) {
	if s.Member == nil || s.Member.Bound > 0 {
		return
	}
	own(&s.Member).Bound = 10 * time.Second
	if s.Report != nil {
		own(&s.Report).Bound = s.Member.Bound
	}
}

// ForgetSilent takes a life on a node without session for one that is over.
var ForgetSilent = eachSlot(func(w *plan.World, s *plan.Slot) {
	if s.Member == nil {
		return
	}
	n := proof.FindNode(w.Nodes, s.Member.Node)
	if n == nil || n.Session == nil {
		s.Member, s.Report, s.Request = nil, nil, nil
	}
})

// everyoneLives gives a session to every node.
func everyoneLives(_ *plan.World, n *plan.Node) {
	if n.Facts != nil {
		n.Session = &records.Session{Node: n.Node.Name, UID: n.Node.UID, Boot: n.Facts.Boot}
	}
}

// whateverSession takes what any session told for the word of the present one.
func whateverSession(w *plan.World, s *plan.Slot) {
	if s.Report == nil {
		return
	}
	if n := proof.FindNode(w.Nodes, s.Report.Node); n != nil && n.Session != nil {
		own(&s.Report).Session = n.Session.ID
	}
}

// forgetReady takes members that were ready in their lives for such that never were.
func forgetReady(_ *plan.World, s *plan.Slot) {
	if s.Identity != nil && s.Report != nil {
		own(&s.Identity).ReadyToken, own(&s.Report).ReadyOnce = spec.Token{}, false
	}
}

// EveryoneSaid takes every node for one that has said what it runs.
func EveryoneSaid(w *plan.World) {
	w.Count = nil
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Facts != nil {
			own(&n.Facts).Epoch = w.Epoch
		}
	}
}

func forgetDue(_ *plan.World, s *plan.Slot) {
	if s.Identity != nil {
		own(&s.Identity).Due = ""
	}
}

// forgetData takes the volumes of an earlier set for ones that this set has used.
func forgetData(w *plan.World, s *plan.Slot) {
	w.WasBootstrapped = false
	if s.Identity != nil && w.Set != nil {
		own(&s.Identity).ReadyOnce = w.Set.UID
	}
}

// lowestFirst turns the ordinals of updates around.
func lowestFirst(w plan.World, stop *plan.Stop) {
	if stop.Reason != records.ReasonUpdate {
		return
	}
	for _, s := range w.Slots {
		if s.Member != nil && s.Member.Goal == records.GoalRun && s.Report != nil && s.Report.Ready && s.ID.Ordinal < stop.ID.Ordinal {
			stop.ID, stop.Token = s.ID, s.Member.Token
			return
		}
	}
}

// churn ends a member that is well and right.
func churn(w plan.World, p *plan.Plan) {
	for _, s := range w.Slots {
		if m := s.Member; m != nil && m.Goal == records.GoalRun && m.Revision == w.TemplateHash && len(p.Actions) == 0 {
			p.Actions = append(p.Actions, plan.Stop{ID: s.ID, Token: m.Token, Reason: records.ReasonUpdate, Text: "churn"})
		}
	}
}

// shareVolume gives a new life the volume of another one.
func shareVolume(w plan.World, a *plan.Start) {
	for _, s := range w.Slots {
		if v := s.Volumes["data"]; v != nil && s.ID != a.Member.ID && len(a.Member.Volumes) > 0 {
			a.Member.Volumes = slices.Clone(a.Member.Volumes)
			a.Member.Volumes[0].ID = v.UID
		}
	}
}

// eachFate changes what is recorded of volumes.
func eachFate(change func(plan.World, *records.Volume)) func(plan.World, *plan.Plan) {
	return func(w plan.World, p *plan.Plan) {
		changed := func(volumes []records.Volume) []records.Volume {
			volumes = slices.Clone(volumes)
			for i := range volumes {
				change(w, &volumes[i])
			}
			return volumes
		}
		for i, a := range p.Actions {
			switch a := a.(type) {
			case plan.SetVolumes:
				a.Volumes = changed(a.Volumes)
				p.Actions[i] = a
			case plan.Stop:
				a.Volumes = changed(a.Volumes)
				p.Actions[i] = a
			}
		}
	}
}

// each changes the actions of one kind.
func each[T plan.Action](change func(plan.World, *T)) func(plan.World, *plan.Plan) {
	return func(w plan.World, p *plan.Plan) {
		for i, a := range p.Actions {
			if a, is := a.(T); is {
				change(w, &a)
				p.Actions[i] = a
			}
		}
	}
}

// forgetOver forgets lives that nobody wants before it is recorded what becomes of their
// volumes.
func forgetOver(w plan.World, p *plan.Plan) {
	for _, s := range w.Slots {
		if s.Member == nil || s.Report == nil || !s.Report.Phase.Over() || w.Set == nil || w.Set.Range().Has(s.ID.Ordinal) {
			continue
		}
		without[plan.SetVolumes](w, p)
		p.Actions = slices.DeleteFunc(p.Actions, func(a plan.Action) bool { f, ok := a.(plan.Forget); return ok && f.ID == s.ID })
		p.Actions = append(p.Actions, plan.Forget{ID: s.ID, Token: s.Member.Token, Text: "plant"})
	}
}

// nothingReclaimed takes a volume that is being given up for one that is yet to go.
func nothingReclaimed(v *records.Volume) {
	if v.Fate == records.FateReclaiming {
		v.Fate = records.FateDelete
	}
}

// askedToGiveUp has a person ask for the end of every volume.
func askedToGiveUp(_ *plan.World, s *plan.Slot) {
	s.Asked = askedOfAll(s, records.VerbReclaim)
}

// askedOfAll asks the same of all volumes of an ordinal.
func askedOfAll(s *plan.Slot, verb records.VolumeVerb) map[spec.ClaimName]*records.VolumeRequest {
	asked := map[spec.ClaimName]*records.VolumeRequest{}
	for claim, v := range s.Volumes {
		asked[claim] = &records.VolumeRequest{ID: s.ID, Claim: claim, Volume: v.UID, Verb: verb}
		if s.Identity != nil {
			asked[claim].Token = s.Identity.LastToken
		}
	}
	return asked
}

func neverSecond(_ plan.World, p *plan.Plan) {
	p.Actions = slices.DeleteFunc(p.Actions, func(a plan.Action) bool {
		start, ok := a.(plan.Start)
		return ok && start.Member.ID.Ordinal == 1
	})
}

func without[T plan.Action](_ plan.World, p *plan.Plan) {
	p.Actions = slices.DeleteFunc(p.Actions, func(a plan.Action) bool { _, is := a.(T); return is })
}

// drainsAtOnce has each node that is drained be drained past the budget.
func drainsAtOnce(w *plan.World) {
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Node.Drain != nil {
			own(&own(&n.Node).Drain).AtOnce = true
		}
	}
}

// nobodyPrepares: the planner does not see that nodes pull images ahead.
func nobodyPrepares(w *plan.World) {
	w.Nodes = slices.Clone(w.Nodes)
	for i := range w.Nodes {
		if f := w.Nodes[i].Facts; f != nil {
			facts := *f
			facts.Prepares = false
			w.Nodes[i].Facts = &facts
		}
	}
}

// shutsDownAtOnce has each host that is being shut down be nearly out of time.
func shutsDownAtOnce(w *plan.World) {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Facts.ShuttingDown() == nil {
			continue
		}
		facts := own(&n.Facts)
		facts.Conditions = slices.Clone(facts.Conditions)
		facts.ShuttingDown().AtOnce = true
	}
}

// shutsDownAll takes every node that is drained for one whose host is being shut down.
func shutsDownAll(w *plan.World) {
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Node.Drain != nil && n.Facts != nil {
			own(&n.Facts).Conditions = []records.NodeCondition{{Type: records.ShuttingDown, Status: "True"}}
		}
	}
}
