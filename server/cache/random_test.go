package cache

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/hooks"
	"github.com/stead-project/stead/records/moves"
	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/server/tally"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// viewContent is all a View tells, for comparison.
type viewContent struct {
	Rev       store.Rev
	Sets      []spec.SetRef
	Worlds    []plan.World
	On        [][]spec.Identity
	Orders    [][]*records.Volume
	Said      [][]*records.VolumeReport
	Moves     [][]*moves.Move
	Placed    [][]*records.Volume
	Removed   []spec.SetRef
	Claims    []*plan.ClaimState
	Users     int // members that have the volume of a claim
	Nodes     []plan.Node
	Addresses map[string]*records.AddressRecord
	Services  map[netip.Addr]*records.ServiceAddress
	Ports     map[int32]*records.NodePort
	Web       *records.ServiceRecord // and its endpoints
	Endpoints *records.EndpointsRecord
	Slices    []*records.SliceRecord
	Policies  []*records.NetworkPolicyRecord
	Quotas    []*records.QuotaRecord
	Unread    []string // quotas
	Used      tally.Totals
	Servers   []*records.Server
	Revs      [2]store.Rev // of count and hellos
	Format    *records.Format
	Keys      KeyState
	Authority AuthorityState
	Held      int // sets and nodes of which anything is kept
}

func contentOf(c *Cache) (p viewContent) {
	c.Look(func(v View) {
		p = viewContent{Rev: v.Rev(), Sets: v.Sets(), Nodes: v.Nodes(), Addresses: v.Addresses(), Services: maps.Clone(ServiceAddresses(v)), Ports: maps.Clone(NodePorts(v)), Removed: v.RemovedSets()}
		p.Web, p.Endpoints, p.Slices = FindService(v, "default", "web"), FindEndpoints(v, "default", "web"), SlicesOf(v, "default", "web")
		p.Revs = [2]store.Rev{v.ModRev(store.CountKey), v.ModRev(store.HellosKey)}
		p.Policies, p.Servers, p.Format = NetworkPolicies(v, "default"), Servers(v), Format(v)
		p.Keys, p.Authority = KeysOf(v), AuthorityOf(v)
		p.Quotas, p.Unread = Quotas(v, "default")
		held := HeldIn(v, "default")
		p.Used = held.Totals()
		p.Worlds, p.Claims = append(p.Worlds, v.World(files.Ref())), append(p.Claims, ClaimOf(v, "default", "files"))
		for i := range 2 {
			p.Worlds = append(p.Worlds, v.World(refOf(i)))
			p.On = append(p.On, v.MembersOn(nodeOf(i)))
			p.Orders = append(p.Orders, v.VolumesOn(nodeOf(i)))
			p.Said = append(p.Said, v.VolumeReportsOn(nodeOf(i)))
			p.Moves = append(p.Moves, MovesOn(v, nodeOf(i)))
			p.Placed = append(p.Placed, PlacedOn(v, nodeOf(i)))
		}
	})
	p.Users = len(c.state.claimUsers[files])
	p.Held = len(c.state.sets) + 100*len(c.state.nodes) + 10000*len(c.state.unknownLives) + 1000000*len(c.state.unknownVolumes) + 10000000*len(c.state.placed)
	return p
}

// files is the identity of a claim that sets mount.
var files = spec.ClaimIdentity("default", "files")

func refOf(i int) spec.SetRef {
	return spec.SetRef{Namespace: "default", Name: spec.SetName(fmt.Sprint("s", i))}
}
func nodeOf(i int) spec.NodeName { return spec.NodeName(fmt.Sprint("n", i)) }

func volumeOf(r *rand.Rand) records.VolumeID { return records.VolumeID(fmt.Sprint("v", r.IntN(2))) }

func saidOf(id spec.Identity, node spec.NodeName, v records.VolumeID) store.Op {
	return put(store.VolumeReportKey(id, "data", v), records.VolumeReport{ID: id, Claim: "data", Volume: v, Node: node})
}

// asking is a template that asks for something, and perhaps avoids others.
func asking(r *rand.Rand) spec.Template {
	t := spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{
		Resources: spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"cpu": {Milli: r.Int64N(3)}, "memory": {Milli: 1000 * r.Int64N(3)}}},
	}}}}
	if r.IntN(2) == 0 {
		t.Spec.Volumes = []spec.VolumeMedia{{Name: "v", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "files"}}}
	}
	term := spec.MemberTerm{TopologyKey: "zone", LabelSelector: &spec.LabelSelector{}}
	switch r.IntN(6) {
	case 0:
		t.Spec.Affinity = &spec.Affinity{PodAntiAffinity: &spec.MemberAffinity{Required: []spec.MemberTerm{term}}}
	case 1:
		t.Spec.Affinity = &spec.Affinity{PodAffinity: &spec.MemberAffinity{Preferred: []spec.PreferredMember{{Weight: 1, Term: term}}}}
	}
	return t
}

