package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/store"
)

// shop are objects of one application, of each kind that prune deletes.
const shop = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, labels: {app: shop}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pass, labels: {app: shop}}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, labels: {app: shop}}, spec: {clusterIP: None, selector: {app: db}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: most, labels: {app: shop}}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: db}}}}
`

var shopSet = strings.Replace(setYAML, "{name: db}", "{name: db, labels: {app: shop}}", 1)

// rest is what the application is reduced to.
const rest = `{apiVersion: v1, kind: ConfigMap, metadata: {name: rest, labels: {app: shop}}}`

func (r *rig) prune(dry bool, p *proto.Prune, selector string, manifests ...string) ([]string, error) {
	req := &proto.ApplyRequest{DryRun: dry, Prune: p, Selector: selector}
	for _, m := range manifests {
		req.Files = append(req.Files, &proto.File{Name: "a.yaml", Content: []byte(m)})
	}
	out, err := r.api.Apply(r.ctx, req)
	var names []string
	for _, a := range out.GetPruned() {
		names = append(names, a.GetKind()+" "+a.GetNamespace()+"/"+a.GetName())
		names = append(names, a.GetEffects()...)
	}
	return names, err
}

func (r *rig) mustPrune(dry bool, p *proto.Prune, selector string, manifests ...string) []string {
	r.t.Helper()
	names, err := r.prune(dry, p, selector, manifests...)
	if err != nil {
		r.t.Fatal(err)
	}
	return names
}

// TestPruneDeletesWhatTheFilesNoLongerHave, in one write, and nothing else: no object without the
// labels, in another namespace, or that is given; and no volume.
func TestPruneDeletesWhatTheFilesNoLongerHave(t *testing.T) {
	r := newRig(t)
	r.mustApply(shop, shopSet, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: far, namespace: prod, labels: {app: shop}}}`)
	r.happens()
	before := r.rev()
	want := []string{
		"set default/db", "stops db-2, db-1, db-0 in this order", "keeps the volumes data-db-0, data-db-1, data-db-2; a set of the same name takes them back",
		"service default/db", "budget default/most", "configmap default/conf", "secret default/pass",
	}
	if got := r.mustPrune(true, &proto.Prune{}, "app=shop", rest); !slices.Equal(got, want) {
		t.Fatalf("dry run: got %q, want %q", got, want)
	}
	if r.rev() != before {
		t.Fatal("the dry run wrote")
	}
	if got := r.mustPrune(false, &proto.Prune{}, "app=shop", rest); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if r.rev() != before+1 {
		t.Errorf("it took %d revisions, want 1", r.rev()-before)
	}
	if s, _ := r.set("db"); !s.Deleting || s.Edits[len(s.Edits)-1].Verb != "delete" {
		t.Errorf("got %+v, want a set that is being deleted", s)
	}
	for _, kind := range []string{"service", "budget", "secret"} {
		if left := r.list(&proto.ListRequest{Kind: kind, AllNamespaces: true}); len(left) > 0 {
			t.Errorf("%s: %v are left", kind, left)
		}
	}
	if got, want := r.list(&proto.ListRequest{Kind: "configmap", AllNamespaces: true}), []string{"default/other", "default/rest", "prod/far"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if volumes := r.list(&proto.ListRequest{Kind: "volume"}); len(volumes) != 3 {
		t.Errorf("got %v, want three volumes", volumes)
	}
	if got := r.mustPrune(false, &proto.Prune{}, "app=shop", rest); len(got) > 0 {
		t.Errorf("again: got %q, though the set is being deleted already", got)
	}
	if got := r.mustPrune(false, &proto.Prune{All: true}, "", rest); !slices.Equal(got, []string{"configmap default/other"}) {
		t.Errorf("all: got %q", got)
	}
}

