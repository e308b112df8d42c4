package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// What is said of an edit is what the planner will do: it waits, or never comes, where the
// planner waits.
func TestAnEditPromisesOnlyWhatHappens(t *testing.T) {
	const budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: all}\nspec: {minAvailable: 100%, selector: {matchLabels: {app: db}}}\n"
	with := func(manifest, line string) string {
		return strings.Replace(strings.Replace(manifest, "apps/v1", "stead/v1", 1), "replicas: 3", "replicas: 3\n  "+line, 1)
	}
	scaled := func(n string) string { return strings.Replace(setYAML, "replicas: 3", "replicas: "+n, 1) }
	down := func(r *rig) {
		r.lives(1, func(*records.Member) {}, &records.Report{Phase: records.PhaseRunning, Session: 1})
	}
	const held = "does not restart db-2, db-1, db-0: the disruption floor"
	const unready = "waits for db-1: it is running, but not ready"
	for name, c := range map[string]struct {
		manifest string
		prepare  func(*rig)
		want     []string
	}{
		"a floor that leaves no room":           {with(newImage, "disruption: {minAvailable: 3}"), nil, []string{held + " keeps 3 of 3 members available"}},
		"a budget that leaves no room":          {newImage + "---\n" + budget, nil, []string{held + " (PodDisruptionBudget all) keeps 3 of 3 members available"}},
		"an update while a member is not ready": {newImage, down, []string{unready + "; it still runs revision", "then restarts db-2, db-1, db-0 in this order, at most 1 down"}},
		"fewer members while one is not ready":  {scaled("2"), down, []string{unready, "then scales db 3 → 2: stops db-2"}},
		"more members while one is not ready":   {scaled("4"), down, []string{unready, "then scales db 3 → 4: creates db-3"}},
		"a floor above the budget": {with(newImage, "disruption: {minAvailable: 2}\n  updateStrategy: {rollingUpdate: {maxUnavailable: 3}}"), nil,
			[]string{"restarts db-2, db-1, db-0 in this order, at most 1 down: the disruption floor keeps 2 of 3 members available"}},
		"a budget above the number of members": {with(newImage, "updateStrategy: {rollingUpdate: {maxUnavailable: 7}}"), nil,
			[]string{"restarts db-2, db-1, db-0 in this order, at most 3 down"}},
		"no node": {scaled("4"), func(r *rig) { r.nodeless = true }, []string{
			"does not bring back db-0, db-1, db-2: node n1 is unreachable", "does not start db-3: it waits for the others"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.running()
			if c.prepare != nil {
				c.prepare(r)
			}
			out, err := r.apply(c.manifest)
			if err != nil {
				t.Fatal(err)
			}
			applied := out.GetApplied()
			got := applied[len(applied)-1].GetEffects() // of the set
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A deletion stops also a member that had begun to stop, and says what becomes of all volumes.
func TestADeletionTellsOfAMemberThatHadBegunToStop(t *testing.T) {
	r := newRig(t)
	r.running()
	r.disks()
	r.lives(2, func(m *records.Member) { m.Goal = records.GoalStop }, &records.Report{Phase: records.PhaseStopping, Session: 1})
	out, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db"})
	want := []string{"stops db-2, db-1, db-0 in this order", "keeps the volumes data-db-0, data-db-1, data-db-2; a set of the same name takes them back"}
	if err != nil || !slices.Equal(out.GetEffects(), want) {
		t.Errorf("got %q, %v; want %q", out.GetEffects(), err, want)
	}
}

// A set too large to be followed to its end says so, in time.
func TestALargeSetIsForetoldInTime(t *testing.T) {
	r := newRig(t)
	r.mustApply(strings.Replace(setYAML, "replicas: 3", "replicas: 1000", 1))
	s, _ := r.set("db")
	h := spec.HashTemplate(s.Template())
	var ops []store.Op
	for n := range 1000 {
		id := spec.Identity{Namespace: "default", Set: "db", Ordinal: n}
		token := spec.Token{Epoch: 1, Number: 9}
		ops = append(ops,
			store.Put(store.MemberKey(id), store.Encode(records.Member{ID: id, Token: token, Goal: records.GoalRun, Revision: h, Node: "n1", NodeUID: "uid1", Boot: "b1"})),
			store.Put(store.IdentityKey(id), store.Encode(records.IdentityRecord{ID: id, LastToken: token, Due: h, AvailableOn: h, ReadyToken: token})),
			store.Put(store.ReportKey(id), store.Encode(records.Report{ID: id, Token: token, Node: "n1", Session: 1, Phase: records.PhaseRunning, Ready: true, ReadyFor: time.Hour})))
	}
	for part := range slices.Chunk(ops, store.MaxOps) {
		rev, err := r.Store.Commit(r.ctx, store.Txn{Then: part})
		if err == nil {
			err = r.Cache.Wait(r.ctx, rev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := r.api.Restart(r.ctx, &proto.RestartRequest{Set: "db"})
	want := []string{"restarts db-999, db-998, db-997, db-996, db-995, db-994, db-993, db-992, db-991, db-990 and ", "the set is large"}
	if err != nil || !slices.EqualFunc(out.GetEffects(), want, strings.HasPrefix) {
		t.Errorf("got %q, %v; want %q", out.GetEffects(), err, want)
	}
}
