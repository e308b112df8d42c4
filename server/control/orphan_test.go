package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// orphan lets go of the set db, as alice.
func (r *rig) orphan() []string {
	r.t.Helper()
	out, err := r.api.Delete(r.as("alice"), &proto.DeleteRequest{Kind: "set", Name: "db", Cascade: "orphan"})
	if err != nil {
		r.t.Fatal(err)
	}
	return out.GetEffects()
}

// lives changes the life of db-n, and stores its report (nil: none).
func (r *rig) lives(n int, change func(*records.Member), report *records.Report) {
	r.t.Helper()
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: n}
	s, _ := r.set("db")
	m := records.Member{ID: id, Token: spec.Token{Epoch: 1, Number: 9}, Goal: records.GoalRun, Revision: spec.HashTemplate(s.Template()), Node: "n1", NodeUID: "uid1", Boot: "b1"}
	change(&m)
	r.Record(store.MemberKey(id), m)
	if report != nil {
		report.ID, report.Token = id, m.Token
		r.Record(store.ReportKey(id), *report)
	}
}

func TestASetIsOrphanedAndAdoptedUnderItsUID(t *testing.T) {
	r := newRig(t)
	r.running()
	r.lives(2, func(m *records.Member) { m.Goal = records.GoalStop }, nil)
	r.lives(1, func(*records.Member) {}, &records.Report{Phase: records.PhaseStopped})
	want := []string{
		"leaves db-0 running; they are not replaced, updated, scaled or stopped", "still stops db-2, as requested before; ended members are not replaced",
		"names, addresses and volumes stay; applying the set again adopts them",
	}
	if got := r.orphan(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	s, _ := r.set("db")
	if last := s.Edits[len(s.Edits)-1]; !s.Orphaned || s.Generation != 1 || editText(last) != "orphan (alice)" || last.Generation != 1 {
		t.Fatalf("got %+v; want it orphaned by alice, of the generation it was", s)
	}
	got, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: "set", Name: "db"})
	if err != nil || !strings.Contains(string(got.GetJson()), `"orphaned":true`) {
		t.Fatalf("got %s, %v; want that it says so", got.GetJson(), err)
	}
	before := r.rev()
	r.orphan()
	if r.rev() != before {
		t.Fatal("orphaning what is orphaned wrote something")
	}

	dry, err := r.api.Apply(r.ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a", Content: []byte(setYAML)}}, DryRun: true})
	if err != nil || r.rev() != before {
		t.Fatalf("%v; want nothing written", err)
	}
	out, err := r.apply(setYAML)
	if err != nil {
		t.Fatal(err)
	}
	want = []string{"adopts db-0", "starts db-1, db-2 again", "waits for db-2, which was requested to stop before"}
	for _, a := range []*proto.Applied{dry.GetApplied()[0], out.GetApplied()[0]} {
		if a.GetOutcome() != adopted || !slices.Equal(a.GetEffects(), want) {
			t.Fatalf("got %s %q; want it adopted, %q", a.GetOutcome(), a.GetEffects(), want)
		}
	}
	now, _ := r.set("db")
	if now.Orphaned || now.Generation != 2 || now.UID != s.UID || now.InitialReplicas != s.InitialReplicas || now.Edits[len(now.Edits)-1].Verb != "adopt" {
		t.Fatalf("got %+v; want the set of before, in its second generation", now)
	}
	if got := r.mustApply(setYAML); !slices.Equal(got, []string{"set db unchanged"}) {
		t.Fatalf("got %v", got)
	}
}

