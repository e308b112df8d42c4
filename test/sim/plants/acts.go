package plants

import (
	"maps"
	"slices"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

func setChange(change func(*records.Set)) func(*plan.World) {
	return func(w *plan.World) {
		if w.Set != nil {
			set := *w.Set
			change(&set)
			w.Set = &set
		}
	}
}

func statusChange(change func(*records.SetStatus)) func(*plan.World) {
	return func(w *plan.World) {
		if w.Status != nil {
			status := *w.Status
			change(&status)
			w.Status = &status
		}
	}
}

// silent changes what is known of nodes without a session.
func silent(change func(*plan.World, *plan.Node)) func(*plan.World) {
	return func(w *plan.World) {
		for i := range w.Nodes {
			if n := &w.Nodes[i]; n.Session == nil {
				change(w, n)
			}
		}
	}
}

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
func allGuarded(w *plan.World) {
	for i := range w.Slots {
		s := &w.Slots[i]
		if s.Member != nil && s.Member.Bound == 0 {
			m := *s.Member
			m.Bound, s.Member = 10*time.Second, &m
			if s.Report != nil {
				r := *s.Report
				r.Bound, s.Report = m.Bound, &r
			}
		}
	}
}

// forgetSilent takes a life on a node without session for one that is over.
func forgetSilent(w *plan.World) {
	for i := range w.Slots {
		m := w.Slots[i].Member
		if m == nil {
			continue
		}
		at := slices.IndexFunc(w.Nodes, func(n plan.Node) bool { return n.Node.Name == m.Node && n.Session != nil })
		if at < 0 {
			w.Slots[i].Member, w.Slots[i].Report, w.Slots[i].Request = nil, nil, nil
		}
	}
}

func forgetStrays(w *plan.World) {
	for i := range w.Slots {
		w.Slots[i].Strays = nil
	}
}

// everyoneLives gives a session to every node.
func everyoneLives(w *plan.World) {
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Session == nil && n.Facts != nil {
			n.Session = &records.Session{Node: n.Node.Name, UID: n.Node.UID, Boot: n.Facts.Boot}
		}
	}
}

// whateverSession takes what any session told for the word of the present one.
func whateverSession(w *plan.World) {
	for i := range w.Slots {
		r := w.Slots[i].Report
		if r == nil {
			continue
		}
		if n := proof.FindNode(w.Nodes, r.Node); n != nil && n.Session != nil {
			told := *r
			told.Session, w.Slots[i].Report = n.Session.ID, &told
		}
	}
}

// forgetReady takes members that were ready in their lives for such that never were.
func forgetReady(w *plan.World) {
	for i := range w.Slots {
		s := &w.Slots[i]
		if s.Identity == nil || s.Report == nil {
			continue
		}
		record, told := *s.Identity, *s.Report
		record.ReadyToken, told.ReadyOnce = spec.Token{}, false
		s.Identity, s.Report = &record, &told
	}
}

// everyoneSaid takes every node for one that has said what it runs.
func everyoneSaid(w *plan.World) {
	w.Count = nil
	for i := range w.Nodes {
		if f := w.Nodes[i].Facts; f != nil {
			facts := *f
			facts.Epoch = w.Epoch
			w.Nodes[i].Facts = &facts
		}
	}
}

func forgetDue(w *plan.World) {
	for i := range w.Slots {
		if id := w.Slots[i].Identity; id != nil {
			record := *id
			record.Due = ""
			w.Slots[i].Identity = &record
		}
	}
}

// forgetData takes the volumes of an earlier set for ones that this set has used.
func forgetData(w *plan.World) {
	w.WasBootstrapped = false
	for i := range w.Slots {
		if rec := w.Slots[i].Identity; rec != nil && w.Set != nil {
			mine := *rec
			mine.ReadyOnce, w.Slots[i].Identity = w.Set.UID, &mine
		}
	}
}

func forgetVolumes(w *plan.World) {
	for i := range w.Slots {
		w.Slots[i].Volumes = nil
	}
}

// lowestFirst turns the ordinals of updates around.
func lowestFirst(w plan.World, p *plan.Plan) {
	for i, a := range p.Actions {
		stop, ok := a.(plan.Stop)
		if !ok || stop.Reason != records.ReasonUpdate {
			continue
		}
		for _, s := range w.Slots {
			if s.Member != nil && s.Member.Goal == records.GoalRun && s.Report != nil && s.Report.Ready && s.ID.Ordinal < stop.ID.Ordinal {
				stop.ID, stop.Token = s.ID, s.Member.Token
				p.Actions[i] = stop
				break
			}
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
func shareVolume(w plan.World, p *plan.Plan) {
	eachStart(func(w plan.World, a *plan.Start) {
		for _, s := range w.Slots {
			if v := s.Volumes["data"]; v != nil && s.ID != a.Member.ID && len(a.Member.Volumes) > 0 {
				a.Member.Volumes = slices.Clone(a.Member.Volumes)
				a.Member.Volumes[0].ID = v.UID
			}
		}
	})(w, p)
}

// eachFate changes what is recorded of volumes.
func eachFate(change func(plan.World, *records.Volume)) func(plan.World, *plan.Plan) {
	return func(w plan.World, p *plan.Plan) {
		for i, a := range p.Actions {
			switch a := a.(type) {
			case plan.SetVolumes:
				a.Volumes = slices.Clone(a.Volumes)
				for j := range a.Volumes {
					change(w, &a.Volumes[j])
				}
				p.Actions[i] = a
			case plan.Stop:
				a.Volumes = slices.Clone(a.Volumes)
				for j := range a.Volumes {
					change(w, &a.Volumes[j])
				}
				p.Actions[i] = a
			}
		}
	}
}

// forgetFates has lives end before it is recorded what becomes of their volumes.
func forgetFates(w plan.World, p *plan.Plan) {
	for i, a := range p.Actions {
		if stop, ok := a.(plan.Stop); ok {
			stop.Volumes = nil
			p.Actions[i] = stop
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
func nothingReclaimed(w *plan.World) {
	for i := range w.Slots {
		s := &w.Slots[i]
		s.Volumes = maps.Clone(s.Volumes)
		for claim, v := range s.Volumes {
			if v.Fate == records.FateReclaiming {
				back := *v
				back.Fate = records.FateDelete
				s.Volumes[claim] = &back
			}
		}
	}
}

// askedToGiveUp has a person ask for the end of every volume.
func askedToGiveUp(w *plan.World) {
	for i := range w.Slots {
		s := &w.Slots[i]
		s.Asked = map[spec.ClaimName]*records.VolumeRequest{}
		for claim, v := range s.Volumes {
			s.Asked[claim] = &records.VolumeRequest{ID: s.ID, Claim: claim, Volume: v.UID, Verb: records.VerbReclaim}
			if s.Identity != nil {
				s.Asked[claim].Token = s.Identity.LastToken
			}
		}
	}
}

func eachStart(change func(plan.World, *plan.Start)) func(plan.World, *plan.Plan) {
	return func(w plan.World, p *plan.Plan) {
		for i, a := range p.Actions {
			if start, ok := a.(plan.Start); ok {
				change(w, &start)
				p.Actions[i] = start
			}
		}
	}
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
