package control

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// meeting lets the first transactions through when so many are there, each decided before another one was written.
type meeting struct {
	store.Store
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func (m *meeting) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	m.mu.Lock()
	m.left--
	if m.left == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
	case <-time.After(patience):
	}
	return m.Store.Commit(ctx, t)
}

// servers are so many on the store, each with its own view of it, whose first transactions meet.
func (r *rig) servers(n int) (list []*Server) {
	r.t.Helper()
	m := &meeting{Store: r.Store, left: n, all: make(chan struct{})}
	for range n {
		own := cache.New(r.Store, slog.New(slog.DiscardHandler))
		var running sync.WaitGroup
		running.Go(func() { _ = own.Run(r.t.Context()) })
		r.t.Cleanup(running.Wait)
		if err := own.Wait(r.ctx, r.rev()); err != nil {
			r.t.Fatal(err)
		}
		cfg := r.shared.cfg
		cfg.Store, cfg.Cache = m, own
		s, err := New(cfg)
		if err != nil {
			r.t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// apart runs each at a server of its own, all decided before one is written, and returns how each ended.
func (r *rig) apart(calls ...func(*Server) error) []error {
	errs := make([]error, len(calls))
	var running sync.WaitGroup
	for i, s := range r.servers(len(calls)) {
		running.Go(func() { errs[i] = calls[i](s) })
	}
	running.Wait()
	return errs
}

func applied(yaml string) func(*Server) error {
	return func(s *Server) error {
		_, err := s.Apply(context.Background(), &proto.ApplyRequest{Files: []*proto.File{{Name: "a.yaml", Content: []byte(yaml)}}})
		return err
	}
}

func scaled(name string, replicas int32) func(*Server) error {
	return func(s *Server) error {
		_, err := s.Scale(context.Background(), &proto.ScaleRequest{Name: name, Replicas: replicas})
		return err
	}
}

// Whoever is written second decides again by what the first has written, at whichever server.
func TestTwoAtOnceDoNotBothFit(t *testing.T) {
	config := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }
	claim := func(name string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	}
	for name, c := range map[string]struct {
		hard  string
		calls []func(*Server) error
	}{
		"two applies":             {"pods: 5", []func(*Server) error{applied(small("b", 2)), applied(small("c", 2))}},
		"five applies":            {"pods: 5", []func(*Server) error{applied(small("b", 2)), applied(small("c", 2)), applied(small("d", 2)), applied(small("e", 2)), applied(small("f", 2))}},
		"an apply and a scale":    {"pods: 5", []func(*Server) error{applied(small("b", 2)), scaled("a", 4)}},
		"two scales":              {"pods: 5", []func(*Server) error{scaled("a", 4), scaled("z", 3)}},
		"configmaps":              {"configmaps: 1", []func(*Server) error{applied(config("b")), applied(config("c"))}},
		"claims":                  {"requests.storage: 1Gi", []func(*Server) error{applied(claim("b")), applied(claim("c"))}},
		"an apply and a lowering": {"pods: 5", []func(*Server) error{applied(small("b", 2)), applied(quotaYAML("pods: 3"))}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.mustApply(quotaYAML(c.hard), small("a", 2), small("z", 1))
			done := 0
			for _, err := range r.apart(c.calls...) {
				switch {
				case err == nil:
					done++
				case status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "exceeds ResourceQuota"):
					t.Errorf("got %v, want to be refused by the quota", err)
				}
			}
			if strings.Contains(name, "lowering") {
				if done == 0 {
					t.Error("nothing was done")
				}
			} else if done != 1 {
				t.Errorf("%d were done, want 1: %s", done, r.used())
			}
		})
	}
}

