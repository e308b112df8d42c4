package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// serviceLayout is the number of the table's layout: of its sets, chains and rules. A table of another one is
// replaced as a whole; raise it with every change of them.
const serviceLayout = 3

// mostAffine is how many clients of services with affinity a host remembers; who comes then is led at
// random.
const mostAffine = 1 << 18

// ledMark is the bit that a packet has between being led and leaving: only the first one of a
// connection, as only that gets to chains of NAT. kube-proxy has one of its own, 0x4000.
const ledMark = 0x1000

// mark is kept with each rule of the table: one that reads otherwise is another rule.
func (t *serviceTable) mark() string {
	return fmt.Sprintf("stead:services:%d:%s:%s:%s:%d", serviceLayout, t.rng, t.cfg.CIDR, t.cfg.Gateway, t.group())
}

// sets are the sets and maps of the table, empty.
func (t *serviceTable) sets() []*nftables.Set {
	addr, protocol, port := nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService
	concat := nftables.MustConcatSetType
	sets := []*nftables.Set{
		{Name: setGuarded, IsMap: true, KeyType: concat(addr, protocol, port), DataType: nftables.TypeVerdict},
		{Name: setOutside, IsMap: true, KeyType: concat(addr, protocol, port), DataType: nftables.TypeVerdict},
		{Name: setServices, IsMap: true, KeyType: concat(addr, protocol, port), DataType: nftables.TypeVerdict},
		// A number in the host's order is what nft calls a mark.
		{Name: setEndpoints, IsMap: true, KeyType: concat(addr, protocol, port, nftables.TypeMark), DataType: concat(addr, port)},
		{Name: setNear, IsMap: true, KeyType: concat(addr, protocol, port, nftables.TypeMark), DataType: concat(addr, port)},
		{Name: setLed, KeyType: concat(addr, protocol, port, addr, port)},
		{Name: setSelf, KeyType: concat(addr, addr)},
		{Name: setAffinity, KeyType: concat(addr, addr, port, addr, port), Dynamic: true, HasTimeout: true, Size: mostAffine},
	}
	for _, s := range sets {
		s.Table = t.serviceTable()
	}
	return sets
}

// chains are the chains that do not depend on the services.
//
// Services are led after host ports. What is rejected there never was a connection, which is why a client of
// UDP that was rejected is led as soon as there is an endpoint. Of packets to the range only those that were not
// led get to the filters.
func (t *serviceTable) chains() []ruleChain {
	nat, filter := nftables.ChainTypeNAT, nftables.ChainTypeFilter
	dnat, snat, forward := *nftables.ChainPriorityNATDest, *nftables.ChainPriorityNATSource, *nftables.ChainPriorityFilter
	base := func(name string, kind nftables.ChainType, hook *nftables.ChainHook, at nftables.ChainPriority, rules ...[]expr.Any) ruleChain {
		return ruleChain{&nftables.Chain{Name: name, Table: t.serviceTable(), Type: kind, Hooknum: hook, Priority: &at}, rules}
	}
	address, nodePort := verdictOf(setServices, false), append(t.toHost(), verdictOf(setServices, true)...)
	chains := []ruleChain{
		{&nftables.Chain{Name: refuse, Table: t.serviceTable()}, [][]expr.Any{refuseTCP(), refuseAny()}},
		{&nftables.Chain{Name: discard, Table: t.serviceTable()}, [][]expr.Any{dropped()}},
		{&nftables.Chain{Name: "source", Table: t.serviceTable()},
			[][]expr.Any{t.selfRule(), t.memberRule(), t.hereRule(), {&expr.Masq{}}}},
		base("prerouting", nat, nftables.ChainHookPrerouting, dnat+1, verdictOf(setGuarded, false),
			t.fromOutside(verdictOf(setOutside, false)), address, t.fromOutside(slices.Concat(t.toHost(), verdictOf(setOutside, true))), nodePort),
		base("output", nat, nftables.ChainHookOutput, dnat+1, verdictOf(setGuarded, false), address, nodePort),
		base("postrouting", nat, nftables.ChainHookPostrouting, snat, sourceRule()),
	}
	if t.rng.IsValid() {
		chains = append(chains,
			base("forward", filter, nftables.ChainHookForward, forward, t.rangeRule()),
			base("output-range", filter, nftables.ChainHookOutput, dnat+2, t.rangeRule()))
	}
	return chains
}

// Registers of 4 bytes: a key is in those that follow one another.
const (
	reg0 = unix.NFT_REG32_00 + iota
	reg1
	reg2
	reg3
	reg4
	_ // the second of a value of 8 bytes
	reg6
)

func addressInto(register, offset uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4}
}

func portInto(register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: portAt, Len: 2}
}

func protocolInto(register uint32) expr.Any {
	return &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}
}

// serviceInto loads the service of a packet into three registers from this one on.
func serviceInto(register uint32, nodePort bool) []expr.Any {
	addr := addressInto(register, destinationAt)
	if nodePort {
		addr = &expr.Immediate{Register: register, Data: make([]byte, 4)}
	}
	return []expr.Any{addr, protocolInto(register + 1), portInto(register + 2)}
}

func jump(to string) expr.Any { return &expr.Verdict{Kind: expr.VerdictGoto, Chain: to} }

// verdictOf is "ip daddr . meta l4proto . th dport vmap @NAME"; of node ports with 0.0.0.0 in place of the address.
func verdictOf(name string, nodePort bool) []expr.Any {
	return append(serviceInto(reg0, nodePort), &expr.Lookup{SourceRegister: reg0, SetName: name, IsDestRegSet: true})
}

