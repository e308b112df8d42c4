package dispatch

import (
	"slices"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// A host without members reaches members, too: it must be known to all.
func TestANodeHearsOfAllHosts(t *testing.T) {
	r := newRig(t)
	r.begin()
	host := func(name spec.NodeName, at string) {
		r.record(store.NodeKey(name), spec.Node{Name: name, UID: spec.UID(name)})
		r.record(store.FactsKey(name), spec.NodeFacts{Name: name, UID: spec.UID(name), Boot: "b9", HostIP: at})
	}
	host("other", "192.0.2.9")
	n := r.connect(n1)
	want := func(what string, hosts ...string) {
		t.Helper()
		m := n.next(what, func(m *proto.ToNode) bool { return len(m.GetPictures().GetHosts()) > 0 })
		if got := m.GetPictures().GetHosts(); !slices.Equal(got, hosts) {
			t.Fatalf("%s: got %q, want %q", what, got, hosts)
		}
	}
	want("the hosts at first", "192.0.2.9")
	host("third", "192.0.2.3")
	want("a host that came", "192.0.2.3", "192.0.2.9")
	r.commit(store.Del(store.FactsKey("other")))
	want("a host that was removed", "192.0.2.3")
}
