// Package network is the body of runtime.Network on Linux: it gives each life's
// network namespace the identity's own address.
//
// A member has a veth named eth0 with its /32 and a default route to the gateway,
// 169.254.1.1, an address on the host's lo; there is no bridge and no proxy ARP.
// The host has a /32 route to each member's link, and below them an unreachable
// route over the whole CIDR, so that nothing meant for a member leaves the host
// and a connection to a stopped one fails at once. MAC addresses derive from IP
// addresses: no neighbour's memory goes stale. Traffic to the outside is
// masqueraded by an nftables table of our own. It also leads host ports to members: what
// comes to an address of the host, from outside, from members or from the host itself, but
// not what is sent to 127.0.0.0/8: that would take route_localnet, by which members could
// reach what the host offers to itself alone. Clients keep their address, but a member that
// calls itself by a host port has the gateway's.
//
// A table of its own leads connections to services to their endpoints (SetServices), wherever
// these are. In its maps a service is an element: one that changes costs a few elements,
// whatever the number of services. Members keep their address there, but one that reaches
// itself has the gateway's. Whoever is not a member, as clients of node ports are and the
// host itself, has the gateway's at an endpoint here and the host's at one elsewhere, whose
// answers must come back this way; kube-proxy does the same with externalTrafficPolicy:
// Cluster. What goes to the range of services and is not led is rejected, and by the range's
// routes it never leaves the host.
//
// Another table lets through what NetworkPolicies allow (SetPolicies): an element for each member and direction
// leads to the chain of its rules, which members with equal rules share, and the addresses that rules name are
// sets. An agent that ends leaves it in force, and a new member gets its network only when it is known what
// policies say of it (Config.Policies).
//
// How we know our own things again, so that two nodes, a demo and a guest on one
// host never touch each other's (and a crash needs no notes): the link by its
// name and alias "stead:<cluster>:<node>:<identity>"; routes by protocol 83 and
// our link, or our metric; the gateway address by its label; tables by their names, and
// the rules of a host port by their comment "stead:<identity> <port> <member>".
//
// All is done through netlink sockets opened in the namespace concerned. The
// sysctl net.ipv4.ip_forward is set and never set back: others may rely on it by then.
package network

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/stead-project/stead/agent/runtime"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// DefaultCIDR is the members' range where none is chosen.
const DefaultCIDR = "10.88.0.0/16"

// DefaultGateway is the members' gateway and DNS address.
const DefaultGateway = "169.254.1.1"

// protocol marks our routes ("proto 83"). It is not a number of /etc/iproute2/rt_protos
// nor one that a routing daemon or container network known to us uses.
const protocol = netlink.RouteProtocol(83)

// hostMAC is that of the host's end of every member's link.
var hostMAC = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}

var _ runtime.Network = (*Network)(nil)

// Config of a Network.
type Config struct {
	ClusterID string // at least 8 characters
	Node      spec.NodeName
	// CIDR is the range of all members' addresses, IPv4; zero: DefaultCIDR.
	CIDR netip.Prefix
	// Gateway is an address outside of CIDR; zero: DefaultGateway.
	Gateway netip.Addr
	// NetNS is the path of the host's network namespace; "": the process's own.
	NetNS string
	// MTU of the members' links; zero: 1500.
	MTU int
	// Mode is how members of other hosts are reached; "": ModeAuto.
	Mode string
	// WireGuard is for the node's end of the WireGuard tunnel; nil: it has none.
	WireGuard *WireGuard
	// Policies: a member that has no network yet gets it only once SetPolicies has named its address.
	Policies bool
	// Names opens the addresses of DNS, once the gateway is there; until it succeeded, once, the host is not set up. nil: there
	// is nothing to open.
	Names  func(context.Context) error
	Logger *slog.Logger // nil: silent
}

// Network programs one host's side of the members' network. Its methods may be
// called from any goroutine, for one identity from one at a time.
type Network struct {
	*node
	nat    natTable
	links  memberLinks
	tunnel tunnel
	wire   wireLink
	shield shield

	mu       sync.Mutex
	services serviceTable
	policies policyTable
	ready    bool // Setup found no conflict
	// remote are the members elsewhere; nil: not known yet.
	remote map[netip.Addr]Location
	// said is what servers say of the tunnel; nil: nothing yet.
	said      *records.HostTunnel
	unsettled bool // see Unsettled
	// nodes are the addresses of all hosts; nil: not known yet.
	nodes []netip.Addr
}

// node is one node's settings and the names of its things on the host.
type node struct {
	cfg  Config
	name string // <first 8 of the cluster id>-<node>
}

