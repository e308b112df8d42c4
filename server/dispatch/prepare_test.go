package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/store"
)

// updated stores the set with a template of another image, and, if known, the template's revision.
func (r *rig) updated(image string, known bool) {
	set := testSet(1)
	set.Spec.Template.Spec.Containers[0].Image = image
	set.Spec.Template.Spec.Containers[0].ImagePullPolicy = spec.PullAlways
	set.Spec.Template.Spec.ImagePullSecrets = []spec.PullSecret{{Name: "key"}}
	r.Record(store.SetKey(refDB), set)
	if known {
		r.Record(store.RevisionKey(refDB, set.RevisionHash(nil)), records.Revision{
			Ref: refDB, SetUID: "u1", Hash: set.RevisionHash(nil), HashVersion: spec.HashVersion, Number: 2, Template: set.Spec.Template,
		})
	}
}

func (r *rig) status(s records.SetStatus) { r.Record(store.StatusKey(refDB), s) }

// preparations are those that a session sends now, all of the node; sent: it sends them.
func (h *hand) preparations() (list []records.Preparation, sent bool) {
	h.r.t.Helper()
	w := h.tells().wanted
	if w == nil || w.GetPreparations() == nil {
		return nil, false
	}
	list, err := wire.ToDocuments[records.Preparation](w.GetPreparations().GetPreparationsJson())
	if err != nil {
		h.r.t.Fatal(err)
	}
	return list, true
}

// preparing is a node that pulls images ahead.
var preparing = hello{node: "n1", uid: "uid1", boot: "b1", cluster: "c1", prepares: true}

func TestANodeIsSentTheNewImagesOfAnUpdateUntilThatIsComplete(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.status(records.SetStatus{CurrentRevision: "r1", CurrentCompleted: true})
	h := r.hand(preparing)
	if list, sent := h.preparations(); !sent || len(list) != 0 {
		t.Errorf("at first %v, sent: %v; want none, so that what was before is forgotten", list, sent)
	}
	r.updated("y", false)
	if _, sent := h.preparations(); sent {
		t.Error("sent before the revision is stored")
	}
	r.updated("y", true)
	list, sent := h.preparations()
	want := []records.NewImage{{Image: "y", Policy: spec.PullAlways}}
	if !sent || len(list) != 1 || list[0].Ref != refDB || !slices.Equal(list[0].Images, want) ||
		!slices.Equal(list[0].PullSecrets, []spec.PullSecret{{Name: "key"}}) {
		t.Fatalf("sent is %+v", list)
	}
	if refs := h.namedFiles(); !slices.Contains(refs, "key") {
		t.Errorf("of its Secrets the node is sent %v", refs)
	}
	r.status(records.SetStatus{CurrentRevision: "r1", CurrentCompleted: true, UpdatedReplicas: 1})
	if _, sent := h.preparations(); sent {
		t.Error("sent again, and nothing of it changed")
	}
	r.status(records.SetStatus{CurrentRevision: list[0].Revision, CurrentCompleted: true})
	if list, sent := h.preparations(); !sent || len(list) != 0 {
		t.Errorf("when the update is complete %v, sent: %v; want none", list, sent)
	}
	if refs := h.namedFiles(); slices.Contains(refs, "key") {
		t.Errorf("its Secret is still named: %v", refs)
	}
}

// namedFiles are the ConfigMaps and Secrets that lives and preparations of the node name.
func (h *hand) namedFiles() (names []string) {
	for ref := range h.state.named {
		names = append(names, ref.Name)
	}
	return names
}

func TestWhoIsSentNoPreparation(t *testing.T) {
	for name, change := range map[string]func(*rig, *records.Set, *records.SetStatus){
		"a set that goes back":  func(_ *rig, set *records.Set, st *records.SetStatus) { st.RolledBackFrom = set.RevisionHash(nil) },
		"a paused rollout":      func(_ *rig, set *records.Set, _ *records.SetStatus) { set.Paused = true },
		"a set that is deleted": func(_ *rig, set *records.Set, _ *records.SetStatus) { set.Deleting = true },
		"an orphaned set":       func(_ *rig, set *records.Set, _ *records.SetStatus) { set.Orphaned = true },
		"OnDelete": func(_ *rig, set *records.Set, _ *records.SetStatus) {
			set.Spec.UpdateStrategy.Type = spec.OnDeleteStrategy
		},
		"a node without a member":           func(r *rig, _ *records.Set, _ *records.SetStatus) { r.live(0, 20, "n2", "uid2") },
		"a first rollout":                   func(_ *rig, set *records.Set, st *records.SetStatus) { st.CurrentRevision = set.RevisionHash(nil) },
		"an image that members run already": func(_ *rig, set *records.Set, _ *records.SetStatus) { set.Spec.Template.Spec.Containers[0].Image = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newStill(t)
			r.begin()
			set, st := testSet(1), records.SetStatus{CurrentRevision: "r1", CurrentCompleted: true}
			set.Spec.Template.Spec.Containers[0].Image = "y"
			set.Spec.Template.Spec.Containers[0].Command = []string{"/x"}
			change(r, &set, &st)
			r.Record(store.SetKey(refDB), set)
			r.Record(store.RevisionKey(refDB, set.RevisionHash(nil)), records.Revision{
				Ref: refDB, SetUID: "u1", Hash: set.RevisionHash(nil), HashVersion: spec.HashVersion, Number: 2, Template: set.Spec.Template,
			})
			r.status(st)
			if list, _ := r.hand(preparing).preparations(); len(list) != 0 {
				t.Errorf("sent is %+v", list)
			}
		})
	}
}