// metaOf is that of an object web, perhaps with the label of a slice of the Service web.
func metaOf(r *rand.Rand) records.Meta {
	return records.Meta{Namespace: "default", Name: "web", Generation: r.Int64N(3), Labels: map[string]string{records.ServiceNameLabel: []string{"web", "other"}[r.IntN(2)]}}
}

// randomOp writes or deletes one of a few keys, sometimes with junk.
func randomOp(r *rand.Rand) store.Op {
	ref, node := refOf(r.IntN(2)), nodeOf(r.IntN(2))
	id := spec.Identity{Namespace: ref.Namespace, Set: ref.Name, Ordinal: r.IntN(3)}
	ops := []store.Op{
		put(store.SetKey(ref), records.Set{Ref: ref, UID: spec.UID(fmt.Sprint(r.IntN(3))), Spec: spec.SetSpec{Template: asking(r)}}),
		put(store.StatusKey(ref), records.SetStatus{Replicas: r.IntN(9)}),
		put(store.RevisionKey(ref, "h"), records.Revision{Ref: ref, Hash: "h", Number: r.Int64N(5), Template: asking(r)}),
		store.PutRecord(store.MemberKey(id), records.Member{ID: id, Token: token(r.Int64N(3)), Node: node, Revision: []spec.RevisionHash{"h", "i"}[r.IntN(2)]}),
		store.PutRecord(store.MemberKey(id), records.Member{ID: id, Token: token(r.Int64N(3)), Node: node, Volumes: []records.MemberVolume{{Claim: "files", ID: "v", Object: true}}}),
		store.PutRecord(store.ReportKey(id), records.Report{ID: id, Token: token(r.Int64N(3))}),
		put(store.KeyringKey, sealing.Ring{Sealing: sealing.KeyID(fmt.Sprint(r.IntN(3)))}),
		put(store.ServerKeysKey("a"), sealing.ServerKeys{Server: "a", Has: []sealing.KeyID{sealing.KeyID(fmt.Sprint(r.IntN(3)))}}),
		put(store.AuthorityKey, sealing.Authority{Certificate: []byte{byte(r.IntN(3))}}),
		put(store.ServerAuthoritiesKey("a"), sealing.ServerAuthorities{Server: "a", Calls: sealing.AuthorityID(fmt.Sprint(r.IntN(3)))}),
		put(store.CertifiedKey(node), sealing.Certified{Node: node, By: sealing.AuthorityID(fmt.Sprint(r.IntN(3)))}),
		put(store.GivenKeysKey("a"), sealing.GivenKeys{Server: "a", To: []byte{byte(r.IntN(3))}}),
		put(store.ClaimKey("default", "files"), records.ClaimRecord{Meta: records.Meta{Namespace: "default", Name: "files"}, Deleting: r.IntN(2) == 0}),
		put(store.NetworkPolicyKey("default", "a"), records.NetworkPolicyRecord{Meta: records.Meta{Namespace: "default", Name: "a", Generation: r.Int64N(3)}}),
		put(store.QuotaKey("default", "a"), records.QuotaRecord{Meta: records.Meta{Namespace: "default", Name: "a", Generation: r.Int64N(3)}}),
		put(store.VolumeKey(files, "files"), records.Volume{ID: files, Claim: "files", UID: volumeOf(r), Node: node, Fate: records.FateKeep}),
		store.PutRecord(store.IdentityKey(files), records.IdentityRecord{ID: files, VolumeNumbers: map[spec.ClaimName]int{"files": r.IntN(3)}}),
		store.PutRecord(store.IdentityKey(id), records.IdentityRecord{ID: id, LastToken: token(r.Int64N(3))}),
		put(store.VolumeKey(id, "data"), records.Volume{ID: id, Claim: "data", UID: volumeOf(r), Node: node,
			Fate: []records.VolumeFate{records.FateKeep, records.FateDelete, records.FateReclaiming, records.FateRestoring}[r.IntN(4)], Turn: r.IntN(2)}),
		put(store.VolumeRequestKey(id, "data"), records.VolumeRequest{ID: id, Claim: "data", Volume: volumeOf(r), Verb: []records.VolumeVerb{records.VerbReclaim, records.VerbRestore}[r.IntN(2)]}),
		saidOf(id, node, volumeOf(r)),
		put(store.MoveKey(id), moves.Move{ID: id, From: moves.MoveEnd{Node: nodeOf(0)}, To: moves.MoveEnd{Node: nodeOf(r.IntN(2))}}),
		put(store.MoveRequestKey(id), moves.MoveRequest{ID: id, Verb: moves.MoveBegin, To: moves.MoveEnd{Node: node}}),
		store.PutRecord(store.EventKey(ref, "e"), records.Event{Ref: ref}),
		put(store.NodeKey(node), records.Node{Name: node, UID: "a"}),
		put(store.SessionKey(node), records.Session{Node: node, UID: []spec.UID{"a", "b"}[r.IntN(2)]}),
		put(store.FactsKey(node), records.NodeFacts{Name: node, UID: "a", Strays: []spec.LifeID{{ID: id, Token: token(9)}}[:r.IntN(2)]}),
		put(store.AddressKey(netip.MustParseAddr("10.88.0.1")), records.AddressRecord{Address: netip.MustParseAddr("10.88.0.1"), ID: id}),
		put(store.ServiceAddressKey(netip.MustParseAddr("10.89.0.1")), records.ServiceAddress{Address: netip.MustParseAddr("10.89.0.1"), Freed: r.IntN(2) == 0}),
		put(store.NodePortKey(30001), records.NodePort{Port: 30001, Name: []string{"a", "b"}[r.IntN(2)]}),
		put(store.ServiceKey("default", "web"), records.ServiceRecord{Meta: metaOf(r)}),
		put(store.EndpointsKey("default", "web"), records.EndpointsRecord{Meta: metaOf(r)}),
		put(store.SliceKey("default", "web"), records.SliceRecord{Meta: metaOf(r)}),
		put(store.HoldKey, records.Hold{Cause: "seen"}), put(store.CountKey, records.Count{Epoch: int64(r.IntN(2))}), put(store.HellosKey, "n"), put(store.FormatKey, records.Format{Lowest: 1 + r.IntN(2)}),
		put(store.KnownKey("a"), records.Known{Nodes: map[spec.NodeName]spec.UID{node: "a"}}),
		put(store.ServerKey("s1"), records.Server{Name: []string{"s1", "s2"}[r.IntN(2)], UID: "u"}),
		store.Put(store.BootstrappedKey(spec.UID(fmt.Sprint(r.IntN(3)))), nil),
		store.Put(store.WasBootstrappedKey(ref), nil),
		put(store.JobsKey(ref), hooks.Jobs{Ref: ref, Epoch: r.Int64N(3)}),
	}
	op := ops[r.IntN(len(ops))]
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		return store.Del(op.Key)
	case 4:
		op.Value, op.Record = []byte("junk"), nil
	}
	return op
}

