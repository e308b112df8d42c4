package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stead-project/stead/server/access"
	"github.com/stead-project/stead/server/dispatch"
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
