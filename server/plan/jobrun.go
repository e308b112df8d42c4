package plan

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
)

// hear takes in what came of the run that was ordered.
func (j *jobber) hear() {
	r := j.now.Run
	if u := j.now.Uncertain; u != nil && j.lifeOf(*u) == nil {
		j.now.Uncertain = nil
	}
	if r == nil || r.In == nil || r.Unknown {
		return
	}
	result, last := j.resultOf(r)
	t := j.lifeOf(*r.In)
	switch {
	case j.world.Set.Spec.FindJob(r.Job) == nil: // given up
	case result.Done:
		j.now.Uncertain = nil
		j.settle("done", fmt.Sprintf("job %s has succeeded in %s", r.Job, r.In.ID.MemberName()))
	case result.Unknown:
		j.doubtRun(fmt.Sprintf("%s: %s", r.In.ID.MemberName(), result.Message))
	case result.Failures > 0:
		j.now.Uncertain = nil
		r.In, r.Failures, r.Message = nil, r.Failures+1, result.Message
	case last && !result.Begun:
		r.In = nil // its life ended before
	case t == nil:
		j.doubtRun(fmt.Sprintf("the life of %s in which it was to run is over, and did not say what came of it", r.In.ID.MemberName()))
	case !t.stopping() && (t.Member.Hook == nil || t.Member.Hook.ID != r.ID):
		j.doubtRun(fmt.Sprintf("its order was taken from %s", r.In.ID.MemberName()))
	}
}

// resultOf is what the node said of a run; last: it is its last word, for the life is over.
func (j *jobber) resultOf(r *hooks.JobRun) (result hooks.HookResult, last bool) {
	for i := range j.asSeen {
		m := &j.asSeen[i]
		if m.ID == r.In.ID && m.Report != nil && m.Report.Token == r.In.Token && m.Report.Hook.ID == r.ID {
			return m.Report.Hook, m.Report.Phase.Over()
		}
	}
	return result, false
}

// lifeOf is the member of a life that is not over; nil: it is.
func (d *draft) lifeOf(l spec.LifeID) *memberState {
	for _, t := range d.members {
		if t.ID == l.ID && !t.vacant() && t.Member.Token == l.Token {
			return t
		}
	}
	return nil
}

// obey does what a user said of the run, or what the set says of all whose end is not known.
func (j *jobber) obey() {
	r := j.now.Run
	if r == nil {
		return
	}
	d := j.world.Set.JobDecision
	said := d != nil && d.Job == r.Job && d.Run == r.ID
	switch {
	case said && d.Skip:
		if r.In != nil {
			j.now.Uncertain = r.In
		}
		j.settle("skipped", fmt.Sprintf("job %s was skipped by a user", r.Job))
	case r.Unknown && (said || j.world.Set.Spec.FindJob(r.Job).OnUnknown == hooks.OnUnknownRepeat):
		r.Unknown, r.In = false, nil
	}
}

// settle: the run's job is done for its members.
func (j *jobber) settle(word, text string) {
	name := j.now.Run.Job
	j.tell(j.now.Run, word, text)
	j.now.Run = nil
	if j.world.Set.Spec.FindJob(name).After == hooks.AfterBootstrapped {
		j.now.Done = append(j.now.Done, name)
	} else {
		j.now.Settled = append(j.now.Settled, name)
	}
	j.now.Doubtful = drop(j.now.Doubtful, func(n string) bool { return n == name })
}

// endOrders takes orders back that no run stands for; false: there were none. A life gets the next order only when that is written.
func (j *jobber) endOrders() (ended bool) {
	for _, t := range j.members {
		if t.vacant() || t.stopping() || t.Member.Hook == nil || t.Member.Hook.Kind != hooks.RunJob {
			continue
		}
		if r := j.now.Run; r == nil || r.In == nil || r.Unknown || t.Member.Hook.ID != r.ID {
			leaver{j.volumes}.orderHook(t, nil, "", "")
			ended = true
		}
	}
	return ended
}

// next has the job run whose turn it is, when all members are ready. One of which it is not known whether it ran is asked about.
func (j *jobber) next() {
	r := j.now.Run
	if r != nil && (r.In != nil || r.Unknown) || !j.bootstrapped || !j.allReady() {
		return
	}
	if r == nil {
		name := j.due()
		if name == "" {
			return
		}
		r = &hooks.JobRun{Job: name}
	}
	id := spec.Sequence{Epoch: j.world.Epoch, Rev: j.world.Rev}
	job := j.world.Set.Spec.FindJob(r.Job)
	now := j.now
	if len(now.Round) == 0 {
		now.Round = j.wantedOrdinals()
	}
	if (now.Restored || slices.Contains(now.Doubtful, r.Job)) && job.OnUnknown != hooks.OnUnknownRepeat && r.Failures == 0 && r.ID == (spec.Sequence{}) {
		now.Run = &hooks.JobRun{Job: r.Job, ID: id, Unknown: true, Message: "it is not recorded whether it ran"}
		j.tell(now.Run, "unknown", fmt.Sprintf("it is not known whether job %s ran", r.Job))
		j.act(PutJobs{Record: now, Name: j.name, Text: j.text})
		return
	}
	t := j.runner()
	if t == nil {
		return
	}
	now.Run = &hooks.JobRun{Job: r.Job, ID: id, In: &spec.LifeID{ID: t.ID, Token: t.Member.Token}, Failures: r.Failures, Message: r.Message}
	a := OrderJob{
		Record: now, ID: t.ID, Token: t.Member.Token,
		Hook: &hooks.HookOrder{ID: id, Kind: hooks.RunJob, Hook: leaver{j.volumes}.hookIn(t, job.Hook()), Job: &hooks.JobFacts{
			Name: r.Job, Ordinals: now.Round, Before: now.Ordinals, Attempt: r.Failures,
		}},
	}
	if r.Failures == 0 {
		a.Text = fmt.Sprintf("job %s runs in %s", r.Job, t.ID.MemberName())
	}
	j.act(a)
	t.become(t.afterOrder(&OrderHook{Hook: a.Hook}))
	j.now = now
}

