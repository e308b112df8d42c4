package place

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// chooseByLookingAtAll is the definition of Choose: the best of all nodes that pass each filter.
func chooseByLookingAtAll(p *Placer, r *Request) *proof.Node {
	s := p.search(r)
	var fit []*proof.Node
	for i := range p.nodes {
		if _, words := s.refused(&p.nodes[i]); words == "" {
			fit = append(fit, &p.nodes[i])
		}
	}
	return s.best(fit)
}

// someNodes have labels, taints, sessions, lives and capacity of many kinds.
func someNodes(r *rand.Rand) (nodes []proof.Node) {
	tainted := r.IntN(4) == 0
	for i := range 1 + r.IntN(30) {
		n := proof.Node{
			Node:  &records.Node{Name: spec.NodeName(fmt.Sprintf("n%02d", i)), UID: "u", Cordon: r.IntN(9) == 0, Labels: map[string]string{"zone": fmt.Sprint(r.IntN(3))}},
			Facts: &records.NodeFacts{Guards: r.IntN(2) == 0, CPUMillis: 1000 * r.Int64N(4)}, Session: &records.Session{UID: "u"}, Lives: r.IntN(4),
		}
		if r.IntN(9) == 0 {
			n.Session = nil
		}
		if tainted && r.IntN(3) == 0 {
			n.Node.Taints = []spec.Taint{{Key: "slow", Effect: []string{spec.NoSchedule, spec.PreferNoSchedule}[r.IntN(2)]}}
		}
		if r.IntN(6) == 0 {
			n.Facts.Conditions = []records.NodeCondition{{Type: records.MemoryPressure}}
		}
		n.Labels = n.Node.AllLabels()
		nodes = append(nodes, n)
	}
	return nodes
}

// someTemplates ask for nothing, for capacity, a port, a place apart, or prefer something.
func someTemplates(r *rand.Rand) []*spec.MemberSpec {
	spread := func(what string) []spec.Spread {
		return []spec.Spread{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: what, LabelSelector: &spec.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}}
	}
	with := func(c spec.Container) *spec.MemberSpec { return &spec.MemberSpec{Containers: []spec.Container{c}} }
	list := []*spec.MemberSpec{
		{},
		{NodeSelector: map[string]string{"zone": "1"}},
		with(spec.Container{Resources: spec.ResourceRequirements{Requests: map[string]scalar.Quantity{"cpu": {Milli: 500}}}}),
		with(spec.Container{Ports: []spec.ContainerPort{{ContainerPort: 80, HostPort: 80}}}),
		{TopologySpreadConstraints: spread(spec.DoNotSchedule)},
		{TopologySpreadConstraints: spread(spec.ScheduleAnyway)},
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+r.IntN(2)]
}

// Whatever began before in the step, a choice is the one that a look at all nodes makes.
func TestAChoiceInOrderIsThatOfALookAtAll(t *testing.T) {
	inOrder, stayed := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		nodes, templates := someNodes(r), someTemplates(r)
		members, folded := map[spec.NodeName]int{}, map[spec.NodeName]int{}
		for range r.IntN(10) {
			members[nodes[r.IntN(len(nodes))].Node.Name]++
			folded[nodes[r.IntN(len(nodes))].Node.Name]++
		}
		before := map[int]spec.NodeName{}
		for i := range 40 {
			if r.IntN(3) == 0 {
				before[i] = nodes[r.IntN(len(nodes))].Node.Name
				members[before[i]]++
			}
		}
		p := New(nodes, folded, members)
		for i := range 40 {
			request := &Request{
				ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: i}, Template: templates[r.IntN(len(templates))], Guarded: r.IntN(3) == 0,
				Labels: map[string]string{"app": "db"},
			}
			request.Before = before[i]
			if request.Before != "" {
				request.Ran = request.Template
			}
			want := chooseByLookingAtAll(p, request)
			if stays(p.search(request)) != nil {
				stayed++
			}
			got, _ := p.Choose(request)
			if got != want {
				t.Fatalf("seed %d, choice %d: got %+v, want %+v", seed, i, got, want)
			}
			if got != nil && r.IntN(8) > 0 {
				p.Take(request, got.Node.Name)
			}
		}
		for _, o := range p.orders {
			if len(o.list) > 0 && !o.taint {
				inOrder++
			}
		}
	}
	if inOrder < 100 {
		t.Errorf("only %d placements were made in order", inOrder)
	}
	if stayed < 150 {
		t.Errorf("only %d lives stayed without a look at other nodes", stayed)
	}
}
