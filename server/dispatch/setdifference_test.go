package dispatch

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	goproto "google.golang.org/protobuf/proto"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/proto/wire"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/netpol"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// sameSet compares snapshots, whenever each was made.
var sameSet = []cmp.Option{cmpopts.EquateEmpty(), cmpopts.EquateComparable(records.Peer{}, netip.Addr{}, netip.Prefix{}), cmpopts.IgnoreFields(records.Snapshot{}, "Sequence")}

// receiver takes differences as an agent does, and fails when one does not fit.
type receiver struct {
	t       *testing.T
	version uint64
	sets    map[spec.SetRef]records.Snapshot
	numbers map[spec.SetRef]uint64
	brief   map[spec.SetRef]bool // the sets that it takes in brief
	wholes  int
	parts   int
	turns   int // of the parts
}

func newReceiver(t *testing.T) *receiver {
	return &receiver{t: t, sets: map[spec.SetRef]records.Snapshot{}, numbers: map[spec.SetRef]uint64{}, brief: map[spec.SetRef]bool{}}
}

func (r *receiver) take(p *snapshotPublisher, asked, turned map[spec.SetRef]bool) {
	r.t.Helper()
	n := p.since(need{since: r.version, whole: asked, turned: turned, differences: true, brief: func(ref spec.SetRef) bool { return r.brief[ref] }})
	r.version = n.next
	for _, doc := range n.sets {
		var d proto.SetDifference
		if err := goproto.Unmarshal(doc, &d); err != nil {
			r.t.Fatal(err)
		}
		ref := wire.ToSetRef(d.GetSet())
		r.wholes++
		if d.GetBase() != 0 {
			r.wholes--
			r.parts++
			if d.GetBase() != r.numbers[ref] {
				r.t.Fatalf("%s: a difference from %d to %d was sent to who has %d", ref, d.GetBase(), d.GetNumber(), r.numbers[ref])
			}
		}
		if had, there := r.sets[ref]; d.GetBase() != 0 && (!there || d.GetTurned() != (d.GetBrief() != had.Brief)) {
			r.t.Fatalf("%s: in brief: %v, and turned: %v, for who has %+v", ref, d.GetBrief(), d.GetTurned(), had)
		}
		if d.GetTurned() {
			r.turns++
		}
		r.sets[ref], r.numbers[ref] = wire.ApplySet(r.sets[ref], &d, p.domain), d.GetNumber()
		if d.GetGone() {
			delete(r.sets, ref)
		}
	}
}

// anySetOp writes a record that a snapshot is made of, or deletes it.
func anySetOp(r *rand.Rand) store.Op {
	id := anyMember(r)
	node := []spec.NodeName{"n1", "n2", "n3"}[r.IntN(3)]
	put := func(key string, record any) store.Op { return store.Put(key, store.Encode(record)) }
	volume := records.Volume{ID: id, Claim: "data", Number: 1, Node: node, Fate: []records.VolumeFate{records.FateKeep, records.FateGone}[r.IntN(2)]}
	ops := []store.Op{
		put(store.NodeKey(node), records.Node{Name: node, UID: spec.UID(node)}),
		put(store.FactsKey(node), records.NodeFacts{Name: node, UID: spec.UID(node), Boot: "b1", HostIP: fmt.Sprint("192.0.2.", r.IntN(2))}),
		put(store.SessionKey(node), records.Session{Node: node, UID: spec.UID(node), Boot: "b1", ID: spec.SessionID(r.Int64N(2)), Resumed: r.IntN(2) == 0}),
		put(store.ServiceKey("default", "svc"), records.ServiceRecord{Meta: records.Meta{Namespace: "default", Name: "svc"}, Spec: spec.ServiceSpec{
			Selector: []map[string]string{nil, {"app": "db"}}[r.IntN(2)], Ports: []spec.ServicePort{{Name: "p", Port: 1 + r.Int32N(3), NodePort: 30000 + r.Int32N(2)}},
			SessionAffinity: []string{"", "ClientIP"}[r.IntN(2)], InternalTrafficPolicy: []string{"", "Local"}[r.IntN(2)],
			ExternalTrafficPolicy: []string{"", "Local"}[r.IntN(2)], HealthCheckNodePort: r.Int32N(2), LoadBalancerSourceRanges: []string{"10.0.0.0/8"}[:r.IntN(2)]},
			LoadBalancer: []netip.Addr{{}, netip.MustParseAddr("203.0.113.1")}[r.IntN(2)],
			Address:      []netip.Addr{{}, netip.MustParseAddr("10.89.0.1")}[r.IntN(2)]}),
		put(store.IdentityKey(id), records.IdentityRecord{ID: id, Address: addr(id.Ordinal), VolumeReady: map[spec.ClaimName]int{"data": r.IntN(2)}}),
		put(store.IdentityKey(id), records.IdentityRecord{ID: id}),
		put(store.VolumeKey(id, "data"), volume),
		put(store.StatusKey(id.Ref()), records.SetStatus{ServiceName: []string{"a", "a", "b", ""}[r.IntN(4)]}),
		put(store.SetKey(id.Ref()), records.Set{Ref: id.Ref(), UID: "u1", Spec: spec.SetSpec{ServiceName: "a", Replicas: new(r.Int32N(4)), Template: testTemplate()}}),
		anyPolicyOp(r), relabelled(r, id.Ref()),
	}
	for range 8 {
		m := records.Member{ID: id, Token: token(r.Int64N(2)), Node: node, NodeUID: spec.UID(node), Boot: "b1", Revision: "r1",
			Goal: records.GoalRun, Service: []string{"", "a", "b"}[r.IntN(3)]}
		if r.IntN(4) > 0 {
			m.Address = addr(id.Ordinal)
		}
		ops = append(ops, put(store.MemberKey(id), m), put(store.ReportKey(id), records.Report{
			ID: id, Token: token(r.Int64N(2)), Session: spec.SessionID(r.Int64N(2)), Phase: records.PhaseRunning, Ready: r.IntN(3) > 0}))
	}
	op := ops[r.IntN(len(ops))]
	if r.IntN(5) == 0 {
		return store.Del(op.Key)
	}
	return op
}

