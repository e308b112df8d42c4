package sim

import (
	"fmt"
	"slices"

	"github.com/stead-project/stead/agent/probe"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/test/sim/rules"
)

// jobsTruth is what there ever was of the jobs of a set and its data (SEMANTICS Part 3, Once).
type jobsTruth struct {
	runs []*jobRun
	// credit is how often a job may be begun still for a member: once, and once more for each run that was seen to fail, or of
	// which a person said so. Absent: it was not begun. told: the store has that it succeeded.
	credit map[jobFor]int
	told   map[jobFor]bool
	// repeats: since it was begun last, the set said that it may run at any time. skipped: a person said that it counts as done.
	repeats, skipped map[string]bool
	restored         bool // the store was, and nobody has looked what it has of the set
}

// jobFor is a job and a member for which it runs.
type jobFor struct {
	job    string
	member int
}

func (j *judge) jobsOf(ref spec.SetRef) *jobsTruth {
	if j.jobs[ref] == nil {
		j.jobs[ref] = &jobsTruth{credit: map[jobFor]int{}, told: map[jobFor]bool{}, repeats: map[string]bool{}, skipped: map[string]bool{}}
	}
	return j.jobs[ref]
}

// jobBegins judges that at most one job of a set runs at a time, and that none is repeated which the store says has succeeded, or of
// which nobody knows the end, unless a user said so.
func (j *judge) jobBegins(r *jobRun, b *box) {
	t, name := j.jobsOf(r.ref), fmt.Sprintf("%s begins job %s (order %s) in %s %s", b.p.n.name, r.job, r.id, r.life.id.MemberName(), r.life.token)
	for _, other := range j.w.jobsRunning(r.ref) {
		j.w.fail("jobs", "%s while job %s (order %s) runs in %s on %s", name, other.job.job, other.job.id, other.p.id.MemberName(), other.p.n.name)
	}
	again := false
	for _, m := range r.members {
		at := jobFor{r.job, m}
		left, begun := t.credit[at]
		if !begun {
			left = 1
		}
		again = again || begun
		switch {
		case t.told[at]:
			j.w.fail("jobs", "%s for member %d, and the store has that it succeeded", name, m)
		case left <= 0 && !t.repeats[r.job]:
			j.w.fail("jobs", "%s for member %d once more, and nobody saw the end of the run before, or said that it may", name, m)
		}
		t.credit[at] = max(0, left-1)
	}
	if slices.ContainsFunc(t.runs, func(o *jobRun) bool { return o.id == r.id && o.life == r.life }) {
		j.w.fail("jobs", "%s a second time", name)
	}
	t.runs = append(t.runs, r)
	job := j.findJob(r)
	t.repeats[r.job] = job != nil && job.OnUnknown == hooks.OnUnknownRepeat
	j.w.count("job begun")
	if !j.settling {
		j.w.count("job begun among faults")
	}
	if isOfGrowth(r.job) {
		j.w.count("job begun after a growth")
	}
	if again {
		j.w.count("job begun once more")
	}
}

func (j *judge) findJob(r *jobRun) *spec.Job {
	set := j.w.view().Set(r.ref)
	if set == nil {
		return nil
	}
	return set.Spec.FindJob(r.job)
}

// jobEnds notes what came of a run: one that ended by itself may be run again.
func (j *judge) jobEnds(r *jobRun, err error) {
	switch {
	case err == nil:
		r.done = true
		j.w.count("job succeeded")
	case probe.EndedItself(err):
		j.allow(r.ref, r.job)
		j.w.count("job failed")
	default:
		j.w.count("job of unknown end")
	}
}

// allow has a job run once more for each member for which it ran.
func (j *judge) allow(ref spec.SetRef, job string) {
	t := j.jobsOf(ref)
	for at := range t.credit {
		if at.job == job {
			t.credit[at]++
		}
	}
}

// jobsWanted notes what the user of a set says of its jobs.
func (j *judge) jobsWanted(v cache.View, e store.Event) {
	set, ok := decoded[records.Set](j, e)
	if !ok || j.w.restoring {
		return
	}
	for _, job := range set.Spec.Jobs {
		if job.OnUnknown == hooks.OnUnknownRepeat {
			j.jobsOf(set.Ref).repeats[job.Name] = true
		}
	}
	d, rec := set.JobDecision, cache.JobsOf(v, set.Ref)
	if old := v.Set(set.Ref); d == nil || old != nil && old.JobDecision != nil && *old.JobDecision == *d {
		return
	}
	switch {
	case rec == nil || rec.Run == nil || rec.Run.ID != d.Run:
		j.w.count("word about an earlier run of a job")
	case d.Skip:
		j.jobsOf(set.Ref).skipped[d.Job] = true
	default:
		j.allow(set.Ref, d.Job)
	}
}

