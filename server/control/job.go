package control

import (
	"context"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
)

// DecideJob implements proto.ControlServer. What is said is about the run that is recorded now, and void for every other.
func (s sets) DecideJob(ctx context.Context, r *proto.DecideJobRequest) (*proto.EditResponse, error) {
	ref := spec.SetRef{Namespace: namespace(r.GetNamespace()), Name: spec.SetName(r.GetSet())}
	err := s.editSet(ctx, ref, func(set *records.Set) (bool, error) {
		if err := editable(set); err != nil {
			return false, err
		}
		if set.Spec.FindJob(r.GetJob()) == nil {
			return false, absent("set %s has no job %q", ref, r.GetJob())
		}
		var jobs *hooks.Jobs
		s.cfg.Cache.Look(func(v cache.View) { jobs = cache.JobsOf(v, ref) })
		if jobs == nil || jobs.Run == nil || jobs.Run.Job != r.GetJob() || !jobs.Run.Unknown && jobs.Run.Failures == 0 {
			return false, precondition("there is nothing to decide about job %s of set %s: it did not fail, and it is known what came of it; see 'stead explain %s'", r.GetJob(), ref, ref.Name)
		}
		if !r.GetSkip() && !jobs.Run.Unknown {
			return false, precondition("job %s of set %s failed, and is run again by itself; see 'stead explain %s'", r.GetJob(), ref, ref.Name)
		}
		set.JobDecision = &hooks.JobDecision{Job: r.GetJob(), Run: jobs.Run.ID, Skip: r.GetSkip()}
		old := *set
		set.Generation++
		edited(ctx, set, &old, map[bool]string{true: "skip job " + r.GetJob(), false: "retry job " + r.GetJob()}[r.GetSkip()])
		return true, nil
	})
	return &proto.EditResponse{}, err
}