// New checks the configuration and touches nothing.
func New(cfg Config) (*Network, error) {
	if !cfg.CIDR.IsValid() {
		cfg.CIDR = netip.MustParsePrefix(DefaultCIDR)
	}
	if !cfg.Gateway.IsValid() {
		cfg.Gateway = netip.MustParseAddr(DefaultGateway)
	}
	if cfg.MTU == 0 {
		cfg.MTU = 1500
	}
	if cfg.Mode == "" {
		cfg.Mode = ModeAuto
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case len(cfg.ClusterID) < 8:
		return nil, fmt.Errorf("network: cluster id %q is shorter than 8 characters", cfg.ClusterID)
	case cfg.Node == "" || len(cfg.Node) > 100: // it is part of a link's alias, 255 bytes in all
		return nil, fmt.Errorf("network: node name %q is empty or longer than 100 characters", cfg.Node)
	case !cfg.CIDR.Addr().Is4() || cfg.CIDR != cfg.CIDR.Masked() || cfg.CIDR.Bits() < 8:
		return nil, fmt.Errorf("network: --cidr %s must be an IPv4 range of /8 or smaller, such as %s", cfg.CIDR, DefaultCIDR)
	case !cfg.Gateway.Is4() || cfg.CIDR.Contains(cfg.Gateway):
		return nil, fmt.Errorf("network: gateway %s must be an IPv4 address outside of --cidr %s", cfg.Gateway, cfg.CIDR)
	case cfg.Mode != ModeAuto && cfg.Mode != ModeRoutes && cfg.Mode != ModeVXLAN:
		return nil, fmt.Errorf("network: --network-mode %q is unknown; write %s, %s or %s", cfg.Mode, ModeAuto, ModeRoutes, ModeVXLAN)
	case cfg.MTU < 576+wireGuardOverhead || cfg.MTU > 65535:
		return nil, fmt.Errorf("network: MTU %d is not within %d..65535", cfg.MTU, 576+wireGuardOverhead)
	}
	n := &node{cfg: cfg, name: cfg.ClusterID[:8] + "-" + string(cfg.Node)}
	return &Network{
		node: n, nat: natTable{node: n}, links: memberLinks{n}, tunnel: tunnel{n}, wire: wireLink{n}, shield: shield{n}, services: serviceTable{node: n},
		policies: policyTable{node: n, judged: newJudged()},
	}, nil
}

// linkName is that of the host's end of a member's link: st and 10 hex digits.
func (n *node) linkName(id spec.Identity) string {
	sum := sha256.Sum256([]byte(n.cfg.ClusterID + id.String()))
	return "st" + hex.EncodeToString(sum[:5])
}

// aliasPrefix starts the alias of every link of this node.
func (n *node) aliasPrefix() string {
	return "stead:" + n.cfg.ClusterID[:8] + ":" + string(n.cfg.Node) + ":"
}

func (n *node) alias(id spec.Identity) string { return n.aliasPrefix() + id.String() }

// identityOf reads the identity in an alias of this node; false: not ours.
func (n *node) identityOf(alias string) (spec.Identity, bool) {
	text, ours := strings.CutPrefix(alias, n.aliasPrefix())
	ns, member, whole := strings.Cut(text, "/")
	set, ordinal, err := spec.ParseMemberName(member)
	if !ours || !whole || err != nil || strings.Contains(ns, ":") {
		return spec.Identity{}, false
	}
	return spec.Identity{Namespace: spec.Namespace(ns), Set: set, Ordinal: ordinal}, true
}

// mark is 24 bits that distinguish this node's things from those of another node, also
// of another cluster, in the same namespace.
func (n *node) mark() int {
	sum := sha256.Sum256([]byte(n.cfg.ClusterID + "/" + string(n.cfg.Node)))
	return int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])
}

// metric of our unreachable route: above (weaker than) everybody else's.
func (n *node) metric() int { return 1<<30 | n.mark() }

// label of the gateway address; the kernel wants it to begin with the link's name.
func (n *node) label() string { return fmt.Sprintf("lo:st%06x", n.mark()) }

// memberMAC is 02:53 (locally administered) and the address.
func memberMAC(addr netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x53}, addr.AsSlice()...)
}

// hostPrefix is the /32 of an address.
func hostPrefix(addr netip.Addr) *net.IPNet { return ipNet(netip.PrefixFrom(addr, 32)) }

// ipNet is a prefix in the library's form.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// prefixOf is the library's form as a prefix; nil is the default route.
func prefixOf(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	addr, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), bits)
}

// isGone reports whether err says that a link is not there.
func isGone(err error) bool {
	var gone netlink.LinkNotFoundError
	return errors.As(err, &gone)
}

// enforce remembers by want what the kernel is to hold, and has ensure make it so: at once, or by Setup, where the host is
// not set up yet.
func (n *Network) enforce(want func(), ensure func(*netlink.Handle) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	want()
	if !n.ready {
		return nil
	}
	h, err := n.host()
	if err != nil {
		return err
	}
	defer h.Close()
	return ensure(h)
}
