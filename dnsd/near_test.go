package dnsd

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

func TestNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, reads := []netip.Addr{netip.MustParseAddr("192.0.2.1")}, 0
		n := near{members: netip.MustParsePrefix("10.88.0.0/16"), list: func() []netip.Addr { reads++; return own }}
		expect := func(addr string, want bool) {
			t.Helper()
			if got := n.has(clientAddr(net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))); got != want {
				t.Errorf("%s is near: %v, want %v", addr, got, want)
			}
		}
		expect("10.88.255.1:9", true)
		expect("[::ffff:10.88.255.1]:9", true)
		expect("10.89.0.1:9", false)
		expect("127.8.8.8:9", true)
		expect("[::1]:9", true)
		expect("192.0.2.1:9", true)
		expect("192.0.2.2:9", false)
		own = append(own, netip.MustParseAddr("192.0.2.2"))
		expect("192.0.2.2:9", false)
		if reads != 1 {
			t.Errorf("the host's addresses were read %d times, want once a second", reads)
		}
		time.Sleep(time.Second + time.Nanosecond)
		expect("192.0.2.2:9", true)
		if n.has(clientAddr(nil)) {
			t.Error("nobody is near")
		}
	})
}

func TestStrangersAreNotForwarded(t *testing.T) {
	addr, asked := upstream(t, says(dns.RcodeSuccess, 1))
	s, err := New(Config{Listen: []netip.AddrPort{anyPort}, Upstreams: []string{addr}, Members: netip.MustParsePrefix("10.88.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	s.Swap(Build(fixture()))
	for from, want := range map[string]int{"198.51.100.7": dns.RcodeRefused, "10.88.0.2": dns.RcodeSuccess, "127.0.0.1": dns.RcodeSuccess} {
		if m := s.answer(t.Context(), ask(t, "example.org. A"), UDP, netip.MustParseAddr(from)); m.Rcode != want {
			t.Errorf("%s: got %s, want %s", from, dns.RcodeToString[m.Rcode], dns.RcodeToString[want])
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the upstream was asked %d times, want twice", n)
	}
	if m := s.answer(t.Context(), ask(t, "db-0.db.default.svc.cluster.local. A"), UDP, netip.MustParseAddr("198.51.100.7")); len(m.Answer) != 1 {
		t.Errorf("our own name: got %v, want the member", m)
	}
}
