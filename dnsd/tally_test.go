package dnsd

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// counted is what a scrape sees, by name and labels.
func counted(s *Server) map[string]float64 {
	c := s.Counts()
	seen := map[string]float64{
		"forwarded": float64(c.Forwarded), "held": float64(c.Held), "failed": float64(c.Failed), "names": float64(c.Names),
	}
	for _, a := range c.Answers {
		seen[a.Rcode+" "+a.Type] += float64(a.Count)
	}
	return seen
}

func TestEachAnswerIsCountedWhicheverWayItWent(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} { // packed, and not
		t.Run(listen, func(t *testing.T) {
			s, addr := start(t, Config{Listen: []netip.AddrPort{netip.MustParseAddrPort(listen)}})
			s.Swap(Build(fixture()))
			if listen == "0.0.0.0:0" {
				addr = "127.0.0.1:" + addr[len("0.0.0.0:"):]
			}
			for line, times := range map[string]int{
				"db-0.db.default.svc.cluster.local. A":     3,
				"db-0.db.default.svc.cluster.local. AAAA":  2,
				"nobody.cluster.local. A":                  2,
				"db-0.db.default.svc.cluster.local. HINFO": 1,
				"cluster.local. ANY":                       1,
				"example.org. A":                           1, // nobody to ask
			} {
				for range times {
					for _, network := range []string{"udp", "tcp"} {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						_, _, err := (&dns.Client{Net: network, Timeout: time.Minute}).ExchangeContext(ctx, ask(t, line), addr)
						cancel()
						if err != nil {
							t.Fatalf("%s over %s: %v", line, network, err)
						}
					}
				}
			}
			got := counted(s)
			for name, want := range map[string]float64{
				"NOERROR A": 6, "NOERROR AAAA": 4,
				"NXDOMAIN A": 4, "SERVFAIL A": 2,
				"forwarded": 0,
			} {
				if v, there := got[name]; !there || v != want {
					t.Errorf("%s is %v (there: %v), want %v", name, v, there, want)
				}
			}
			if got["names"] == 0 {
				t.Error("no names are told")
			}
			sum := 0.0
			for name, v := range got {
				if name != "names" {
					sum += v
				}
			}
			if sum != 20 {
				t.Errorf("%v answers are counted, want 20: %v", sum, got)
			}
		})
	}
}
