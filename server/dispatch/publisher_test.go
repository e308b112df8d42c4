package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// A host without members reaches members, too: it must be known to all.
func TestANodeHearsOfAllHosts(t *testing.T) {
	r := newRig(t)
	r.begin()
	host := func(name spec.NodeName, at string) {
		r.Record(store.NodeKey(name), records.Node{Name: name, UID: spec.UID(name)})
		r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: spec.UID(name), Boot: "b9", HostIP: at})
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
	r.Commit(store.Del(store.FactsKey("other")))
	want("a host that was removed", "192.0.2.3")
}

// Servers that come while the node is connected are told at once: it may lose the one that it knows.
func TestANodeHearsOfAllServers(t *testing.T) {
	r := newRig(t)
	r.begin()
	server := func(name, at string) {
		r.Record(store.ServerKey(name), records.Server{Name: name, UID: spec.UID(name), Addresses: []string{at}})
	}
	server("s1", "192.0.2.1:7443")
	n := r.connect(n1)
	want := func(what string, servers ...string) {
		t.Helper()
		m := n.next(what, func(m *proto.ToNode) bool { return len(m.GetPictures().GetServers()) > 0 })
		if got := m.GetPictures().GetServers(); !slices.Equal(got, servers) {
			t.Fatalf("%s: got %q, want %q", what, got, servers)
		}
	}
	want("the servers at first", "192.0.2.1:7443")
	server("s2", "192.0.2.2:7443")
	want("a server that came", "192.0.2.1:7443", "192.0.2.2:7443")
	r.Commit(store.Del(store.ServerKey("s1")))
	want("a server that was removed", "192.0.2.2:7443")
}

// drawn are the pictures of some news, as words.
func (n unsent) drawn(t *testing.T) (list []string) {
	t.Helper()
	for _, doc := range n.docs {
		var p records.Snapshot
		if err := json.Unmarshal(doc, &p); err != nil {
			t.Fatal(err)
		}
		words := p.Ref.String()
		if p.Gone {
			words += " gone"
		}
		for _, peer := range p.Peers {
			if peer.Ready {
				words += " " + peer.Name
			}
		}
		for _, name := range p.Names[min(1, len(p.Names)):] {
			words += " " + name.Name
		}
		if p.Told != (records.ChangeID{}) {
			words += " told"
		}
		list = append(list, words)
	}
	return list
}

