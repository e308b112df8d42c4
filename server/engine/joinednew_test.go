package engine

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// SAFETY S7: starts that are joined with a new revision end the records of their own identities alone; the report of
// another member is stored with them.
func TestAReportIsStoredBesideStartsOfANewRevision(t *testing.T) {
	d := started(t, 2)
	if got := d.join(d.says(0, records.PhaseRunning)); got[0] == 0 {
		t.Fatalf("stored at %v", got)
	}
	d.cache.Look(func(v cache.View) {
		set := *v.Set(db)
		set.Generation++
		set.Spec.Template.Spec.Containers = []spec.Container{{Name: "c", Image: "i:2"}}
		d.commit(store.Put(store.SetKey(db), store.Encode(set)))
	})
	d.follow()
	got := d.join(d.says(0, records.PhaseFailed), d.says(1, records.PhaseRunning))
	if got[0] == 0 || got[1] != got[0] {
		t.Fatalf("stored at %v", got)
	}
	for key, want := range map[string]store.Rev{
		store.MemberKey(member(0)): got[0], store.ReportKey(member(0)): 0, store.ReportKey(member(1)): got[0],
	} {
		if at := d.at(key); at != want {
			t.Errorf("%s is at revision %d, want %d", key, at, want)
		}
	}
	_, revisions, err := d.mirror.mem.Snapshot(t.Context(), store.KindRevision+"/")
	if err != nil || len(revisions) != 2 {
		t.Errorf("there are %d revisions, want 2: the starts were not joined with a new one (%v)", len(revisions), err)
	}
}

// A Parallel set has no status before it was evaluated once.
func TestReportsOfAParallelSetWithoutAStatusAreTaken(t *testing.T) {
	d := started(t, 1)
	d.cache.Look(func(v cache.View) {
		set := *v.Set(db)
		n := int32(2)
		set.Spec.PodManagementPolicy, set.Spec.Replicas = spec.Parallel, &n
		d.commit(store.Put(store.SetKey(db), store.Encode(set)), store.Del(store.StatusKey(db)))
	})
	d.follow()
	if got := d.join(d.says(0, records.PhaseRunning)); got[0] == 0 || d.at(store.MemberKey(member(1))) != got[0] {
		t.Errorf("stored at %v, the next member starts at %d", got, d.at(store.MemberKey(member(1))))
	}
}
