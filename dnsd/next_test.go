package dnsd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// TestNextIsBuild changes sets at random and compares the zone made from the last
// one with the zone made anew.
func TestNextIsBuild(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := crowd(5)
	zone := Build(s)
	for step := range 600 {
		i := r.IntN(len(s.Pictures))
		p := &s.Pictures[i]
		switch r.IntN(10) {
		case 0:
			p.Gone = !p.Gone
		case 1:
			p.Names = append(p.Names, dnsName(fmt.Sprint("n", r.IntN(3)), "client", "tcp"))
		case 2:
			p.Names = p.Names[:r.IntN(len(p.Names)+1)]
		case 3:
			if len(p.Names) > 0 {
				p.Names[r.IntN(len(p.Names))].PublishNotReady = r.IntN(2) == 0 // in place: the zone must not share it
			}
		case 4:
			if len(p.Names) > 0 && len(p.Names[0].Ports) > 0 {
				p.Names[0].Ports[0].Port = int32(r.IntN(3))
			}
		case 5:
			p.Service = []string{"db", "aux", "crowd"}[r.IntN(3)]
			if r.IntN(2) == 0 {
				p.Former = []string{"", "former"}[r.IntN(2)]
			}
		case 6: // below the name of the members' service, too, and by their names
			p.Names = append(p.Names, records.DNSName{Name: p.Service, Endpoints: []records.Endpoint{
				{Host: fmt.Sprint(p.Ref.Name, "-", r.IntN(3)), Address: s.Gateway.Next(), Port: 1},
			}})
		case 7:
			p.Peers = slices.Clone(p.Peers[:r.IntN(len(p.Peers)+1)])
		case 8:
			n := len(p.Peers)
			p.Peers = append(slices.Clone(p.Peers), records.Peer{Name: fmt.Sprint(p.Ref.Name, "-", n), Ordinal: n, Ready: true, Address: s.Gateway.Next()})
		default:
			if len(p.Peers) > 0 {
				p.Peers = slices.Clone(p.Peers) // which the zone keeps
				peer := &p.Peers[r.IntN(len(p.Peers))]
				peer.Ready = !peer.Ready
				if r.IntN(2) == 0 {
					peer.Address = s.Gateway.Next()
				}
			}
		}
		s.Others = changeOthers(r, s.Others)
		if r.IntN(20) == 0 {
			s.Domain = []string{"", "other.test"}[r.IntN(2)]
		}
		s.Sequence.Rev++
		before, as := zone, dump(zone)
		zone = zone.Next(s)
		if dump(before) != as {
			t.Fatalf("step %d: the zone of before has changed", step)
		}
		if got, want := dump(zone), dump(Build(s)); got != want {
			t.Fatalf("step %d:\n got %s\nwant %s", step, got, want)
		}
	}
}

func TestNextKeepsWhatDidNotChange(t *testing.T) {
	s := crowd(3)
	first := Build(s)
	s.Sequence.Rev++
	s.Pictures[0].Peers = slices.Clone(s.Pictures[0].Peers)
	s.Pictures[0].Peers[1].Ready = true
	next := first.Next(s)
	node := func(z *Zone, name string) *node {
		wire, _ := wireName(name)
		return z.nodes[wire]
	}
	for name, kept := range map[string]bool{
		"crowd-1.crowd.default.svc.cluster.local.": true, "crowd.default.svc.cluster.local.": true,
		"db.default.svc.cluster.local.": false, "cluster.local.": false,
	} {
		if got := node(first, name) == node(next, name); got != kept || node(next, name) == nil {
			t.Errorf("%s is the same: %v, want %v", name, got, kept)
		}
	}
	if got := len(next.Answer(ask(t, "db.default.svc.cluster.local. A"), UDP).Answer); got != 2 {
		t.Errorf("the changed set has %d ready members, want 2", got)
	}
	if got := len(first.Answer(ask(t, "db.default.svc.cluster.local. A"), UDP).Answer); got != 1 {
		t.Errorf("the old zone tells %d ready members, want 1 as before", got)
	}
}

