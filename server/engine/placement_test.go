package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/causes"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
)

// claimed is how many lives the node has, and what they ask of it.
func claimed(v cache.View) (lives int, cpuMillis int64) {
	if len(v.Nodes()) == 0 {
		return 0, 0 // the cache has not seen it yet
	}
	return v.Nodes()[0].Lives, v.Nodes()[0].CPUMillis
}

// asking writes a set of its own name whose member asks for half a core.
func (c *cluster) asking(name string, change ...func(*records.Set)) {
	one := int32(1)
	s := records.Set{
		Ref: spec.SetRef{Namespace: "default", Name: spec.SetName(name)}, UID: spec.UID("uid-" + name), Generation: 1, InitialReplicas: 1,
		Spec: spec.SetSpec{Replicas: &one, Template: spec.Template{Spec: spec.MemberSpec{Containers: []spec.Container{{
			Name: "c", Image: "i", Resources: spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"cpu": {Milli: 500}}},
		}}}}},
	}
	for _, f := range change {
		f(&s)
	}
	c.commit(store.Put(store.SetKey(s.Ref), store.Encode(s)))
}

// TestANodeIsPromisedOnce: of many sets that come at once no more get a life than there
// is room for, and one that waits gets its own when another goes.
func TestANodeIsPromisedOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		uid := spec.UID("uid-n1")
		c.commit(store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: uid, Boot: "boot1", CPUMillis: 1700, MemoryBytes: 1 << 30})))
		for i := range 8 {
			c.asking(fmt.Sprint("s", i))
		}
		e, stop := c.engine("a", c.store)
		defer stop()
		waiting := func() (refs []spec.SetRef) {
			for i := range 8 {
				ref := spec.SetRef{Namespace: "default", Name: spec.SetName(fmt.Sprint("s", i))}
				if why, ok := e.Explain(ref); ok && len(why.Blocked) > 0 && why.Blocked[0].Reason == causes.BlockedNoRoom {
					refs = append(refs, ref)
				}
			}
			return refs
		}
		c.until("three have a place and five wait for room", func(v cache.View) bool {
			lives, cpu := claimed(v)
			if cpu > 1700 {
				t.Errorf("%d lives ask for %d millicores of 1700", lives, cpu)
			}
			return lives >= 3
		})
		if refs := waiting(); len(refs) != 5 {
			t.Fatalf("%v wait for room; want 5", refs)
		}
		before, began := waiting(), time.Now()
		for i := range 4 {
			c.asking(fmt.Sprint("s", i), deleting)
		}
		c.until("others have taken the places", func(v cache.View) bool {
			lives, _ := claimed(v)
			left := 0
			for i := range 4 {
				if set := v.Set(spec.SetRef{Namespace: "default", Name: spec.SetName(fmt.Sprint("s", i))}); set != nil {
					left++
				}
			}
			return lives == 3 && left == 0
		})
		if refs := waiting(); len(refs) != 1 {
			t.Errorf("%v wait for room, %v did before; want one", refs, before)
		}
		if took := time.Since(began); took > 10*time.Second { // of the bubble
			t.Errorf("they were looked at after %s only", took)
		}
	})
}

// TestAHostPortIsPromisedOnce: of sets that ask for one port of the only node one gets it,
// and the next when nothing is left of that.
func TestAHostPortIsPromisedOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		port := func(s *records.Set) {
			s.Spec.Template.Spec.Containers[0].Resources = spec.ResourceRequirements{}
			s.Spec.Template.Spec.Containers[0].Ports = []spec.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
		}
		names := []string{"s0", "s1", "s2"}
		for _, name := range names {
			c.asking(name, port)
		}
		e, stop := c.engine("a", c.store)
		defer stop()
		holder := func() (holder string, waiting int) {
			for _, name := range names {
				why, ok := e.Explain(spec.SetRef{Namespace: "default", Name: spec.SetName(name)})
				switch {
				case ok && len(why.Blocked) > 0 && why.Blocked[0].Reason == causes.BlockedHostPort:
					waiting++
				case ok:
					holder = name
				}
			}
			return holder, waiting
		}
		c.until("one has the port", func(v cache.View) bool { lives, _ := claimed(v); return lives > 0 })
		first, waiting := holder()
		if waiting != 2 {
			t.Fatalf("%d wait for the port; want 2", waiting)
		}
		began := time.Now()
		c.asking(first, port, deleting)
		c.until("another has it", func(v cache.View) bool {
			lives, _ := claimed(v)
			set := v.Set(spec.SetRef{Namespace: "default", Name: spec.SetName(first)})
			return lives == 1 && set == nil
		})
		if _, waiting := holder(); waiting != 1 {
			t.Errorf("%d wait for the port; want 1", waiting)
		}
		if took := time.Since(began); took > 10*time.Second { // of the bubble
			t.Errorf("they were looked at after %s only", took)
		}
	})
}

