package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
)

// TestAnImmutableObjectKeepsItsContent: Kubernetes' rule: neither the content nor the field
// itself changes; labels may, and the object may be deleted and created again.
func TestAnImmutableObjectKeepsItsContent(t *testing.T) {
	for kind, yaml := range map[string]string{
		"ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {a: b}}\nimmutable: true\ndata: {k: v}\n",
		"Secret":    "apiVersion: v1\nkind: Secret\nmetadata: {name: x, labels: {a: b}}\nimmutable: true\nstringData: {k: v}\n",
	} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t)
			lower := strings.ToLower(kind)
			r.mustApply(strings.Replace(yaml, "immutable: true\n", "", 1)) // it may become so
			for _, want := range []string{" configured", " unchanged"} {
				if got := r.mustApply(yaml); !slices.Equal(got, []string{lower + " x" + want}) {
					t.Fatalf("got %q, want %s", got, want)
				}
			}
			shown, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: lower, Namespace: "default", Name: "x"})
			if err != nil || !strings.Contains(string(shown.GetJson()), `"immutable":true`) {
				t.Errorf("get shows %s, %v", shown.GetJson(), err)
			}
			before := r.rev()
			for name, change := range map[string][2]string{"its content": {"{k: v}", "{k: w}"}, "itself": {"immutable: true", "immutable: false"}} {
				_, err := r.apply(strings.Replace(yaml, change[0], change[1], 1), setYAML)
				refused(t, err, codes.FailedPrecondition, "a.yaml:4:1: immutable: "+kind+" default/x is immutable, and would change; write another name, or delete the object first")
				if r.rev() != before {
					t.Fatalf("%s: something was written", name)
				}
			}
			if got := r.mustApply(strings.Replace(yaml, "{a: b}", "{a: c}", 1)); !slices.Equal(got, []string{lower + " x configured"}) {
				t.Errorf("other labels: got %q", got)
			}
			if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: lower, Name: "x"}); err != nil {
				t.Fatal(err)
			}
			if got := r.mustApply(strings.Replace(yaml, "{k: v}", "{k: w}", 1)); !slices.Equal(got, []string{lower + " x created"}) {
				t.Errorf("created again: got %q", got)
			}
		})
	}
}
