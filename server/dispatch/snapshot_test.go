package dispatch

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// scene is one set of three on two nodes, all of it healthy.
func scene() plan.World {
	set := testSet(3)
	w := plan.World{Set: &set, Nodes: []plan.Node{liveNode("n1", "uid1"), liveNode("n2", "uid2")}}
	for i := range 3 {
		m := testMember(i, int64(10+i), "n1", "uid1")
		w.Slots = append(w.Slots, plan.Slot{
			ID: ident(i), Member: &m,
			Identity: &records.IdentityRecord{ID: ident(i), LastToken: m.Token, Address: addr(i)},
			Report:   &records.Report{ID: ident(i), Token: m.Token, Session: 1, Phase: records.PhaseRunning, Ready: true},
		})
	}
	return w
}

func liveNode(name spec.NodeName, uid spec.UID) plan.Node {
	return plan.Node{
		Node: &records.Node{Name: name, UID: uid}, Facts: &records.NodeFacts{Name: name, UID: uid, Boot: "b1"},
		Session: &records.Session{Node: name, UID: uid, Boot: "b1", ID: 1},
	}
}

func TestPicturePeers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*plan.World)
		want   string // a letter a peer: R ready, u unready, by ordinal
	}{
		{"all healthy", func(*plan.World) {}, "RRR"},
		{"a report that is not ready", func(w *plan.World) { w.Slots[1].Report.Ready = false }, "RuR"},
		{"no report yet", func(w *plan.World) { w.Slots[1].Report = nil }, "RuR"},
		{"a report of the life before", func(w *plan.World) { w.Slots[1].Report.Token = token(1) }, "RuR"},
		{"a life that is being stopped", func(w *plan.World) { w.Slots[2].Member.Goal = records.GoalStop }, "RRu"},
		{"a life that is over", func(w *plan.World) { w.Slots[2].Report.Phase = records.PhaseStopped }, "RRu"},
		{"a node of another boot", func(w *plan.World) { w.Nodes[0].Session.Boot = "b2" }, "uuu"},
		{"another machine under the name", func(w *plan.World) { w.Nodes[0].Session.UID = "other" }, "uuu"},
		{"one silent node of two", func(w *plan.World) { w.Nodes[0].Session = nil }, "uuu"},
		{"most nodes silent at once: the last reports are believed", func(w *plan.World) {
			w.Nodes[0].Session, w.Nodes[1].Session = nil, nil
			w.Slots[1].Report.Ready = false
		}, "RuR"},
		{"a node that never came does not count", func(w *plan.World) {
			w.Nodes[1] = plan.Node{Node: &records.Node{Name: "n2"}}
		}, "RRR"},
		{"a member in range between two lives", func(w *plan.World) { w.Slots[1].Member, w.Slots[1].Report = nil, nil }, "RuR"},
		{"an identity out of range is no peer", func(w *plan.World) {
			w.Slots[2].Member, w.Slots[2].Report = nil, nil
			two := int32(2)
			w.Set.Spec.Replicas = &two
		}, "RR"},
		{"a surplus member that still lives is a peer", func(w *plan.World) {
			two := int32(2)
			w.Set.Spec.Replicas = &two
			w.Slots[2].Member.Goal = records.GoalStop
		}, "RRu"},
		{"a life that tells no address has its identity's", func(w *plan.World) { w.Slots[1].Member.Address = netip.Addr{} }, "RRR"},
		{"an identity without an address is no peer", func(w *plan.World) {
			w.Slots[1].Identity.Address, w.Slots[1].Member.Address = netip.Addr{}, netip.Addr{}
		}, "RR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := scene()
			c.change(&w)
			p := BuildSnapshot(spec.Sequence{Epoch: 1, Rev: 5}, refDB, w, nil, "cluster.local")
			got, last := "", -1
			for _, peer := range p.Peers {
				if peer.Ordinal <= last || peer.Address != addr(peer.Ordinal) || peer.FQDN != peer.Name+".dbs.default.svc.cluster.local" {
					t.Fatalf("got %+v", peer)
				}
				last = peer.Ordinal
				if peer.Ready {
					got += "R"
				} else {
					got += "u"
				}
			}
			if got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestAPictureTellsWhereMembersAre: of those that have a life, also when their node is
// silent, for they run on.
func TestAPictureTellsWhereMembersAre(t *testing.T) {
	w := scene()
	w.Nodes[0].Facts.HostIP, w.Nodes[0].Session = "192.0.2.1", nil
	w.Slots[1].Member.Node = "n2" // which does not say
	w.Slots[2].Member, w.Slots[2].Report = nil, nil
	want := []records.Peer{{Node: "n1", Host: netip.MustParseAddr("192.0.2.1")}, {Node: "n2"}, {}}
	for i, p := range BuildSnapshot(spec.Sequence{}, w.Set.Ref, w, nil, "cluster.local").Peers {
		if p.Node != want[i].Node || p.Host != want[i].Host {
			t.Errorf("%s is on %q at %s; want %q at %s", p.Name, p.Node, p.Host, want[i].Node, want[i].Host)
		}
	}
}

// TestAPictureOfMembersInTheNetworkOfTheirHosts: their address is what the node says now, no route leads there, and
// between two lives they are nowhere, whatever address of its own the identity keeps.
func TestAPictureOfMembersInTheNetworkOfTheirHosts(t *testing.T) {
	w := scene()
	w.Set.Spec.Template.Spec.HostNetwork = true
	w.Nodes[0].Facts.HostIP = "192.0.2.9"
	for i := range w.Slots {
		w.Slots[i].Member.HostNetwork, w.Slots[i].Member.Address = true, netip.MustParseAddr("192.0.2.1")
	}
	w.Slots[1].Member.Node = "n2" // which does not say
	w.Slots[2].Member, w.Slots[2].Report = nil, nil
	peers := BuildSnapshot(spec.Sequence{}, w.Set.Ref, w, nil, "cluster.local").Peers
	if len(peers) != 2 {
		t.Fatalf("got %+v, want two", peers)
	}
	for i, want := range []string{"192.0.2.9", "192.0.2.1"} {
		if p := peers[i]; p.Address != netip.MustParseAddr(want) || p.Host.IsValid() {
			t.Errorf("%s is at %s of %s, want %s alone", p.Name, p.Address, p.Host, want)
		}
	}
}

func TestPictureNames(t *testing.T) {
	ports := []spec.ServicePort{{Name: "client", Port: 2379, Protocol: "TCP"}}
	service := func(name string, selector map[string]string, all bool) *records.ServiceRecord {
		return &records.ServiceRecord{Meta: records.Meta{Name: name, Namespace: "default"}, Spec: spec.ServiceSpec{Selector: selector, Ports: ports, PublishNotReadyAddresses: all}}
	}
	app := map[string]string{"app": "db"}
	for _, c := range []struct {
		name     string
		services []*records.ServiceRecord
		want     []records.DNSName
	}{
		{"without a record there is the governing name", nil, []records.DNSName{{Name: "dbs"}}},
		{"the governing record gives ports and readiness", []*records.ServiceRecord{service("dbs", app, true)},
			[]records.DNSName{{Name: "dbs", PublishNotReady: true, Ports: ports}}},
		{"the governing one counts whatever it selects", []*records.ServiceRecord{service("dbs", map[string]string{"app": "other"}, false)},
			[]records.DNSName{{Name: "dbs", Ports: ports}}},
		{"others that select the members come too, sorted", []*records.ServiceRecord{service("zoo", app, false), service("api", app, true)},
			[]records.DNSName{{Name: "api", PublishNotReady: true, Ports: ports}, {Name: "dbs"}, {Name: "zoo", Ports: ports}}},
		{"others that do not are left out", []*records.ServiceRecord{
			service("a", map[string]string{"app": "x"}, false), service("b", nil, false), service("c", map[string]string{"app": "db", "tier": "1"}, false)},
			[]records.DNSName{{Name: "dbs"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := BuildSnapshot(spec.Sequence{}, refDB, scene(), c.services, "d").Names; !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestSRVShowsTheTargetPortOfAHeadlessService: what Kubernetes' endpoints hold. A named port
// that the template lacks has no record; a Service that is not headless keeps its own ports,
// which apply requires to be the members'.
func TestSRVShowsTheTargetPortOfAHeadlessService(t *testing.T) {
	ports := []spec.ServicePort{{Name: "same", Port: 2379}, {Name: "number", Port: 80, TargetPort: &scalar.PortRef{Number: 8080}},
		{Name: "named", Port: 81, TargetPort: &scalar.PortRef{Name: "http"}}, {Name: "udp", Port: 82, Protocol: "UDP", TargetPort: &scalar.PortRef{Name: "http"}},
		{Name: "nobody", Port: 83, TargetPort: &scalar.PortRef{Name: "nothing"}}}
	for clusterIP, want := range map[string]map[string]int32{
		"None": {"same": 2379, "number": 8080, "named": 8081},
		"":     {"same": 2379, "number": 80, "named": 81, "udp": 82, "nobody": 83},
	} {
		w := scene()
		w.Set.Spec.Template.Spec.Containers = []spec.Container{{Name: "other"}, {Name: "main", Ports: []spec.ContainerPort{{Name: "http", ContainerPort: 8081}}}}
		services := []*records.ServiceRecord{{Meta: records.Meta{Name: "dbs"}, Spec: spec.ServiceSpec{ClusterIP: clusterIP, Ports: ports, Selector: w.Set.Spec.Template.Metadata.Labels}}}
		got := map[string]int32{}
		for _, p := range BuildSnapshot(spec.Sequence{Epoch: 1, Rev: 5}, refDB, w, services, "cluster.local").Names[0].Ports {
			got[p.Name] = p.Port
		}
		if !maps.Equal(got, want) {
			t.Errorf("clusterIP %q: got %v, want %v", clusterIP, got, want)
		}
	}
	if ports[1].Port != 80 {
		t.Error("the stored Service was changed")
	}
}

// A set that is being renamed from db to dbs is found under both names; each of its
// members is listed as it was itself told.
func TestPictureOfARename(t *testing.T) {
	w := scene()
	w.Status = &records.SetStatus{ServiceName: "db"}
	w.Slots[0].Member.Service, w.Slots[1].Member.Service = "db", "dbs" // the third is of an earlier version
	old := &records.ServiceRecord{Meta: records.Meta{Name: "db", Namespace: "default"}, Spec: spec.ServiceSpec{PublishNotReadyAddresses: true, Selector: map[string]string{"app": "other"}}}
	p := BuildSnapshot(spec.Sequence{}, refDB, w, []*records.ServiceRecord{old}, "d")
	if want := []records.DNSName{{Name: "db", PublishNotReady: true}, {Name: "dbs"}}; p.Service != "dbs" || p.Former != "db" || !reflect.DeepEqual(p.Names, want) {
		t.Errorf("got %q and %q, %+v; want both, each by what its Service says", p.Service, p.Former, p.Names)
	}
	for i, want := range []string{"db-0.db.default.svc.d", "db-1.dbs.default.svc.d", "db-2.db.default.svc.d"} {
		if p.Peers[i].FQDN != want {
			t.Errorf("got %s, want %s", p.Peers[i].FQDN, want)
		}
	}
	p = BuildSnapshot(spec.Sequence{}, refDB, w, nil, "d")
	if !reflect.DeepEqual(p.Names, []records.DNSName{{Name: "db"}, {Name: "dbs"}}) {
		t.Errorf("got %+v; want both also without any Service", p.Names)
	}
	w.Status.ServiceName = "dbs"
	p = BuildSnapshot(spec.Sequence{}, refDB, w, []*records.ServiceRecord{old}, "d")
	if p.Former != "" || !reflect.DeepEqual(p.Names, []records.DNSName{{Name: "dbs"}}) {
		t.Errorf("got %q, %+v; want the new name alone", p.Former, p.Names)
	}
}

func TestPictureOfASet(t *testing.T) {
	w := scene()
	w.Bootstrapped = true
	p := BuildSnapshot(spec.Sequence{Epoch: 2, Rev: 7}, refDB, w, nil, "d")
	if p.Sequence != (spec.Sequence{Epoch: 2, Rev: 7}) || p.Ref != refDB || p.UID != "u1" || p.Generation != 1 ||
		p.Replicas != 3 || !p.Bootstrapped || p.Service != "dbs" || p.Gone {
		t.Fatalf("got %+v", p)
	}
	w.Set.Spec.ServiceName = ""
	if p := BuildSnapshot(spec.Sequence{}, refDB, w, nil, "d"); p.Service != "db" {
		t.Fatalf("got service %q, want the set's name", p.Service)
	}
	w.Set = nil
	want := records.Snapshot{Sequence: spec.Sequence{Epoch: 1, Rev: 9}, Ref: refDB, Gone: true}
	if got := BuildSnapshot(want.Sequence, refDB, w, nil, "d"); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

// Each peer's volumes are told to be new or used, and the ordinals the set began with are
// those of its beginning.
func TestAPictureTellsOfVolumesAndOfWhoBegan(t *testing.T) {
	w := scene()
	w.Set.Spec.Ordinals = &spec.Ordinals{Start: 1}
	w.Set.InitialReplicas, w.Set.InitialOrdinals = 2, &spec.Ordinals{}
	volume := func(ordinal int, claim spec.ClaimName, ready int, fate records.VolumeFate) {
		s := &w.Slots[ordinal]
		if s.Volumes == nil {
			s.Volumes = map[spec.ClaimName]*records.Volume{}
		}
		s.Volumes[claim] = &records.Volume{ID: s.ID, Claim: claim, Number: 1, Fate: fate}
		if s.Identity.VolumeReady == nil {
			s.Identity.VolumeReady = map[spec.ClaimName]int{}
		}
		s.Identity.VolumeReady[claim] = ready
	}
	w.Slots = append(w.Slots, plan.Slot{ID: ident(3), Identity: &records.IdentityRecord{ID: ident(3)}})
	volume(0, "data", 1, records.FateKeep)
	volume(0, "wal", 0, records.FateKeep)
	volume(1, "data", 0, records.FateKeep)
	volume(1, "old", 1, records.FateReclaiming)
	volume(3, "data", 1, records.FateRestoring) // no address yet, and no life
	p := BuildSnapshot(spec.Sequence{}, refDB, w, nil, "d")
	var got []string
	for _, peer := range p.Peers {
		got = append(got, peer.Name+" "+peer.Volumes)
	}
	if want := []string{"db-0 used", "db-1 new", "db-2 "}; !reflect.DeepEqual(got, want) {
		t.Errorf("peers %q, want %q", got, want)
	}
	if want := []records.Peer{{Name: "db-3", Ordinal: 3, FQDN: "db-3.dbs.default.svc.d", Volumes: records.VolumesUsed}}; !reflect.DeepEqual(p.Expected, want) {
		t.Errorf("expected %+v, want %+v", p.Expected, want)
	}
	if want := []int{0, 1}; !reflect.DeepEqual(p.InitialOrdinals, want) {
		t.Errorf("it began with %v, want %v", p.InitialOrdinals, want)
	}
	w.Set.InitialOrdinals = nil // made by an earlier version
	if p := BuildSnapshot(spec.Sequence{}, refDB, w, nil, "d"); !reflect.DeepEqual(p.InitialOrdinals, []int{1, 2}) {
		t.Errorf("it began with %v, want its present range", p.InitialOrdinals)
	}
}

func TestFilesOfATemplate(t *testing.T) {
	tpl := spec.Template{Spec: spec.MemberSpec{
		Volumes: []spec.VolumeMedia{
			{Name: "a", ConfigMap: &spec.ConfigMapVolume{Name: "conf"}}, {Name: "b", Secret: &spec.SecretVolume{SecretName: "cert"}},
			{Name: "c", EmptyDir: &spec.EmptyDir{}},
			{Name: "d", Projected: &spec.ProjectedVolume{Sources: []spec.Projection{
				{ConfigMap: &spec.ObjectProjection{Name: "part"}}, {Secret: &spec.ObjectProjection{Name: "tls"}}, {DownwardAPI: &spec.DownwardAPIProjection{}},
			}}},
		},
		Containers: []spec.Container{{
			Env: []spec.EnvVar{
				{Name: "A", Value: "x"},
				{Name: "B", ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "pass", Key: "k"}}},
				{Name: "C", ValueFrom: &spec.EnvVarSource{ConfigMapKeyRef: &spec.KeyRef{Name: "conf", Key: "k"}}},
			},
			EnvFrom: []spec.EnvFromSource{{ConfigMapRef: &spec.NameRef{Name: "all"}}, {SecretRef: &spec.NameRef{Name: "pass"}}},
		}},
	}}
	want := []FileRef{
		{KindConfigMap, "ns", "all"}, {KindConfigMap, "ns", "conf"}, {KindConfigMap, "ns", "part"},
		{KindSecret, "ns", "cert"}, {KindSecret, "ns", "pass"}, {KindSecret, "ns", "tls"},
	}
	if got := FilesOf("ns", &tpl); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	tpl.Spec.ImagePullSecrets = []spec.PullSecret{{Name: "pass"}, {Name: ""}, {Name: "key"}}
	pull := []FileRef{{KindSecret, "ns", "key"}, {KindSecret, "ns", "pass"}}
	all := append(append(slices.Clone(want[:4]), pull...), want[5])
	if got := FilesOf("ns", &tpl); !reflect.DeepEqual(got, all) {
		t.Errorf("with imagePullSecrets: got %v, want %v", got, all)
	}
	if got := PullSecretsOf("ns", &tpl); !reflect.DeepEqual(got, pull) {
		t.Errorf("imagePullSecrets: got %v, want %v", got, pull)
	}
	set := spec.SetSpec{Template: tpl}
	if got := SourcesOf("ns", &set); !reflect.DeepEqual(got, want) {
		t.Errorf("of files and variables: got %v, want %v", got, want)
	}
	set.Members = spec.Differences{{Ordinals: []spec.OrdinalSpan{{First: 1, Last: 1}}, Env: []spec.EnvVar{{Name: "A", ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "two"}}}}}}
	if got := SourcesOf("ns", &set); !reflect.DeepEqual(got, append(want, FileRef{KindSecret, "ns", "two"})) {
		t.Errorf("with that of one member: got %v", got)
	}
}

func TestFreshVolumesSayHowTheyCame(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	m := testMember(0, 10, "n1", "uid1")
	m.Volumes = []records.MemberVolume{{Claim: "data", Number: 1}, {Claim: "wal", Number: 2}, {Claim: "old", Number: 3}}
	id := records.IdentityRecord{ID: ident(0), LastToken: token(10), Address: addr(0), VolumeReady: map[spec.ClaimName]int{"old": 3, "wal": 1}}
	r.Put(store.IdentityKey(ident(0)), store.Encode(id))
	r.Put(store.MemberKey(ident(0)), store.Encode(m))
	tell := func(first string) {
		t.Helper()
		want := map[spec.ClaimName]string{"data": first, "wal": records.VolumeReplaced}
		if got := n.lives(n.wanted())[0].FreshVolumes; !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	tell(records.VolumeFirst)
	// A peer whose disk was used: no disk of the set is the first any more.
	peer := records.Volume{ID: ident(1), Claim: "data", Number: 1, Fate: records.FateKeep}
	r.Commit(store.Put(store.IdentityKey(ident(1)), store.Encode(records.IdentityRecord{ID: ident(1), VolumeReady: map[spec.ClaimName]int{"data": 1}})),
		store.Put(store.VolumeKey(ident(1), "data"), store.Encode(peer)), store.Put(store.MemberKey(ident(0)), store.Encode(m)))
	tell(records.VolumeReplaced)
	peer.Fate = records.FateReclaiming // nor is it there, once it is given up
	r.Commit(store.Put(store.VolumeKey(ident(1), "data"), store.Encode(peer)), store.Put(store.MemberKey(ident(0)), store.Encode(m)))
	tell(records.VolumeFirst)
	r.Commit(store.Put(store.BootstrappedKey("u1"), []byte("{}")), store.Put(store.MemberKey(ident(0)), store.Encode(m)))
	tell(records.VolumeReplaced)
	r.Commit(store.Del(store.BootstrappedKey("u1")), store.Put(store.MemberKey(ident(0)), store.Encode(m)))
	tell(records.VolumeFirst)
	id.VolumeReady = map[spec.ClaimName]int{"old": 3, "wal": 2, "data": 1}
	r.Put(store.IdentityKey(ident(0)), store.Encode(id))
	if got := n.lives(n.wanted())[0].FreshVolumes; len(got) != 0 {
		t.Fatalf("got %v, want none once ready", got)
	}
	r.Put(store.BootstrappedKey("u1"), []byte("{}"))
	if l := n.lives(n.wanted())[0]; !l.Bootstrapped {
		t.Fatal("the life does not tell that its set is bootstrapped")
	}
}

// What the others forgot is told with the life, in the epoch in which that was recorded only (SAFETY S19).
func TestALifeSaysThatItsMemberWasForgotten(t *testing.T) {
	r := newRig(t)
	r.begin()
	n := r.connect(n1)
	n.wanted()
	m := testMember(0, 10, "n1", "uid1")
	id := records.IdentityRecord{ID: ident(0), LastToken: token(10), Address: addr(0), Forgotten: &hooks.ForgottenLife{Token: token(7), Epoch: 1}}
	r.Commit(store.Put(store.IdentityKey(ident(0)), store.Encode(id)), store.Put(store.MemberKey(ident(0)), store.Encode(m)))
	if got := n.lives(n.wanted())[0].Forgotten; got != token(7) {
		t.Fatalf("got %v, want the life 7", got)
	}
	tell := func(f *hooks.ForgottenLife) {
		t.Helper()
		id.Forgotten = f
		r.Put(store.IdentityKey(ident(0)), store.Encode(id))
		if got := n.lives(n.wanted())[0].Forgotten; !got.IsZero() {
			t.Fatalf("record %+v: got %v, want none", f, got)
		}
		id.Forgotten = &hooks.ForgottenLife{Token: token(7), Epoch: 1}
		r.Put(store.IdentityKey(ident(0)), store.Encode(id))
		n.wanted()
	}
	tell(&hooks.ForgottenLife{Token: token(7), Epoch: 2})
	tell(nil)
}
