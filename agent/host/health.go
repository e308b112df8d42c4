package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/stead-project/stead/internal/trouble"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// serviceHealth is what this host says of a service at a port of its own.
type serviceHealth struct {
	port      uint16
	namespace spec.Namespace
	service   string
	local     int // endpoints on this host, by address
}

// healthOf is what a node is to say, by port.
func healthOf(snapshots []records.Snapshot, node spec.NodeName) []serviceHealth {
	found := map[uint16]*serviceHealth{}
	seen := map[uint16]map[netip.Addr]bool{}
	for i := range snapshots {
		s := &snapshots[i]
		for j := range s.Names {
			n := &s.Names[j]
			if n.HealthPort == 0 || !n.Address.IsValid() {
				continue
			}
			port := uint16(n.HealthPort)
			if found[port] == nil {
				found[port], seen[port] = &serviceHealth{port: port, namespace: s.Ref.Namespace, service: n.Name}, map[netip.Addr]bool{}
			}
			for k := range n.Ports {
				for _, e := range s.EndpointsOf(n, &n.Ports[k]) {
					if e.Node == node {
						seen[port][e.Address] = true
					}
				}
			}
			found[port].local = len(seen[port])
		}
	}
	var out []serviceHealth
	for _, h := range found {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b serviceHealth) int { return int(a.port) - int(b.port) })
	return out
}

// healthPorts answer load balancers outside, as kube-proxy does: HTTP, 200 while members are on this host, and 503
// otherwise. They end with the agent. One goroutine at a time may call its methods.
type healthPorts struct {
	listen func(port uint16) (net.Listener, error)
	log    *slog.Logger
	last   trouble.Last
	open   map[uint16]*healthAnswer
}

func newHealthPorts(log *slog.Logger) *healthPorts {
	listen := func(port uint16) (net.Listener, error) { return net.Listen("tcp4", fmt.Sprintf(":%d", port)) }
	return &healthPorts{listen: listen, log: log, open: map[uint16]*healthAnswer{}}
}

// set has this host answer at exactly these ports; leading: connections are led as they say. What cannot be opened is
// tried again by the next call.
func (h *healthPorts) set(list []serviceHealth, leading bool) {
	wanted := map[uint16]bool{}
	var failed []error
	for _, s := range list {
		wanted[s.port] = true
		a := h.open[s.port]
		if a == nil || a.ended.Load() {
			l, err := h.listen(s.port)
			if err != nil {
				failed = append(failed, fmt.Errorf("service %s/%s: %w", s.namespace, s.service, err))
				continue
			}
			a = newHealthAnswer()
			h.open[s.port] = a
			a.now.Store(&healthState{s, leading})
			a.serve(l)
			continue
		}
		a.now.Store(&healthState{s, leading})
	}
	for port, a := range h.open {
		if !wanted[port] {
			a.server.Close()
			delete(h.open, port)
		}
	}
	if err := errors.Join(failed...); h.last.IsErr(err) {
		h.log.Warn("health of services not answered", "err", err)
	}
}

// close ends all answers.
func (h *healthPorts) close() { h.set(nil, false) }

// healthState is what is said at a port.
type healthState struct {
	serviceHealth
	leading bool
}

// healthAnswer answers at one port.
type healthAnswer struct {
	now    atomic.Pointer[healthState]
	ended  atomic.Bool // nobody listens any more
	server *http.Server
}

// The bounds of who asks, whom nobody knows.
const (
	maxHealthConns   = 64
	maxHealthSeconds = 5
)

func newHealthAnswer() *healthAnswer {
	a := &healthAnswer{}
	a.server = &http.Server{Handler: a, ReadTimeout: maxHealthSeconds * time.Second, WriteTimeout: maxHealthSeconds * time.Second,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	a.server.SetKeepAlivesEnabled(false)
	return a
}

// serve answers until the server is closed or l fails; it does not block.
func (a *healthAnswer) serve(l net.Listener) {
	go func() {
		defer a.ended.Store(true)
		_ = a.server.Serve(netutil.LimitListener(l, maxHealthConns))
	}()
}

// ServeHTTP answers in kube-proxy's form.
func (a *healthAnswer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	type name struct {
		Namespace spec.Namespace `json:"namespace"`
		Name      string         `json:"name"`
	}
	now := a.now.Load()
	code := http.StatusServiceUnavailable
	if now.leading && now.local > 0 {
		code = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(now.local))
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct { // who asked may be gone
		Service   name `json:"service"`
		Endpoints int  `json:"localEndpoints"`
		Healthy   bool `json:"serviceProxyHealthy"`
	}{name{now.namespace, now.service}, now.local, now.leading})
}
