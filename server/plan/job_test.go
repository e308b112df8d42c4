package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
)

// hasJobs gives the set jobs by their names, create after Bootstrapped and the others after Grown, those with ! with onUnknown Repeat; and
// agents that run them.
func hasJobs(names ...string) func(*World) {
	return func(w *World) {
		set := spec.Clone(*w.Set)
		set.Spec.Jobs, w.Set = nil, &set
		for _, name := range names {
			name, repeats := strings.CutSuffix(name, "!")
			h := commandHook(name)
			job := spec.Job{Name: name, After: hooks.AfterGrown, Container: h.Container, Exec: h.Exec, TimeoutSeconds: h.TimeoutSeconds, OnUnknown: hooks.OnUnknownWait}
			if strings.HasPrefix(name, "create") {
				job.After = hooks.AfterBootstrapped
			}
			if repeats {
				job.OnUnknown = hooks.OnUnknownRepeat
			}
			set.Spec.Jobs = append(set.Spec.Jobs, job)
		}
		w.Nodes = slices.Clone(w.Nodes)
		for i := range w.Nodes {
			facts := records.NodeFacts{Name: w.Nodes[i].Node.Name, Guards: true}
			if old := w.Nodes[i].Facts; old != nil {
				facts = *old
			}
			facts.Hooks, facts.Jobs = true, true
			w.Nodes[i].Facts = &facts
		}
	}
}

// recorded has this recorded of jobs, in epoch 1.
func recorded(r hooks.Jobs) func(*World) {
	return func(w *World) {
		r.Ref = w.Set.Ref
		if r.Epoch == 0 {
			r.Epoch = 1
		}
		w.Jobs = &r
	}
}

// livedBefore has members have lived before the store was restored.
func livedBefore(w *World) {
	for i := range w.Slots {
		if id := w.Slots[i].Identity; id != nil {
			rec := *id
			rec.LastToken.Epoch = 0
			w.Slots[i].Identity = &rec
		}
	}
}

// inLife has a member run a job as order 50, with this result; the record names it.
func inLife(ordinal int, job string, result hooks.HookResult) func(*World) {
	return func(w *World) {
		slot := w.slotOf(spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal})
		m, r, rec := *slot.Member, *slot.Report, *w.Jobs
		m.Hook = &hooks.HookOrder{ID: spec.Sequence{Epoch: 1, Rev: 50}, Kind: hooks.RunJob, Hook: commandHook(job), Job: &hooks.JobFacts{Name: job, Ordinals: []int{0, 1, 2}}}
		result.ID = m.Hook.ID
		r.Hook = result
		if m.Goal == records.GoalStop {
			m.Hook = nil
		}
		rec.Run = &hooks.JobRun{Job: job, ID: result.ID, In: &spec.LifeID{ID: m.ID, Token: m.Token}}
		slot.Member, slot.Report, w.Jobs = &m, &r, &rec
	}
}

// undecided has a run recorded of which nobody knows what came.
func undecided(job string) func(*World) {
	return func(w *World) {
		rec := *w.Jobs
		rec.Run, w.Jobs = &hooks.JobRun{Job: job, ID: spec.Sequence{Epoch: 1, Rev: 50}, Unknown: true, Message: "its host died"}, &rec
	}
}

// decides has a user say of order rev that it is run again, or counts as done.
func decides(job string, rev int64, skip bool) func(*World) {
	return func(w *World) {
		set := *w.Set
		set.JobDecision, w.Set = &hooks.JobDecision{Job: job, Run: spec.Sequence{Epoch: 1, Rev: rev}, Skip: skip}, &set
	}
}

