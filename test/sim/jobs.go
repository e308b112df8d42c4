package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/test/sim/rules"
)

// jobNames are the jobs that a set may have, and one that comes later: those that grow are after Grown, the others after Bootstrapped.
var jobNames = []string{"create", "seed", "grow", "grow-more"}

func isOfGrowth(job string) bool { return strings.HasPrefix(job, "grow") }

// someJobs gives a set jobs, or takes them away.
func someJobs(s *records.Set, r *rand.Rand) {
	s.Spec.Jobs = nil
	kinds := []string{hookQuick, hookSlow, hookSlow, hookFails, hookFails, hookSignalled, hookHangs}
	containers := s.Spec.Template.Spec.Containers
	for _, name := range append([]string{fmt.Sprint("later-", r.IntN(6))}, jobNames...) {
		if r.IntN(3) == 0 {
			continue
		}
		j := spec.Job{
			Name: name, After: hooks.AfterBootstrapped, Container: containers[r.IntN(len(containers))].Name,
			Exec: &spec.ExecAction{Command: []string{kinds[r.IntN(len(kinds))]}}, TimeoutSeconds: int32(5 + r.IntN(40)), OnUnknown: hooks.OnUnknownWait,
		}
		if isOfGrowth(name) {
			j.After = hooks.AfterGrown
		}
		if r.IntN(5) == 0 {
			j.OnUnknown = hooks.OnUnknownRepeat
		}
		s.Spec.Jobs = append(s.Spec.Jobs, j)
	}
}

// jobs has sets of this run have jobs from now on, and gives one others.
func (w user) jobs() bool {
	w.hasJobs = true
	return w.change(func(s *records.Set) { someJobs(s, w.r) })
}

// mendJobs has the jobs of a set succeed, in a container that each member has.
func mendJobs(s *records.Set) {
	for i := range s.Spec.Jobs {
		j := &s.Spec.Jobs[i]
		j.Container, j.TimeoutSeconds = containerName, 60
		if j.Exec.Command[0] != hookSlow {
			j.Exec = &spec.ExecAction{Command: []string{hookQuick}}
		}
	}
}

// decideJob has a person say what becomes of a job's run of which nobody saw the end, or that fails.
func (w user) decideJob() bool { return w.decideJobOf(w.someRef(), w.chance(3)) }

// decideJobOf does it as control lets it. What a person read of it may be some time ago. After a restore a person looks first
// whether the job runs still, of which the store may not know.
func (w user) decideJobOf(ref spec.SetRef, skip bool) bool {
	old, rev := w.set(ref)
	read := w.read[ref]
	if rec := cache.JobsOf(w.view(), ref); !w.chance(6) || read.Job == "" {
		if rec == nil || rec.Run == nil {
			return false
		}
		w.read[ref], read = *rec.Run, *rec.Run
	}
	switch {
	case old == nil || old.Deleting || rules.Orphaned(old) || old.Spec.FindJob(read.Job) == nil:
		return false
	case !read.Unknown && (!skip || read.Failures == 0):
		return false
	case w.restores > 0 && !skip && len(w.jobsRunning(ref)) > 0:
		return false
	}
	w.note("the user says of run %d.%d of job %s: skip %v", read.ID.Epoch, read.ID.Rev, read.Job, skip)
	w.apply(old, rev, func(s *records.Set) {
		s.JobDecision = &hooks.JobDecision{Job: read.Job, Run: read.ID, Skip: skip}
	})
	return true
}

// jobOn has everybody do what there is to do while jobs of a set are not done; now and then a person answers what is asked, or asks
// for a template with which its members become ready.
func (w *Cluster) jobOn() (did bool) {
	ref := w.someRef()
	for range 1 + w.r.IntN(4) {
		x := w.view().World(ref)
		if x.Set == nil || x.Set.Deleting || lackingJobs(x, rules.Read(x)) == "" {
			break
		}
		w.advance(time.Second)
		_ = w.someServer().campaign()
		w.moveRound()
		switch {
		case w.q != nil && !w.q.ready(): // no server answers
		case w.chance(3):
			user{w}.decideJobOf(ref, w.chance(4))
		case w.chance(12) && w.hasJobs:
			w.mend(ref)
		}
		did = true
	}
	return did
}