// jobsWritten judges that a job counts as done when it has succeeded for the members for which it was to run, or a user said so.
func (j *judge) jobsWritten(v cache.View, e store.Event) {
	now, ok := decoded[hooks.Jobs](j, e)
	if !ok || j.w.restoring {
		return
	}
	old := cache.JobsOf(v, now.Ref)
	if old == nil {
		old = &hooks.Jobs{}
	}
	if old.Epoch != now.Epoch && old.Epoch != 0 && old.Run != nil {
		j.w.count("run of a job not known after a restore")
	}
	for _, name := range slices.Concat(now.Done, now.Settled) {
		if !slices.Contains(old.Done, name) && !slices.Contains(old.Settled, name) {
			j.jobDone(v, old, name)
		}
	}
}

func (j *judge) jobDone(v cache.View, rec *hooks.Jobs, name string) {
	t, members := j.jobsOf(rec.Ref), []int{ofAll}
	if isOfGrowth(name) {
		members = slices.DeleteFunc(slices.Clone(rec.Round), func(o int) bool { return slices.Contains(rec.Ordinals, o) })
	}
	set := v.Set(rec.Ref) // a store that went back may have the word
	said := set != nil && set.JobDecision != nil && set.JobDecision.Skip && rec.Run != nil && rec.Run.ID == set.JobDecision.Run
	if t.skipped[name] || said {
		t.skipped[name] = false
		j.w.count("job skipped")
		return
	}
	for _, m := range members {
		if !slices.ContainsFunc(t.runs, func(r *jobRun) bool { return r.job == name && r.done && slices.Contains(r.members, m) }) {
			j.w.fail("jobs", "job %s of %s counts as done for member %d, and it has not succeeded", name, rec.Ref, m)
		}
		t.told[jobFor{name, m}] = true
	}
	j.w.count("job done")
}

// jobsRestored: what the store before said is not said any more.
func (j *judge) jobsRestored() {
	for _, t := range j.jobs {
		clear(t.told)
		clear(t.skipped)
		t.restored = true
	}
}

// jobsLeft: with a set and its data, what ran of its jobs is forgotten; for a member that leaves for good they may run once more,
// should it come again.
func (j *judge) jobsLeft(v cache.View) {
	if j.w.restoring {
		return
	}
	for ref, t := range j.jobs {
		set := v.Set(ref)
		if len(v.Volumes(ref)) == 0 && (set == nil || t.restored && neverLived(v, ref)) {
			delete(j.jobs, ref)
			continue
		}
		t.restored = false
		if set == nil || set.Deleting || set.Replicas() == 0 {
			continue
		}
		for at := range t.credit {
			if at.member != ofAll && leftForGood(v, set, at.member) {
				delete(t.credit, at)
				delete(t.told, at)
			}
		}
	}
}

// neverLived: the store knows of no life in the set.
func neverLived(v cache.View, ref spec.SetRef) bool {
	return !slices.ContainsFunc(v.World(ref).Slots, func(s plan.Slot) bool { return s.Identity != nil && !s.Identity.LastToken.IsZero() })
}

func leftForGood(v cache.View, set *records.Set, ordinal int) bool {
	m := v.Member(spec.Identity{Namespace: set.Ref.Namespace, Set: set.Ref.Name, Ordinal: ordinal})
	if m == nil {
		return !set.Range().Has(ordinal)
	}
	return m.Goal == records.GoalStop && m.StopReason == records.ReasonScaleDown
}

// lackingJobs says what a set whose members are as asked lacks of its jobs; "": nothing, or they are not due.
func lackingJobs(x plan.World, r *rules.Reading) string {
	rec := x.Jobs
	switch {
	case len(x.Set.Spec.Jobs) == 0 || len(r.Wanted) == 0 || !x.Bootstrapped:
		return ""
	case rec == nil:
		return "its jobs are not recorded"
	case rec.Run != nil || len(rec.Round) > 0 || !rec.Complete:
		return fmt.Sprintf("its jobs are not done: %+v", *rec)
	}
	for _, j := range x.Set.Spec.Jobs {
		if !isOfGrowth(j.Name) && !slices.Contains(rec.Done, j.Name) {
			return fmt.Sprintf("its job %s is not done: %+v", j.Name, *rec)
		}
	}
	for _, o := range r.Wanted {
		if !slices.Contains(rec.Ordinals, o) {
			return fmt.Sprintf("its jobs are not done for %s: %+v", r.Name(o), *rec)
		}
	}
	return ""
}