func TestAdoptionSaysWhatItDoes(t *testing.T) {
	for name, c := range map[string]struct {
		manifest string
		prepare  func(*rig)
		want     []string
	}{
		"another image":  {newImage, nil, []string{"adopts db-0, db-1, db-2", "restarts db-2, db-1, db-0 in this order, at most 1 down"}},
		"another policy": {strings.Replace(setYAML, "replicas: 3", "replicas: 3\n  podManagementPolicy: Parallel", 1), nil, []string{"adopts db-0, db-1, db-2"}},
		"fewer members": {strings.Replace(setYAML, "replicas: 3", "replicas: 1", 1), (*rig).disks,
			[]string{"adopts db-0", "stops db-2, db-1 in this order; volumes kept"}},
		"other ordinals": {strings.Replace(strings.Replace(setYAML, "replicas: 3", "replicas: 2\n  ordinals: {start: 7}", 1), "apps/v1", "stead/v1", 1), (*rig).disks,
			[]string{"adopts no member: none runs", "creates db-7, db-8 in this order", "stops db-2, db-1, db-0 in this order; volumes kept"}},
		"a smaller claim": {strings.Replace(setYAML, "1Gi", "1Mi", 1), nil,
			[]string{"adopts db-0, db-1, db-2", "the volumes of the claim data keep their size; new ones have 1Mi"}},
		"a larger claim": {strings.Replace(setYAML, "1Gi", "2Gi", 1), nil,
			[]string{"adopts db-0, db-1, db-2", "grows the volumes of the claim data from 1Gi to 2Gi"}},
		"without the claim": {setYAML[:strings.Index(setYAML, "  volumeClaim")], nil,
			[]string{"adopts db-0, db-1, db-2", "the claim data is removed; its volumes stay, unused"}},
		"a restart that was asked for": {setYAML, func(r *rig) {
			id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
			r.Record(store.RequestKey(id), records.Request{ID: id, Token: spec.Token{Epoch: 1, Number: 9}})
		}, []string{"adopts db-0, db-1, db-2", "restarts db-1, as a person asked before"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.running()
			if c.prepare != nil {
				c.prepare(r)
			}
			r.orphan()
			out, err := r.apply(c.manifest)
			if err != nil {
				t.Fatal(err)
			}
			if a := out.GetApplied()[0]; a.GetOutcome() != adopted || !slices.Equal(a.GetEffects(), c.want) {
				t.Errorf("got %s %q, want %q", a.GetOutcome(), a.GetEffects(), c.want)
			}
		})
	}
}

// What a set must not change is refused at its adoption, too, where members or volumes
// that are there would not suit it; and nothing is written.
func TestAnAdoptionThatDoesNotSuitIsRefusedWhole(t *testing.T) {
	const mounted = "        volumeMounts: [{name: data, mountPath: /d}]\n"
	withMount := strings.Replace(setYAML, "        ports:", mounted+"        ports:", 1)
	other := strings.NewReplacer("{app: db}", "{app: x}")
	for name, c := range map[string]struct {
		first, next string
		want        []string
	}{
		"the selector": {setYAML, other.Replace(setYAML),
			[]string{"a.yaml:7:", "spec.selector: does not select db-0, whose revision", "has the labels app=db"}},
		"the service": {setYAML, strings.Replace(setYAML, "replicas: 3", "replicas: 3\n  serviceName: x", 1),
			[]string{"a.yaml:7:", `spec.serviceName: must not change from "db" to "x"`}},
		"the class of a volume": {setYAML, strings.Replace(setYAML, "accessModes", "storageClassName: ssd, accessModes", 1),
			[]string{"a.yaml:17:", `storageClassName: is "ssd", but the volume of db-1 is of class "local"`, "write local"}},
		"a claim that is mounted": {withMount, strings.Replace(withMount[:strings.Index(withMount, "  volumeClaim")], mounted, "", 1),
			[]string{`spec.volumeClaimTemplates: the claim "data" must not go: db-0 mounts it on revision`, "keep it until"}},
		"the manifest of another set": {setYAML, strings.Replace(setYAML, "{name: db}", "{name: db, uid: abc}", 1),
			[]string{"a.yaml:4:", "metadata.uid: is abc, but the orphaned set default/db has", "remove metadata.uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.mustApply(c.first)
			s, _ := r.set("db")
			h := spec.HashTemplate(s.Template())
			r.Record(store.RevisionKey(s.Ref, h), records.Revision{Ref: s.Ref, Hash: h, Number: 1, Template: s.Template()})
			r.lives(0, func(*records.Member) {}, nil)
			id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
			r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v1", Number: 1, Class: "local", SizeBytes: 1 << 30, Fate: records.FateKeep})
			r.orphan()
			before := r.rev()
			_, err := r.apply(filesYAML, c.next)
			refused(t, err, codes.FailedPrecondition, c.want...)
			if r.rev() != before {
				t.Fatal("something was written")
			}
		})
	}
}