// decideJobs is what an operator does once faults are mended: what is left of jobs is ended, and all that is asked is answered.
func (w operator) decideJobs() {
	for _, ref := range w.refs {
		rec := cache.JobsOf(w.view(), ref)
		if rec == nil || rec.Run == nil || !rec.Run.Unknown {
			continue
		}
		for _, b := range w.jobsRunning(ref) {
			w.note("the operator ends what is left of job %s on %s", b.job.job, b.p.n.name)
			b.job = nil
		}
		if set, _ := w.set(ref); set == nil || set.JobDecision == nil || set.JobDecision.Run != rec.Run.ID {
			w.read[ref] = *rec.Run
			user(w).decideJobOf(ref, w.chance(3))
		}
	}
}

// jobRun is the command of a job that was begun on a host: the truth.
type jobRun struct {
	ref     spec.SetRef
	life    life
	job     string
	id      string // of the order
	members []int  // that it runs for; of a job after Bootstrapped: -1
	process int    // of its container
	at      time.Time
	done    bool // it has succeeded
}

// beginJob notes that the command which was just started is a job's.
func (x *memberWorker) beginJob(b *box) {
	o := x.ordered
	if hooks.HookKind(strings.TrimPrefix(o.env[0], "STEAD_HOOK=")) != hooks.RunJob || b.alive.IsZero() {
		return
	}
	r := &jobRun{ref: x.id.Ref(), life: life{x.id, o.token}, process: b.runs, at: o.at}
	var before []string
	for _, v := range o.env {
		switch key, value, _ := strings.Cut(v, "="); key {
		case "STEAD_JOB":
			r.job = value
		case "STEAD_JOB_RUN":
			r.id = value
		case "STEAD_JOB_BEFORE":
			before = strings.Fields(value)
		}
	}
	for _, v := range o.env {
		if list, is := strings.CutPrefix(v, "STEAD_JOB_ORDINALS="); is {
			r.members = without(strings.Fields(list), before)
		}
	}
	if !isOfGrowth(r.job) {
		r.members = []int{ofAll}
	}
	x.n.w.judge.jobBegins(r, b)
	b.job = r
}

// ofAll stands for all members of a set.
const ofAll = -1

func without(all, some []string) (list []int) {
	had := map[string]bool{}
	for _, o := range some {
		had[o] = true
	}
	for _, o := range all {
		if !had[o] {
			list = append(list, got(strconv.Atoi(o)))
		}
	}
	return list
}

// endJob notes what came of a job's command, as its agent sees it end.
func (x *memberWorker) endJob(b *box, o *orderedHook) {
	r := b.job
	if r == nil || b.runs != r.process {
		return
	}
	b.job = nil
	x.n.w.judge.jobEnds(r, o.err)
}

// leavesJobs is what becomes of the jobs' commands of an agent that ends: they end with it, or run on.
func (n *node) leavesJobs() {
	for _, id := range n.agent.ids {
		o := n.agent.workers[id].ordered
		if o == nil || n.place(id).box(o.box).job == nil {
			continue
		}
		if b := n.place(id).box(o.box); n.w.chance(2) {
			b.job = nil
		} else if b.jobRuns() {
			n.w.count("job runs on without its agent")
		}
	}
}

// jobRuns: a job's command runs in the container.
func (b *box) jobRuns() bool {
	r := b.job
	return r != nil && !b.alive.IsZero() && b.runs == r.process && (r.at.IsZero() || b.p.n.w.clock.Before(r.at))
}

// jobsRunning are the containers in which a job of a set runs, on any host.
func (w *Cluster) jobsRunning(ref spec.SetRef) (list []*box) {
	for _, n := range w.nodes {
		for _, id := range sortedKeys(n.places) {
			if id.Ref() != ref {
				continue
			}
			for _, b := range n.places[id].boxes {
				if b.jobRuns() {
					list = append(list, b)
				}
			}
		}
	}
	return list
}
