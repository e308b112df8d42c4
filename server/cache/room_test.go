package cache

import (
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/records/inplace"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/store/memstore"
)

// TestWhoRunsIsToldToThoseWhomTheirTermsName: what else runs on a node is gathered for a set only if its own template
// asks for it, or a life has a term that may name its members; of whatever kind the term is.
func TestWhoRunsIsToldToThoseWhomTheirTermsName(t *testing.T) {
	naming := func(labels map[string]string) spec.MemberTerm {
		return spec.MemberTerm{TopologyKey: "zone", LabelSelector: &spec.LabelSelector{MatchLabels: labels}}
	}
	one, ofMember := naming(map[string]string{"app": "db"}), naming(map[string]string{"apps.kubernetes.io/pod-index": "0"})
	keyed := one
	keyed.MatchLabelKeys = []string{"track"}
	everywhere := one
	everywhere.NamespaceSelector = &spec.LabelSelector{}
	required := func(term spec.MemberTerm) *spec.MemberAffinity {
		return &spec.MemberAffinity{Required: []spec.MemberTerm{term}}
	}
	preferred := func(term spec.MemberTerm) *spec.MemberAffinity {
		return &spec.MemberAffinity{Preferred: []spec.PreferredMember{{Weight: 1, Term: term}}}
	}
	tests := []struct {
		name     string
		affinity *spec.Affinity
		life     bool
		in       spec.Namespace
		want     bool
	}{
		{"none has terms", nil, true, "default", false},
		{"required anti-affinity", &spec.Affinity{PodAntiAffinity: required(one)}, true, "default", true},
		{"preferred anti-affinity", &spec.Affinity{PodAntiAffinity: preferred(one)}, true, "default", true},
		{"required affinity", &spec.Affinity{PodAffinity: required(one)}, true, "default", true},
		{"preferred affinity", &spec.Affinity{PodAffinity: preferred(one)}, true, "default", true},
		{"a label that each member has", &spec.Affinity{PodAffinity: preferred(ofMember)}, true, "default", true},
		{"narrowed by a key", &spec.Affinity{PodAffinity: preferred(keyed)}, true, "default", true},
		{"of others", &spec.Affinity{PodAntiAffinity: required(naming(map[string]string{"app": "zk"}))}, true, "default", false},
		{"in another namespace", &spec.Affinity{PodAntiAffinity: required(one)}, true, "other", false},
		{"from another namespace", &spec.Affinity{PodAntiAffinity: required(everywhere)}, true, "other", true},
		{"of a set without a life", &spec.Affinity{PodAntiAffinity: required(one)}, false, "default", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := memstore.New()
			c, _ := start(t, s)
			db, web := spec.SetRef{Namespace: "default", Name: "db"}, spec.SetRef{Namespace: tt.in, Name: "web"}
			set := func(ref spec.SetRef, m spec.MemberSpec) records.Set {
				return records.Set{Ref: ref, Spec: spec.SetSpec{Template: spec.Template{Metadata: spec.ObjectMeta{Labels: map[string]string{"app": string(ref.Name)}}, Spec: m}}}
			}
			other := set(web, spec.MemberSpec{Affinity: tt.affinity})
			ops := []store.Op{
				put(store.NodeKey("n1"), records.Node{Name: "n1", UID: "a"}), put(store.SetKey(db), set(db, spec.MemberSpec{})), put(store.SetKey(web), other),
				put(store.RevisionKey(web, "h"), records.Revision{Ref: web, Hash: "h", Template: other.Spec.Template}),
			}
			id := spec.Identity{Namespace: web.Namespace, Set: web.Name}
			if tt.life {
				ops = append(ops, put(store.MemberKey(id), records.Member{ID: id, Token: token(1), Node: "n1", Revision: "h"}))
			}
			var rev store.Rev
			for _, op := range ops {
				rev = commit(t, s, op)
			}
			given := func() (is, changed bool) {
				wait(t, c, rev)
				c.Look(func(v View) {
					w := v.World(db)
					is, changed = w.Nodes[0].Residents != nil, v.WorldWith(w.Set).Nodes[0].Residents != nil
				})
				return is, changed
			}
			if is, changed := given(); is != tt.want || changed != tt.want {
				t.Errorf("its planner sees who runs there: %v, its forecast %v; want %v", is, changed, tt.want)
			}
			rev = commit(t, s, store.Op{Key: store.MemberKey(id), Delete: true})
			if is, _ := given(); is {
				t.Error("it sees them after the last life with such a term")
			}
		})
	}
}

