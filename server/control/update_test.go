package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// running stores three lives of the set db on its template's revision.
func (r *rig) running() {
	r.t.Helper()
	r.mustApply(setYAML)
	s, _ := r.set("db")
	h := spec.HashTemplate(s.Template())
	r.record(store.RevisionKey(s.Ref, h), spec.Revision{Ref: s.Ref, Hash: h, Number: 1, Template: s.Template()})
	r.record(store.StatusKey(s.Ref), spec.SetStatus{CurrentRevision: h, CurrentCompleted: true, UpdateRevision: h})
	for n := range 3 {
		id := spec.Identity{Namespace: "default", Set: "db", Ordinal: n}
		r.record(store.MemberKey(id), spec.Member{ID: id, Token: spec.Token{Epoch: 1, Number: 9}, Goal: spec.GoalRun, Revision: h, Node: "n1"})
	}
}

var newImage = strings.Replace(setYAML, "db:1", "db:2", 1)

func TestApplySaysWhomAnUpdateRestarts(t *testing.T) {
	with := func(manifest, strategy string) string {
		return strings.Replace(manifest, "replicas: 3", "replicas: 3\n  updateStrategy: "+strategy, 1)
	}
	for name, c := range map[string]struct {
		manifest string
		want     []string
	}{
		"an image":               {newImage, []string{"restarts db-2, db-1, db-0 in this order, at most 1 down"}},
		"two at once":            {with(newImage, "{rollingUpdate: {maxUnavailable: 70%}}"), []string{"restarts db-2, db-1, db-0 in this order, at most 2 down"}},
		"a part":                 {with(newImage, "{rollingUpdate: {partition: 2}}"), []string{"restarts db-2", "the partition keeps db-1, db-0 as they are"}},
		"the strategy alone":     {with(setYAML, "{rollingUpdate: {partition: 1}}"), nil},
		"only who will be there": {strings.Replace(newImage, "replicas: 3", "replicas: 1", 1), []string{"scales db 3 → 1: stops db-2, db-1 in this order; volumes kept", "restarts db-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.running()
			out, err := r.apply(c.manifest)
			if err != nil {
				t.Fatal(err)
			}
			if got := out.GetApplied()[0].GetEffects(); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestATemplateThatSharesItsHashWithAnotherIsRefused(t *testing.T) {
	r := newRig(t)
	r.running()
	s, _ := r.set("db")
	next := s.Spec.Template
	next.Spec.Containers = slices.Clone(next.Spec.Containers)
	next.Spec.Containers[0].Image = "example.local/db:2"
	h := spec.HashTemplate(next)
	r.record(store.RevisionKey(s.Ref, h), spec.Revision{Ref: s.Ref, Hash: h, Number: 2, Template: s.Template()})
	_, err := r.apply(newImage)
	refused(t, err, codes.FailedPrecondition, "same hash", "revision 2")
}
