package dispatch

import (
	"testing"

	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// An agent of any version is sent one template for one life: that which the member runs. Nothing tells it of others.
func TestANodeIsSentWhatItsMemberRuns(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.live(1, 11, "n1", "uid1")
	one := []spec.OrdinalSpan{{First: 1, Last: 1}}
	differs := spec.Differences{{Ordinals: one, Args: []string{"--witness"}, Env: []spec.EnvVar{
		{Name: "KEY", ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "own", Key: "k"}}}}}}
	r.Record(store.RevisionKey(refDB, "r1"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r1", Number: 1, Template: testTemplate(), Members: differs})
	h := r.hand(n1)
	now := h.tells()
	lives := decoded[records.Life](t, now.wanted.GetLivesJson())
	if len(lives) != 2 || len(lives[0].Template.Spec.Containers[0].Args) != 0 || len(lives[0].Template.Spec.Containers[0].Env) != 0 {
		t.Fatalf("db-0 is %+v", lives)
	}
	if c := lives[1].Template.Spec.Containers[0]; len(c.Args) != 1 || c.Args[0] != "--witness" || len(c.Env) != 1 {
		t.Errorf("db-1 runs %+v", c)
	}
	named := map[string]bool{}
	for _, f := range decoded[records.Files](t, now.files.GetFilesJson()) {
		named[f.Name] = true
	}
	if !named["own"] || !named["pass"] {
		t.Errorf("the files sent are %v", named)
	}
}

// A life that counts as one of a later revision, by which it runs the same, reads what it began with.
func TestALifeReadsTheRevisionThatItBeganWith(t *testing.T) {
	r := newStill(t)
	r.begin()
	m := testMember(0, 10, "n1", "uid1")
	m.Revision, m.Began = "r2", "r1"
	r.Record(store.MemberKey(m.ID), m)
	r.Record(store.RevisionKey(refDB, "r2"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r2", Number: 2, Template: testTemplate(),
		Members: spec.Differences{{Ordinals: []spec.OrdinalSpan{{First: 1, Last: 1}}, Args: []string{"x"}}}})
	lives := r.hand(n1).lives()
	if len(lives) != 1 || lives[0].Member.Revision != "r1" || lives[0].Member.Began != "" {
		t.Errorf("it is sent as %+v", lives)
	}
}

// From the order of a change in place on the template is that which the life is to run; an agent that does not know such orders is sent what the
// life runs.
func TestANodeIsSentWhatItsMemberIsChangedTo(t *testing.T) {
	for level, want := range map[int]string{2: "x", spec.Level: "y"} {
		r := newStill(t)
		r.begin()
		m := testMember(0, 10, "n1", "uid1")
		m.Change = &inplace.ChangeOrder{ID: spec.Sequence{Epoch: 1, Rev: 9}, Revision: "r2"}
		next := testTemplate()
		next.Spec.Containers[0].Image = "y"
		r.Record(store.RevisionKey(refDB, "r2"), records.Revision{Ref: refDB, SetUID: "u1", Hash: "r2", Number: 2, Template: next})
		r.Record(store.MemberKey(m.ID), m)
		h := r.hand(n1)
		r.Record(store.FactsKey("n1"), records.NodeFacts{Name: "n1", UID: "uid1", Level: level})
		lives := h.lives()
		if len(lives) != 1 || lives[0].Template.Spec.Containers[0].Image != want || lives[0].Member.Change == nil || lives[0].Member.Revision != "r1" {
			t.Errorf("an agent of level %d is sent %+v", level, lives)
		}
	}
}

func decoded[T any](t *testing.T, docs [][]byte) []T {
	t.Helper()
	out, err := wire.ToDocuments[T](docs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