// A quota that comes while an apply is decided without it is seen by that apply.
func TestAQuotaThatComesMeanwhileIsSeen(t *testing.T) {
	r := newRig(t)
	r.mustApply(small("a", 2))
	errs := r.apart(applied(quotaYAML("pods: 3")), applied(small("b", 2)))
	if errs[0] != nil {
		t.Error(errs[0])
	}
	if err := errs[1]; err != nil {
		refused(t, err, codes.FailedPrecondition, "pods: used 2, asked for 2 more, hard 3")
		return
	}
	set, team := store.SetKey(spec.SetRef{Namespace: "default", Name: "b"}), store.QuotaKey("default", "team")
	_, kvs, err := r.Store.Get(r.ctx, set, team)
	if err != nil || kvs[set].Mod > kvs[team].Mod {
		t.Errorf("the set was written at %d, after the quota at %d, %v", kvs[set].Mod, kvs[team].Mod, err)
	}
}

// Where there is no quota nothing more is written than before; where there is, one key a change.
func TestOnlyAQuotaCostsAWrite(t *testing.T) {
	r := newRig(t)
	ops := &counting{Store: r.Store}
	r.shared.cfg.Store = ops
	r.mustApply(small("a", 1))
	if err := r.scale("a", 2); err != nil {
		t.Fatal(err)
	}
	if got := ops.take(); got != 2 {
		t.Errorf("an apply and a scale write %d keys without a quota, want 2", got)
	}
	r.mustApply(quotaYAML("pods: 9"))
	if got := ops.take(); got != 2 {
		t.Errorf("a quota is %d keys, want 2", got)
	}
	r.mustApply(small("a", 3))
	if err := r.scale("a", 4); err != nil {
		t.Fatal(err)
	}
	if got := ops.take(); got != 4 {
		t.Errorf("an apply and a scale write %d keys with a quota, want 4", got)
	}
	if _, err := r.api.Restart(r.ctx, &proto.RestartRequest{Set: "a"}); err != nil {
		t.Fatal(err)
	}
	r.mustApply(small("a", 4))
	if got := ops.take(); got != 1 {
		t.Errorf("a restart, and an apply that changes nothing, write %d keys, want 1", got)
	}
	if _, err := r.api.Delete(r.ctx, &proto.DeleteRequest{Kind: proto.KindQuota, Name: "team"}); err != nil {
		t.Fatal(err)
	}
	if _, kvs, err := r.Store.Get(r.ctx, store.QuotaChangeKey("default")); err != nil || len(kvs) != 0 {
		t.Errorf("after the last quota %v stays, %v", kvs, err)
	}
}

// counting counts the keys that are written.
type counting struct {
	store.Store
	mu sync.Mutex
	n  int
}

func (c *counting) Commit(ctx context.Context, t store.Txn) (store.Rev, error) {
	c.mu.Lock()
	c.n += len(t.Then)
	c.mu.Unlock()
	return c.Store.Commit(ctx, t)
}

func (c *counting) take() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.n = c.n, 0
	return n
}

// lagging is a cache that shows what was there when it was stopped, until somebody waits for more.
type lagging struct {
	cache.Reader
	now    cache.Reader
	waited atomic.Bool
}

func (l *lagging) Look(f func(cache.View)) {
	if l.waited.Load() {
		l.now.Look(f)
		return
	}
	l.Reader.Look(f)
}

func (l *lagging) Wait(ctx context.Context, rev store.Rev) error {
	l.waited.Store(true)
	return l.now.Wait(ctx, rev)
}

// A server whose view is old, and shows no quota, is not told for ever that something changed: it waits for what it did not see.
func TestAQuotaThatTheViewDoesNotShowYetIsWaitedFor(t *testing.T) {
	r := newRig(t)
	r.mustApply(small("a", 2))
	old := cache.New(r.Store, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = old.Run(ctx) })
	if err := old.Wait(r.ctx, r.rev()); err != nil {
		t.Fatal(err)
	}
	stop()
	running.Wait()
	r.mustApply(quotaYAML("pods: 3"))
	for name, call := range map[string]func(*Server) error{"apply": applied(small("b", 2)), "scale": scaled("a", 4)} {
		cfg := r.shared.cfg
		cfg.Cache = &lagging{Reader: old, now: r.Cache}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := call(s); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "asked for 2 more, hard 3") {
			t.Errorf("%s: got %v, want to be refused by the quota", name, err)
		}
	}
}
