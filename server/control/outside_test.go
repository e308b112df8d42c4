package control

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store"
)

// outsideOf are the addresses of a stored service for clients outside; each is held for it.
func (r *rig) outsideOf(name string) []string {
	r.t.Helper()
	kv, _ := r.Get(store.ServiceKey("default", name))
	s, err := store.Decode[records.ServiceRecord](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, a := range s.Outside() {
		if held := r.heldBy(a.String()); held != name {
			r.t.Errorf("%s of %s is held by %q", a, name, held)
		}
		out = append(out, a.String())
	}
	return out
}

// heldBy is the service that has an address; "" without one, "-" while it rests.
func (r *rig) heldBy(address string) string {
	r.t.Helper()
	kv, ok := r.Get(store.ServiceAddressKey(netip.MustParseAddr(address)))
	if !ok {
		return ""
	}
	a, err := store.Decode[records.ServiceAddress](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	if a.Freed {
		return "-"
	}
	return a.Name
}

// TestALoadBalancerHasAnAddress of the ranges that the operator gave, or the one of them that loadBalancerIP writes, as
// long as it is there and has the type.
func TestALoadBalancerHasAnAddress(t *testing.T) {
	const first, second = "203.0.113.0", "203.0.113.2"
	r := newRig(t)
	balancer := func(name, fields string) string {
		return web(name, strings.TrimSuffix("type: LoadBalancer, "+fields, ", "))
	}
	r.mustApply(balancer("a", ""))
	if got := r.outsideOf("a"); !slices.Equal(got, []string{first}) {
		t.Fatalf("got %v", got)
	}
	got, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: proto.KindService, Name: "a"})
	if err != nil || !strings.Contains(string(got.GetJson()), `"status":{"loadBalancer":{"ingress":[{"ip":"`+first+`","ipMode":"VIP"}]}}`) {
		t.Errorf("shown as %s, %v", got.GetJson(), err)
	}
	for _, again := range []struct{ fields, outcome string }{{"", "unchanged"}, {"sessionAffinity: ClientIP", "configured"}} {
		if got := r.mustApply(balancer("a", again.fields)); !strings.HasSuffix(got[0], again.outcome) || r.outsideOf("a")[0] != first {
			t.Errorf("%s: got %v, with %v", again.fields, got, r.outsideOf("a"))
		}
	}
	for manifest, want := range map[string]string{
		balancer("b", "loadBalancerIP: "+first):                      "spec.loadBalancerIP: 203.0.113.0 is the address of Service default/a; write another address, or leave loadBalancerIP out",
		balancer("b", "loadBalancerIP: 203.0.113.1"):                 "spec.loadBalancerIP: 203.0.113.1 is not an address for load balancers: their ranges are 203.0.113.0/32, 203.0.113.2/32 (--load-balancer-cidr of the servers)",
		balancer("b", "") + balancer("c", ""):                        "spec.type: no address of 203.0.113.0/32, 203.0.113.2/32 is free: freed ones rest for 10m0s",
		balancer("b", "") + balancer("c", "loadBalancerIP: "+second): "203.0.113.2 is the address of another Service of this apply",
	} {
		_, err := r.apply(manifest)
		refused(t, err, codes.FailedPrecondition, want)
	}
	r.mustApply(balancer("a", "loadBalancerIP: "+second))
	if got := r.outsideOf("a"); !slices.Equal(got, []string{second}) || r.heldBy(first) != "-" {
		t.Errorf("the address that is written: got %v; the other is held by %q", got, r.heldBy(first))
	}
	r.mustApply(web("a", ""))
	if got := r.outsideOf("a"); len(got) > 0 || r.heldBy(second) != "-" {
		t.Errorf("another type: got %v; the address is held by %q", got, r.heldBy(second))
	}
	_, err = r.apply(balancer("b", ""))
	refused(t, err, codes.FailedPrecondition, "is free: freed ones rest for 10m0s")
	r.mustApply(balancer("a", "loadBalancerIP: "+second)) // it was its own
	r.deleteService("a")
	if r.heldBy(second) != "-" {
		t.Errorf("of one that is deleted: the address is held by %q", r.heldBy(second))
	}
}

// TestExternalIPsAreTheOperators: a Service has those alone that the operator lets Services have, and that no other has.
func TestExternalIPsAreTheOperators(t *testing.T) {
	r := newRig(t)
	r.mustApply(web("a", "externalIPs: [198.51.100.1, 198.51.100.2]"))
	if got := r.outsideOf("a"); !slices.Equal(got, []string{"198.51.100.1", "198.51.100.2"}) {
		t.Fatalf("got %v", got)
	}
	for manifest, want := range map[string]string{
		web("b", "externalIPs: [198.51.100.3, 192.0.2.1]"): "spec.externalIPs[1]: the operator lets Services have those of 198.51.100.0/30 alone; start the servers with --external-ip-cidr 192.0.2.1/32, or remove it",
		web("b", "externalIPs: [198.51.100.1]"):            "spec.externalIPs[0]: 198.51.100.1 is the address of Service default/a; write another address, or leave externalIPs out",
		web("b", "externalIPs: [203.0.113.0]"):             "spec.externalIPs[0]: the operator lets Services have those of 198.51.100.0/30 alone",
	} {
		_, err := r.apply(manifest)
		refused(t, err, codes.FailedPrecondition, want)
	}
	r.mustApply(web("a", "type: LoadBalancer, externalIPs: [198.51.100.2]"))
	if got := r.outsideOf("a"); !slices.Equal(got, []string{"203.0.113.0", "198.51.100.2"}) || r.heldBy("198.51.100.1") != "-" {
		t.Errorf("got %v; what was removed is held by %q", got, r.heldBy("198.51.100.1"))
	}
	r.deleteService("a")
	for _, a := range []string{"203.0.113.0", "198.51.100.2"} {
		if r.heldBy(a) != "-" {
			t.Errorf("of one that is deleted: %s is held by %q", a, r.heldBy(a))
		}
	}
}
