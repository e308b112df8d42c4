package host

import "github.com/prometheus/client_golang/prometheus"

var (
	queriesCounter = prometheus.NewDesc("stead_dns_queries_total", "Questions answered, by type and answer code.", []string{"type", "rcode"}, nil)
	forwardCounter = prometheus.NewDesc("stead_dns_forwarded_total", "Questions for names that are not members', handed on to the host's name servers.", nil, nil)
	heldCounter    = prometheus.NewDesc("stead_dns_unfollowed_total", "Questions for names of sets that the node does not follow, by what came of them.", []string{"result"}, nil)
	namesGauge     = prometheus.NewDesc("stead_dns_names", "Names that are answered from the zone.", nil, nil)
)

// Describe implements prometheus.Collector: of the name server, which counts from its own start on.
func (m *Machine) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queriesCounter, forwardCounter, heldCounter, namesGauge} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Machine) Collect(out chan<- prometheus.Metric) {
	c := m.names.Counts()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for _, a := range c.Answers {
		counter(queriesCounter, a.Count, a.Type, a.Rcode)
	}
	counter(heldCounter, c.Held, "answered")
	counter(heldCounter, c.Failed, "failed")
	counter(forwardCounter, c.Forwarded)
	out <- prometheus.MustNewConstMetric(namesGauge, prometheus.GaugeValue, float64(c.Names))
}