func TestPruneNeedsAChoiceAndLeavesOrphansAlone(t *testing.T) {
	r := newRig(t)
	r.mustApply(shopSet)
	for _, wrong := range []struct {
		prune    *proto.Prune
		selector string
	}{{&proto.Prune{}, ""}, {&proto.Prune{All: true}, "app=shop"}} {
		_, err := r.prune(true, wrong.prune, wrong.selector, rest)
		refused(t, err, codes.InvalidArgument, "prune needs either a selector or all")
	}
	_, err := r.prune(true, nil, "==", rest)
	refused(t, err, codes.InvalidArgument, "selector")
	r.orphan()
	if got := r.mustPrune(false, &proto.Prune{}, "app=shop", rest); len(got) > 0 {
		t.Errorf("got %q, though the set is nobody's", got)
	}
	if s, there := r.set("db"); !there || s.Deleting || !s.Orphaned {
		t.Errorf("got %+v, want the orphaned set as it was", s)
	}
}

// TestPruneDeletesNothingUnexpected: what came after the dry run is not deleted unseen, and then
// nothing is changed.
func TestPruneDeletesNothingUnexpected(t *testing.T) {
	r := newRig(t)
	r.mustApply(shop)
	expected := []string{"service default/db", "budget default/most", "configmap default/conf"}
	_, err := r.prune(false, &proto.Prune{Expected: expected}, "app=shop", rest)
	refused(t, err, codes.Aborted, "--prune would now also delete secret default/pass; nothing was changed")
	if got := r.list(&proto.ListRequest{Kind: "configmap"}); !slices.Equal(got, []string{"default/conf"}) {
		t.Errorf("got %v: something was changed", got)
	}
	if got := r.mustPrune(false, &proto.Prune{Expected: append(expected, "secret default/pass", "secret default/gone")}, "app=shop", rest); len(got) != 4 {
		t.Errorf("got %q", got)
	}
}

// TestPruneIsGuarded: a set that somebody edits meanwhile is not deleted, and nothing is.
func TestPruneIsGuarded(t *testing.T) {
	r := newRig(t)
	r.mustApply(shopSet)
	r.between(store.ConfigKey("default", "rest"), func() error {
		_, err := r.api.Scale(r.ctx, &proto.ScaleRequest{Name: "db", Replicas: 5})
		return err
	})
	_, err := r.prune(false, &proto.Prune{}, "app=shop", rest)
	refused(t, err, codes.Aborted, "changed meanwhile; nothing was written")
	if s, _ := r.set("db"); s.Deleting || s.Replicas() != 5 {
		t.Errorf("got %+v, want the set as the other made it", s)
	}
	if got := r.list(&proto.ListRequest{Kind: "configmap"}); len(got) > 0 {
		t.Errorf("got %v, though nothing may have been written", got)
	}
}

// TestWhatMissesWhatIsPrunedIsSaid, of the sets as they are afterwards: not of one that is pruned too,
// nor of one that no longer names it.
func TestWhatMissesWhatIsPrunedIsSaid(t *testing.T) {
	uses := func(name, config string) string {
		text := strings.ReplaceAll(setYAML, "{name: db}", "{name: "+name+", labels: {app: shop}}")
		return strings.Replace(text, "image: example.local/db:1", "image: example.local/db:1\n        envFrom: [{configMapRef: {name: "+config+"}}]", 1)
	}
	r := newRig(t)
	r.mustApply(shop, uses("old", "conf"), uses("moved", "conf"), uses("stays", "conf"))
	got := r.mustPrune(true, &proto.Prune{}, "app=shop", rest, uses("moved", "rest"), uses("stays", "conf"), uses("new", "conf"))
	var said []string
	for _, line := range got {
		if set, _, named := strings.Cut(line, " names it"); named {
			said = append(said, set)
		}
	}
	if want := []string{"set default/new", "set default/stays"}; !slices.Equal(said, want) {
		t.Errorf("got %q of %q, want %q", said, got, want)
	}
}
