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
// How we know our own things again, so that two nodes, a demo and a guest on one
// host never touch each other's (and a crash needs no notes): the link by its
// name and alias "stead:<cluster>:<node>:<identity>"; routes by protocol 83 and
// our link, or our metric; the gateway address by its label; the table by its name, and
// the rules of a host port in it by their comment "stead:<identity> <port> <member>".
//
// All is done through netlink sockets opened in the namespace concerned. The
// sysctl net.ipv4.ip_forward is set and never set back: others may rely on it by then.
package network
