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

	"github.com/stead-project/stead/server/dispatch"
	"github.com/stead-project/stead/server/world"
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
		return ServeMetrics(ctx, lis, s.cfg.Registry, s.healthz)
	}
}

// ServeMetrics answers /metrics and /healthz on lis (nil: nowhere), which it closes,
// until ctx ends. It returns nil then, and the first error otherwise.
func ServeMetrics(ctx context.Context, lis net.Listener, registry *prometheus.Registry, healthz http.HandlerFunc) error {
	if lis == nil {
		<-ctx.Done()
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", healthz)
	h := &http.Server{Handler: mux, ReadHeaderTimeout: lookTime, WriteTimeout: 5 * lookTime}
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
		var l *socket
		if l, err = listen(path); err == nil {
			return l, nil
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

var (
	membersGauge  = prometheus.NewDesc("stead_members", "Members by the phase of their life.", []string{"phase"}, nil)
	waitingGauge  = prometheus.NewDesc("stead_members_blocked", "Members that wait.", nil, nil)
	setsGauge     = prometheus.NewDesc("stead_sets", "Sets.", nil, nil)
	sessionsGauge = prometheus.NewDesc("stead_sessions", "Nodes with a session at this server.", nil, nil)
	leaderGauge   = prometheus.NewDesc("stead_leader", "1 where this server leads.", nil, nil)
	bytesGauge    = prometheus.NewDesc("stead_store_bytes", "Size of the store.", nil, nil)
	answerGauge   = prometheus.NewDesc("stead_store_answer_seconds", "How long the store took to answer this scrape.", nil, nil)
)

// gauges looks at the world when it is asked.
type gauges struct {
	s *Server
	d *dispatch.Server
	// ctx ends with the server; a Collector is given none.
	ctx context.Context
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{membersGauge, waitingGauge, setsGauge, sessionsGauge, leaderGauge, bytesGauge, answerGauge} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	phases, blocked, sets, leads := map[string]float64{}, 0.0, 0.0, 0.0
	g.s.world.Look(func(v world.View) {
		for _, ref := range v.Sets() {
			sets++
			st, _ := v.Status(ref)
			if st == nil {
				continue
			}
			for _, m := range st.Members {
				phases[string(m.Phase)]++
				if m.Blocked != "" {
					blocked++
				}
			}
		}
		if who, _ := v.Leader(); who == g.s.cfg.Name {
			leads = 1
		}
	})
	for phase, n := range phases {
		gauge(membersGauge, n, phase)
	}
	gauge(waitingGauge, blocked)
	gauge(setsGauge, sets)
	gauge(sessionsGauge, float64(g.d.Sessions()))
	gauge(leaderGauge, leads)
	g.store(gauge)
}

func (g *gauges) store(gauge func(*prometheus.Desc, float64, ...string)) {
	ctx, cancel := context.WithTimeout(g.ctx, lookTime)
	defer cancel()
	began := time.Now()
	if st, err := g.s.cfg.Store.Status(ctx); err == nil {
		gauge(bytesGauge, float64(st.SizeBytes))
		gauge(answerGauge, time.Since(began).Seconds())
	}
}
