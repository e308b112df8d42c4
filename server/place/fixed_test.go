package place

import (
	"fmt"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/proof"
	"github.com/stead-project/stead/spec"
)

// TestWhatIsFixedIsKeptForItsTemplateAlone: another template, or guarded lives, are judged anew; and what begins
// counts from one choice to the next.
func TestWhatIsFixedIsKeptForItsTemplateAlone(t *testing.T) {
	var none spec.MemberSpec
	nodes := []proof.Node{nodeOf(t, []string{"a"}, none), nodeOf(t, []string{"b disk=ssd"}, none), nodeOf(t, []string{"c disk=ssd"}, none)}
	nodes[2].Facts = &records.NodeFacts{Guards: true}
	anywhere, ssd := &spec.MemberSpec{}, &spec.MemberSpec{NodeSelector: map[string]string{"disk": "ssd"}}
	p := New(nodes, nil, map[spec.NodeName]int{})
	for i, c := range []struct {
		template *spec.MemberSpec
		guarded  bool
		want     spec.NodeName
	}{
		{ssd, false, "b"}, {ssd, false, "c"}, {anywhere, false, "a"}, {ssd, true, "c"}, {ssd, false, "b"}, {anywhere, true, "c"}, {anywhere, false, "a"},
	} {
		r := &Request{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: i}, Template: c.template, Guarded: c.guarded}
		n, no := p.Choose(r)
		if no != nil || n.Node.Name != c.want {
			t.Fatalf("choice %d: got %v, %v; want %s", i, n, no, c.want)
		}
		p.Take(r, n.Node.Name)
	}
}

// BenchmarkChoose places 100 members on 1000 nodes, of which a selector leaves a tenth.
func BenchmarkChoose(b *testing.B) {
	var nodes []proof.Node
	for i := range 1000 {
		n := proof.Node{Node: &records.Node{Name: spec.NodeName(fmt.Sprintf("n%04d", i)), UID: "u", Labels: map[string]string{"disk": fmt.Sprint(i % 10)}},
			Facts: &records.NodeFacts{}, Session: &records.Session{UID: "u"}}
		n.Labels = n.Node.AllLabels()
		nodes = append(nodes, n)
	}
	template := &spec.MemberSpec{NodeSelector: map[string]string{"disk": "3"}}
	b.ReportAllocs()
	for b.Loop() {
		p := New(nodes, nil, map[spec.NodeName]int{})
		for i := range 100 {
			r := &Request{ID: spec.Identity{Namespace: "default", Set: "db", Ordinal: i}, Template: template}
			n, no := p.Choose(r)
			if no != nil {
				b.Fatal(no)
			}
			p.Take(r, n.Node.Name)
		}
	}
}
