package control

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

var jobsYAML = strings.Replace(strings.Replace(setYAML, "apps/v1", "stead/v1", 1), "  replicas: 3\n",
	"  replicas: 3\n  jobs: [{name: grow, after: Grown, exec: {command: [grow]}}]\n", 1)

// What a user says of a job is about the run that is recorded, and said only where there is something to decide.
func TestAUserDecidesAboutTheRunOfAJobThatIsRecorded(t *testing.T) {
	r := newRig(t)
	r.running()
	r.agentRunsHooks(true)
	_, err := r.apply(jobsYAML)
	refused(t, err, codes.FailedPrecondition, "spec.jobs", "an agent that is too old to run it runs on n1")
	r.agentRunsJobs()
	r.mustApply(jobsYAML)
	decide := func(job string, skip bool) error {
		_, err := r.api.DecideJob(r.ctx, &proto.DecideJobRequest{Set: "db", Job: job, Skip: skip})
		return err
	}
	record := func(run *hooks.JobRun) {
		s, _ := r.set("db")
		r.Record(store.JobsKey(s.Ref), hooks.Jobs{Ref: s.Ref, Epoch: 1, Complete: true, Run: run})
	}
	said := func(want *hooks.JobDecision) {
		t.Helper()
		s, _ := r.set("db")
		if got := s.JobDecision; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("it is recorded that %+v was said, want %+v", got, want)
		}
	}
	done := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	id := spec.Sequence{Epoch: 1, Rev: 50}
	refused(t, decide("other", true), codes.NotFound, `has no job "other"`)
	refused(t, decide("grow", true), codes.FailedPrecondition, "there is nothing to decide")
	record(&hooks.JobRun{Job: "grow", ID: id})
	refused(t, decide("grow", true), codes.FailedPrecondition, "there is nothing to decide")
	record(&hooks.JobRun{Job: "grow", ID: id, Failures: 1})
	refused(t, decide("grow", false), codes.FailedPrecondition, "is run again by itself")
	said(nil)
	done(decide("grow", true))
	said(&hooks.JobDecision{Job: "grow", Run: id, Skip: true})
	id.Rev++
	record(&hooks.JobRun{Job: "grow", ID: id, Unknown: true})
	done(decide("grow", false))
	said(&hooks.JobDecision{Job: "grow", Run: id})
	r.mustApply(strings.Replace(jobsYAML, "replicas: 3", "replicas: 4", 1))
	said(&hooks.JobDecision{Job: "grow", Run: id})
}