func TestAVolumeThatIsBeingGivenUpHoldsNoClass(t *testing.T) {
	r := newRig(t)
	r.running()
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 5}
	r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v1", Class: "local", Fate: records.FateReclaiming})
	r.orphan()
	if got := r.mustApply(strings.Replace(setYAML, "accessModes", "storageClassName: ssd, accessModes", 1)); !slices.Equal(got, []string{"set db adopted"}) {
		t.Fatalf("got %v", got)
	}
}

func TestAClaimThatComesBackHasTheClassOfItsVolumes(t *testing.T) {
	r := newRig(t)
	r.running()
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 0}
	r.Record(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: "v1", Class: "local", SizeBytes: 1 << 30, Fate: records.FateKeep})
	r.orphan()
	r.mustApply(setYAML[:strings.Index(setYAML, "  volumeClaim")])
	_, err := r.apply(strings.Replace(setYAML, "accessModes", "storageClassName: ssd, accessModes", 1))
	refused(t, err, codes.FailedPrecondition, "a.yaml:17:", `is "ssd", but the volume of db-0 is of class "local"`)
	if got := r.mustApply(setYAML); !slices.Equal(got, []string{"set db configured"}) {
		t.Fatalf("got %v", got)
	}
}

// Whoever is due an older revision begins with it, though nobody runs it now.
func TestAClaimStaysWhileADueRevisionMountsIt(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	s, _ := r.set("db")
	mounts := spec.Clone(s.Template())
	mounts.Spec.Containers[0].VolumeMounts = []spec.VolumeMount{{Name: "data", MountPath: "/d"}}
	r.Record(store.RevisionKey(s.Ref, "old"), records.Revision{Ref: s.Ref, Hash: "old", Number: 1, Template: mounts})
	r.orphan()
	without := setYAML[:strings.Index(setYAML, "  volumeClaim")]
	id := spec.Identity{Namespace: "default", Set: "db", Ordinal: 1}
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id, Due: "old"})
	_, err := r.apply(without)
	refused(t, err, codes.FailedPrecondition, "db-1 mounts it on revision old")
	r.Record(store.IdentityKey(id), records.IdentityRecord{ID: id})
	r.Record(store.StatusKey(s.Ref), records.SetStatus{CurrentRevision: "old"})
	_, err = r.apply(without)
	refused(t, err, codes.FailedPrecondition, "the current revision mounts it on revision old")
	r.Record(store.StatusKey(s.Ref), records.SetStatus{})
	if got := r.mustApply(without); !slices.Equal(got, []string{"set db adopted"}) {
		t.Fatalf("got %v", got)
	}
	_, err = r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db", ToRevision: 1})
	refused(t, err, codes.FailedPrecondition, `revision 1 mounts "data"`, "any more")
}

func TestAnOrphanedSetIsNotEditedAndSaysWhatToDo(t *testing.T) {
	r := newRig(t)
	r.running()
	r.orphan()
	before := r.rev()
	for name, call := range map[string]func() error{
		"scale":  func() error { _, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 5}); return err },
		"pause":  func() error { _, err := r.api.Pause(r.ctx, &proto.PauseRequest{Name: "db", Paused: true}); return err },
		"undo":   func() error { _, err := r.api.Undo(r.ctx, &proto.UndoRequest{Name: "db"}); return err },
		"all":    func() error { _, err := r.api.Restart(r.ctx, &proto.RestartRequest{Set: "db"}); return err },
		"member": func() error { _, err := r.api.Restart(r.ctx, &proto.RestartRequest{Member: "db-0"}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, call(), codes.FailedPrecondition, "is orphaned", "apply it again to adopt its members, or delete it")
		})
	}
	if r.rev() != before {
		t.Fatal("something was written")
	}
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db", Cascade: "foreground"}); err != nil {
		t.Fatal(err)
	}
	if s, _ := r.set("db"); !s.Deleting || s.Orphaned {
		t.Fatalf("got %+v, want it deleted as any other", s)
	}
	_, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db", Cascade: "orphan"})
	refused(t, err, codes.FailedPrecondition, "is being deleted", "cannot be orphaned any more")
}

