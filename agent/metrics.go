package agent

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stead-project/stead/records"
)

var (
	membersGauge   = prometheus.NewDesc("stead_agent_members", "Members of this node by the phase of their life.", []string{"phase"}, nil)
	readyGauge     = prometheus.NewDesc("stead_agent_members_ready", "Members of this node that are ready.", nil, nil)
	restartsGauge  = prometheus.NewDesc("stead_agent_restarts", "Restarts of the containers of the lives that are here now.", nil, nil)
	sessionGauge   = prometheus.NewDesc("stead_agent_session_age_seconds", "Age of the session with a server; 0: there is none.", nil, nil)
	marginGauge    = prometheus.NewDesc("stead_agent_session_margin_seconds", "Time until the session counts as lost unless a server answers; 0: it is lost.", nil, nil)
	confirmedGauge = prometheus.NewDesc("stead_agent_confirmed_margin_seconds", "Time until what members are told of their sets is confirmed no longer; below 0: since when it is not.", nil, nil)
)

// contact is how the agent stands with the servers. The zero value: no session.
type contact struct {
	mu           sync.Mutex
	since, heard time.Time
	ttl          time.Duration
}

func (c *contact) began(ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.heard, c.ttl = time.Now(), time.Now(), ttl
}

// answered: a server answered a ping.
func (c *contact) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
}

func (c *contact) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
}

// look is the session's age and margin; both are zero when there is none.
func (c *contact) look() (age, margin time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return 0, 0
	}
	return time.Since(c.since), max(0, c.ttl-time.Since(c.heard))
}

// Describe implements prometheus.Collector.
func (a *Agent) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{membersGauge, readyGauge, restartsGauge, sessionGauge, marginGauge, confirmedGauge} {
		out <- d
	}
}

// Collect implements prometheus.Collector: it tells what was last reported of the
// lives that are not over.
func (a *Agent) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	phases, ready, restarts := map[records.Phase]float64{}, 0.0, 0.0
	for _, r := range a.lastReports() {
		phases[r.Phase]++
		if r.Ready {
			ready++
		}
		for _, c := range r.Containers {
			restarts += float64(c.Restarts)
		}
	}
	for phase, n := range phases {
		gauge(membersGauge, n, string(phase))
	}
	age, margin := a.contact.look()
	gauge(readyGauge, ready)
	gauge(restartsGauge, restarts)
	gauge(sessionGauge, age.Seconds())
	gauge(marginGauge, margin.Seconds())
	gauge(confirmedGauge, (time.Duration(a.confirmed.Load()) - a.c.Clock()).Seconds())
}
