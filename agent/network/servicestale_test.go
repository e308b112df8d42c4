package network

import (
	"cmp"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestWhichConnectionsOfUDPAreStale(t *testing.T) {
	udp := func(s *Service) { s.Protocol = "UDP" }
	local := service(4, 10, 11).with(udp).with(near(11))
	s := staleFlows{
		content: contentOf([]Service{service(1, 10).with(udp), service(2).with(udp), service(0, 11).with(udp), service(3, 10), local}),
		rng:     netip.MustParsePrefix("10.96.0.0/16"), members: netip.MustParsePrefix("10.88.0.0/16"), gateway: netip.MustParseAddr("169.254.1.1"),
		gone: contentOf([]Service{
			service(0, 12).with(udp).with(func(s *Service) { s.Port = 30081 }),
		}).sets[setLed],
		own: map[netip.Addr]bool{atHost: true},
	}
	for _, tt := range []struct {
		to, at   string
		protocol uint8
		want     bool
		from     string // "": outside
	}{
		{"10.96.0.1:80", "10.88.0.10:7", unix.IPPROTO_UDP, false, ""},
		{"10.96.0.1:80", "10.88.0.11:7", unix.IPPROTO_UDP, true, ""},
		{"10.96.0.1:80", "10.88.0.10:8", unix.IPPROTO_UDP, true, ""},
		{"10.96.0.1:80", "10.96.0.1:80", unix.IPPROTO_UDP, true, ""}, // it was not led
		{"10.96.0.1:80", "10.88.0.11:7", unix.IPPROTO_TCP, false, ""},
		{"10.96.0.2:80", "10.88.0.10:7", unix.IPPROTO_UDP, true, ""},
		{"10.96.0.9:80", "10.88.0.10:7", unix.IPPROTO_UDP, true, ""}, // its service is gone
		{"192.0.2.1:30080", "10.88.0.11:7", unix.IPPROTO_UDP, false, ""},
		{"192.0.2.1:30080", "192.0.2.1:30080", unix.IPPROTO_UDP, true, ""},
		{"192.0.2.1:30081", "10.88.0.12:7", unix.IPPROTO_UDP, true, ""},
		{"192.0.2.1:30081", "10.88.0.13:7", unix.IPPROTO_UDP, false, ""}, // another's
		{"192.0.2.2:30080", "192.0.2.2:30080", unix.IPPROTO_UDP, false, ""},
		{"192.0.2.2:30081", "10.88.0.12:7", unix.IPPROTO_UDP, false, ""},
		{"10.88.0.10:7", "10.88.0.10:7", unix.IPPROTO_UDP, false, ""},
		{"10.96.0.4:80", "10.88.0.11:7", unix.IPPROTO_UDP, false, ""},
		{"10.96.0.4:80", "10.88.0.10:7", unix.IPPROTO_UDP, true, ""}, // it is not near
		{"10.96.0.4:80", "10.88.0.10:7", unix.IPPROTO_UDP, false, "10.88.0.20"},
		{"10.96.0.4:80", "10.88.0.10:7", unix.IPPROTO_UDP, false, "169.254.1.1"},
		{"10.96.0.4:80", "10.88.0.10:7", unix.IPPROTO_UDP, false, atHost.String()},
	} {
		to, at := netip.MustParseAddrPort(tt.to), netip.MustParseAddrPort(tt.at)
		f := &netlink.ConntrackFlow{
			Forward: netlink.IPTuple{SrcIP: net.ParseIP(cmp.Or(tt.from, "192.0.2.99")), DstIP: net.IP(to.Addr().AsSlice()), DstPort: to.Port(), Protocol: tt.protocol},
			Reverse: netlink.IPTuple{SrcIP: net.IP(at.Addr().AsSlice()), SrcPort: at.Port(), Protocol: tt.protocol},
		}
		if got := s.contain(f); got != tt.want {
			t.Errorf("protocol %d to %s at %s: stale %t, want %t", tt.protocol, to, at, got, tt.want)
		}
	}
}
