package server

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/store/memstore"
)

// TestTheRangeOfServicesStays: while a service has an address outside of it, a server does not start.
func TestTheRangeOfServicesStays(t *testing.T) {
	a, b := netip.MustParseAddr("10.89.0.7"), netip.MustParseAddr("10.90.0.7")
	addresses := map[netip.Addr]*records.ServiceAddress{
		a: {Address: a, Namespace: "default", Name: "web"}, b: {Address: b, Namespace: "default", Name: "was", Freed: true},
	}
	for cidr, want := range map[string]string{
		"10.89.0.0/16": "", "10.88.0.0/15": "",
		"10.90.0.0/16": "service default/web has the address 10.89.0.7, which is not in --service-cidr 10.90.0.0/16, --load-balancer-cidr or --external-ip-cidr: start with the ranges as they were, or delete the Services first",
	} {
		got := ""
		c := Config{ServiceCIDR: netip.MustParsePrefix(cidr)}
		if err := c.checkServices(addresses); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", cidr, got, want)
		}
	}
}

// TestTheRangesForClientsOutsideAreApart from each other and from all addresses inside; a service may have an address of
// any of them.
func TestTheRangesForClientsOutsideAreApart(t *testing.T) {
	parse := func(list []string) (out []netip.Prefix) {
		for _, text := range list {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	for _, tt := range []struct {
		balancers, external []string
		wrong               string
	}{
		{[]string{"203.0.113.0/28", "203.0.113.16/32"}, []string{"198.51.100.0/24"}, ""},
		{[]string{"203.0.113.0/28", "203.0.113.8/32"}, nil, "--load-balancer-cidr 203.0.113.8/32 overlaps 203.0.113.0/28"},
		{[]string{"203.0.113.0/28"}, []string{"203.0.113.0/24"}, "overlaps 203.0.113.0/2"},
		{nil, []string{"10.88.5.0/24"}, "--external-ip-cidr 10.88.5.0/24 overlaps 10.88.0.0/16"},
		{[]string{"10.89.5.0/24"}, nil, "--load-balancer-cidr 10.89.5.0/24 overlaps 10.89.0.0/16"},
		{[]string{"203.0.113.1/28"}, nil, "must be an IPv4 range of /8 or smaller"},
		{[]string{"127.0.0.0/8"}, nil, "must be an IPv4 range of /8 or smaller"},
		{nil, []string{"169.254.1.0/24"}, "must be an IPv4 range of /8 or smaller"},
		{nil, []string{"224.0.0.0/4"}, "must be an IPv4 range of /8 or smaller"},
		{nil, []string{"fd00::/16"}, "must be an IPv4 range of /8 or smaller"},
	} {
		dir := t.TempDir()
		c := Config{Store: memstore.New(), Name: "s1", KeyFile: filepath.Join(dir, "key"), SeenFile: filepath.Join(dir, "seen"), LoadBalancers: parse(tt.balancers), ExternalIPs: parse(tt.external)}
		c.Default()
		err := c.Check()
		if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%v and %v: got %v, want %q", tt.balancers, tt.external, err, tt.wrong)
		}
		if a := netip.MustParseAddr("203.0.113.16"); tt.wrong == "" {
			if err := c.checkServices(map[netip.Addr]*records.ServiceAddress{a: {Address: a, Namespace: "default", Name: "web"}}); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTheRangeOfServicesIsApartFromMembers: the default moves out of the members' way, and an overlap that was
// asked for is refused.
func TestTheRangeOfServicesIsApartFromMembers(t *testing.T) {
	for _, tt := range []struct{ members, services, want, wrong string }{
		{members: "10.88.0.0/16", want: "10.89.0.0/16"},
		{members: "10.80.0.0/12", want: "172.29.0.0/16"},
		{members: "172.16.0.0/12", want: "10.89.0.0/16"},
		{members: "10.88.0.0/16", services: "10.88.128.0/20", wrong: "overlaps the members' range 10.88.0.0/16"},
		{members: "10.88.0.0/16", services: "10.96.0.0/8", wrong: "must be an IPv4 range of /12 to /28"},
		{members: "10.88.0.0/16", services: "10.96.0.1/16", wrong: "must be an IPv4 range of /12 to /28"},
		{members: "10.88.0.0/16", services: "fd00::/16", wrong: "must be an IPv4 range of /12 to /28"},
		{members: "10.88.0.0/16", services: "10.96.0.0/29", wrong: "must be an IPv4 range of /12 to /28"},
	} {
		dir := t.TempDir()
		c := Config{Store: memstore.New(), Name: "s1", KeyFile: filepath.Join(dir, "key"), SeenFile: filepath.Join(dir, "seen"), CIDR: netip.MustParsePrefix(tt.members)}
		if tt.services != "" {
			c.ServiceCIDR = netip.MustParsePrefix(tt.services)
		}
		c.Default()
		err := c.Check()
		switch {
		case tt.wrong == "" && (err != nil || c.ServiceCIDR.String() != tt.want):
			t.Errorf("members %s: got %s, %v, want %s", tt.members, c.ServiceCIDR, err, tt.want)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("members %s, services %s: got %v, want %q", tt.members, tt.services, err, tt.wrong)
		}
	}
}