func TestFollowingEqualsLoading(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	s := memstore.New()
	c, _ := start(t, s)
	log := slog.New(slog.DiscardHandler)
	for step := range 2000 {
		op := randomOp(r)
		by := store.Store(s)
		if r.IntN(2) == 0 {
			by = c.Writer(s)
		}
		rev := commit(t, by, op)
		if op.Delete { // a deletion of nothing is no event
			rev = 0
		}
		wait(t, c, rev)
		if step%5 != 0 {
			continue
		}
		at, kvs, err := s.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		wait(t, c, at)
		loaded := New(s, log)
		if err := loaded.Load(at, kvs); err != nil {
			t.Fatal(err)
		}
		if got, want := contentOf(c), contentOf(loaded); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d step %d after %s: the followed cache differs from a loaded one\ngot  %+v\nwant %+v", seed, step, op.Key, got, want)
		}
	}
}

func TestWhatWasHandedOutNeverChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	s := memstore.New()
	c, _ := start(t, s)
	for range 300 {
		var held plan.World
		c.Look(func(v View) { held = v.World(refOf(0)) })
		before := fmt.Sprintf("%+v", store.Encode(held.Slots)) + string(store.Encode(held.Nodes))
		var rev store.Rev
		for range 5 {
			if op := randomOp(r); !op.Delete {
				rev = commit(t, s, op)
			}
		}
		wait(t, c, rev)
		after := fmt.Sprintf("%+v", store.Encode(held.Slots)) + string(store.Encode(held.Nodes))
		if before != after {
			t.Fatalf("a world changed after it was cut out\nbefore %s\nafter  %s", before, after)
		}
	}
}
