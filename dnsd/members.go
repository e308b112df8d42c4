package dnsd

import (
	"net/netip"

	"github.com/miekg/dns"
)

// member is a member of a set.
type member struct {
	label   string // its own
	name    string
	wire    string
	ordinal int
	addr    netip.Addr
	own     dns.RR // of name and addr; nil: it is not made
	ready   bool
}

// madeMember is what a part has of a member: while it has that address, the next part has the same. Packing it takes longer than all
// else that a change of another member costs.
type madeMember struct {
	name    string
	wire    string
	addr    netip.Addr
	node    *node
	pointer string // the wire name of its address; "": it has none
	reverse *node
}

// members adds a service and the members' own names below it, and returns the members
// that can be named so. made is what the part before has of them, for the same service.
func (t *part) members(service, base string, made map[string]madeMember) []member {
	if !isLabel(service) {
		return nil
	}
	declare(t.nodes, service+base)
	members := make([]member, 0, len(t.peers))
	for _, peer := range t.peers {
		m := member{label: peer.Name, ordinal: peer.Ordinal, addr: peer.Address.Unmap(), ready: peer.Ready}
		had, again := made[m.label]
		if again {
			m.name, m.wire = had.name, had.wire
		} else {
			if !isLabel(peer.Name) {
				continue
			}
			m.name = peer.Name + "." + service + base
			wire, ok := wireName(m.name)
			if !ok {
				continue
			}
			m.wire = wire
		}
		if again && had.addr == m.addr && t.nodes[m.wire] == nil && had.node.isOnly(record{addr: m.addr}) {
			t.nodes[m.wire] = had.node
			if m.addr.IsValid() {
				m.own = had.node.sets[0].rrs[0]
			}
		} else if n := declareWire(t.nodes, m.wire); m.addr.IsValid() {
			m.own = addressRR(m.name, m.addr)
			n.add(m.own)
		}
		members = append(members, m)
	}
	return members
}

// keep adds the reverse name of a member, and keeps what the next part may have of it.
func (t *part) keep(m *member, had madeMember) {
	now := madeMember{name: m.name, wire: m.wire, addr: m.addr, node: t.nodes[m.wire]}
	switch {
	case !m.addr.IsValid():
	case had.addr == m.addr && had.pointer != "" && t.pointers[had.pointer] == nil && had.reverse.isOnly(record{to: m.name}):
		t.pointers[had.pointer] = had.reverse
		now.pointer = had.pointer
	default:
		now.pointer = addPointer(t.pointers, m.addr, m.name)
	}
	now.reverse = t.pointers[now.pointer]
	t.made[m.label] = now
}

// isOnly reports that a node is finished, and has this record of a member and no other; with the zero one none at all.
func (n *node) isOnly(r record) bool {
	if n == nil || !n.finished {
		return false
	}
	if r == (record{}) {
		return len(n.sets) == 0
	}
	return len(n.sets) == 1 && n.sets[0].kind != dns.TypeCNAME && len(n.sets[0].rrs) == 1 && len(n.sets[0].extra) == 0 && identify(n.sets[0].rrs[0]) == r
}
