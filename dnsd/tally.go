package dnsd

import (
	"strconv"
	"sync/atomic"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// kinds are the types of questions that are counted apart; the last is any other.
var kinds = [...]string{"A", "AAAA", "SRV", "PTR", "TXT", "SOA", "NS", "other"}

// kindOf is the place of a question's type in kinds.
func kindOf(qtype uint16) int {
	switch qtype {
	case dns.TypeA:
		return 0
	case dns.TypeAAAA:
		return 1
	case dns.TypeSRV:
		return 2
	case dns.TypePTR:
		return 3
	case dns.TypeTXT:
		return 4
	case dns.TypeSOA:
		return 5
	case dns.TypeNS:
		return 6
	}
	return len(kinds) - 1
}

// rcodes is how many answer codes are counted: those of the header.
const rcodes = 16

// tally counts answers. Each socket that answers usual questions has its own, so that
// none waits for another; a scrape adds them up.
type tally struct {
	answers   [len(kinds)][rcodes]atomic.Uint64
	forwarded atomic.Uint64
	held      [len(heldResults)]atomic.Uint64
}

// heldResults are what came of questions for unfollowed names.
var heldResults = [...]string{"answered", "failed"}

func (t *tally) addHeld(rcode int) {
	result := 0
	if rcode == dns.RcodeServerFailure {
		result = 1
	}
	t.held[result].Add(1)
}

func (t *tally) add(qtype uint16, rcode int) { t.answers[kindOf(qtype)][rcode%rcodes].Add(1) }

var (
	queriesCounter = prometheus.NewDesc("stead_dns_queries_total", "Questions answered, by type and answer code.", []string{"type", "rcode"}, nil)
	forwardCounter = prometheus.NewDesc("stead_dns_forwarded_total", "Questions for names that are not members', handed on to the host's name servers.", nil, nil)
	heldCounter    = prometheus.NewDesc("stead_dns_unfollowed_total", "Questions for names of sets that the node does not follow, by what came of them.", []string{"result"}, nil)
	recordsGauge   = prometheus.NewDesc("stead_dns_names", "Names that are answered from the zone.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(out chan<- *prometheus.Desc) {
	out <- queriesCounter
	out <- forwardCounter
	out <- heldCounter
	out <- recordsGauge
}

// Collect implements prometheus.Collector; it takes no lock that answering takes.
func (s *Server) Collect(out chan<- prometheus.Metric) {
	tallies := []*tally{&s.slow}
	if packed := s.packed.Load(); packed != nil {
		tallies = append(tallies, *packed...)
	}
	for k, kind := range kinds {
		for r := range rcodes {
			n := uint64(0)
			for _, t := range tallies {
				n += t.answers[k][r].Load()
			}
			if n > 0 {
				out <- prometheus.MustNewConstMetric(queriesCounter, prometheus.CounterValue, float64(n), kind, rcodeName(r))
			}
		}
	}
	for i, result := range heldResults {
		out <- prometheus.MustNewConstMetric(heldCounter, prometheus.CounterValue, float64(s.slow.held[i].Load()), result)
	}
	names := 0
	if z := s.zone.Load(); z != nil {
		names = len(z.nodes)
	}
	out <- prometheus.MustNewConstMetric(forwardCounter, prometheus.CounterValue, float64(s.slow.forwarded.Load()))
	out <- prometheus.MustNewConstMetric(recordsGauge, prometheus.GaugeValue, float64(names))
}

func rcodeName(rcode int) string {
	if name, ok := dns.RcodeToString[rcode]; ok {
		return name
	}
	return strconv.Itoa(rcode)
}
