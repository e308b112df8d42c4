package control

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// web is a Service of that name with these fields more.
func web(name, fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {app: db}, ports: [{port: 80, targetPort: 8080}]%s}\n---\n", name, fields)
}

// address is that of the stored service; invalid: none.
func (r *rig) address(name string) netip.Addr {
	r.t.Helper()
	kv, ok := r.Get(store.ServiceKey("default", name))
	if !ok {
		r.t.Fatalf("there is no Service %s", name)
	}
	s, err := store.Decode[records.ServiceRecord](kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return s.Address
}

func (r *rig) deleteService(name string) {
	r.t.Helper()
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindService, Name: name}); err != nil {
		r.t.Fatal(err)
	}
}

// TestAServiceKeepsItsAddress: over applies, edits and an export that is applied again; and when it is
// made again.
func TestAServiceKeepsItsAddress(t *testing.T) {
	r := newRig(t)
	r.mustApply(web("web", ""))
	had := r.address("web")
	if !netip.MustParsePrefix("10.89.0.0/27").Contains(had) {
		t.Fatalf("got the address %s", had)
	}
	got, err := r.api.Get(r.ctx, &proto.GetRequest{Kind: proto.KindService, Name: "web"})
	if err != nil || !strings.Contains(string(got.GetJson()), `"clusterIP":"`+had.String()+`"`) {
		t.Fatalf("shown as %s, %v", got.GetJson(), err)
	}
	for _, step := range []struct{ fields, outcome string }{
		{"", "unchanged"}, {"sessionAffinity: None", "unchanged"}, {"clusterIP: " + had.String(), "unchanged"},
		{"type: LoadBalancer", "configured"}, {"type: ClusterIP, sessionAffinity: ClientIP", "configured"},
	} {
		if got := r.mustApply(web("web", step.fields)); got[0] != "service web "+step.outcome {
			t.Errorf("%s: got %q, want %s", step.fields, got, step.outcome)
		}
		if now := r.address("web"); now != had {
			t.Fatalf("%s: the address was %s, and is %s", step.fields, had, now)
		}
	}
	r.deleteService("web")
	r.mustApply(web("web", "clusterIP: "+had.String()))
	r.deleteService("web")
	r.mustApply(web("web", ""))
	if now := r.address("web"); now != had {
		t.Errorf("made again: the address was %s, and is %s", had, now)
	}
}

// TestClusterIPIsImmutable is Kubernetes' rule: None stays None, an address stays as it is.
func TestClusterIPIsImmutable(t *testing.T) {
	r := newRig(t)
	r.mustApply(web("web", ""), web("none", "clusterIP: None"), web("mine", "clusterIP: 10.89.0.3"))
	had := r.address("web")
	if got := r.address("mine"); got.String() != "10.89.0.3" {
		t.Fatalf("got %s, want the address that was written", got)
	}
	for _, tt := range []struct{ manifest, want string }{
		{web("web", "clusterIP: None"), "a.yaml:4:68: spec.clusterIP: must not change from " + had.String() + " to None; leave it out or write " + had.String() + ", or delete the Service first"},
		{web("mine", "clusterIP: 10.89.0.4"), "spec.clusterIP: must not change from 10.89.0.3 to 10.89.0.4"},
		{web("none", "clusterIP: 10.89.0.4"), "spec.clusterIP: must not change from None to 10.89.0.4; write None, or delete the Service first"},
		{web("none", "type: NodePort"), "spec.type: NodePort does not go with clusterIP None, which stays while the Service exists"},
		{web("new", "clusterIP: 10.96.0.10"), "spec.clusterIP: 10.96.0.10 is not an address for services: their range is 10.89.0.0/27 (--service-cidr of the server); leave clusterIP out"},
		{web("new", "clusterIP: 10.89.0.31"), "10.89.0.31 is not an address for services"},
		{web("new", "clusterIP: 10.89.0.0"), "10.89.0.0 is not an address for services"},
		{web("new", "clusterIP: 10.89.0.3"), "spec.clusterIP: 10.89.0.3 is the address of Service default/mine; write another"},
		{web("new", "clusterIP: 10.89.0.5") + web("newer", "clusterIP: 10.89.0.5"), "10.89.0.5 is the address of another Service of this apply"},
	} {
		_, err := r.apply(tt.manifest)
		refused(t, err, codes.FailedPrecondition, tt.want)
	}
	out, err := r.apply(web("none", ""))
	if err != nil || r.address("none").IsValid() || out.GetApplied()[0].GetOutcome() != "unchanged" {
		t.Fatalf("got %v, %v", out, err)
	}
	want := "Service default/none: clusterIP stays None, as in Kubernetes; write it, or delete the Service first to give it an address"
	if !slices.Contains(out.GetWarnings(), want) {
		t.Errorf("got %q, want %q", out.GetWarnings(), want)
	}
}