// fromOutside is "ip saddr != CIDR" and the rest: of clients that are not members. What the host itself sends was led
// by the chain output.
func (t *serviceTable) fromOutside(rest []expr.Any) []expr.Any {
	return append(addressIs(sourceAt, expr.CmpOpNeq, t.cfg.CIDR), rest...)
}

// dropped is "counter drop".
func dropped() []expr.Any { return []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}} }

// rules of sources are those of the chain: what comes from one of them returns, and is led by the rules after it. A
// range of IPv6 is nobody's.
func (s sources) rules() (out [][]expr.Any) {
	for _, p := range s {
		if p.Addr().Is4() {
			out = append(out, append(addressIs(sourceAt, expr.CmpOpEq, p), &expr.Verdict{Kind: expr.VerdictReturn}))
		}
	}
	return append(out, dropped())
}

// rangeRule is "ip daddr RANGE goto refuse".
func (t *serviceTable) rangeRule() []expr.Any {
	return append(addressIs(destinationAt, expr.CmpOpEq, t.rng), jump(refuse))
}

// refuseTCP is "meta l4proto tcp counter reject with tcp reset".
func refuseTCP() []expr.Any {
	return []expr.Any{protocolInto(1), &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Counter{}, &expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
}

// refuseAny is "counter reject with icmp port-unreachable".
func refuseAny() []expr.Any {
	const portUnreachable = 3 // ICMP_PORT_UNREACH
	return []expr.Any{&expr.Counter{}, &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: portUnreachable}}
}

// sourceRule is "meta mark & ledMark != 0 meta mark set meta mark & ^ledMark goto source".
func sourceRule() []expr.Any {
	exprs := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(ledMark), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
	return append(append(exprs, setMark(1, 0)...), jump("source"))
}

// setMark makes ledMark of a packet be bit.
func setMark(register, bit uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: register},
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(^uint32(ledMark)), Xor: binaryutil.NativeEndian.PutUint32(bit)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: register},
	}
}

// selfRule is "ip saddr . ip daddr @self snat to GATEWAY": a member that reaches itself would not
// take a packet that has its own address.
func (t *serviceTable) selfRule() []expr.Any {
	exprs := []expr.Any{addressInto(reg0, sourceAt), addressInto(reg1, destinationAt), &expr.Lookup{SourceRegister: reg0, SetName: setSelf}}
	return append(exprs, t.fromGateway()...)
}

// memberRule is "ip saddr CIDR return": members keep their address.
func (t *serviceTable) memberRule() []expr.Any {
	return append(addressIs(sourceAt, expr.CmpOpEq, t.cfg.CIDR), &expr.Verdict{Kind: expr.VerdictReturn})
}

// hereRule is "oifgroup MEMBERS snat to GATEWAY". As kube-proxy does, it takes their address from clients
// outside also when the endpoint is here, but not from those that are led to Near (externalTrafficPolicy: Local).
func (t *serviceTable) hereRule() []expr.Any {
	exprs := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFGROUP, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(t.group())},
	}
	return append(exprs, t.fromGateway()...)
}

// rules are those of the pick's chain. Each rule leads, or leaves it to the next. With affinity first the endpoints
// that the client had, then all with the same chance; the others are without it for when no more clients can be
// remembered, and for a packet that comes while endpoints change: one of all, the first, and then it is rejected.
func (p pick) rules() (out [][]expr.Any) {
	for _, e := range p.endpoints {
		had := &expr.Lookup{SourceRegister: reg0, SetName: setAffinity}
		out = append(out, slices.Concat(p.client(e), []expr.Any{had, p.remember()}, p.lead(reg3)))
	}
	for i, e := range p.endpoints {
		out = append(out, slices.Concat(oneOf(len(p.endpoints)-i), p.client(e), []expr.Any{p.remember()}, p.lead(reg3)))
	}
	return append(out, append(p.choose(p.among), p.lead(reg4)...), append(p.choose(1), p.lead(reg4)...), []expr.Any{jump(refuse)})
}

// choose is "… . numgen random mod AMONG map @endpoints" into the registers 4 and 5; near "map @near".
func (p pick) choose(among int) []expr.Any {
	endpoints := setEndpoints
	if p.near {
		endpoints = setNear
	}
	return append(serviceInto(reg0, p.nodePort),
		&expr.Numgen{Register: reg3, Modulus: uint32(among), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: reg0, DestRegister: reg4, IsDestRegSet: true, SetName: endpoints})
}

// oneOf is "numgen random mod N 0".
func oneOf(n int) []expr.Any {
	return []expr.Any{
		&expr.Numgen{Register: reg0, Modulus: uint32(n), Type: unix.NFT_NG_RANDOM},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg0, Data: make([]byte, 4)},
	}
}

// client is "ip saddr . ip daddr . th dport . ENDPOINT" into the registers 0 to 4.
func (p pick) client(endpoint netip.AddrPort) []expr.Any {
	service := serviceInto(reg1, p.nodePort)
	return []expr.Any{
		addressInto(reg0, sourceAt), service[0], portInto(reg2),
		&expr.Immediate{Register: reg3, Data: endpoint.Addr().AsSlice()},
		&expr.Immediate{Register: reg4, Data: binaryutil.BigEndian.PutUint16(endpoint.Port())},
	}
}

// remember is "update @affinity" of the registers 0 to 4: from now on for the time of the affinity.
func (p pick) remember() expr.Any {
	return &expr.Dynset{SrcRegKey: reg0, SetName: setAffinity, Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: p.affinity}
}

// lead is "meta mark set meta mark | ledMark dnat to" this register and the next; without the mark, who is led keeps
// its address.
func (p pick) lead(register uint32) []expr.Any {
	to := &expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register, RegProtoMin: register + 1, Specified: true}
	if p.near {
		return []expr.Any{to}
	}
	return append(setMark(reg6, ledMark), to)
}