// changeOthers is the same list, or another in which a set came, went or changed.
func changeOthers(r *rand.Rand, list []records.SetNames) []records.SetNames {
	if r.IntN(2) == 0 {
		return list
	}
	list = slices.Clone(list)
	ref := spec.SetRef{Namespace: []spec.Namespace{"default", "far", "Odd"}[r.IntN(3)], Name: []spec.SetName{"db", "web", "web-2"}[r.IntN(3)]}
	at := slices.IndexFunc(list, func(n records.SetNames) bool { return n.Ref == ref })
	names := records.SetNames{Ref: ref, Service: []string{"db", "db-all", "web", "Odd"}[r.IntN(4)], Names: []string{"web", "db"}[:r.IntN(3)], End: r.IntN(3)}
	switch {
	case at < 0:
		return append(list, names)
	case r.IntN(2) == 0:
		return slices.Delete(list, at, at+1)
	}
	list[at] = names
	return list
}

// TestNextSharesTheNamesThatDidNotChange counts buckets.
func TestNextSharesTheNamesThatDidNotChange(t *testing.T) {
	s := Snapshot{Others: manySets(10000)}
	first := Build(s)
	if next := first.Next(s); next.others != first.others {
		t.Error("the same list was read again")
	}
	s.Others = slices.Clone(s.Others)
	if next := first.Next(s); next.others.buckets != first.others.buckets {
		t.Error("an equal list has buckets of its own")
	}
	s.Others[77].End++
	next := first.Next(s)
	changed := 0
	for i, b := range next.others.buckets {
		if !slices.Equal(b, first.others.buckets[i]) {
			changed++
		}
		if len(b) > 0 && &b[0] == &first.others.buckets[i][0] {
			continue
		}
		changed += 100 * min(len(b), 1)
	}
	// That of the set's service, of its other service and that of its namespace, if they are three.
	if changed < 101 || changed > 302 {
		t.Errorf("changed and copied buckets: %d, want one or two in at most three", changed)
	}
}

// manySets are the names of sets of three members in ten namespaces.
func manySets(n int) []records.SetNames {
	list := make([]records.SetNames, n)
	for i := range list {
		name := fmt.Sprint("set-", i)
		list[i] = records.SetNames{
			Ref:     spec.SetRef{Namespace: spec.Namespace(fmt.Sprint("space-", i%10)), Name: spec.SetName(name)},
			Service: name, Names: []string{name, name + "-clients"}, End: 3,
		}
	}
	slices.SortFunc(list, func(a, b records.SetNames) int { return a.Ref.Compare(b.Ref) })
	return list
}

// dump writes a zone: its names, their records, and these as packed.
func dump(z *Zone) string {
	var lines []string
	for name, n := range z.nodes {
		lines = append(lines, fmt.Sprintf("%q", name))
		for _, set := range n.sets {
			lines = append(lines, fmt.Sprintf("%q %v %v %x", name, set.rrs, set.extra, set.wire))
		}
	}
	for name, o := range z.origins {
		lines = append(lines, fmt.Sprintf("origin %q %v %x", name, o.soa, o.wire))
	}
	if z.others != nil {
		for _, b := range z.others.buckets {
			for _, o := range b {
				lines = append(lines, fmt.Sprintf("other %+v", o))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// What a member's name had beside its address, from an endpoint of that name, goes with the endpoint.
func TestAMembersNameIsNotKeptWithWhatElseItHad(t *testing.T) {
	s := crowd(3)
	p := &s.Pictures[len(s.Pictures)-1]
	names := p.Names
	p.Names = append(slices.Clone(names), records.DNSName{Name: "crowd", Endpoints: []records.Endpoint{{Host: "crowd-1", Address: s.Gateway.Next(), Port: 1}}})
	zone := Build(s)
	p.Names, p.Peers = names, slices.Clone(p.Peers)
	p.Peers[0].Ready = false
	if got, want := dump(zone.Next(s)), dump(Build(s)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
