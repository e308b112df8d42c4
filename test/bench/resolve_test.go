package bench

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stead-project/stead/dnsd"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// BenchmarkResolvable is, for each member of a set, from the moment its report of
// being ready is seen in the store until the node's DNS answers the service's name
// with it, asked over UDP every half millisecond.
func BenchmarkResolvable(b *testing.B) {
	const members = 20 // whose addresses fit one answer
	d := startDNS(b)
	c := newClusterSeen(b, d.see)
	c.wanted("warm", "OrderedReady", 1)
	var took []time.Duration
	for run := 0; b.Loop(); run++ {
		name := fmt.Sprint("measured", run) // new: DNS has nothing of it
		asked := make(chan []time.Time, 1)
		ctx, cancel := context.WithTimeout(c.ctx, patience)
		go func() { asked <- d.grows(ctx, name, members) }()
		ready := c.readyAt(name, members)
		answered := <-asked
		cancel()
		if len(answered) != members {
			b.Fatalf("DNS answered for %d of %d members", len(answered), members)
		}
		for i := range members {
			took = append(took, max(0, answered[i].Sub(ready[i]))) // both were on their way
		}
		b.StopTimer()
		c.remove(name)
		b.StartTimer()
	}
	slices.Sort(took)
	at := func(part int) float64 { return float64(took[(len(took)-1)*part/100].Microseconds()) / 1000 }
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
}

// readyAt applies an ordered set and returns when each member's ready report was seen.
func (c *cluster) readyAt(name string, n int) []time.Time {
	c.b.Helper()
	w, end := c.watch()
	defer end()
	c.apply(name, "OrderedReady", n)
	seen := map[int]time.Time{}
	for len(seen) < n {
		batch, err := w.Next(c.ctx)
		must(c.b, err)
		for _, ev := range batch.Events {
			if kind, _ := store.Kind(ev.Key); kind != store.KindReport || ev.Delete {
				continue
			}
			r, err := store.Decode[records.Report](ev.KV)
			must(c.b, err)
			if _, again := seen[r.ID.Ordinal]; r.ID.Set == spec.SetName(name) && r.Ready && !again {
				seen[r.ID.Ordinal] = time.Now()
			}
		}
	}
	var at []time.Time
	for i := range n {
		at = append(at, seen[i])
	}
	return at
}

// nodeDNS is dnsd wired as a node has it.
type nodeDNS struct {
	server *dnsd.Server
	addr   string
	seen   dnsd.Snapshot
	zone   *dnsd.Zone
}

func startDNS(b *testing.B) *nodeDNS {
	b.Helper()
	s, err := dnsd.New(dnsd.Config{Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	must(b, err)
	bound, err := s.Listen(b.Context())
	must(b, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	end := make(chan error, 1)
	go func() { end <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		must(b, <-end)
	})
	return &nodeDNS{server: s, addr: bound[0].String(), seen: dnsd.Snapshot{Members: netip.MustParsePrefix("10.88.0.0/16")}}
}

func (d *nodeDNS) see(snapshots []records.Snapshot) {
	d.seen.Pictures = snapshots
	for _, p := range snapshots {
		if p.Sequence.Compare(d.seen.Sequence) > 0 {
			d.seen.Sequence = p.Sequence
		}
	}
	d.zone = d.zone.Next(d.seen)
	d.server.Swap(d.zone)
}

// grows asks for a set's service until it has n members, and returns when each
// one more was seen; fewer when ctx ends.
func (d *nodeDNS) grows(ctx context.Context, set string, n int) (at []time.Time) {
	req := new(dns.Msg).SetQuestion(fmt.Sprintf("%s.default.svc.cluster.local.", set), dns.TypeA)
	client := dns.Client{Timeout: time.Second}
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for len(at) < n {
		select {
		case <-ctx.Done():
			return at
		case <-tick.C:
		}
		m, _, err := client.ExchangeContext(ctx, req, d.addr)
		for now := time.Now(); err == nil && len(at) < len(m.Answer) && len(at) < n; {
			at = append(at, now)
		}
	}
	return at
}