// TestTheTypeExternalNameTakesAddressAndPorts is Kubernetes' rule; None, too. They come back with another type.
func TestTheTypeExternalNameTakesAddressAndPorts(t *testing.T) {
	r := newRig(t)
	alias := web("web", "type: ExternalName, externalName: example.org")
	r.mustApply(web("web", "type: NodePort"))
	had := r.address("web")
	held := func() (freed bool, ports int) {
		t.Helper()
		kv, _ := r.Get(store.ServiceAddressKey(had))
		a, err := store.Decode[records.ServiceAddress](kv)
		if err != nil {
			t.Fatal(err)
		}
		_, kvs, err := r.Store.Snapshot(r.ctx, store.KindNodePort+"/")
		if err != nil {
			t.Fatal(err)
		}
		return a.Freed, len(kvs)
	}
	out, err := r.apply(alias)
	if freed, ports := held(); err != nil || len(out.GetWarnings()) != 1 || r.address("web").IsValid() || !freed || ports > 0 {
		t.Fatalf("got %v, %v; the address is %s, its rest %t, with %d ports of nodes", out, err, r.address("web"), freed, ports)
	}
	r.mustApply(alias)
	r.mustApply(web("web", "type: NodePort"))
	if freed, ports := held(); r.address("web") != had || freed || ports != 1 {
		t.Errorf("the address was %s, and is %s, its rest %t, with %d ports of nodes", had, r.address("web"), freed, ports)
	}
	r.mustApply(web("none", "clusterIP: None"))
	r.mustApply(web("none", "type: ExternalName, externalName: example.org"))
	r.mustApply(web("none", "type: NodePort"))
	if !r.address("none").IsValid() {
		t.Error("what was headless has no address")
	}
}

