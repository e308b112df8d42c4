package sim

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// Plants are all there are, each with the judges of which one must find it.
var Plants = []Plant{
	// SAFETY S1, S2, S8, S13: what agents and restores must keep.
	{Name: "forgetful-agent", Judges: "one life, token once, absence", ForgetfulAgent: true},
	{Name: "absence-is-an-order", Judges: "absence", AbsenceIsAnOrder: true},
	{Name: "restore-keeps-the-epoch", Rare: true, Judges: "tokens, token once, one life, reports, proof, dispatch", RestoreKeepsEpoch: true, AgentsGoBack: true, Blind: "progress", Often: restores},
	{Name: "restore-decides-at-once", Rare: true, Judges: "one life, token once, volumes", See: everyoneSaid, Often: restores},
	{Name: "told-too-early", Judges: "one life, reports", ToldTooEarly: true},
	{Name: "late-start-lands", Rare: true, Judges: "one life, token once, progress", LateStartLands: true, Often: []string{"land", "user"}},
	{Name: "deaf-to-old-tokens", Judges: "progress", DeafToOldTokens: true, Often: restores},
	{Name: "tells-available-once", Rare: true, Judges: "progress", AvailableOnce: true, Often: []string{"user", "crash-agent"}},
	{Name: "erases-early", Judges: "volumes", ErasesEarly: true, Often: volumes},
	{Name: "takes-any-volume", Judges: "volumes", TakesAnyVolume: true, Often: volumes},
	{Name: "says-gone", Judges: "volumes", SaysGone: true, Often: volumes},
	// S7: what transactions compare.
	{Name: "stale-leader-writes", Judges: "leader", Unguarded: []string{"leader"}},
	{Name: "lives-not-compared", Judges: "tokens, proof, volumes, one life, addresses, churn", Unguarded: []string{"leader", "members/", "identities/", "reports/", "volumes/", "addresses/"}, Blind: "leader", Often: []string{"hang-server", "campaign"}},
	// The planner: proof, order, budget, revisions, volumes, words.
	{Name: "starts-without-proof", Judges: "proof, reasons", See: forgetSilent},
	{Name: "ignores-strays", Rare: true, Judges: "one life, token once, progress", See: forgetStrays},
	{Name: "believes-silent-nodes", Judges: "placement, budget, order, reasons", See: everyoneLives},
	{Name: "ignores-order", Judges: "order", See: setChange(func(s *spec.Set) { s.Spec.PodManagementPolicy = spec.Parallel })},
	{Name: "ignores-the-budget", Judges: "budget", See: setChange(func(s *spec.Set) {
		if s.Spec.UpdateStrategy.Type == "" {
			r := spec.RollingUpdate{}
			if old := s.Spec.UpdateStrategy.RollingUpdate; old != nil {
				r = *old
			}
			r.MaxUnavailable = &spec.IntOrPercent{Number: 100}
			s.Spec.UpdateStrategy.RollingUpdate = &r
		}
	})},
	{Name: "ignores-the-floor", Judges: "floor", See: setChange(func(s *spec.Set) { s.Spec.Disruption = nil })},
	{Name: "ignores-the-partition", Judges: "churn, due", See: setChange(func(s *spec.Set) {
		if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
			s.Spec.UpdateStrategy.RollingUpdate = &spec.RollingUpdate{MaxUnavailable: r.MaxUnavailable}
		}
	})},
	{Name: "ignores-the-pause", Judges: "churn, due", See: setChange(func(s *spec.Set) { s.Paused = false })},
	{Name: "ignores-on-delete", Judges: "churn, due", See: setChange(func(s *spec.Set) {
		if s.Spec.UpdateStrategy.Type == spec.OnDeleteStrategy {
			s.Spec.UpdateStrategy.Type = ""
		}
	})},
	{Name: "forgets-what-is-due", Judges: "due", See: forgetDue},
	{Name: "lowest-first", Judges: "order", Say: lowestFirst},
	{Name: "churns", Judges: "churn, budget", Say: churn},
	{Name: "makes-volumes-anew", Judges: "volumes", See: forgetVolumes},
	{Name: "forgets-the-fate", Judges: "volumes", Say: forgetFates, Often: volumes},
	{Name: "forgets-one-that-is-over", Judges: "volumes", Say: forgetOver, Often: volumes},
	{Name: "decides-for-all-at-once", Judges: "volumes", See: setChange(func(s *spec.Set) {
		s.Spec.Retention = &spec.RetentionPolicy{WhenScaled: spec.Delete, WhenDeleted: spec.Delete}
	}), Often: volumes},
	{Name: "confuses-the-policies", Judges: "volumes", See: setChange(func(s *spec.Set) {
		if p := s.Spec.Retention; p != nil {
			s.Spec.Retention = &spec.RetentionPolicy{WhenScaled: p.WhenDeleted, WhenDeleted: p.WhenScaled}
		}
	}), Often: volumes},
	{Name: "gives-up-what-is-wanted", Judges: "volumes", Say: eachFate(func(w plan.World, v *spec.Volume) {
		if v.Fate == spec.FateKeep && w.Set != nil {
			v.Fate = spec.FateDelete
		}
	}), Often: volumes},
	{Name: "gives-up-at-once", Judges: "volumes", Say: eachFate(func(_ plan.World, v *spec.Volume) {
		if v.Fate == spec.FateDelete {
			v.Fate = spec.FateReclaiming
		}
	}), Often: volumes},
	{Name: "takes-a-volume-back", Judges: "volumes", See: nothingReclaimed, Often: volumes, Blind: "progress"},
	{Name: "shrinks-a-volume", Judges: "volumes", Say: eachFate(func(_ plan.World, v *spec.Volume) { v.SizeBytes = 0 }), Often: volumes},
	{Name: "uses-a-volume-id-again", Judges: "volumes", OneVolumeID: true, Often: volumes},
	{Name: "never-gives-up", Judges: "progress", Say: without[plan.SetVolumes], Often: volumes},
	{Name: "never-drops", Judges: "progress", Say: without[plan.DropVolume], Often: volumes},
	{Name: "gives-up-unasked", Judges: "volumes", See: askedToGiveUp, Often: volumes},
	{Name: "acts-for-an-orphan", Judges: "orphans", See: setChange(func(s *spec.Set) { s.Orphaned = false }), Often: []string{"orphan"}},
	{Name: "acts-for-a-set-that-is-gone", Judges: "absence", Say: func(w plan.World, p *plan.Plan) {
		if w.Set == nil {
			p.Actions = append(p.Actions, plan.Forget{ID: w.Slots[0].ID})
		}
	}, Often: volumes},
	{Name: "ignores-reserved", Judges: "churn, reasons, order", See: setChange(func(s *spec.Set) {
		if s.Spec.Ordinals != nil {
			s.Spec.Ordinals = &spec.Ordinals{Start: s.Spec.Ordinals.Start}
		}
	}), Often: []string{"range"}},
	{Name: "keeps-the-range", Judges: "churn, reasons, order", See: setChange(func(s *spec.Set) {
		if s.Spec.Ordinals != nil {
			s.Spec.Ordinals = &spec.Ordinals{Reserved: s.Spec.Ordinals.Reserved}
		}
	}), Often: []string{"range"}},
	{Name: "shares-a-volume", Judges: "volumes", Say: shareVolume},
	{Name: "uses-a-token-again", Judges: "tokens, reasons", Say: eachStart(func(_ plan.World, a *plan.Start) {
		a.Member.Token.Number--
		a.Identity.LastToken = a.Member.Token
	})},
	{Name: "shares-an-address", Judges: "addresses, progress", Say: eachStart(func(_ plan.World, a *plan.Start) {
		a.Member.Address = netip.MustParseAddr("10.88.0.1")
	})},
	{Name: "gives-no-reason", Judges: "reasons", Say: func(_ plan.World, p *plan.Plan) {
		p.Blocked = p.Blocked[:max(0, len(p.Blocked)-1)]
	}},
	{Name: "counts-wrong", Judges: "status", Say: func(_ plan.World, p *plan.Plan) { p.Status.ReadyReplicas++ }},
	{Name: "never-starts-the-second", Judges: "progress, reasons", Say: neverSecond},
	{Name: "completes-without-members", Rare: true, Judges: "progress", Say: func(w plan.World, p *plan.Plan) {
		p.Status.CurrentCompleted = p.Status.CurrentCompleted || w.Set.Replicas() == 0 && !w.Set.Paused
	}},
	{Name: "never-forgets", Judges: "progress, reasons", Say: without[plan.Forget]},
	{Name: "keeps-a-deleted-set", Judges: "progress", Say: without[plan.RemoveSet]},
}

