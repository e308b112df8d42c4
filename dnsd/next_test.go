package dnsd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestNextIsBuild changes sets at random and compares the zone made from the last
// one with the zone made anew.
func TestNextIsBuild(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := crowd(5)
	zone := Build(s)
	for step := range 300 {
		i := r.IntN(len(s.Pictures))
		p := &s.Pictures[i]
		switch r.IntN(7) {
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
		default:
			if len(p.Peers) > 0 {
				peer := &p.Peers[r.IntN(len(p.Peers))]
				peer.Ready = !peer.Ready
				if r.IntN(2) == 0 {
					peer.Address = s.Gateway.Next()
				}
			}
		}
		if r.IntN(20) == 0 {
			s.Domain = []string{"", "other.test"}[r.IntN(2)]
		}
		s.Sequence.Rev++
		zone = zone.Next(s)
		if got, want := dump(zone), dump(Build(s)); got != want {
			t.Fatalf("step %d:\n got %s\nwant %s", step, got, want)
		}
	}
}

func TestNextKeepsWhatDidNotChange(t *testing.T) {
	s := crowd(3)
	first := Build(s)
	s.Sequence.Rev++
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
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
