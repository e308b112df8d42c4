package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/stead-project/stead/agent"
	"github.com/stead-project/stead/agent/home"
	"github.com/stead-project/stead/agent/runtime/fakert"
	"github.com/stead-project/stead/agent/session"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/server"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// hollow is a cluster of many hosts: the real server, store and agents, in one process,
// on hosts without containers.
type hollow struct {
	*cluster
	dir     string
	socket  string
	stop    func() // the server
	agents  []func()
	members int
	figures map[string]float64 // by unit
}

// hollowSetSize is how many members a set of a hollow cluster has.
const hollowSetSize = 50

// hollowSize is the number of hosts, and of members on each; STEAD_HOLLOW=200x25 is that
// of the design.
func hollowSize(b *testing.B) (hosts, each int) {
	text := os.Getenv("STEAD_HOLLOW")
	if text == "" {
		text = "40x10"
	}
	if _, err := fmt.Sscanf(text, "%dx%d", &hosts, &each); err != nil || hosts < 3 || each < 1 {
		b.Fatalf("STEAD_HOLLOW=%q; write HOSTSxMEMBERS, such as 200x25", text)
	}
	return hosts, each
}

func (h *hollow) startServer() {
	h.b.Helper()
	s, err := server.New(server.Config{
		Store: h.store, StoreName: "embedded etcd", Name: "s1", Version: "bench",
		Socket: h.socket, KeyFile: filepath.Join(h.dir, "secret.key"), SeenFile: filepath.Join(h.dir, "seen.json"),
	})
	must(h.b, err)
	ctx, cancel := context.WithCancel(h.ctx)
	end := make(chan error, 1)
	go func() { end <- s.Run(ctx) }()
	var stopped atomic.Bool
	h.stop = func() {
		if !stopped.Swap(true) {
			cancel()
			must(h.b, <-end)
		}
	}
	h.b.Cleanup(h.stop)
	select {
	case <-s.Serving():
	case <-time.After(patience):
		h.b.Fatal("the server does not serve")
	}
}

func (h *hollow) startAgent(i int) {
	h.b.Helper()
	name := spec.NodeName(fmt.Sprintf("n%03d", i))
	at, err := home.Open(filepath.Join(h.dir, string(name)), name)
	must(h.b, err)
	dial := func(context.Context) (*grpc.ClientConn, error) { return server.Dial(h.socket) }
	facts := records.NodeFacts{Name: name, Boot: "b1", CPUMillis: 1 << 40, MemoryBytes: 1 << 50}
	ctx, cancel := context.WithCancel(h.ctx)
	host := fakert.New()
	end := make(chan error, 1)
	go func() {
		log := slog.New(slog.DiscardHandler)
		err := session.Join(ctx, at, dial, facts.Boot, facts, log)
		if err == nil {
			var a *agent.Agent
			if a, err = agent.New(agent.Config{
				Home: at, RunDir: filepath.Join(h.dir, "run", string(name)), Dial: dial, Boot: facts.Boot, Facts: facts,
				Runtime: host, Network: host, Volumes: host, Logger: log,
			}); err == nil {
				err = a.Run(ctx)
			}
		}
		end <- err
	}()
	var stopped atomic.Bool
	stop := func() {
		if !stopped.Swap(true) {
			cancel()
			<-end
			must(h.b, at.Close())
		}
	}
	h.agents = append(h.agents, stop)
	h.b.Cleanup(stop)
}

// count is how many keys of a kind there are.
func (h *hollow) count(kind string) int {
	_, kvs, err := h.store.Snapshot(h.ctx, kind+"/")
	must(h.b, err)
	return len(kvs)
}

// lives are the members' tokens, and how many of them are ready.
func (h *hollow) lives() (tokens map[spec.Identity]spec.Token, ready int) {
	_, kvs, err := h.store.Snapshot(h.ctx, store.KindReport+"/")
	must(h.b, err)
	tokens = make(map[spec.Identity]spec.Token, len(kvs))
	for _, kv := range kvs {
		r, err := store.Decode[records.Report](kv)
		must(h.b, err)
		tokens[r.ID] = r.Token
		if r.Ready {
			ready++
		}
	}
	return tokens, ready
}

