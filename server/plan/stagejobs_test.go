package plan

import (
	"fmt"

	"github.com/stead-project/stead/records/hooks"
)

// editJobs has the set have jobs ("jobs create grow", as hasJobs reads them), has the node of a job's run lose it ("loses create"), or a user
// decide ("retry create", "done create"). All else is an edit.
func (s *stage) editJobs(words []string) {
	s.t.Helper()
	switch words[0] {
	case "jobs":
		hasJobs(words[1:]...)(&s.w)
		return
	case "loses":
		s.bad[words[1]] = words[0]
		return
	case "retry", "done":
		if s.w.Jobs == nil || s.w.Jobs.Run == nil {
			s.t.Fatalf("%q: there is nothing to decide", words)
		}
		decides(words[1], 0, words[0] == "done")(&s.w)
		s.w.Set.JobDecision.Run = s.w.Jobs.Run.ID
		return
	}
	s.edit(words)
}

// jobEnds is what a host says of a job; one that failed is not begun again while the scenario lasts, unless it succeeds.
func (s *stage) jobEnds(o *hooks.HookOrder) hooks.HookResult {
	switch s.bad[o.Hook.Exec.Command[0]] {
	case "fails":
		if o.Job.Attempt > 1 {
			return hooks.HookResult{ID: o.ID}
		}
		return hooks.HookResult{ID: o.ID, Begun: true, Failures: 1, Message: "exit code 1"}
	case "loses":
		return hooks.HookResult{ID: o.ID, Begun: true, Unknown: true, Message: "the agent was restarted while it ran"}
	}
	return hooks.HookResult{ID: o.ID, Begun: true, Done: true}
}

func saidOfJobs(a Action) string {
	switch a := a.(type) {
	case PutJobs:
		return a.Text
	case OrderJob:
		return fmt.Sprintf("%s is to run job %s for %v, before %v", a.ID.MemberName(), a.Hook.Job.Name, a.Hook.Job.Ordinals, a.Hook.Job.Before)
	}
	return ""
}