func TestOnlyWhatCanBeIsCascaded(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML, filesYAML)
	_, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "set", Name: "db", Cascade: "none"})
	refused(t, err, codes.InvalidArgument, `cascade: invalid value "none"; use background, foreground or orphan`)
	_, err = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "configmap", Name: "conf", Cascade: "orphan"})
	refused(t, err, codes.InvalidArgument, "cascade: orphan is for sets; a configmap has no members")
	if _, err = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: "configmap", Name: "conf", Cascade: "background"}); err != nil {
		t.Fatal(err)
	}
	if s, _ := r.set("db"); s.Deleting || s.Orphaned {
		t.Fatalf("got %+v, want it left alone", s)
	}
}

// between has other people act once, after a call has read the set db and before it
// writes key.
func (r *rig) between(key string, act func() error) {
	first := true
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && first && c.Txn.Then[0].Key == key {
			first = false
			if err := act(); err != nil {
				return memstore.Fault{Err: fmt.Errorf("the other's: %w", err)}
			}
		}
		return memstore.Fault{}
	})
}

func TestOfTwoAtOnceTheLoserIsToldWhatChanged(t *testing.T) {
	remove := func(r *rig, cascade string) error {
		_, err := r.api.Delete(r.as("alice"), &proto.DeleteRequest{Kind: "set", Name: "db", Cascade: cascade})
		return err
	}
	scale := func(r *rig) error {
		_, err := r.api.Scale(r.as("bob"), &proto.ScaleRequest{Name: "db", Replicas: 5})
		return err
	}
	t.Run("apply against orphan", func(t *testing.T) {
		r := newRig(t)
		r.running()
		r.between("sets/default/db", func() error { return remove(r, "orphan") })
		_, err := r.apply(newImage)
		refused(t, err, codes.Aborted, "changed meanwhile: set default/db by orphan (alice)")
	})
	t.Run("apply against delete", func(t *testing.T) {
		r := newRig(t)
		r.running()
		r.between("sets/default/db", func() error { return remove(r, "") })
		_, err := r.apply(newImage)
		refused(t, err, codes.Aborted, "changed meanwhile: set default/db by delete (alice)")
	})
	t.Run("adoption against delete", func(t *testing.T) {
		r := newRig(t)
		r.running()
		r.orphan()
		r.between("sets/default/db", func() error { return remove(r, "") })
		_, err := r.apply(setYAML)
		refused(t, err, codes.Aborted, "changed meanwhile: set default/db by delete (alice)")
		if s, _ := r.set("db"); !s.Deleting {
			t.Fatal("the deletion is lost")
		}
	})
	t.Run("scale against orphan", func(t *testing.T) {
		r := newRig(t)
		r.running()
		r.between("sets/default/db", func() error { return remove(r, "orphan") })
		refused(t, scale(r), codes.FailedPrecondition, "is orphaned")
	})
	t.Run("restart against orphan", func(t *testing.T) {
		r := newRig(t)
		r.running()
		r.between("requests/default/db/0", func() error { return remove(r, "orphan") })
		_, err := r.api.Restart(r.ctx, &proto.RestartRequest{Member: "db-0"})
		refused(t, err, codes.Aborted, "changed meanwhile")
	})
	t.Run("orphan against scale", func(t *testing.T) {
		r := newRig(t)
		r.running()
		r.between("sets/default/db", func() error { return scale(r) })
		r.orphan()
		if s, _ := r.set("db"); !s.Orphaned || s.Replicas() != 5 {
			t.Fatalf("got %+v; want both", s)
		}
	})
	t.Run("orphan against delete", func(t *testing.T) {
		r := newRig(t)
		r.running()
		r.between("sets/default/db", func() error { return remove(r, "") })
		refused(t, remove(r, "orphan"), codes.FailedPrecondition, "is being deleted")
	})
	t.Run("a file read before the orphaning adopts", func(t *testing.T) {
		r := newRig(t)
		r.running()
		s, _ := r.set("db")
		read := func(generation int) string {
			return strings.Replace(setYAML, "{name: db}", fmt.Sprintf("{name: db, generation: %d, uid: %s}", generation, s.UID), 1)
		}
		if err := scale(r); err != nil {
			t.Fatal(err)
		}
		r.orphan()
		_, err := r.apply(read(1))
		refused(t, err, codes.FailedPrecondition, "changed since by scale (bob): spec.replicas 3 → 5")
		if got := r.mustApply(read(2)); !slices.Equal(got, []string{"set db adopted"}) {
			t.Fatalf("got %v", got)
		}
	})
}