// briefJobs says what becomes of the record.
func briefJobs(a Action) string {
	switch a := a.(type) {
	case OrderJob:
		return fmt.Sprintf("job=%s@%d/%s/%s", a.Record.Run.Job, a.ID.Ordinal, ordinalWords(a.Hook.Job.Before), ordinalWords(a.Hook.Job.Ordinals))
	case PutJobs:
		r := &a.Record
		words := []string{"jobs=" + ordinalWords(r.Ordinals)}
		if !r.Complete {
			words = append(words, "begun")
		}
		if r.Restored {
			words = append(words, "restored")
		}
		for _, list := range [][]string{r.Done, r.Settled} {
			words = append(words, strings.Join(list, "+"))
		}
		if len(r.Doubtful) > 0 {
			words = append(words, "doubt:"+strings.Join(r.Doubtful, "+"))
		}
		if r.Run != nil {
			words = append(words, fmt.Sprintf("%s:%d/%t", r.Run.Job, r.Run.Failures, r.Run.Unknown))
		}
		if r.Uncertain != nil {
			words = append(words, fmt.Sprintf("uncertain:%d", r.Uncertain.ID.Ordinal))
		}
		return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ",")
	}
	return ""
}

func ordinalWords(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", "."), "[]")
}

var (
	three    = hooks.Jobs{Complete: true, Ordinals: []int{0, 1, 2}, Done: []string{"create"}}
	growing  = hooks.Jobs{Complete: true, Ordinals: []int{0, 1}, Done: []string{"create"}, Round: []int{0, 1, 2}}
	failing  = hooks.Jobs{Complete: true, Ordinals: []int{0, 1}, Done: []string{"create"}, Round: []int{0, 1, 2}, Run: &hooks.JobRun{Job: "grow", Failures: 1}}
	halfDone = hooks.Jobs{Complete: true, Ordinals: []int{0, 1}, Done: []string{"create"}, Round: []int{0, 1, 2}, Settled: []string{"grow"}}
	forming  = hooks.Jobs{Round: []int{0, 1, 2}}
	begun    = hooks.HookResult{Begun: true}
	done     = hooks.HookResult{Begun: true, Done: true}
	failed   = hooks.HookResult{Begun: true, Failures: 1, Message: "exit code 1: no quorum"}
	notSeen  = hooks.HookResult{Begun: true, Unknown: true, Message: "the agent was restarted while it ran"}
)