func TestAnEarlierAgentIsSentNoPreparations(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.status(records.SetStatus{CurrentRevision: "r1", CurrentCompleted: true})
	r.updated("y", true)
	if list, sent := r.hand(n1).preparations(); sent {
		t.Errorf("sent is %+v", list)
	}
}

func preparedOf(t *testing.T, list ...records.Prepared) *proto.FromNode {
	t.Helper()
	doc, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return &proto.FromNode{Kind: &proto.FromNode_Prepared{Prepared: &proto.Prepared{PreparedJson: doc}}}
}

func TestWhatANodeHasPreparedIsStored(t *testing.T) {
	r := newStill(t)
	h := r.hand(preparing)
	h.tells()
	hellos, _ := r.Get(store.HellosKey)
	done := records.Prepared{Ref: refDB, Revision: "r2", Done: true}
	lacks := records.Prepared{Ref: refDB, Revision: "r2", Cause: causes.ImagePull, Message: "no"}
	say := func(want []records.Prepared, list ...records.Prepared) {
		t.Helper()
		h.Receive(preparedOf(t, list...))
		_, again, err := h.se.sendChanges(handStream{h: h}, h.state)
		if err != nil || again {
			t.Fatalf("again %v, %v", again, err)
		}
		if facts := r.facts(); !slices.Equal(facts.Prepared, want) {
			t.Errorf("stored is %+v, want %+v", facts.Prepared, want)
		}
	}
	say([]records.Prepared{lacks}, lacks)
	say([]records.Prepared{done}, done)
	say(nil)
	if now, _ := r.Get(store.HellosKey); now.Mod != hellos.Mod {
		t.Error("others' decisions were made anew because a node has an image")
	}
}

func TestWhatANodeSaysOfPreparationsIsBounded(t *testing.T) {
	lacks := records.Prepared{Ref: refDB, Revision: "r2", Cause: causes.ImageMissing, Message: "no"}
	var many []records.Prepared
	for i := range 2 * records.MaxPreparations {
		p := lacks
		p.Revision = spec.RevisionHash(fmt.Sprintf("r%03d", i))
		many = append(many, p)
	}
	last := records.Prepared{Ref: refDB, Revision: "r999", Done: true}
	for name, c := range map[string]struct {
		said []records.Prepared
		want int
	}{
		"none":                        {nil, 0},
		"what is under way":           {[]records.Prepared{{Ref: refDB, Revision: "r2"}, lacks}, 1},
		"a cause that is no image's":  {[]records.Prepared{{Ref: refDB, Revision: "r2", Cause: causes.Stray}}, 0},
		"a name that cannot be":       {[]records.Prepared{{Ref: spec.SetRef{Namespace: "..", Name: "x"}, Revision: "r2", Done: true}}, 0},
		"a revision that is too long": {[]records.Prepared{{Ref: refDB, Revision: spec.RevisionHash(strings.Repeat("r", 9999)), Done: true}}, 0},
		"the same twice":              {[]records.Prepared{lacks, lacks}, 1},
		"too many":                    {append(many, last), records.MaxPreparations},
		"too many words":              {[]records.Prepared{{Ref: refDB, Revision: "r2", Cause: causes.ImagePull, Message: strings.Repeat("x", 9999) + "\x1b[2J"}}, 1},
	} {
		got := sanePrepared(c.said)
		if len(got) != c.want {
			t.Errorf("%s: %d are left, want %d", name, len(got), c.want)
		}
		for _, g := range got {
			if len(g.Message) > preparedBytes || strings.Contains(g.Message, "\x1b") {
				t.Errorf("%s: %+v", name, g)
			}
		}
		if name == "too many" && !slices.Contains(got, last) {
			t.Error("what is done was left out for what is not")
		}
	}
	for name, m := range map[string]struct {
		doc  string
		want codes.Code
	}{
		"no JSON":  {"{", codes.InvalidArgument},
		"too long": {strings.Repeat(" ", factsBytes+1), codes.ResourceExhausted},
	} {
		r := newStill(t)
		h := r.hand(n1)
		h.Receive(&proto.FromNode{Kind: &proto.FromNode_Prepared{Prepared: &proto.Prepared{PreparedJson: []byte(m.doc)}}})
		if err := h.Send(); status.Code(err) != m.want {
			t.Errorf("%s: got %v, want %v", name, err, m.want)
		}
	}
}