// anyPolicyOp writes a NetworkPolicy that may name sets by their labels, and ports by their names.
func anyPolicyOp(r *rand.Rand) store.Op {
	app := func() *spec.LabelSelector {
		return &spec.LabelSelector{MatchLabels: map[string]string{"app": []string{"db", "kv"}[r.IntN(2)]}}
	}
	record := records.NetworkPolicyRecord{Meta: records.Meta{Namespace: "default", Name: []string{"p", "q"}[r.IntN(2)]}, Spec: netpol.NetworkPolicySpec{
		PodSelector: *app(), PolicyTypes: []string{netpol.Ingress, netpol.Egress},
		Ingress: []netpol.PolicyIngress{{From: []netpol.PolicyPeer{{PodSelector: app()}, {IPBlock: &netpol.IPBlock{CIDR: "10.0.0.0/8"}}}}}[:r.IntN(2)],
		Egress: []netpol.PolicyEgress{{Ports: []netpol.PolicyPort{{Port: &scalar.PortRef{Name: "http"}}}},
			{To: []netpol.PolicyPeer{{NamespaceSelector: &spec.LabelSelector{}}}}}[:r.IntN(3)],
	}}
	return store.Put(store.NetworkPolicyKey("default", record.Name), store.Encode(record))
}

// relabelled writes a set with any of the labels and ports that policies may name.
func relabelled(r *rand.Rand, ref spec.SetRef) store.Op {
	set := records.Set{Ref: ref, UID: "u1", Generation: r.Int64N(1 << 40), Spec: spec.SetSpec{ServiceName: "a", Replicas: new(r.Int32N(4)), Template: testTemplate()}}
	set.Spec.Template.Metadata.Labels = map[string]string{"app": []string{"db", "kv"}[r.IntN(2)]}
	set.Spec.Template.Spec.Containers[0].Ports = []spec.ContainerPort{{Name: "http", ContainerPort: 80 + r.Int32N(2)}}[:r.IntN(2)]
	return store.Put(store.SetKey(ref), store.Encode(set))
}

