package engine

import (
	"fmt"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// orderHook compares the life that is to run the hook, and that it is owed still what one is told that has left.
func (d *decision) orderHook(v cache.View, a plan.OrderHook) error {
	m := v.Member(a.ID)
	if m == nil || m.Token != a.Token {
		return fmt.Errorf("order a hook of %s: its token is not %s", a.ID, a.Token)
	}
	if a.Hook != nil && a.Hook.Gone != nil {
		d.seen(v, store.IdentityKey(a.Hook.Gone.ID), store.MemberKey(a.Hook.Gone.ID))
	}
	d.putSeen(v, store.MemberKey(a.ID), a.Record(*m))
	return nil
}

// promote compares the life, what is kept of its identity, and the revision that it is to count as one of.
func promote(d *decision, v cache.View, a plan.Promote) error {
	m := v.Member(a.ID)
	if m == nil || m.Token != a.Token {
		return fmt.Errorf("promote %s to revision %s: its token is not %s", a.ID, a.Revision, a.Token)
	}
	d.seen(v, store.RevisionKey(a.ID.Ref(), a.Revision))
	if a.Changed != (spec.Sequence{}) { // the report says so
		d.seen(v, store.ReportKey(a.ID))
	}
	d.putSeen(v, store.MemberKey(a.ID), a.Record(*m))
	d.putSeen(v, store.IdentityKey(a.ID), a.Identity)
	return nil
}

// changeInPlace compares the life, its report, what is kept of its identity, the revision that it is to run, and what its node can do and has
// room for.
func changeInPlace(d *decision, v cache.View, a plan.ChangeInPlace) error {
	m := v.Member(a.ID)
	if m == nil || m.Token != a.Token || m.Goal != records.GoalRun {
		return fmt.Errorf("change %s to revision %s: its token is not %s", a.ID, a.Change.Revision, a.Token)
	}
	d.seen(v, store.RevisionKey(a.ID.Ref(), a.Change.Revision), store.ReportKey(a.ID), store.FactsKey(m.Node))
	d.putSeen(v, store.MemberKey(a.ID), a.Record(*m))
	d.putSeen(v, store.IdentityKey(a.ID), a.Identity)
	d.absent(store.RequestKey(a.ID))
	return nil
}

// forgotten compares the report of who was told, and takes the order back.
func (d *decision) forgotten(v cache.View, a plan.Forgotten) error {
	d.putSeen(v, store.IdentityKey(a.Identity.ID), a.Identity)
	if a.Token.IsZero() {
		return nil
	}
	m := v.Member(a.By)
	if m == nil || m.Token != a.Token || m.Hook == nil || m.Hook.Kind != hooks.Forget {
		return fmt.Errorf("note that %s has forgotten %s: its life %s was not told to", a.By, a.Identity.ID, a.Token)
	}
	d.seen(v, store.ReportKey(a.By))
	d.putSeen(v, store.MemberKey(a.By), (&plan.OrderHook{}).Record(*m))
	return nil
}

// putJobs compares what the life says in which the run is, and who of the set's members is there.
func putJobs(d *decision, v cache.View, a plan.PutJobs) {
	ref := a.Record.Ref
	if old := cache.JobsOf(v, ref); old != nil && old.Run != nil && old.Run.In != nil {
		d.seen(v, store.MemberKey(old.Run.In.ID), store.ReportKey(old.Run.In.ID))
	}
	d.putSeen(v, store.JobsKey(ref), a.Record)
}

// orderJob compares that the life is ready still, and writes the run and its order as one.
func orderJob(d *decision, v cache.View, a plan.OrderJob) error {
	m := v.Member(a.ID)
	if m == nil || m.Token != a.Token || m.Hook != nil {
		return fmt.Errorf("order a job in %s: its life %s cannot run it", a.ID, a.Token)
	}
	d.seen(v, store.ReportKey(a.ID))
	d.putSeen(v, store.MemberKey(a.ID), (&plan.OrderHook{Hook: a.Hook}).Record(*m))
	d.putSeen(v, store.JobsKey(a.Record.Ref), a.Record)
	return nil
}
