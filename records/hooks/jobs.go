package hooks

import "github.com/stead-project/stead/spec"

// JobFacts say for which members a job runs.
type JobFacts struct {
	Name string `json:"name"`
	// Ordinals are the members for which it runs; Before those that the set had when its jobs were done last: none at first.
	Ordinals []int `json:"ordinals"`
	Before   []int `json:"before,omitempty"`
	// Attempt is how often it has failed for them: the node waits the longer before it begins.
	Attempt int `json:"attempt,omitempty"`
}

// Jobs is the record jobs/<ns>/<set>: which jobs of a set have run. Only writer: engine. It is kept as long as the set; and after
// that, if the set was bootstrapped, as long as any of its volumes.
type Jobs struct {
	Ref spec.SetRef `json:"ref"`
	// Epoch is that of the store when it was written last.
	Epoch int64 `json:"epoch"`
	// Done are the jobs after Bootstrapped that have succeeded or were skipped, by name, also of those that the set lacks now. Settled are
	// those after Grown, for the growth under way. Doubtful are those of which it is not known whether they ran.
	Done     []string `json:"done,omitempty"`
	Settled  []string `json:"settled,omitempty"`
	Doubtful []string `json:"doubtful,omitempty"`
	// Restored: the store was restored since these jobs were due, so that any of them may have run which is not recorded, also one
	// that the set is given only now. It ends with the round, or with the next one for members that came meanwhile.
	Restored bool `json:"restored,omitempty"`
	// Complete: the jobs after Bootstrapped were done once. Ordinals are the members that they were done for, and those of each
	// growth since, without who left.
	Complete bool  `json:"complete,omitempty"`
	Ordinals []int `json:"ordinals,omitempty"`
	// Round are the members for which jobs are run now; none: none are.
	Round []int `json:"round,omitempty"`
	// Run is the job that is under way, or undecided; nil: none is.
	Run *JobRun `json:"run,omitempty"`
	// Uncertain is the life in which a run may go on still of which nobody saw the end: until that life is over, the next run
	// is in it, where it ends what is left of the one before. Nil: there is none.
	Uncertain *spec.LifeID `json:"uncertain,omitempty"`
}

// JobRun is one run of a job, or the question whether it ran.
type JobRun struct {
	Job string `json:"job"`
	// ID is that of its order; a user's word is about it.
	ID spec.Sequence `json:"id"`
	// In is the life that it was ordered in; nil: it is to be ordered, once more after Failures.
	In       *spec.LifeID `json:"in,omitempty"`
	Failures int          `json:"failures,omitempty"`
	// Unknown: nobody knows what came of it. Message is why not, or why it failed last.
	Unknown bool   `json:"unknown,omitempty"`
	Message string `json:"message,omitempty"`
}

// JobDecision is a user's word about one run (records.Set).
type JobDecision struct {
	Job string        `json:"job"`
	Run spec.Sequence `json:"run"`
	// Skip: the job counts as done; else it is run again.
	Skip bool `json:"skip,omitempty"`
}