// TestAServiceOfAnEarlierVersionGetsItsAddressWhenItIsApplied, and not before: its name resolves to
// another address from then on, which is said.
func TestAServiceOfAnEarlierVersionGetsItsAddressWhenItIsApplied(t *testing.T) {
	r := newRig(t)
	old := records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "web", Generation: 1},
		Spec: spec.ServiceSpec{ClusterIP: "10.96.0.1", Type: "ClusterIP", Selector: map[string]string{"app": "db"}, Ports: []spec.ServicePort{{Port: 80, Protocol: "TCP"}}}}
	r.Record(store.ServiceKey("default", "web"), old)
	if r.address("web").IsValid() {
		t.Fatal("it has an address")
	}
	out, err := r.apply(strings.ReplaceAll(web("web", ""), ", targetPort: 8080", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("gets the address %s: its name resolves to it from now on, and no longer to the members' addresses", r.address("web"))
	if got := out.GetApplied()[0]; got.GetOutcome() != "configured" || !slices.Equal(got.GetEffects(), []string{want}) {
		t.Errorf("got %v, want %q", got, want)
	}
	r.Record(store.ServiceKey("default", "web"), old)
	r.mustApply(strings.ReplaceAll(web("web", "clusterIP: None"), ", targetPort: 8080", ""))
	if r.address("web").IsValid() {
		t.Error("it was to be headless")
	}
}

// TestAFreedServiceAddressRests: on this server's own clock, since it saw it freed (SAFETY S17).
func TestAFreedServiceAddressRests(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	pool := newServicePool(netip.MustParsePrefix("10.89.0.0/28"))
	pool.now = func() time.Time { return now }
	free := func(n byte) netip.Addr {
		a := netip.AddrFrom4([4]byte{10, 89, 0, n})
		r.Record(store.ServiceAddressKey(a), records.ServiceAddress{Address: a, Namespace: "default", Name: fmt.Sprint("old", n), Freed: true})
		return a
	}
	for n := byte(14); n > 0; n-- {
		free(n)
	}
	choose := func(name string, taken ...netip.Addr) (a netip.Addr) {
		r.Cache.Look(func(v cache.View) {
			pool.look(v)
			set := map[netip.Addr]bool{}
			for _, t := range taken {
				set[t] = true
			}
			a, _ = pool.choose(v, "default", name, set)
		})
		return a
	}
	if got := choose("new"); got.IsValid() {
		t.Errorf("all rest, and %s was given", got)
	}
	if got := choose("old7"); got.String() != "10.89.0.7" {
		t.Errorf("its own address: got %s", got)
	}
	now = now.Add(serviceRest - time.Nanosecond)
	if got := choose("new"); got.IsValid() {
		t.Errorf("all rest yet, and %s was given", got)
	}
	free(14) // anew
	now = now.Add(time.Nanosecond)
	first := choose("new")
	if second := choose("new", first); first.String() != "10.89.0.13" || second.String() != "10.89.0.12" {
		t.Errorf("got %s and %s, want those that were freed longest ago", first, second)
	}
	a := netip.MustParseAddr("10.89.0.14")
	named := func(name string) *records.ServiceRecord {
		return &records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: name}}
	}
	r.Cache.Look(func(v cache.View) {
		if p := pool.fixed(v, a, named("new"), nil); p == nil || !strings.Contains(p.String(), "was the address of Service default/old14 until a moment ago; try again in 10m0s") {
			t.Errorf("an address that rests: got %v", p)
		}
		if p := pool.fixed(v, a, named("old14"), nil); p != nil {
			t.Errorf("its own address: %v", p)
		}
		if p := pool.fixed(v, first, named("new"), nil); p != nil {
			t.Errorf("one that has rested: %v", p)
		}
	})
}

// TestTheOrderOfServiceAddresses: each address once, without the first and the last of the range; those
// that are left to manifests come last; where it begins follows from the name.
func TestTheOrderOfServiceAddresses(t *testing.T) {
	for _, cidr := range []string{"10.89.0.0/28", "10.89.0.32/27", "10.89.0.0/16"} {
		p := newServicePool(netip.MustParsePrefix(cidr))
		seen := map[netip.Addr]bool{}
		var list []netip.Addr
		for a := range p.order("default", "web") {
			if seen[a] || !p.cidr.Contains(a) || a == p.cidr.Addr() || !p.cidr.Contains(a.Next()) {
				t.Fatalf("%s: %s is given, or given twice", cidr, a)
			}
			seen[a], list = true, append(list, a)
		}
		if want := 1<<(32-p.cidr.Bits()) - 2; len(list) != want {
			t.Errorf("%s: got %d addresses, want %d", cidr, len(list), want)
		}
		if p.cidr.Bits() == 16 && list[len(list)-256] != p.cidr.Addr().Next() {
			t.Errorf("%s: the last 256 begin with %s", cidr, list[len(list)-256])
		}
		for a := range p.order("default", "other") {
			if a == list[0] && p.cidr.Bits() == 16 {
				t.Errorf("%s: two names begin with %s", cidr, a)
			}
			break
		}
	}
}

// backedUp are the services and their addresses as they were.
func (r *rig) backedUp() (kvs []store.KV) {
	r.t.Helper()
	for _, kind := range []string{store.KindService, store.KindServiceAddress} {
		_, some, err := r.Store.Snapshot(r.ctx, kind+"/")
		if err != nil {
			r.t.Fatal(err)
		}
		kvs = append(kvs, some...)
	}
	return kvs
}