// Each kind of change draws the pictures that it may change, and a session is told of those
// that it has not.
func TestEachKindOfChangeDrawsWhatItMayChange(t *testing.T) {
	r := newStill(t)
	r.begin()
	session := records.Session{Node: "n1", UID: "uid1", Boot: "b1", ID: 5}
	r.Commit(store.Put(store.NodeKey("n1"), store.Encode(records.Node{Name: "n1", UID: "uid1"})),
		store.Put(store.FactsKey("n1"), store.Encode(records.NodeFacts{Name: "n1", UID: "uid1", Boot: "b1"})),
		store.Put(store.SessionKey("n1"), store.Encode(session)),
		store.Put(store.ReportKey(ident(0)), store.Encode(records.Report{ID: ident(0), Token: token(10), Session: 5, Phase: records.PhaseRunning, Ready: true})))
	// Records of nodes that once were there: one that is silent alone is most of them.
	for _, name := range []spec.NodeName{"n2", "n3"} {
		uid := spec.UID(name)
		r.Commit(store.Put(store.NodeKey(name), store.Encode(records.Node{Name: name, UID: uid})),
			store.Put(store.FactsKey(name), store.Encode(records.NodeFacts{Name: name, UID: uid, Boot: "b1"})),
			store.Put(store.SessionKey(name), store.Encode(records.Session{Node: name, UID: uid, Boot: "b1", ID: 6})))
	}
	api := spec.SetRef{Namespace: "default", Name: "api"}
	sets := func(refs ...spec.SetRef) cache.Changes {
		ch := cache.Changes{Sets: map[spec.SetRef]bool{}}
		for _, ref := range refs {
			ch.Sets[ref] = true
		}
		return ch
	}
	p := newSnapshotPublisher(r.Cache, "d")
	service := records.ServiceRecord{Meta: records.Meta{Name: "zoo", Namespace: "default"}, Spec: spec.ServiceSpec{Selector: map[string]string{"app": "db"}}}
	last := uint64(0)
	for _, step := range []struct {
		name   string
		change func()
		ch     cache.Changes
		want   []string // since the step before
		all    []string // since ever
	}{
		{"the world was loaded", func() {}, cache.Changes{All: true}, []string{"default/db db-0"}, []string{"default/db db-0"}},
		{"a set moved, and its picture did not", func() {}, sets(refDB), nil, []string{"default/db db-0"}},
		{"a set that never was is gone", func() {}, sets(api), nil, []string{"default/db db-0"}},
		{"a set came", func() {
			s := testSet(0)
			s.Ref, s.UID, s.Spec.ServiceName = api, "u2", "api"
			r.Record(store.SetKey(api), s)
		}, sets(api), []string{"default/api"}, []string{"default/api", "default/db db-0"}},
		{"a service of the namespace came", func() { r.Record(store.ServiceKey("default", "zoo"), service) },
			cache.Changes{Services: map[spec.Namespace]bool{"default": true}},
			[]string{"default/api zoo", "default/db db-0 zoo"}, []string{"default/api zoo", "default/db db-0 zoo"}},
		{"a node fell silent", func() { r.Commit(store.Del(store.SessionKey("n1"))) }, cache.Changes{Nodes: map[spec.NodeName]bool{"n1": true}},
			[]string{"default/db zoo"}, []string{"default/api zoo", "default/db zoo"}},
		{"something was told of a set", func() { r.tells(0, 1, 1) }, sets(refDB), []string{"default/db zoo told"}, []string{"default/api zoo", "default/db zoo told"}},
		{"a set went", func() { r.Commit(store.Del(store.SetKey(api))) }, sets(api), []string{"default/api gone"}, []string{"default/db zoo told"}},
		{"another went while the world was loaded anew", func() { r.Commit(store.Del(store.SetKey(refDB))) },
			cache.Changes{All: true}, []string{"default/db gone"}, nil},
	} {
		step.change()
		p.round(step.ch)
		news := p.since(need{since: last})
		if got := news.drawn(t); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
		if got := p.since(need{since: 0}).drawn(t); !slices.Equal(got, step.all) {
			t.Errorf("%s: in all got %q, want %q", step.name, got, step.all)
		}
		last = news.next
	}
}

// Hosts are told whole when one changed, IPv4 addresses alone and each once.
func TestHostsAreToldWhenTheyChange(t *testing.T) {
	r := newStill(t)
	host := func(name spec.NodeName, at string) {
		r.Record(store.NodeKey(name), records.Node{Name: name, UID: spec.UID(name)})
		r.Record(store.FactsKey(name), records.NodeFacts{Name: name, UID: spec.UID(name), HostIP: at})
	}
	p := newSnapshotPublisher(r.Cache, "d")
	last := uint64(0)
	for _, step := range []struct {
		name, node, at string
		want           []string
	}{
		{"the first", "a", "192.0.2.9", []string{"192.0.2.9"}},
		{"one that does not say", "b", "", nil},
		{"one that is no IPv4 address", "c", "2001:db8::1", nil},
		{"one that another has, too", "d", "192.0.2.9", nil},
		{"one more", "e", "192.0.2.1", []string{"192.0.2.1", "192.0.2.9"}},
	} {
		host(spec.NodeName(step.node), step.at)
		p.round(cache.Changes{Nodes: map[spec.NodeName]bool{spec.NodeName(step.node): true}})
		news := p.since(need{since: last})
		if !slices.Equal(news.hosts, step.want) {
			t.Errorf("%s: got %q, want %q", step.name, news.hosts, step.want)
		}
		last = news.next
	}
}

// A session's first pictures are of a revision after its own key.
func TestPicturesOfARevisionAreWaitedFor(t *testing.T) {
	r := newStill(t)
	p := newSnapshotPublisher(r.Cache, "d")
	p.round(cache.Changes{})
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errElse)
	now := store.Rev(p.since(need{since: 0}).seq.Rev)
	if err := p.waitFor(over, now); err != nil {
		t.Fatalf("they are there: %v", err)
	}
	if err := p.waitFor(over, now+1); !errors.Is(err, errElse) {
		t.Fatalf("they are not there, and nobody waits: %v", err)
	}
	came := make(chan error, 1)
	rev := r.Put("configs/x/y", []byte("{}"))
	go func() { came <- p.waitFor(t.Context(), rev) }()
	p.round(cache.Changes{})
	if err := <-came; err != nil {
		t.Error(err)
	}
}
