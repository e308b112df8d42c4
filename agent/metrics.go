package agent

import (
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
	usedGauge      = prometheus.NewDesc("stead_agent_volume_used_bytes", "What the files of a volume take on its disk, as it was measured last.", volumeLabels, nil)
	freeGauge      = prometheus.NewDesc("stead_agent_volume_available_bytes", "What can still be written to the file system of a volume.", volumeLabels, nil)
	totalGauge     = prometheus.NewDesc("stead_agent_volume_capacity_bytes", "Size of the file system of a volume.", volumeLabels, nil)
	conditionGauge = prometheus.NewDesc("stead_agent_condition", "1 while the host is short of disk, memory or processes, all of it or the disk of a storage class, or cannot give members a network.", []string{"type", "class"}, nil)
	confirmedGauge = prometheus.NewDesc("stead_agent_confirmed_margin_seconds", "Time until the confirmation of what members read of their sets ends; below 0: since when it has ended.", nil, nil)
)

// volumeLabels say which volume it is: its name may be that of several.
var volumeLabels = []string{"namespace", "volume", "id"}

// Describe implements prometheus.Collector.
func (a *Agent) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{membersGauge, readyGauge, restartsGauge, sessionGauge, marginGauge, confirmedGauge, usedGauge, freeGauge, totalGauge, conditionGauge} {
		out <- d
	}
}

// Collect implements prometheus.Collector: of the lives
// that are not over, what was last reported.
func (a *Agent) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	phases, ready, restarts := map[records.Phase]float64{}, 0.0, 0.0
	for _, r := range a.workers.Last() {
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
	gauge(readyGauge, ready)
	gauge(restartsGauge, restarts)
	var age, margin, confirmed time.Duration
	if client := a.client.Load(); client != nil {
		age, margin = client.Contact()
		confirmed = client.ConfirmedUntil()
	}
	gauge(sessionGauge, age.Seconds())
	gauge(marginGauge, margin.Seconds())
	gauge(confirmedGauge, (confirmed - a.c.Clock()).Seconds())
	a.collectVolumes(gauge)
	short := map[string]float64{records.DiskPressure: 0, records.MemoryPressure: 0, records.PIDPressure: 0, records.NetworkUnavailable: 0}
	for _, c := range a.conditions.Now() {
		if c.Class != "" {
			gauge(conditionGauge, 1, c.Type, c.Class)
			continue
		}
		short[c.Type] = 1
	}
	for kind, is := range short {
		gauge(conditionGauge, is, kind, "")
	}
}

// collectVolumes says how full the node's volumes are; what is not known is left out.
func (a *Agent) collectVolumes(gauge func(*prometheus.Desc, float64, ...string)) {
	for _, u := range a.c.VolumeUses() {
		labels := []string{string(u.ID.Namespace), records.VolumeName(u.ID, u.Claim), string(u.Volume)}
		for _, g := range []struct {
			desc  *prometheus.Desc
			bytes int64
		}{{usedGauge, u.UsedBytes}, {freeGauge, u.FreeBytes}, {totalGauge, u.TotalBytes}} {
			if g.bytes >= 0 {
				gauge(g.desc, float64(g.bytes), labels...)
			}
		}
	}
}
