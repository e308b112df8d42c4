package plan

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// The jobs of a set (SEMANTICS Part 3, Once): each is run once with proof. What is known of them is one record; a step changes it at
// most once, before anything else is written: so no member that has left returns before it counts as gone.

// PutJobs records what became of jobs.
type PutJobs struct {
	Record hooks.Jobs
	// Name and Text are of the event; "": there is none.
	Name, Text string
}

// Type is that of the event.
func (a *PutJobs) Type() string {
	if a.Record.Run != nil && a.Record.Run.Unknown {
		return "Warning"
	}
	return "Normal"
}

// OrderJob has a life run a job: Record names the run.
type OrderJob struct {
	Record hooks.Jobs
	ID     spec.Identity
	Token  spec.Token
	Hook   *hooks.HookOrder
	Text   string // for the event
}

func (PutJobs) action()  {}
func (OrderJob) action() {}

// jobber has the rules of jobs. now is the record as it is to be.
type jobber struct {
	volumes
	now        hooks.Jobs
	name, text string // of the event
}

// tell has an event say what came of a run.
func (j *jobber) tell(r *hooks.JobRun, word, text string) {
	j.name, j.text = fmt.Sprintf("job-%s-%d.%d-%s", r.Job, r.ID.Epoch, r.ID.Rev, word), text
}

// followJobs takes in what became of runs and members; and if may, has the next job run.
func (s volumes) followJobs(may bool) {
	old := s.world.Jobs
	if old == nil && (len(s.world.Set.Spec.Jobs) == 0 || !may) {
		return
	}
	j := &jobber{volumes: s}
	if old == nil {
		j.begin()
	} else {
		j.now = spec.Clone(*old)
		j.hear()
		j.crossRestore()
		j.doubtFirst()
		j.dropGone()
		j.obey()
		j.endGrowth()
		j.endRound()
	}
	switch {
	case old == nil || !reflect.DeepEqual(j.now, *old):
		j.act(PutJobs{Record: j.now, Name: j.name, Text: j.text})
	case may:
		if !j.endOrders() {
			j.next()
		}
	}
}

// begin makes the record. Of a set that was complete before, nobody knows whether its first jobs ran; nor of one whose members lived
// before the store was restored, for it may have been complete since.
func (j *jobber) begin() {
	j.now = hooks.Jobs{Ref: j.world.Set.Ref, Epoch: j.world.Epoch, Complete: j.bootstrapped, Restored: !j.bootstrapped && j.livedBefore()}
	if j.bootstrapped {
		j.now.Ordinals, j.now.Doubtful = j.wantedOrdinals(), j.jobNames(hooks.AfterBootstrapped)
	}
}

// livedBefore: a member had a life before the store was restored.
func (j *jobber) livedBefore() bool {
	return slices.ContainsFunc(j.members, func(t *memberState) bool {
		return t.Identity != nil && !t.Identity.LastToken.IsZero() && t.Identity.LastToken.Epoch < j.world.Epoch
	})
}

// crossRestore: what was under way when the backup was made may have come further since.
func (j *jobber) crossRestore() {
	if j.now.Epoch == j.world.Epoch {
		return
	}
	j.now.Epoch = j.world.Epoch
	j.doubtRun("the store was restored since it was to run")
	if r := j.now.Run; r != nil { // what a user said of it before is void
		r.ID = spec.Sequence{Epoch: j.world.Epoch, Rev: j.world.Rev}
	}
	after := hooks.AfterGrown
	if !j.now.Complete {
		after = hooks.AfterBootstrapped
	}
	if !j.now.Complete || j.unsure() {
		j.now.Restored = true
		for _, name := range j.open(after) {
			j.doubt(name)
		}
	}
}

// doubtRun has the run that is under way be unknown.
func (j *jobber) doubtRun(why string) {
	if r := j.now.Run; r != nil && !r.Unknown {
		r.Unknown, r.Message = true, why
		if r.In != nil {
			j.now.Uncertain = r.In
		}
		j.tell(r, "unknown", fmt.Sprintf("it is not known what came of job %s: %s", r.Job, why))
	}
}

// doubt: it is not known whether the job ran.
func (j *jobber) doubt(name string) {
	if !slices.Contains(j.now.Doubtful, name) {
		j.now.Doubtful = append(j.now.Doubtful, name)
	}
}

// doubtFirst: of a job after Bootstrapped that comes to a set that is complete nobody knows whether what it does was done. A run of a
// job that the set does not have any more is given up.
func (j *jobber) doubtFirst() {
	if r := j.now.Run; r != nil && j.world.Set.Spec.FindJob(r.Job) == nil {
		j.doubt(r.Job)
		j.giveUpRun()
	}
	if j.now.Complete {
		for _, name := range j.open(hooks.AfterBootstrapped) {
			if j.now.Run == nil || j.now.Run.Job != name {
				j.doubt(name)
			}
		}
	}
}

