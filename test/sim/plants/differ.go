package plants

import (
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// differencePlants are faults about members that differ (SEMANTICS Part 3, Differences).
var differencePlants = []Plant{
	{Name: "restarts-who-runs-the-same", Judges: "differences", Say: restartsTheSame, Often: differs},
	{Name: "forgets-who-runs-the-same", Judges: "differences, churn, completion", Say: without[plan.Promote], Often: differs},
	{Name: "promotes-who-differs", Judges: "differences", Say: promotesWho(runsAnother), Often: differs},
	{Name: "promotes-below-the-partition", Judges: "differences", Say: promotesAsIf(func(w *plan.World) {
		rollingUpdate(func(r *spec.RollingUpdate) { r.Partition = nil })(w)
	}), Often: differs},
	{Name: "promotes-while-paused", Judges: "differences", Say: promotesAsIf(setChange(func(s *records.Set) { s.Paused = false })), Often: differs},
	{Name: "promotes-who-is-to-stop", Judges: "differences", Say: promotesAsIf(eachSlot(isToRun)), Often: differs},
}

var differs = []string{"differ"}

// restartsTheSame has members that run the same by their next revision be restarted as others are.
func restartsTheSame(_ plan.World, p *plan.Plan) {
	for i, a := range p.Actions {
		if a, is := a.(plan.Promote); is {
			p.Actions[i] = plan.Stop{ID: a.ID, Token: a.Token, Reason: records.ReasonUpdate, Text: "plant"}
		}
	}
}

// promotesWho has members for whom which holds count as ones of the template's revision as they are.
func promotesWho(which func(plan.World, *plan.Slot) bool) func(plan.World, *plan.Plan) {
	return func(w plan.World, p *plan.Plan) {
		if w.Set == nil || w.Set.Deleting || w.Set.Orphaned || len(p.Actions) == 0 {
			return
		}
		for i := range w.Slots {
			if s := &w.Slots[i]; s.Member != nil && s.Identity != nil && which(w, s) {
				p.Actions = append([]plan.Action{plan.Promote{ID: s.ID, Token: s.Member.Token, Revision: w.TemplateHash, Identity: *s.Identity}}, p.Actions...)
			}
		}
	}
}

func runsAnother(w plan.World, s *plan.Slot) bool {
	return s.Member.Goal == records.GoalRun && s.Member.Revision != w.TemplateHash
}

// promotesAsIf has members reach their target as they would if the world were another one.
func promotesAsIf(see func(*plan.World)) func(plan.World, *plan.Plan) {
	return func(w plan.World, p *plan.Plan) {
		as := Plant{See: see}.World(w)
		as.VolumeID = func() records.VolumeID { return "plant" }
		without[plan.Promote](w, p)
		var all []plan.Action
		for _, a := range plan.Next(as).Actions {
			if _, is := a.(plan.Promote); is {
				all = append(all, a)
			}
		}
		p.Actions = append(all, p.Actions...)
	}
}

// isToRun takes a member that is to stop for one that is to run.
func isToRun(_ *plan.World, s *plan.Slot) {
	if s.Member != nil {
		own(&s.Member).Goal = records.GoalRun
	}
}
