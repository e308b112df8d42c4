package bench

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

const (
	hollowSetSize = 50 // members of a set of a hollow cluster
	rollingPart   = 10 // one in so many of its sets is updated
)

// hollowSize is the number of hosts and of all members; STEAD_HOLLOW=1000x10000 is that of the
// design.
func hollowSize(b *testing.B) (hosts, members int) {
	text := os.Getenv("STEAD_HOLLOW")
	if text == "" {
		text = "50x500"
	}
	if n, err := fmt.Sscanf(text, "%dx%d", &hosts, &members); err != nil || n != 2 || hosts < 3 || members < hosts {
		b.Fatalf("STEAD_HOLLOW=%q; write HOSTSxMEMBERS, such as 1000x10000, with a member on each host", text)
	}
	return hosts, members
}

// BenchmarkHollow is a day of a large cluster, of real agents on hosts without containers, or with
// STEAD_NODES=light of light nodes: all hosts join at once; sets fill them; nothing
// happens; one set in ten is updated; the server ends and the next one leads; half of the hosts are cut
// off, for whom nobody is replaced, and come back.
func BenchmarkHollow(b *testing.B) {
	hosts, members := hollowSize(b)
	h := &hollow{newServer(b), members}
	h.step(b, "join", hosts, func() spent { return h.joinAll(nodesKind(b, "agent"), hosts) })
	h.step(b, "ready", members, func() spent { return h.measure(phase{"ready", members, h.applyAll, ready}) })
	h.settle(2 * time.Second)
	b.Run("rest", h.rest)
	tokens := h.lives()
	h.step(b, "rolling", h.inPart(), func() spent {
		return h.measure(phase{"rolling", h.inPart(), h.restartPart, replaced})
	})
	h.settle(2 * time.Second)
	h.others(tokens)
	tokens = h.lives()
	h.step(b, "handover", members, func() spent { return h.measure(phase{"handover", members, h.handOver, ready}) })
	h.connected("s2", hosts)
	h.settle(2 * time.Second)
	h.same("a hand-over", tokens)
	h.step(b, "cut", hosts/2, h.cutHalf)
	h.same("a silence of half of the hosts", tokens)
	back := h.onSilent()
	h.step(b, "return", back, func() spent {
		return h.measure(phase{"return", back, func() { h.nodes.cut(false) }, ready})
	})
	h.connected("s2", hosts)
	h.settle(2 * time.Second)
	h.same("their return", tokens)
}

// hollow is a cluster of many hosts.
type hollow struct {
	*apart
	members int
}

// step does what is measured, and reports it as a benchmark of its own.
func (h *hollow) step(b *testing.B, name string, n int, do func() spent) {
	b.Helper()
	s := do()
	b.Run(name, func(b *testing.B) {
		s.report(b)
		b.ReportMetric(s.took.Seconds(), "s")
		b.ReportMetric(float64(n)/s.took.Seconds(), "members/s")
	})
}

// joinAll starts the nodes; members of what is spent are hosts.
func (h *hollow) joinAll(kind string, hosts int) spent {
	h.nodes = &nodes{b: h.b}
	begin, began := h.now(), time.Now()
	end := h.profile("join")
	h.join(kind, hosts)
	took := time.Since(began)
	end()
	u := h.now().minus(begin)
	return spent{members: hosts, took: took, hop: h.hops() / hops, used: u}
}

// cutHalf takes half of the hosts off the network until they are silent and nothing more is written of
// it; members of what is spent are those hosts.
func (h *hollow) cutHalf() spent {
	begin, began := h.now(), time.Now()
	end := h.profile("cut")
	off := h.nodes.cut(true)
	h.within("half are silent", func() bool { return len(h.sessions()) == h.hosts-off })
	h.settle(2 * time.Second)
	end()
	return spent{members: off, took: time.Since(began), used: h.now().minus(begin)}
}

func (h *hollow) setName(i int) string { return fmt.Sprint("set", i) }

func (h *hollow) sets() int { return (h.members + hollowSetSize - 1) / hollowSetSize }

func (h *hollow) sizeOf(i int) int { return min(hollowSetSize, h.members-i*hollowSetSize) }

func (h *hollow) applyAll() {
	for i := range h.sets() {
		h.apply(h.setName(i), "Parallel", h.sizeOf(i))
	}
}

func (h *hollow) restartPart() {
	for i := 0; i < h.sets(); i += rollingPart {
		h.restart(h.setName(i))
	}
}

// inPart is how many members restartPart replaces.
func (h *hollow) inPart() (n int) {
	for i := 0; i < h.sets(); i += rollingPart {
		n += h.sizeOf(i)
	}
	return n
}

func (h *hollow) handOver() {
	h.stop()
	h.serve("s2")
}

// rest reports what is used while nothing happens, and what is in memory.
func (h *hollow) rest(b *testing.B) {
	const length = 10 * time.Second
	begin := h.now()
	end := h.profile("rest")
	time.Sleep(length) // what is measured is that nothing happens
	end()
	now := h.now()
	u := now.minus(begin)
	for b.Loop() { // once is enough; this forgets what was reported before
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*u.server.CPU.Seconds()/length.Seconds(), "server-%cpu")
	b.ReportMetric(100*u.nodes.CPU.Seconds()/length.Seconds(), "nodes-%cpu")
	b.ReportMetric(float64(u.nodes.Received)/float64(h.hosts)/length.Seconds(), "sent-bytes/s/host")
	b.ReportMetric(float64(now.server.Resident)/(1<<20), "server-MiB")
	b.ReportMetric(float64(now.nodes.Resident)/(1<<20), "nodes-MiB")
}

// lives are the tokens of the lives that are reported.
func (h *hollow) lives() map[spec.Identity]spec.Token {
	h.b.Helper()
	_, tokens := h.apart.lives()
	return tokens
}

// same fails the benchmark when a life is another one than before.
func (h *hollow) same(what string, tokens map[spec.Identity]spec.Token) {
	h.b.Helper()
	now := h.lives()
	for id, token := range tokens {
		if now[id] != token {
			h.b.Fatalf("after %s, %s has token %s; want %s", what, id, now[id], token)
		}
	}
}

// others fails the benchmark when a life that restartPart leaves alone is another one than before.
func (h *hollow) others(tokens map[spec.Identity]spec.Token) {
	h.b.Helper()
	rest := map[spec.Identity]spec.Token{}
	for i := range h.sets() {
		for ordinal := range h.sizeOf(i) {
			if i%rollingPart != 0 {
				id := spec.Identity{Namespace: spec.DefaultNamespace, Set: spec.SetName(h.setName(i)), Ordinal: ordinal}
				rest[id] = tokens[id]
			}
		}
	}
	h.same("an update of other sets", rest)
}

// onSilent is how many members are on hosts without a session.
func (h *hollow) onSilent() (n int) {
	h.b.Helper()
	sessions := h.sessions()
	_, kvs := h.snapshot(store.KindReport)
	for _, kv := range kvs {
		r, err := store.Decode[records.Report](kv)
		must(h.b, err)
		if !slices.ContainsFunc(sessions, func(s records.Session) bool { return s.Node == r.Node }) {
			n++
		}
	}
	return n
}
