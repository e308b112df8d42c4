package network

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stead-project/stead/spec"
)

const cluster = "0123456789abcdef0123456789abcdef"

func TestNewChecksItsConfig(t *testing.T) {
	good := Config{ClusterID: cluster, Node: "n1"}
	tests := []struct {
		name string
		edit func(*Config)
		want string // in the error; "": none
	}{
		{"the defaults", func(*Config) {}, ""},
		{"a smaller range", func(c *Config) { c.CIDR = netip.MustParsePrefix("10.1.2.0/28") }, ""},
		{"no cluster", func(c *Config) { c.ClusterID = "x" }, "cluster id"},
		{"no node", func(c *Config) { c.Node = "" }, "node name"},
		{"a node name too long for an alias", func(c *Config) { c.Node = spec.NodeName(strings.Repeat("n", 101)) }, "node name"},
		{"a range with host bits", func(c *Config) { c.CIDR = netip.MustParsePrefix("10.88.0.1/16") }, "--cidr"},
		{"an IPv6 range", func(c *Config) { c.CIDR = netip.MustParsePrefix("fd00::/64") }, "--cidr"},
		{"everything", func(c *Config) { c.CIDR = netip.MustParsePrefix("0.0.0.0/0") }, "--cidr"},
		{"a gateway within the range", func(c *Config) { c.Gateway = netip.MustParseAddr("10.88.0.1") }, "gateway"},
		{"a tiny MTU", func(c *Config) { c.MTU = 100 }, "MTU"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.edit(&c)
			_, err := New(c)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestNamesTellTheirOwner(t *testing.T) {
	mine, err := New(Config{ClusterID: cluster, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	longest := spec.Identity{
		Namespace: spec.Namespace(strings.Repeat("n", 63)), Set: spec.SetName(strings.Repeat("s", 52)), Ordinal: 2147483647,
	}
	for _, id := range []spec.Identity{{Namespace: "default", Set: "db", Ordinal: 0}, {Namespace: "a", Set: "x-1", Ordinal: 12}, longest} {
		if got, ours := mine.identityOf(mine.alias(id)); !ours || got != id {
			t.Errorf("alias %q is read as %v, %v", mine.alias(id), got, ours)
		}
		if name := mine.linkName(id); len(name) != 12 || !strings.HasPrefix(name, "st") {
			t.Errorf("link name %q, want st and 10 hex digits", name)
		}
		if len(mine.alias(id)) > 255 {
			t.Errorf("alias of %d bytes", len(mine.alias(id)))
		}
	}
	for _, c := range []Config{{ClusterID: cluster, Node: "n2"}, {ClusterID: "f" + cluster, Node: "n1"}, {ClusterID: cluster, Node: "n1:x"}} {
		other, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if id, ours := mine.identityOf(other.alias(longest)); ours {
			t.Errorf("the link of %s/%s is taken for ours: %v", c.ClusterID[:8], c.Node, id)
		}
		if mine.metric() == other.metric() || mine.label() == other.label() || mine.table().Name == other.table().Name {
			t.Errorf("%s/%s has our metric, label or table", c.ClusterID[:8], c.Node)
		}
	}
	if n := len(mine.label()); n > 15 {
		t.Errorf("label of %d bytes", n)
	}
	for _, foreign := range []string{"", "uplink", "stead:01234567:n1:", "stead:01234567:n1:default/db", "stead:01234567:n1:db-0"} {
		if id, ours := mine.identityOf(foreign); ours {
			t.Errorf("alias %q is taken for %v", foreign, id)
		}
	}
}

func TestMemberMACFollowsTheAddress(t *testing.T) {
	got := memberMAC(netip.MustParseAddr("10.88.0.255"))
	if want := (net.HardwareAddr{0x02, 0x53, 10, 88, 0, 255}); got.String() != want.String() {
		t.Errorf("got %s, want %s", got, want)
	}
}