// TestASetThatRequestsNothingDoesNotWait: what else runs on a node is of no matter to it.
func TestASetThatRequestsNothingDoesNotWait(t *testing.T) {
	asks := func(what string) spec.MemberSpec {
		return spec.MemberSpec{Containers: []spec.Container{{Resources: spec.ResourceRequirements{Requests: map[string]scalar.Quantity{what: {Milli: 1000}}}}}}
	}
	for name, c := range map[string]struct {
		member spec.MemberSpec
		nodes  []plan.Node
		want   bool
	}{
		"it asks for nothing":                        {spec.MemberSpec{}, []plan.Node{{}}, false},
		"there are no nodes":                         {spec.MemberSpec{}, nil, false},
		"it asks for a core":                         {asks("cpu"), nil, true},
		"it asks for a byte":                         {asks("memory"), nil, true},
		"it asks for a node":                         {spec.MemberSpec{NodeSelector: map[string]string{"disk": "fast"}}, nil, false},
		"it asks for a port of the host":             {spec.MemberSpec{Containers: []spec.Container{{Ports: []spec.ContainerPort{{ContainerPort: 80, HostPort: 80}}}}}, nil, true},
		"others say that they do not want it beside": {spec.MemberSpec{}, []plan.Node{{Residents: []plan.Resident{}}}, true},
	} {
		p := placement{lastStart: 7, waiting: map[spec.SetRef]bool{}}
		w := plan.World{Set: &records.Set{Ref: db, Spec: spec.SetSpec{Template: spec.Template{Spec: c.member}}}, Nodes: c.nodes}
		if got := p.mustWait(db, 6, &w); got != c.want || p.waiting[db] != c.want {
			t.Errorf("%s: it waits: %v, want %v", name, got, c.want)
		}
		if p.mustWait(db, 7, &w) {
			t.Errorf("%s: it waits though the last life is seen", name)
		}
	}
}

// TestWhoWaitsForALifeToBeSeenIsNotLookedAtBefore: a set that must see the life that began last is evaluated when it is
// seen, and not again and again until then.
func TestWhoWaitsForALifeToBeSeenIsNotLookedAtBefore(t *testing.T) {
	d := newManualTerm(t)
	d.l.cfg.Cache.Look(d.l.takeChanges)
	for _, c := range []struct {
		name  string
		begun store.Rev
		want  bool
	}{{"not seen", d.seen + 1, false}, {"under way", notCommitted, false}, {"seen", d.seen, true}} {
		d.l.queue, d.l.queued = nil, map[spec.SetRef]bool{}
		d.l.placement.lastStart, d.l.placement.waiting[db] = c.begun, true
		d.l.cfg.Cache.Look(d.l.takeChanges)
		if queued := d.l.queued[db]; queued != c.want || d.l.placement.waiting[db] == c.want {
			t.Errorf("%s: it is queued: %v, and waits: %v; want %v", c.name, queued, d.l.placement.waiting[db], c.want)
		}
	}
}

// TestEverySetWaitsUntilALifeIsSeenThatMayKeepItAway: whom it avoids does not know of it before.
func TestEverySetWaitsUntilALifeIsSeenThatMayKeepItAway(t *testing.T) {
	w := plan.World{Set: &records.Set{Ref: db}, Nodes: []plan.Node{{}}}
	if avoids(&w) {
		t.Error("a set without anti-affinity avoids others")
	}
	p := placement{waiting: map[spec.SetRef]bool{}}
	p.began(7, false)
	if p.mustWait(db, 6, &w) {
		t.Error("a set that asks for nothing waits for one that avoids nobody")
	}
	p.began(8, true)
	if !p.mustWait(db, 7, &w) || p.mustWait(db, 8, &w) {
		t.Error("it does not wait exactly until the life is seen")
	}
	apart := spec.MemberSpec{Affinity: &spec.Affinity{PodAntiAffinity: &spec.MemberAffinity{Required: []spec.MemberTerm{{TopologyKey: "zone"}}}}}
	former := plan.World{Set: &records.Set{Ref: db}, Revisions: []*records.Revision{{Template: spec.Template{Spec: apart}}}}
	now := plan.World{Set: &records.Set{Ref: db, Spec: spec.SetSpec{Template: spec.Template{Spec: apart}}}}
	if !avoids(&former) || !avoids(&now) {
		t.Error("the anti-affinity of one of its templates is passed over")
	}
}