var volumes = []string{"retain", "scale", "claim"}

var restores = []string{"backup", "restore", "user"}

func setChange(change func(*spec.Set)) func(*plan.World) {
	return func(w *plan.World) {
		if w.Set != nil {
			set := *w.Set
			change(&set)
			w.Set = &set
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
			w.Slots[i].Member, w.Slots[i].Report = nil, nil
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
			n.Session = &spec.Session{Node: n.Node.Name, UID: n.Node.UID, Boot: n.Facts.Boot}
		}
	}
}

// everyoneSaid takes every node for one that has said what it runs.
func everyoneSaid(w *plan.World) {
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

func forgetVolumes(w *plan.World) {
	for i := range w.Slots {
		w.Slots[i].Volumes = nil
	}
}

// lowestFirst turns the ordinals of updates around.
func lowestFirst(w plan.World, p *plan.Plan) {
	for i, a := range p.Actions {
		stop, ok := a.(plan.Stop)
		if !ok || stop.Reason != spec.ReasonUpdate {
			continue
		}
		for _, s := range w.Slots {
			if s.Member != nil && s.Member.Goal == spec.GoalRun && s.Report != nil && s.Report.Ready && s.ID.Ordinal < stop.ID.Ordinal {
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
		if m := s.Member; m != nil && m.Goal == spec.GoalRun && m.Revision == w.TemplateHash && len(p.Actions) == 0 {
			p.Actions = append(p.Actions, plan.Stop{ID: s.ID, Token: m.Token, Reason: spec.ReasonUpdate, Text: "churn"})
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
func eachFate(change func(plan.World, *spec.Volume)) func(plan.World, *plan.Plan) {
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
			if v.Fate == spec.FateReclaiming {
				back := *v
				back.Fate = spec.FateDelete
				s.Volumes[claim] = &back
			}
		}
	}
}

// askedToGiveUp has a person ask for the end of every volume.
func askedToGiveUp(w *plan.World) {
	for i := range w.Slots {
		s := &w.Slots[i]
		s.Asked = map[spec.ClaimName]*spec.VolumeRequest{}
		for claim, v := range s.Volumes {
			s.Asked[claim] = &spec.VolumeRequest{ID: s.ID, Claim: claim, Volume: v.UID, Verb: spec.VerbReclaim}
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
