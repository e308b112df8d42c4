package control

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
)

// outside is a Service without a selector, and others by their manifests.
const (
	outside   = "apiVersion: v1\nkind: Service\nmetadata: {name: out, labels: {app: out}}\nspec: {ports: [{name: sql, port: 5432}]}\n---\n"
	endpoints = "apiVersion: v1\nkind: Endpoints\nmetadata: {name: out, labels: {app: out}}\nsubsets: [{addresses: [{ip: 192.0.2.1}], ports: [{name: sql, port: 5432}]}]\n---\n"
	slice     = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: out-1, labels: {app: out, kubernetes.io/service-name: out}}\n" +
		"addressType: IPv4\nendpoints: [{addresses: [192.0.2.2]}]\nports: [{name: sql, port: 5433}]\n---\n"
)

// TestEndpointsAreObjects: applied, shown, changed, pruned and deleted as others are.
func TestEndpointsAreObjects(t *testing.T) {
	r := newRig(t)
	r.mustApply(outside + endpoints + slice)
	if !r.address("out").IsValid() {
		t.Error("the Service has no address")
	}
	for i, want := range []string{"unchanged", "configured"} {
		text := endpoints + slice
		if i == 1 {
			text = strings.ReplaceAll(text, "192.0.2", "198.51.100")
		}
		if got := r.mustApply(text); got[0] != "endpoint out "+want || got[1] != "endpointslice out-1 "+want {
			t.Errorf("got %q, want both %s", got, want)
		}
	}
	for kind, want := range map[string]string{
		proto.KindEndpoints: `"kind":"Endpoints"`, proto.KindSlice: `"endpoints":[{"addresses":["198.51.100.2"]}],"ports":[{"name":"sql","port":5433,"protocol":"TCP"}]`,
	} {
		got, err := r.api.List(r.ctx, &proto.ListRequest{Kind: kind})
		if err != nil || len(got.GetObjects()) != 1 || !strings.Contains(string(got.GetObjects()[0].GetJson()), want) {
			t.Errorf("%s: got %v, %v, want %s", kind, got, err, want)
		}
	}
	out, err := r.api.Apply(r.ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(outside)}}, Selector: "app=out", Prune: &proto.Prune{}})
	if err != nil || len(out.GetPruned()) != 2 {
		t.Fatalf("pruned %v, %v", out, err)
	}
	r.mustApply(endpoints + slice)
	for kind, name := range map[string]string{proto.KindEndpoints: "out", proto.KindSlice: "out-1"} {
		if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: kind, Name: name}); err != nil {
			t.Error(err)
		}
	}
}

// TestEndpointsThatNothingLeadsTo are stored with a warning: in Kubernetes the order in which they come does not matter.
// Addresses of the range of services are refused: they would lead to another Service.
func TestEndpointsThatNothingLeadsTo(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct{ manifest, want string }{
		{endpoints, "Endpoints default/out: there is no Service out; nothing leads to it until there is"},
		{slice, "EndpointSlice default/out-1: there is no Service out; nothing leads to it until there is"},
		{strings.Replace(outside, "name: sql", "name: web", 1), `Service default/out: none of its endpoints has a port with the name "web" and the protocol TCP, to which port 5432 would lead`},
		{strings.ReplaceAll(outside, "out", "new"), "Service default/new: it has no selector, and there are no Endpoints or EndpointSlices of it; it leads nowhere until there are"},
		{outside + endpoints, ""},
		{web("out", "") + endpoints, "Endpoints default/out: Service out has a selector, and leads to the members that this selects alone"},
		{web("out", "type: ExternalName, externalName: a.example") + slice, "EndpointSlice default/out-1: Service out has type ExternalName; nothing leads to it"},
	} {
		out, err := r.apply(tt.manifest)
		if err != nil || tt.want == "" && len(out.GetWarnings()) > 0 || tt.want != "" && !slices.Contains(out.GetWarnings(), tt.want) {
			t.Errorf("got %q, %v, want %q", out.GetWarnings(), err, tt.want)
		}
	}
	for _, tt := range []struct{ manifest, want string }{
		{strings.Replace(endpoints, "192.0.2.1", "10.89.0.9", 1), "a.yaml:4:25: subsets[0].addresses[0].ip: 10.89.0.9 is an address for services: their range is 10.89.0.0/27 (--service-cidr of the server)"},
		{strings.Replace(endpoints, "addresses: [{ip: 192.0.2.1", "notReadyAddresses: [{ip: 10.89.0.9", 1), "subsets[0].notReadyAddresses[0].ip: 10.89.0.9 is an address for services"},
		{strings.Replace(slice, "192.0.2.2", "10.89.0.9", 1), "endpoints[0].addresses[0]: 10.89.0.9 is an address for services"},
	} {
		_, err := r.apply(tt.manifest)
		refused(t, err, codes.FailedPrecondition, tt.want)
	}
}