// TestNoTwoServicesHaveOneAddress: whatever is applied, deleted and restored from a backup (SAFETY S8, S17),
// and whichever server does it.
func TestNoTwoServicesHaveOneAddress(t *testing.T) {
	r := newRig(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	backup := r.backedUp()
	for step := range 400 {
		name := fmt.Sprint("s", rnd.IntN(24))
		what := "apply"
		switch n := rnd.IntN(20); {
		case n < 11:
			_, err := r.apply(web(name, []string{"", "", "clusterIP: None", fmt.Sprintf("clusterIP: 10.89.0.%d", rnd.IntN(32))}[rnd.IntN(4)]))
			what += fmt.Sprint(" ", err)
		case n < 18:
			what = "delete"
			_, _ = r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindService, Name: name})
		case n < 19:
			what, backup = "backup", r.backedUp()
		default:
			what = "restore"
			var ops []store.Op
			for _, kv := range r.backedUp() {
				ops = append(ops, store.Del(kv.Key))
			}
			r.Commit(ops...)
			ops = nil
			for _, kv := range backup {
				ops = append(ops, store.Put(kv.Key, kv.Value))
			}
			if len(ops) > 0 {
				r.Commit(ops...)
			}
		}
		r.judgeAddresses(fmt.Sprintf("seed %d, step %d: %s %s", seed, step, what, name))
	}
}

// judgeAddresses fails when two services have one address, or one has an address that is not kept for it.
func (r *rig) judgeAddresses(what string) {
	r.t.Helper()
	of := map[netip.Addr]string{}
	_, kvs, err := r.Store.Snapshot(r.ctx, store.KindService+"/")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, kv := range kvs {
		s, err := store.Decode[records.ServiceRecord](kv)
		if err != nil {
			r.t.Fatal(err)
		}
		if !s.Address.IsValid() {
			continue
		}
		if of[s.Address] != "" {
			r.t.Fatalf("%s: %s and %s have the address %s", what, of[s.Address], s.Name, s.Address)
		}
		of[s.Address] = s.Name
		held, ok := r.Get(store.ServiceAddressKey(s.Address))
		if h, err := store.Decode[records.ServiceAddress](held); !ok || err != nil || h.Freed || h.Name != s.Name {
			r.t.Fatalf("%s: %s has the address %s, of which is stored %q", what, s.Name, s.Address, held.Value)
		}
	}
}

// TestAnAddressThatWasTakenMeanwhileIsNotGivenAgain: the transaction compares the address's record, whatever
// the server sees of it.
func TestAnAddressThatWasTakenMeanwhileIsNotGivenAgain(t *testing.T) {
	r := newRig(t)
	a := netip.MustParseAddr("10.89.0.9")
	s := newServer(Config{Cache: r.Cache, Planner: r, ServiceCIDR: netip.MustParsePrefix("10.89.0.0/27"), Store: &overtaken{r.Store, func() {
		r.Record(store.ServiceAddressKey(a), records.ServiceAddress{Address: a, Namespace: "default", Name: "other"})
	}}})
	_, err := s.Apply(r.ctx, &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(web("web", "clusterIP: 10.89.0.9"))}}})
	refused(t, err, codes.Aborted, "changed meanwhile")
	if _, ok := r.Get(store.ServiceKey("default", "web")); ok {
		t.Error("the Service was written")
	}
}

// TestAPrunedServiceFreesWhatItHad: as one that is deleted.
func TestAPrunedServiceFreesWhatItHad(t *testing.T) {
	r := newRig(t)
	r.mustApply(opened("web", "{port: 80, nodePort: 30007}"))
	a := r.address("web")
	out, err := r.api.Apply(r.ctx, &proto.ApplyRequest{
		Files: []*proto.File{{Name: "a.yaml", Content: []byte(web("other", ""))}}, Prune: &proto.Prune{All: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Get(store.ServiceKey("default", "web")); ok {
		t.Fatalf("it is there: %v", out)
	}
	held, _ := r.Get(store.ServiceAddressKey(a))
	if h, err := store.Decode[records.ServiceAddress](held); err != nil || !h.Freed {
		t.Errorf("its address is kept as %q", held.Value)
	}
	if kv, ok := r.Get(store.NodePortKey(30007)); ok {
		t.Errorf("its port is kept as %q", kv.Value)
	}
}
