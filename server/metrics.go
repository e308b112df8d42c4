package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/cache"
	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// lookTime bounds what a scrape waits for the store.
const lookTime = 2 * time.Second

// CheckMetrics accepts nothing, unix:///path and loopback addresses: there is no TLS yet.
func CheckMetrics(where string) error {
	if where == "" || strings.HasPrefix(where, "unix:///") {
		return nil
	}
	a, err := netip.ParseAddrPort(where)
	if err != nil || !a.Addr().IsLoopback() {
		return fmt.Errorf("metrics at %q: write unix:///path, or a loopback address as 127.0.0.1:9464", where)
	}
	return nil
}

// serveMetrics returns the part of the server that answers /metrics and /healthz on
// lis; nil: nothing does.
func (s *Server) serveMetrics(lis net.Listener, d *dispatch.Server) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.cfg.Registry.Register(&gauges{s, d, ctx}); err != nil {
			return err
		}
		if s.cfg.Debug {
			return ServeMetrics(ctx, lis, s.cfg.Registry, s.healthz, s.debugPages)
		}
		return ServeMetrics(ctx, lis, s.cfg.Registry, s.healthz)
	}
}

// ServeMetrics answers /metrics and /healthz on lis (nil: nowhere), which it closes,
// until ctx ends, and the debug pages that are given. It returns nil then, and the first error otherwise.
func ServeMetrics(ctx context.Context, lis net.Listener, registry *prometheus.Registry, healthz http.HandlerFunc, debug ...func(*http.ServeMux)) error {
	if lis == nil {
		<-ctx.Done()
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", healthz)
	h := &http.Server{Handler: mux, ReadHeaderTimeout: lookTime, WriteTimeout: 5 * lookTime}
	for _, add := range debug {
		add(mux)
		h.WriteTimeout = profileTime
	}
	defer context.AfterFunc(ctx, func() { h.Close() })()
	if err := h.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// ListenMetrics opens where (see CheckMetrics; "": nil), before anything is changed
// by a program that could not tell of it.
func ListenMetrics(where string) (lis net.Listener, err error) {
	switch path, isPath := strings.CutPrefix(where, "unix://"); {
	case where == "":
		return nil, nil
	case isPath:
		if lis, err = access.ListenSocket(path); err == nil {
			return lis, nil
		}
	default:
		if lis, err = net.Listen("tcp", where); err == nil {
			return lis, nil
		}
	}
	return nil, fmt.Errorf("serve metrics: %w; stop what is there, or give --metrics another address", err)
}

// healthz is 200 while the store answers.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), lookTime)
	defer cancel()
	if _, err := s.cfg.Store.Status(ctx); err != nil {
		http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// profileTime bounds a profile or trace that is asked of a debug page.
const profileTime = 2 * time.Minute

// debugPages answer /debug/pprof, and /debug/world?set=NAMESPACE/NAME with the world of a set
// as the planner sees it, a line that plan.ReadWorld reads. They are off unless asked for:
// templates, and so the values of variables, are in them.
func (s *Server) debugPages(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/world", s.debugWorld)
}

func (s *Server) debugWorld(w http.ResponseWriter, r *http.Request) {
	namespace, name, ok := strings.Cut(r.URL.Query().Get("set"), "/")
	if !ok {
		http.Error(w, "name a set: /debug/world?set=NAMESPACE/NAME", http.StatusBadRequest)
		return
	}
	var world plan.World
	s.cache.Look(func(v cache.View) {
		world = s.engine.World(v, spec.SetRef{Namespace: spec.Namespace(namespace), Name: spec.SetName(name)}, nil)
	})
	if world.Set == nil && len(world.Slots) == 0 {
		http.Error(w, "there is no such set, and nothing is left of one", http.StatusNotFound)
		return
	}
	line, err := world.Dump()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "%s\n", line) // who asked may be gone
}

var errDebugWithoutMetrics = errors.New("--debug needs --metrics: the debug pages are served there")
