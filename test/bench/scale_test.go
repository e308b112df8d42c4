package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// scaleSize is how much of BenchmarkScale is run; STEAD_SCALE=HOSTSxMEMBERS is one size of it.
func scaleSizes(b *testing.B) [][2]int {
	var hosts, members int
	switch n, err := fmt.Sscanf(os.Getenv("STEAD_SCALE"), "%dx%d", &hosts, &members); {
	case os.Getenv("STEAD_SCALE") == "":
		return [][2]int{{1, 100}, {1, 1000}, {50, 1000}}
	case err != nil || n != 2 || hosts < 1 || members < 1:
		b.Fatalf("STEAD_SCALE=%q; write HOSTSxMEMBERS, such as 50x1000", os.Getenv("STEAD_SCALE"))
	}
	return [][2]int{{hosts, members}}
}

// BenchmarkScale is what one set costs the server, its store included, where hosts need no time
// and are in another process: created in order, updated, scaled to zero, and created in
// parallel. Of each: milliseconds and CPU milliseconds a member, revisions a member, and bytes
// sent to all nodes a member.
func BenchmarkScale(b *testing.B) {
	for _, size := range scaleSizes(b) {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			h := newScale(b, size[0])
			n := size[1]
			h.phase("ordered", n, func() { h.apply("ordered", "OrderedReady", n) }, ready)
			h.phase("rolling", n, func() { h.restart("ordered") }, replaced)
			h.phase("to-zero", n, func() { h.apply("ordered", "OrderedReady", 0) }, stopped)
			h.phase("parallel", n, func() { h.apply("parallel", "Parallel", n) }, ready)
			for b.Loop() { // once is enough; this forgets what was reported before
			}
			for unit, figure := range h.figures {
				b.ReportMetric(figure, unit)
			}
		})
	}
}

type scale struct {
	*cluster
	lights  *lights
	figures map[string]float64 // by unit
}

// newScale starts a server with embedded etcd, and light nodes that are all connected.
func newScale(b *testing.B, hosts int) *scale {
	b.Helper()
	dir, err := os.MkdirTemp("", "stead-b") // short, for the socket's sake
	must(b, err)
	b.Cleanup(func() { must(b, os.RemoveAll(dir)) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	b.Cleanup(cancel)
	h := &scale{cluster: &cluster{b: b, ctx: ctx, store: openStore(b, filepath.Join(dir, "etcd"))}, figures: map[string]float64{}}
	socket := filepath.Join(dir, "s.sock")
	s, err := server.New(server.Config{
		Store: h.store, StoreName: "embedded etcd", Name: "s1", Version: "bench",
		Socket: socket, KeyFile: filepath.Join(dir, "secret.key"), SeenFile: filepath.Join(dir, "seen.json"),
	})
	must(b, err)
	h.background("server", s.Run)
	conn, err := s.Dial()
	must(b, err)
	b.Cleanup(func() { must(b, conn.Close()) })
	h.api = proto.NewControlClient(conn)
	select {
	case <-s.Serving():
	case <-time.After(patience):
		b.Fatal("the server does not serve")
	}
	h.lights = startLights(b, hosts, socket)
	h.until("all nodes are connected", func() bool {
		_, kvs, err := h.store.Snapshot(ctx, store.KindSession+"/")
		must(b, err)
		return len(kvs) == hosts
	})
	return h
}

// phase does something to a set of n members, and records what it took until a report came of
// each that is as wanted; before is the token of the member's life at first.
func (h *scale) phase(name string, n int, do func(), wanted func(r *records.Report, before spec.Token) bool) {
	h.b.Helper()
	from, before := h.reports()
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Minute)
	defer cancel()
	w, err := h.store.Watch(ctx, store.KindReport+"/", from)
	must(h.b, err)
	defer w.Close()
	bytes, used, began := h.lights.received(), cpu(h.b), time.Now()
	do()
	done := map[spec.Identity]bool{}
	for len(done) < n {
		batch, err := w.Next(ctx)
		must(h.b, err)
		for _, ev := range batch.Events {
			if ev.Delete {
				continue
			}
			r, err := store.Decode[records.Report](ev.KV)
			must(h.b, err)
			if wanted(&r, before[r.ID]) {
				done[r.ID] = true
			}
		}
	}
	members := float64(n)
	h.figures[name+"-ms/member"] = time.Since(began).Seconds() * 1000 / members
	h.figures[name+"-cpu-ms/member"] = (cpu(h.b) - used).Seconds() * 1000 / members
	h.figures[name+"-revisions/member"] = float64(h.rev()-from) / members
	h.figures[name+"-bytes/member"] = float64(h.lights.received()-bytes) / members
}

// reports are the tokens of the lives that are reported, and the revision.
func (h *scale) reports() (store.Rev, map[spec.Identity]spec.Token) {
	h.b.Helper()
	rev, kvs, err := h.store.Snapshot(h.ctx, store.KindReport+"/")
	must(h.b, err)
	tokens := make(map[spec.Identity]spec.Token, len(kvs))
	for _, kv := range kvs {
		r, err := store.Decode[records.Report](kv)
		must(h.b, err)
		tokens[r.ID] = r.Token
	}
	return rev, tokens
}

func (h *scale) rev() store.Rev {
	rev, _, err := h.store.Get(h.ctx, store.EpochKey)
	must(h.b, err)
	return rev
}

func (h *scale) restart(set string) {
	h.b.Helper()
	_, err := h.api.Restart(h.ctx, &proto.RestartRequest{Set: set})
	must(h.b, err)
}

func ready(r *records.Report, _ spec.Token) bool         { return r.Ready }
func replaced(r *records.Report, before spec.Token) bool { return r.Ready && r.Token != before }
func stopped(r *records.Report, _ spec.Token) bool       { return r.Phase == records.PhaseStopped }
