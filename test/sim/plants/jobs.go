package plants

import (
	"slices"

	"github.com/stead-project/stead/agent/worker"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// jobPlants are faults about the jobs of sets, each of which runs once with proof (SEMANTICS Part 3, Once).
var jobPlants = []Plant{
	{Name: "begins-a-job-twice", Judges: "jobs", Keep: func(s *worker.State) { s.Ordered.Begun, s.Ordered.Last = false, spec.Sequence{} }, Often: append([]string{"crash-agent", "start-agent"}, jobs...)},
	{Name: "takes-a-signal-for-a-failure", Judges: "jobs", SeesNoSignal: true, Often: jobs},
	{Name: "begins-jobs-of-before-a-restore", Judges: "jobs", BeginsOldJobs: true, Often: jobsRestored},
	{Name: "repeats-jobs", Judges: "jobs", See: repeatsJobs, Often: jobs},
	{Name: "believes-old-words-of-jobs", Judges: "jobs", See: takesAnyWord, Often: jobs},
	{Name: "forgets-jobs-over-a-restore", Judges: "jobs", See: jobsChange(func(w *plan.World, j *hooks.Jobs) { j.Epoch, j.Restored = w.Epoch, false }), Often: jobsRestored},
	{Name: "takes-begun-for-done", Judges: "jobs", See: eachSlot(begunIsDone), Often: jobs},
}

var (
	jobs         = []string{"jobs", "job-on"}
	jobsRestored = append([]string{"backup", "go-back", "declare"}, jobs...)
)

// jobsChange changes what is known of a set's jobs.
func jobsChange(change func(*plan.World, *hooks.Jobs)) func(*plan.World) {
	return func(w *plan.World) {
		if w.Jobs != nil {
			change(w, own(&w.Jobs))
		}
	}
}

// repeatsJobs takes each job for one that may be run at any time.
func repeatsJobs(w *plan.World) {
	setChange(func(s *records.Set) {
		all := slices.Clone(s.Spec.Jobs)
		for i := range all {
			all[i].OnUnknown = hooks.OnUnknownRepeat
		}
		s.Spec.Jobs = all
	})(w)
}

// takesAnyWord takes what a user said of any run for a word about the present one.
func takesAnyWord(w *plan.World) {
	if w.Set == nil || w.Set.JobDecision == nil || w.Jobs == nil || w.Jobs.Run == nil {
		return
	}
	own(&own(&w.Set).JobDecision).Run = w.Jobs.Run.ID
}

// begunIsDone takes a job that has begun for one that has succeeded.
func begunIsDone(_ *plan.World, s *plan.Slot) {
	if s.Report != nil && s.Report.Hook.Begun {
		own(&s.Report).Hook.Done = true
	}
}
