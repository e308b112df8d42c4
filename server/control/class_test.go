package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// classYAML is setYAML with a storage class.
func classYAML(class string) string {
	return strings.Replace(setYAML, "accessModes:", "storageClassName: "+class+", accessModes:", 1)
}

func (r *rig) node(name spec.NodeName, classes ...string) {
	r.t.Helper()
	r.Record(store.NodeKey(name), records.Node{Name: name, UID: "u-" + spec.UID(name)})
	r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: "u-" + spec.UID(name), Classes: classes})
}

func TestAStorageClassThatNoNodeHasIsRefusedNamingThoseKnown(t *testing.T) {
	r := newRig(t)
	r.node("n1", "local", "ssd")
	r.node("n2") // says nothing of classes
	_, err := r.apply(classYAML("gold"))
	refused(t, err, codes.FailedPrecondition, "a.yaml:17:12: spec.volumeClaimTemplates[0].spec.storageClassName",
		`no node has a storage class "gold"`, "write one of local, ssd,", "--storage-class", "--map-class")
	if _, there := r.set("db"); there {
		t.Fatal("a refused set was written")
	}
	r.mustApply(classYAML("ssd"))
	if s, _ := r.set("db"); s.Spec.VolumeClaimTemplates[0].Spec.Class() != "ssd" {
		t.Fatalf("got %+v", s.Spec.VolumeClaimTemplates[0].Spec)
	}
	// Whatever became of the nodes, a set that is there can be changed.
	r.node("n1", "local")
	if got := r.mustApply(strings.Replace(classYAML("ssd"), "replicas: 3", "replicas: 4", 1)); got[0] != "set db configured" {
		t.Fatalf("got %v", got)
	}
}

func TestBeforeAnyNodeConnectedAnyStorageClassIsTaken(t *testing.T) {
	r := newRig(t)
	if got := r.mustApply(classYAML("gold")); got[0] != "set db created" {
		t.Fatalf("got %v", got)
	}
}

func TestAMappedStorageClassIsThatOfTheNodes(t *testing.T) {
	r := newRig(t)
	r.node("n1", "local", "ssd")
	for range 2 { // again: no change
		out, err := r.apply(classYAML("gp3"))
		if err != nil {
			t.Fatal(err)
		}
		want := "set default/db: claim data: storage class gp3 is ssd here (--map-class)"
		if w := out.GetWarnings(); !slices.Contains(w, want) {
			t.Fatalf("got warnings %q, want %q", w, want)
		}
	}
	s, _ := r.set("db")
	if got := s.Spec.VolumeClaimTemplates[0].Spec.Class(); got != "ssd" || s.Generation != 1 {
		t.Fatalf("got class %s, generation %d", got, s.Generation)
	}
}