// A job is run once when the set was bootstrapped, and once after each growth, when all members are ready (SEMANTICS Part 3, Once).
func TestAJobRunsOnce(t *testing.T) {
	all := "ordered 3 n1 0:ready 1:ready 2:ready"
	with := func(changes ...func(*World)) func(*World) {
		return allOf(append([]func(*World){hasJobs("create", "grow")}, changes...)...)
	}
	notBootstrapped := func(w *World) { w.Bootstrapped = false }
	check(t, []rule{
		{name: "the record comes first", world: all, change: with(notBootstrapped), want: "jobs=,begun bootstrapped |"},
		{name: "not before the set is bootstrapped", world: all, change: with(recorded(hooks.Jobs{}), notBootstrapped), want: "bootstrapped |"},
		{name: "then in the lowest", world: all, change: with(recorded(hooks.Jobs{})), want: "job=create@0//0.1.2 |"},
		{name: "not while one is not ready", world: "ordered 3 n1 0:ready 1:ready 2:running", change: with(recorded(hooks.Jobs{})), want: "| 2:NotReady"},
		{name: "nor beside another hook", world: all, change: with(recorded(hooks.Jobs{}), runs(0, hooks.Forget, failedHook)), want: "job=create@1//0.1.2 hook=0/none |"},
		{name: "an agent may be too old", world: all, change: with(recorded(hooks.Jobs{}), tooOld), want: "|"},
		{name: "it is waited for", world: all, change: with(recorded(forming), inLife(0, "create", begun)), want: "| 0:Job", says: "job create runs in db-0"},
		{name: "it is done", world: all, change: with(recorded(forming), inLife(0, "create", done)), want: "jobs=0.1.2,create | 0:Job", says: "job create has succeeded in db-0"},
		{name: "and not again", world: all, change: with(recorded(three)), want: "|"},
		{name: "its order is taken back", world: all, change: with(recorded(three), inLife(0, "create", done), recorded(three)), want: "hook=0/none |"},
		{name: "a growth", world: all, change: with(recorded(hooks.Jobs{Complete: true, Ordinals: []int{0, 1}, Done: []string{"create"}})), want: "job=grow@0/0.1/0.1.2 |"},
		{name: "a growth is done", world: all, change: with(recorded(growing), inLife(0, "grow", done)), want: "jobs=0.1.2,create | 0:Job"},
		{name: "one that has none is recorded", world: all, change: allOf(hasJobs("create"), recorded(hooks.Jobs{Complete: true, Ordinals: []int{0, 1}, Done: []string{"create"}})),
			want: "jobs=0.1.2,create |"},
		{name: "who leaves is no member any more", world: "ordered 2 n1 0:ready 1:ready 2:stopping", change: with(recorded(three)), want: "jobs=0.1,create | 2:Stopping"},
		{name: "who stays with all the others gone is", world: "ordered 0 n1 0:ready", change: with(recorded(three)), want: "stop=0/ScaleToZero | 0:Stopping"},
		{name: "nor is who is deleted forgotten", world: "ordered 3 deleting n1 0:ready", change: with(recorded(three)), want: "stop=0/Delete | 0:Stopping"},
		{name: "a growth that is taken back needs no job", world: "ordered 2 n1 0:ready 1:ready 2:stopping", change: with(recorded(growing), inLife(0, "grow", begun)),
			want: "jobs=0.1,create,uncertain:0 | 2:Stopping 0:Job"},
		{name: "it is not taken back while who came has not left, and may be wanted again", world: "ordered 2 leaves n1 0:ready 1:ready 2:ready",
			change: with(recorded(growing), inLife(0, "grow", begun)), want: "hook=2/decommission | 2:Leaving 0:Job"},
		{name: "what was run for it counts", world: "ordered 2 leaves n1 0:ready 1:ready 2:ready", change: allOf(hasJobs("create", "grow", "grow-more"), recorded(halfDone)), want: "hook=2/decommission | 2:Leaving"},
		{name: "but nothing begins for who is to leave", world: "ordered 2 leaves n1 0:ready 1:ready 2:ready", change: with(recorded(failing)), want: "jobs=0.1,create hook=2/decommission | 2:Leaving 0:JobFailed"},
		{name: "nor for nobody, beside a first job that is asked about", world: "ordered 2 n1 0:ready 1:ready 2:stopping",
			change: allOf(hasJobs("create", "create-more", "grow"), recorded(failing)), want: "jobs=0.1,create,doubt:create-more | 2:Stopping 0:JobFailed"},
		{name: "nor does one that is under way for nobody hold it up", world: "ordered 2 n1 0:ready 1:ready 2:stopping",
			change: allOf(hasJobs("create", "create-more", "grow"), recorded(growing), inLife(0, "grow", begun)), want: "jobs=0.1,create,doubt:create-more,uncertain:0 | 2:Stopping 0:Job"},
		{name: "of a set that was there before nobody knows", world: all, change: with(), want: "jobs=0.1.2,doubt:create |"},
		{name: "and a user is asked", world: all, change: with(recorded(hooks.Jobs{Complete: true, Ordinals: []int{0, 1, 2}, Doubtful: []string{"create"}})),
			want: "jobs=0.1.2,doubt:create,create:0/true |", says: "it is not known whether job create ran"},
		{name: "unless it may be repeated", world: all, change: allOf(hasJobs("create!", "grow"), recorded(hooks.Jobs{Complete: true, Ordinals: []int{0, 1, 2}, Doubtful: []string{"create"}})),
			want: "job=create@0/0.1.2/0.1.2 |"},
		{name: "a job that comes later is asked about", world: all, change: allOf(hasJobs("create", "create-more", "grow"), recorded(three)), want: "jobs=0.1.2,create,doubt:create-more |"},
		{name: "a set without jobs has no record", world: all, want: "|"},
		{name: "an orphaned set has nothing done", world: "ordered 3 orphaned n1 0:ready 1:ready 2:ready", change: with(recorded(forming), inLife(0, "create", begun)), want: "|"},
		{name: "but what came of it is taken in", world: "ordered 3 orphaned n1 0:ready 1:ready 2:ready", change: with(recorded(forming), inLife(0, "create", done)), want: "jobs=0.1.2,create |"},
		{name: "its member is not stopped meanwhile", world: "ordered 3 update=h2 current=h1 n1 0:ready 1:ready/h2 2:ready/h2", change: with(recorded(growing), inLife(0, "grow", begun)),
			want: "| 0:Busy", says: "busy (job grow runs in it), for 1m at most"},
	})
}