// A snapshot that is patched by what moved is the one that is built of the whole set, at each step; and
// a node that is sent differences has it, however many rounds it missed (SAFETY S15).
func TestAPatchedSnapshotIsTheBuiltOne(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, random := newStill(t), rand.New(rand.NewPCG(seed, 2))
			sub := r.Cache.Subscribe()
			defer sub.Close()
			p := newSnapshotPublisher(r.Cache, "d")
			each, slow, brief, varying := newReceiver(t), newReceiver(t), newReceiver(t), newReceiver(t)
			refs := []spec.SetRef{refDB, {Namespace: "default", Name: "kv"}}
			brief.brief = map[spec.SetRef]bool{refs[0]: true, refs[1]: true}
			for step := range 600 {
				var last string
				for range 1 + random.IntN(3) {
					op := anySetOp(random)
					if random.IntN(8) == 0 {
						op = anyOp(random)
					}
					last = op.Key
					r.Commit(op)
				}
				p.round(sub.Take())
				each.take(p, nil, nil)
				brief.take(p, nil, nil)
				turned := map[spec.SetRef]bool{}
				if ref := refs[random.IntN(2)]; random.IntN(10) == 0 {
					turned[ref], varying.brief[ref] = true, !varying.brief[ref]
				}
				varying.take(p, nil, turned)
				receivers := []*receiver{each, brief, varying}
				if random.IntN(6) == 0 {
					slow.take(p, map[spec.SetRef]bool{refDB: random.IntN(4) == 0}, nil)
					receivers = append(receivers, slow)
				}
				r.Cache.Look(func(v cache.View) {
					s := newSight(v, "d")
					for _, ref := range refs {
						want := s.build(ref)
						if got := p.sets[ref]; got != nil && !cmp.Equal(want, got.body, sameSet...) || got == nil && !want.Gone {
							t.Fatalf("seed %d, step %d, after %s: published\n%s", seed, step, last, cmp.Diff(want, p.sets[ref].body, sameSet...))
						}
						for i, node := range receivers {
							want := want
							if node.brief[ref] {
								want = want.InBrief()
							}
							if got, has := node.sets[ref]; has == want.Gone || has && !cmp.Equal(want, got, sameSet...) {
								t.Fatalf("seed %d, step %d, after %s: node %d has\n%s", seed, step, last, i, cmp.Diff(want, got, sameSet...))
							}
						}
					}
				})
			}
			if each.parts < 100 || slow.parts < 20 || brief.parts < 50 || varying.parts < 50 || varying.turns < 20 || each.wholes == 0 {
				t.Errorf("only %d, %d, %d and %d differences, %d turns and %d wholes were sent",
					each.parts, slow.parts, brief.parts, varying.parts, varying.turns, each.wholes)
			}
			if brief.parts >= each.parts*9/10 {
				t.Errorf("in brief %d differences were sent, in full %d", brief.parts, each.parts)
			}
		})
	}
}

// A node where the first member of a set starts is sent what it did not know in brief, not what it knew.
func TestATurnIsAsLongAsWhatABriefSetDoesNotSay(t *testing.T) {
	r := newStill(t)
	r.begin()
	r.Record(store.SetKey(refDB), testSet(200))
	r.Record(store.StatusKey(refDB), records.SetStatus{ServiceName: "dbs"})
	for i := range 200 {
		r.live(i, 10, "n1", "uid1")
	}
	p, sub := newSnapshotPublisher(r.Cache, "d"), r.Cache.Subscribe()
	defer sub.Close()
	p.round(sub.Take())
	brief := func(yes bool) func(spec.SetRef) bool { return func(spec.SetRef) bool { return yes } }
	size := func(n need) (bytes int) {
		n.differences = true
		for _, doc := range p.since(n).sets {
			bytes += len(doc)
		}
		return bytes
	}
	whole := size(need{since: 0})
	for name, toBrief := range map[string]bool{"to full": false, "to brief": true} {
		turn := size(need{since: p.version, brief: brief(toBrief), turned: map[spec.SetRef]bool{refDB: true}})
		if turn == 0 || turn > whole/20 {
			t.Errorf("%s: %d bytes, the whole set is %d", name, turn, whole)
		}
	}
}

// A step in a set costs what it costs in a small one: what is sent does not grow with the set, and
// who missed many is sent the set once.
func TestADifferenceIsAsLongAsWhatChanged(t *testing.T) {
	sizes := map[int]int{}
	for _, members := range []int{10, 200} {
		r := newStill(t)
		r.begin()
		set := testSet(int32(members))
		r.Record(store.SetKey(refDB), set)
		r.Record(store.StatusKey(refDB), records.SetStatus{ServiceName: "dbs"})
		for i := range members {
			r.live(i, 10, "n1", "uid1")
		}
		p, sub := newSnapshotPublisher(r.Cache, "d"), r.Cache.Subscribe()
		defer sub.Close()
		p.round(sub.Take())
		start := p.since(need{since: 0, differences: true})
		for i := range members {
			r.Record(store.MemberKey(ident(i)), testMember(i, 11, "n2", "uid1"))
			p.round(sub.Take())
			n := p.since(need{since: p.version - 1, differences: true})
			if len(n.sets) != 1 {
				t.Fatalf("%d messages", len(n.sets))
			}
			sizes[members] = len(n.sets[0])
		}
		late, whole := p.since(need{since: start.next, differences: true}), p.since(need{since: 0, differences: true})
		if len(late.sets) != 1 || !slices.Equal(late.sets[0], whole.sets[0]) {
			t.Errorf("who missed %d rounds is sent %d messages", members, len(late.sets))
		}
		if again := p.since(need{since: 0, differences: true}); &again.sets[0][0] != &whole.sets[0][0] {
			t.Error("what two sessions are sent was marshalled twice")
		}
	}
	if sizes[200] > sizes[10]+4 || sizes[200] > 100 {
		t.Errorf("one member of 200 is %d bytes, one of 10 %d", sizes[200], sizes[10])
	}
}