// giveUpRun: nobody waits for the run any more.
func (j *jobber) giveUpRun() {
	if r := j.now.Run; r != nil && r.In != nil {
		j.now.Uncertain = r.In
	}
	j.now.Run = nil
}

// dropGone: members that leave for good are no members any more, also if they return. A scale to 0 and a deletion end the
// lives of members that keep what they have.
func (j *jobber) dropGone() {
	if j.nobodyLeaves() {
		return
	}
	left := func(ordinal int) bool {
		i := slices.IndexFunc(j.members, func(t *memberState) bool { return t.ID.Ordinal == ordinal })
		if i < 0 {
			return true
		}
		t := j.members[i]
		if t.Member == nil {
			return !t.wanted
		}
		return t.Member.Goal == records.GoalStop && t.Member.StopReason == records.ReasonScaleDown
	}
	j.now.Ordinals, j.now.Round = drop(j.now.Ordinals, left), drop(j.now.Round, left)
}

// nobodyLeaves: the set is deleted, or scaled to 0, and its members keep what they have.
func (j *jobber) nobodyLeaves() bool { return j.world.Set.Deleting || j.world.Set.Replicas() == 0 }

// endGrowth gives a run up for which nobody is left. One that is not under way is given up, too, while who came is about to leave.
func (j *jobber) endGrowth() {
	r := j.now.Run
	if r == nil || len(j.now.Round) == 0 || !j.now.Complete || j.world.Set.Spec.FindJob(r.Job).After != hooks.AfterGrown {
		return
	}
	if len(j.came()) == 0 || r.In == nil && !r.Unknown && len(j.grown()) == 0 {
		j.giveUpRun()
	}
}

// endRound: jobs are not run any more for members of whom none is left that needs them, or when none is left to run.
func (j *jobber) endRound() {
	switch {
	case len(j.now.Round) == 0 && j.now.Run == nil || len(j.now.Round) > 0 && len(j.open(hooks.AfterBootstrapped)) > 0:
		return
	case len(j.now.Round) == 0:
		j.doubt(j.now.Run.Job)
	case !j.now.Complete:
		j.now.Complete, j.now.Ordinals = true, j.now.Round
	case len(j.came()) == 0:
	case len(j.open(hooks.AfterGrown)) == 0:
		j.now.Ordinals = join(j.now.Ordinals, j.now.Round)
	default:
		return
	}
	j.giveUpRun()
	j.now.Round, j.now.Settled = nil, nil
	j.now.Restored = j.now.Restored && j.unsure() // who came beside the round may have come before the restore
	grown := j.jobNames(hooks.AfterGrown)
	j.now.Doubtful = drop(j.now.Doubtful, func(name string) bool { return slices.Contains(grown, name) })
}

// came are the members of the round that came since the jobs were done last, also those that are about to leave: until the stop of one is
// ordered it may be wanted again, and what was run for it counts.
func (j *jobber) came() []int {
	return drop(slices.Clone(j.now.Round), j.counted)
}

// grown are the members that came since the jobs were done last, and are wanted; of a round under way, those of it.
func (j *jobber) grown() []int {
	list := slices.Clone(j.now.Round)
	if len(list) == 0 {
		list = j.wantedOrdinals()
	}
	return drop(list, j.needsNone)
}

// unsure: for members that had a life, or are to have one, the jobs are not recorded as done. Also who is not wanted now may have been
// wanted when they ran.
func (j *jobber) unsure() bool {
	return slices.ContainsFunc(j.members, func(t *memberState) bool {
		return (t.wanted || !t.lastToken().IsZero()) && !j.counted(t.ID.Ordinal)
	})
}

func (j *jobber) needsNone(ordinal int) bool { return j.counted(ordinal) || !j.reach.Has(ordinal) }

// counted: the jobs were done for the member, or need not be.
func (j *jobber) counted(ordinal int) bool { return slices.Contains(j.now.Ordinals, ordinal) }

// open are the jobs of a kind that are not settled, in their order.
func (j *jobber) open(after string) []string {
	done := j.now.Settled
	if after == hooks.AfterBootstrapped {
		done = j.now.Done
	}
	return drop(j.jobNames(after), func(name string) bool { return slices.Contains(done, name) })
}

// jobNames are the set's jobs of a kind.
func (j *jobber) jobNames(after string) (names []string) {
	for i := range j.world.Set.Spec.Jobs {
		if x := &j.world.Set.Spec.Jobs[i]; x.After == after {
			names = append(names, x.Name)
		}
	}
	return names
}

func (j *jobber) wantedOrdinals() (ordinals []int) {
	for _, t := range j.inside {
		ordinals = append(ordinals, t.ID.Ordinal)
	}
	return ordinals
}

// drop is list without some; nil when none is left.
func drop[T any](list []T, out func(T) bool) []T {
	list = slices.DeleteFunc(list, out)
	if len(list) == 0 {
		return nil
	}
	return list
}

// join are the ordinals of both, ascending.
func join(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