// within waits for up to ten minutes and returns how long it took.
func (h *hollow) within(what string, ok func() bool) time.Duration {
	h.b.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > 10*time.Minute {
			h.b.Fatalf("%s: not within ten minutes", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

// cpu is what the process has used so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHollow is a day of a large cluster: all hosts join at once; sets fill them and
// report; nothing happens; the server dies and the next one leads; two thirds of the hosts
// fall silent at once, for whom nobody is replaced, and come back.
func BenchmarkHollow(b *testing.B) {
	hosts, each := hollowSize(b)
	dir, err := os.MkdirTemp("/dev/shm", "stead-h")
	must(b, err)
	b.Cleanup(func() { must(b, os.RemoveAll(dir)) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	b.Cleanup(cancel)
	h := &hollow{
		cluster: &cluster{b: b, ctx: ctx, store: openStore(b, filepath.Join(dir, "etcd"))},
		dir:     dir, socket: filepath.Join(dir, "s.sock"), members: hosts * each, figures: map[string]float64{},
	}
	h.startServer()
	conn, err := server.Dial(h.socket)
	must(b, err)
	b.Cleanup(func() { must(b, conn.Close()) })
	h.api = proto.NewControlClient(conn)

	began := time.Now()
	for i := range hosts {
		h.startAgent(i)
	}
	connected := func() bool { return h.count(store.KindSession) == hosts }
	h.within("all hosts join", connected)
	h.record(time.Since(began).Seconds(), "join-s")
	before := heap()

	began = time.Now()
	for i := 0; i*hollowSetSize < h.members; i++ {
		h.apply(fmt.Sprint("set", i), "Parallel", min(hollowSetSize, h.members-i*hollowSetSize))
	}
	h.within("all members are ready", func() bool { _, ready := h.lives(); return ready == h.members })
	took := time.Since(began)
	h.record(took.Seconds(), "ready-s")
	h.record(float64(h.members)/took.Seconds(), "members/s")
	h.record(float64(heap()-before)/float64(h.members)/1024, "KiB/member")
	h.record(float64(before)/float64(hosts)/1024, "KiB/host")

	h.settle()
	used, at := cpu(b), time.Now()
	time.Sleep(10 * time.Second) // what is measured is that nothing happens
	h.record(100*(cpu(b)-used).Seconds()/time.Since(at).Seconds()/float64(hosts)*100, "idle-%/100-hosts")

	tokens, _ := h.lives()
	h.stop()
	began = time.Now()
	h.startServer()
	h.within("the next server leads, and all are back", func() bool {
		info, err := h.api.Info(ctx, &proto.InfoRequest{})
		return err == nil && info.GetLeader() != "" && connected()
	})
	h.record(time.Since(began).Seconds(), "handover-s")
	h.same("a hand-over", tokens)

	silent := 2 * hosts / 3
	for _, stop := range h.agents[:silent] {
		stop()
	}
	h.within("two thirds are silent", func() bool { return h.count(store.KindSession) == hosts-silent })
	h.settle()
	h.same("a silence of two thirds", tokens)
	began = time.Now()
	for i := range silent {
		h.startAgent(i)
	}
	h.within("all are back", connected)
	h.record(time.Since(began).Seconds(), "return-s")
	h.settle()
	h.same("their return", tokens)
	for b.Loop() { // one day is enough; this forgets what was reported before
	}
	for unit, figure := range h.figures {
		b.ReportMetric(figure, unit)
	}
}

func (h *hollow) record(figure float64, unit string) { h.figures[unit] = figure }

// settle waits until the store has not moved for two seconds.
func (h *hollow) settle() {
	h.b.Helper()
	last, since := h.rev(), time.Now()
	h.within("the store rests", func() bool {
		if now := h.rev(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
}

func (h *hollow) rev() store.Rev {
	rev, _, err := h.store.Get(h.ctx, store.EpochKey)
	must(h.b, err)
	return rev
}

// same fails the benchmark when a life is another one than before.
func (h *hollow) same(what string, tokens map[spec.Identity]spec.Token) {
	h.b.Helper()
	now, _ := h.lives()
	for id, token := range tokens {
		if now[id] != token {
			h.b.Fatalf("after %s, %s has token %s; want %s", what, id, now[id], token)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