func TestAMemberTakesOfItsNodeWhatItAsksForItself(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	db := spec.SetRef{Namespace: "default", Name: "db"}
	of := func(memory int64) spec.ResourceRequirements {
		return spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"memory": {Milli: memory * 1000}}}
	}
	own := of(70)
	set := records.Set{Ref: db, Spec: spec.SetSpec{Template: spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "db", Resources: of(10)}}}},
		Members: spec.Differences{{Ordinals: []spec.OrdinalSpan{{First: 1, Last: 1}}, Resources: &own}}}}
	ops := []store.Op{
		put(store.NodeKey("n1"), records.Node{Name: "n1", UID: "a"}), put(store.SetKey(db), set),
		put(store.RevisionKey(db, "h"), records.Revision{Ref: db, Hash: "h", Template: set.Spec.Template, Members: set.Spec.Members}),
	}
	for ordinal := range 3 {
		id := spec.Identity{Namespace: "default", Set: "db", Ordinal: ordinal}
		ops = append(ops, put(store.MemberKey(id), records.Member{ID: id, Node: "n1", Revision: "h"}))
	}
	var rev store.Rev
	for _, op := range ops {
		rev = commit(t, s, op)
	}
	wait(t, c, rev)
	c.Look(func(v View) {
		if got := v.World(db).Nodes[0].MemoryBytes; got != 90 {
			t.Errorf("the three take %d bytes; want 10 + 70 + 10", got)
		}
	})
}

// From the order of a change in place on a life takes the more of what it has and is to have.
func TestAMemberThatIsChangedTakesTheMoreOfItsNode(t *testing.T) {
	s := memstore.New()
	c, _ := start(t, s)
	db := spec.SetRef{Namespace: "default", Name: "db"}
	asks := func(cpu, memory int64) spec.Template {
		return spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{Name: "db", Resources: spec.ResourceRequirements{
			Requests: map[string]scalar.Quantity{"cpu": {Milli: cpu}, "memory": {Milli: memory * 1000}}}}}}}
	}
	id := spec.Identity{Namespace: "default", Set: "db"}
	commit(t, s, put(store.NodeKey("n1"), records.Node{Name: "n1", UID: "a"}))
	for h, template := range map[spec.RevisionHash]spec.Template{"h": asks(10, 70), "h2": asks(20, 30)} {
		commit(t, s, put(store.RevisionKey(db, h), records.Revision{Ref: db, Hash: h, Template: template}))
	}
	for _, tc := range []struct {
		member      records.Member
		cpu, memory int64
	}{
		{records.Member{Revision: "h"}, 10, 70},
		{records.Member{Revision: "h", Change: &inplace.ChangeOrder{Revision: "h2"}}, 20, 70},
		{records.Member{Revision: "h2"}, 20, 30},
		{records.Member{Revision: "h2", Change: &inplace.ChangeOrder{Revision: "h9"}}, 20, 30},
	} {
		tc.member.ID, tc.member.Node = id, "n1"
		wait(t, c, commit(t, s, put(store.MemberKey(id), tc.member)))
		c.Look(func(v View) {
			if n := v.World(db).Nodes[0]; n.CPUMillis != tc.cpu || n.MemoryBytes != tc.memory {
				t.Errorf("%+v takes %d and %d; want %d and %d", tc.member, n.CPUMillis, n.MemoryBytes, tc.cpu, tc.memory)
			}
		})
	}
}
