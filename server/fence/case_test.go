package fence

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// What a fencing device is asked about are the lives of this machine that are not over.
func TestACaseNamesTheLivesOfTheMachineThatAreNotOver(t *testing.T) {
	r := newRig(t)
	putSilentNode(r)
	r.Record(store.MemberKey(ident(3)), testMember(3, 13, "n1", "uid1")) // of which only the life before has said anything
	r.Record(store.ReportKey(ident(3)), records.Report{ID: ident(3), Token: token(9), Phase: records.PhaseStopped, Seq: 40,
		Containers: []records.ContainerReport{{Name: "of the life before"}}})
	r.Record(store.MemberKey(ident(4)), testMember(4, 14, "n1", "uid1"))
	r.Put(store.MemberKey(ident(4)), []byte("{damaged"))
	c, err := Open(t.Context(), r.Store, r.Cache, "n1")
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.LifeID{{ID: ident(0), Token: token(10)}, {ID: ident(3), Token: token(13)}}
	if !slices.Equal(c.Lives, want) || c.UID != "uid1" || c.Facts.Boot != "b1" {
		t.Errorf("the case is %+v; want the lives %v", c, want)
	}
	if _, err := c.Close(t.Context(), r.Store, r.Cache, "ann"); err != nil {
		t.Fatal(err)
	}
	if got := saidOf(r, 3); got.Token != token(13) || got.Phase != records.PhaseStopped || got.Seq != 0 || len(got.Containers) > 0 {
		t.Errorf("db-3 is told as %+v; want nothing of the life before", got)
	}
	if got := saidOf(r, 0); got.Seq != 7 {
		t.Errorf("db-0 is told as %+v; want it after its own last word", got)
	}
}

// The word that a node was off is about what was found when the case was opened.
func TestACaseProvesNothingOfWhatBeganSinceItWasOpened(t *testing.T) {
	facts := records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b2", Epoch: 1}
	for name, c := range map[string]struct {
		meanwhile func(*rig)
		code      codes.Code
	}{
		"the node said hello, and is silent again": {func(r *rig) { r.Record(store.FactsKey("n1"), facts) }, codes.Aborted},
		"another machine has the name":             {func(r *rig) { r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid2"}) }, codes.Aborted},
		"the store was restored":                   {func(r *rig) { r.Put(store.EpochKey, []byte("2")) }, codes.Aborted},
		"the node is back": {func(r *rig) {
			r.Record(store.SessionKey("n1"), records.Session{Node: "n1", UID: "uid1", Boot: "b2", ID: 5})
		}, codes.FailedPrecondition},
		"the life is forgotten": {func(r *rig) { r.Commit(store.Del(store.MemberKey(ident(0)))) }, codes.OK},
		"the member has a new life there": {func(r *rig) {
			r.Record(store.MemberKey(ident(0)), testMember(0, 99, "n1", "uid1"))
		}, codes.OK},
		"the life is another machine's": {func(r *rig) {
			r.Record(store.MemberKey(ident(0)), testMember(0, 10, "n1", "uid2"))
		}, codes.OK},
		"the life is another node's": {func(r *rig) {
			r.Record(store.MemberKey(ident(0)), testMember(0, 10, "n2", "uid1"))
		}, codes.OK},
		"the life said itself that it is over": {func(r *rig) {
			r.Record(store.ReportKey(ident(0)), records.Report{ID: ident(0), Token: token(10), Phase: records.PhaseStopped, Seq: 9})
		}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			putSilentNode(r)
			opened, err := Open(t.Context(), r.Store, r.Cache, "n1")
			if err != nil || len(opened.Lives) != 1 {
				t.Fatalf("got %+v, %v", opened, err)
			}
			c.meanwhile(r)
			f, err := opened.Close(t.Context(), r.Store, r.Cache, "ann")
			if status.Code(err) != c.code || f != nil && len(f.Lives) > 0 {
				t.Errorf("got %+v, %v; want %v", f, err, c.code)
			}
			if got := saidOf(r, 0); got.Cause == causes.Fenced {
				t.Errorf("db-0 counts as over: %+v", got)
			}
		})
	}
}

// A fence and a removal read and write in a few steps; one that fails is told as such, and may
// be repeated.
func TestAFenceOrARemovalThatFailsHalfwayIsRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*rig)
		do      func(*rig, store.Store) error
		done    func(*rig) bool
	}{
		"fence": {
			putSilentNode,
			func(r *rig, s store.Store) error {
				_, err := Node(t.Context(), s, r.Cache, "n1", "ann")
				return err
			},
			func(r *rig) bool { return saidOf(r, 0).Cause == causes.Fenced },
		},
		"remove": {
			func(r *rig) {
				r.Record(store.NodeKey("n1"), records.Node{Name: "n1", UID: "uid1"})
				r.Record(store.VolumeReportKey(ident(9), "data", "v1"), records.VolumeReport{ID: ident(9), Claim: "data", Volume: "v1", Node: "n1", State: records.VolumeTrashed})
			},
			func(r *rig, s store.Store) error { return RemoveNode(t.Context(), s, r.Cache, "n1") },
			func(r *rig) bool {
				_, node := r.Get(store.NodeKey("n1"))
				_, trash := r.Get(store.VolumeReportKey(ident(9), "data", "v1"))
				return !node && !trash
			},
		},
	} {
		at := 1
		for ; at < 100; at++ {
			r := newRig(t)
			c.prepare(r)
			r.FailAt(at)
			err := c.do(r, r.Store)
			if err == nil {
				break
			}
			if status.Code(err) != codes.Unavailable || c.done(r) {
				t.Errorf("%s: step %d failed: got %v, and it is done: %v", name, at, err, c.done(r))
			}
			if err := c.do(r, r.Store); err != nil || !c.done(r) {
				t.Errorf("%s: step %d had failed, and it was repeated: %v, done: %v", name, at, err, c.done(r))
			}
		}
		if at < 4 || at == 100 {
			t.Errorf("%s has %d steps; want reads and writes", name, at-1)
		}
	}
}