// A run that failed is repeated. One of which nobody knows what came of it is not, unless the set or a user says so.
func TestAJobOfUnknownEndIsNotRepeated(t *testing.T) {
	all := "ordered 3 n1 0:ready 1:ready 2:ready"
	with := func(changes ...func(*World)) func(*World) {
		return allOf(append([]func(*World){hasJobs("create", "grow"), recorded(growing)}, changes...)...)
	}
	fails := func(w *World) { w.Jobs.Run.In, w.Jobs.Run.Failures = nil, 1 }
	forUpdate := func(w *World) { w.Slots[0].Member.StopReason = records.ReasonUpdate }
	restored := func(w *World) { w.Jobs.Epoch = -1 }
	check(t, []rule{
		{name: "it failed", world: all, change: with(inLife(0, "grow", failed)), want: "jobs=0.1,create,grow:1/false | 0:Job"},
		{name: "its order is taken back first", world: all, change: with(inLife(0, "grow", failed), fails), want: "hook=0/none | 0:JobFailed"},
		{name: "and is run again", world: all, change: with(inLife(1, "grow", failed), fails, func(w *World) { w.Slots[1].Member.Hook = nil }), want: "job=grow@0/0.1/0.1.2 | 0:JobFailed"},
		{name: "its end is not known", world: all, change: with(inLife(0, "grow", notSeen)), want: "jobs=0.1,create,grow:0/true,uncertain:0 | 0:Job", says: "db-0: the agent was restarted while it ran"},
		{name: "a user is to decide", world: all, change: with(undecided("grow")), want: "| 0:JobUnknown", says: "'stead job retry db grow', or, if it counts as done: 'stead job skip db grow'"},
		{name: "who says that it is run again", world: all, change: with(undecided("grow"), decides("grow", 50, false)), want: "jobs=0.1,create,grow:0/false | 0:JobUnknown"},
		{name: "or counts as done", world: all, change: with(undecided("grow"), decides("grow", 50, true)), want: "jobs=0.1.2,create | 0:JobUnknown", says: "skipped by a user"},
		{name: "of this run", world: all, change: with(undecided("grow"), decides("grow", 49, true)), want: "| 0:JobUnknown"},
		{name: "the set says that it may be", world: all, change: allOf(hasJobs("create", "grow!"), recorded(growing), undecided("grow")), want: "jobs=0.1,create,grow:0/false | 0:JobUnknown"},
		{name: "a life that ended before it began says so", world: "ordered 3 n1 0:stopped 1:ready 2:ready", change: with(inLife(0, "grow", hooks.HookResult{}), forUpdate),
			want: "jobs=0.1,create,grow:0/false start=0/Update@n1 | 0:Starting"},
		{name: "one that ended while it ran does not say", world: "ordered 3 n1 0:stopped 1:ready 2:ready", change: with(inLife(0, "grow", begun), forUpdate),
			want: "jobs=0.1,create,grow:0/true,uncertain:0 start=0/Update@n1 | 0:Starting"},
		{name: "nor one that says nothing", world: "ordered 3 n1 0:stopped 1:ready 2:ready", change: with(inLife(0, "grow", hooks.HookResult{}), forUpdate, func(w *World) { w.Slots[0].Report.Hook = hooks.HookResult{} }),
			want: "jobs=0.1,create,grow:0/true,uncertain:0 start=0/Update@n1 | 0:Starting"},
		{name: "a silent node is waited for", world: "ordered 3 n1 n2~ 0:ready@n2 1:ready 2:ready", change: with(inLife(0, "grow", hooks.HookResult{})), want: "| 0:NodeSilent"},
		{name: "an order that is gone", world: all, change: with(inLife(0, "grow", hooks.HookResult{}), func(w *World) { w.Slots[0].Member.Hook = nil }), want: "jobs=0.1,create,grow:0/true,uncertain:0 | 0:Job"},
		{name: "what may go on still is ended by the next run", world: all, change: with(func(w *World) {
			w.Jobs.Uncertain = &spec.LifeID{ID: w.Slots[1].ID, Token: w.Slots[1].Member.Token}
		}), want: "job=grow@1/0.1/0.1.2 |"},
		{name: "or with its life", world: all, change: with(func(w *World) {
			w.Jobs.Uncertain = &spec.LifeID{ID: w.Slots[1].ID, Token: spec.Token{Epoch: 1, Number: 3}}
		}), want: "jobs=0.1,create |"},
		{name: "after a restore it may have been done", world: all, change: with(inLife(0, "grow", hooks.HookResult{}), restored),
			want: "jobs=0.1,restored,create,doubt:grow,grow:0/true,uncertain:0 | 0:Job", says: "the store was restored"},
		{name: "also one that was not ordered yet", world: all, change: with(restored), want: "jobs=0.1,restored,create,doubt:grow |"},
		{name: "also for who was about to leave then, and may be wanted again", world: "ordered 2 leaves n1 0:ready 1:ready 2:ready", change: with(restored),
			want: "jobs=0.1,restored,create,doubt:grow hook=2/decommission | 2:Leaving"},
		{name: "also for who is gone since", world: "ordered 2 n1 0:ready 1:ready 2:none", change: with(recorded(hooks.Jobs{
			Complete: true, Ordinals: []int{0, 1}, Done: []string{"create"},
		}), restored), want: "jobs=0.1,restored,create,doubt:grow |"},
		{name: "also one that the set is given only then", world: all, change: with(func(w *World) { w.Jobs.Restored = true }), want: "jobs=0.1,restored,create,grow:0/true |"},
		{name: "also for who came beside a round that was under way", world: all, change: with(restored, func(w *World) { w.Jobs.Round = []int{0, 1} }), want: "jobs=0.1,restored,create |"},
		{name: "also when that round has ended", world: all, change: with(func(w *World) {
			w.Jobs.Restored, w.Jobs.Round, w.Jobs.Settled = true, []int{0, 1}, []string{"grow"}
		}), want: "jobs=0.1,restored,create |"},
		{name: "a scale to 0 ends no round", world: "ordered 0 n1 0:stopping 1:stopping 2:stopping", change: with(undecided("grow")), want: "| 2:Stopping 1:Stopping 0:Stopping"},
		{name: "until the members that came are done", world: all, change: with(func(w *World) { w.Jobs.Restored, w.Jobs.Settled = true, []string{"grow"} }), want: "jobs=0.1.2,create |"},
		{name: "also when nothing of jobs was recorded then", world: all, change: allOf(hasJobs("create"), livedBefore, func(w *World) { w.Jobs, w.Bootstrapped = nil, false }),
			want: "jobs=,begun,restored bootstrapped |"},
		{name: "and then a user is asked", world: all, change: with(func(w *World) { w.Jobs.Doubtful = []string{"grow"} }), want: "jobs=0.1,create,doubt:grow,grow:0/true |"},
		{name: "what a user said before a restore is void", world: all, change: with(undecided("grow"), decides("grow", 50, false), restored), want: "jobs=0.1,restored,create,doubt:grow,grow:0/true | 0:JobUnknown"},
		{name: "what is done stays done", world: all, change: allOf(hasJobs("create", "grow"), recorded(three), restored), want: "jobs=0.1.2,create |"},
	})
}

// A member that has left must not return before it is recorded that it did: the record goes alone, before all else.
func TestWhatIsRecordedOfJobsIsWrittenBeforeAllElse(t *testing.T) {
	w := world(t, "ordered 3 n1 0:ready 1:ready 2:none")
	hasJobs("create", "grow")(&w)
	recorded(hooks.Jobs{Complete: true, Ordinals: []int{0, 1, 2, 7}, Done: []string{"create"}})(&w)
	p := Next(w)
	batch := p.Batch()
	if _, is := batch[0].(PutJobs); !is || len(batch) != 1 || len(p.Actions) < 2 {
		t.Errorf("written at once are %+v of %s", batch, brief(p))
	}
}
