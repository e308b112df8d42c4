package control

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// as is the context of a call for a user.
func (r *rig) as(user string) context.Context {
	return metadata.AppendToOutgoingContext(r.ctx, proto.UserKey, user)
}

func TestASetRemembersWhoChangedWhat(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	if _, err := r.api.Scale(r.as("alice"), &proto.ScaleRequest{Name: "db", Replicas: 5}); err != nil {
		t.Fatal(err)
	}
	r.mustApply(newImage)
	if _, err := r.api.Pause(r.as("bad\x01name"), &proto.PauseRequest{Name: "db", Paused: true}); err == nil {
		s, _ := r.set("db")
		if last := s.Edits[len(s.Edits)-1]; last.By != "" {
			t.Errorf("it was taken as %q", last.By)
		}
	}
	s, _ := r.set("db")
	var got []string
	for _, e := range s.Edits {
		got = append(got, editText(e))
	}
	for i, want := range []string{
		"apply", "scale (alice): spec.replicas 3 → 5", `apply: spec.replicas 5 → 3, spec.template.spec.containers[0].image "example.local/db:1" → "example.local/db:2"`,
	} {
		if i >= len(got) || got[i] != want || s.Edits[i].Generation != int64(i+1) {
			t.Fatalf("got %q, want %q at %d", got, want, i)
		}
	}
	for range 2 * keptEdits {
		s.Generation++
		note(&s, &s, s.Edits[0])
	}
	if len(s.Edits) != keptEdits || s.Edits[keptEdits-1].Generation != s.Generation {
		t.Errorf("%d edits are kept, the last of generation %d", len(s.Edits), s.Edits[len(s.Edits)-1].Generation)
	}
}

func TestAFileMadeOfAnOlderGenerationIsRefusedAndSaysWhatChanged(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	s, _ := r.set("db")
	from := func(uid string) string {
		return strings.Replace(newImage, "{name: db}", "{name: db, generation: 1, uid: "+uid+"}", 1)
	}
	old := from(string(s.UID))
	if _, err := r.api.Scale(r.as("alice"), &proto.ScaleRequest{Name: "db", Replicas: 5}); err != nil {
		t.Fatal(err)
	}
	_, err := r.apply(old)
	refused(t, err, codes.FailedPrecondition, "a.yaml:4:1: metadata.generation: is 1, but set default/db has generation 2 by now",
		"changed since by scale (alice): spec.replicas 3 → 5", "remove metadata.generation")
	if s, _ := r.set("db"); s.Generation != 2 {
		t.Fatal("it was written all the same")
	}
	out, err := r.apply(from("0123456789abcdef0123456789abcdef"))
	if err != nil || out.GetApplied()[0].GetOutcome() != configured || strings.Contains(strings.Join(out.GetWarnings(), " "), "generation") {
		t.Fatalf("a file of another cluster: %v, %v", out, err)
	}
	withoutGeneration := strings.Replace(setYAML, "{name: db}", "{name: db, uid: "+string(s.UID)+"}", 1)
	if _, err := r.apply(withoutGeneration); err != nil {
		t.Fatalf("a file that does not say its generation: %v", err)
	}
	r.mustApply(newImage)
	if out, err := r.apply(old); err != nil || out.GetApplied()[0].GetOutcome() != unchanged {
		t.Fatalf("a file that changes nothing: %v, %v", out, err)
	}
}

func TestAnApplyThatMeetsAnotherSaysWhoseItIs(t *testing.T) {
	r := newRig(t)
	r.mustApply(setYAML)
	first := true
	r.Store.Fail(func(c memstore.Call) memstore.Fault {
		if c.Method == "Commit" && first && c.Txn.Then[0].Key == "sets/default/db" {
			first = false
			if _, err := r.api.Scale(r.as("alice"), &proto.ScaleRequest{Name: "db", Replicas: 5}); err != nil {
				return memstore.Fault{Err: store.ErrUnavailable}
			}
		}
		return memstore.Fault{}
	})
	_, err := r.apply(newImage)
	refused(t, err, codes.Aborted, "changed meanwhile: set default/db by scale (alice): spec.replicas 3 → 5")
}