// due is the job whose turn it is; "": none. A growth for which there is no job is recorded all the same.
func (j *jobber) due() string {
	if first := j.open(hooks.AfterBootstrapped); len(first) > 0 {
		return first[0]
	}
	if !j.now.Complete {
		j.record()
		return ""
	}
	if len(j.grown()) == 0 {
		return ""
	}
	if grown := j.open(hooks.AfterGrown); len(grown) > 0 {
		return grown[0]
	}
	j.record()
	return ""
}

// record has the members counted that need no job.
func (j *jobber) record() {
	now := j.now
	now.Complete, now.Restored, now.Ordinals, now.Round = true, false, join(now.Ordinals, j.wantedOrdinals()), nil
	j.act(PutJobs{Record: now})
	j.now = now
}

// allReady: every member that is wanted is.
func (j *jobber) allReady() bool {
	return len(j.inside) > 0 && !slices.ContainsFunc(j.inside, func(t *memberState) bool { return !t.Ready || t.stopping() || t.changing })
}

// runner is the life that is to run a job; nil: none can now. While a run may go on in a life, it is that one.
func (j *jobber) runner() *memberState {
	for _, t := range j.inside {
		if u := j.now.Uncertain; u != nil && *u != (spec.LifeID{ID: t.ID, Token: t.Member.Token}) {
			continue
		}
		if n := j.node(t.Member.Node); t.Ready && t.Member.Hook == nil && n != nil && n.Facts != nil && n.Facts.Jobs {
			return t
		}
	}
	return nil
}

// runsJob: a job runs in the member, which is to be waited for until its time is over.
func runsJob(r rollout, t *memberState) bool {
	if t.Member == nil || !t.Live || t.Over || t.stopping() || t.Member.Hook == nil || t.Member.Hook.Kind != hooks.RunJob {
		return false
	}
	result := t.Member.HookResult(t.Report)
	return !result.Done && !result.Unknown && result.Failures == 0 && !result.Overdue && !r.ailing(t)
}

// blockJobs says of a member that waits for nothing else what a job of the set waits for.
func (e explainer) blockJobs() {
	reason, text := e.jobState()
	if text == "" || e.world.Jobs == nil || e.world.Jobs.Run == nil {
		return
	}
	waits := func(t *memberState) bool {
		return slices.ContainsFunc(e.plan.Blocked, func(b Blocked) bool { return b.ID == t.ID })
	}
	var of *memberState
	for _, t := range e.inside {
		in := e.world.Jobs.Run.In
		switch runs := in != nil && in.ID == t.ID; {
		case runs && waits(t) && reason == causes.BlockedJob:
			return
		case !waits(t) && (runs || of == nil):
			of = t
		}
	}
	if of != nil {
		e.block(of, reason, text)
	}
}

// jobState says how far the jobs of the set are; "", "": they are done, or it has none.
func (e explainer) jobState() (reason causes.BlockedReason, text string) {
	set, rec := e.world.Set, e.world.Jobs
	if len(set.Spec.Jobs) == 0 || set.Orphaned || set.Deleting {
		return "", ""
	}
	if rec == nil {
		return causes.BlockedJob, "its jobs run when all members are ready"
	}
	r := rec.Run
	decide := fmt.Sprintf("'stead job retry %s %%s', or, if it counts as done: 'stead job skip %s %%s'", set.Ref.Name, set.Ref.Name)
	switch {
	case r == nil && rec.Complete && len(rec.Round) == 0 && len((&jobber{volumes: volumes{e}, now: *rec}).grown()) == 0:
		return "", ""
	case r == nil:
		return causes.BlockedJob, "its jobs run when all members are ready"
	case r.Unknown:
		return causes.BlockedJobUnknown, fmt.Sprintf("it is not known what came of job %s: %s; look whether what it does was done; to run it: ", r.Job, r.Message) + fmt.Sprintf(decide, r.Job, r.Job)
	case r.Failures > 0:
		return causes.BlockedJobFailed, fmt.Sprintf("job %s failed (%d in a row, and is run again when all members are ready): %s; to do without: 'stead job skip %s %s'", r.Job, r.Failures, r.Message, set.Ref.Name, r.Job)
	case r.In == nil && (&jobber{volumes: volumes{e}, now: *rec}).allReady():
		return causes.BlockedAgentTooOld, fmt.Sprintf("job %s waits for a member whose agent runs jobs, and that runs no other hook", r.Job)
	case r.In == nil:
		return causes.BlockedJob, fmt.Sprintf("job %s runs when all members are ready", r.Job)
	}
	return causes.BlockedJob, fmt.Sprintf("job %s runs in %s", r.Job, r.In.ID.MemberName())
}

// jobsCondition says whether the jobs of the set are done; nil: it has none.
func (r reporter) jobsCondition() *records.Condition {
	reason, text := explainer{r.rollout}.jobState()
	switch {
	case len(r.world.Set.Spec.Jobs) == 0 || r.world.Set.Deleting || r.world.Set.Orphaned:
		return nil
	case text == "":
		return &records.Condition{Type: ConditionJobsDone, Status: "True", Reason: "Done", Message: "all jobs are done for the present members"}
	}
	return &records.Condition{Type: ConditionJobsDone, Status: "False", Reason: string(reason), Message: text}
}
