package network

import (
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// policyLayout is the number of the table's layout. A table of another one is replaced as a whole; raise it with
// every change of its sets, chains and rules.
const policyLayout = 1

// mark is kept with each rule of the table: one that reads otherwise is another rule.
func (t *policyTable) mark() string { return fmt.Sprintf("stead:policies:%d", policyLayout) }

// set is a set or map of the table, empty.
func (t *policyTable) set(name string) *nftables.Set {
	s := &nftables.Set{Table: t.policyTable(), Name: name, KeyType: nftables.TypeIPAddr}
	switch name {
	case mapIngress, mapEgress:
		s.IsMap, s.DataType = true, nftables.TypeVerdict
	case setItself:
		s.KeyType = nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr)
	}
	return s
}

// fixedSets are those that there are whatever the policies.
var fixedSets = []string{mapIngress, mapEgress, setItself}

// chains are the chains that do not depend on the policies. What comes from or goes to a member passes forward,
// after services and host ports have led it, and before its source is changed; what the host itself
// sends and receives does not. Of the latter DNS is judged like all other destinations.
func (t *policyTable) chains() []ruleChain {
	base := func(name string, hook *nftables.ChainHook, rules ...[]expr.Any) ruleChain {
		return ruleChain{&nftables.Chain{
			Name: name, Table: t.policyTable(), Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityFilter,
		}, rules}
	}
	leaves, arrives := lookup(sourceAt, mapEgress), lookup(destinationAt, mapIngress)
	return []ruleChain{
		base("forward", nftables.ChainHookForward, repliesPass(), itselfPasses(), leaves, arrives),
		base("input", nftables.ChainHookInput, repliesPass(),
			append(toPort(unix.IPPROTO_UDP, dnsPort), leaves...), append(toPort(unix.IPPROTO_TCP, dnsPort), leaves...)),
	}
}

const dnsPort = 53

// lookup is "ip saddr vmap @NAME", or daddr.
func lookup(offset uint32, name string) []expr.Any {
	return []expr.Any{addressInto(reg0, offset), &expr.Lookup{SourceRegister: reg0, SetName: name, IsDestRegSet: true}}
}

// repliesPass is "ct state established,related accept".
func repliesPass() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}
}

// itselfPasses is "ip saddr . ip daddr @itself accept".
func itselfPasses() []expr.Any {
	return []expr.Any{
		addressInto(reg0, sourceAt), addressInto(reg1, destinationAt), &expr.Lookup{SourceRegister: reg0, SetName: setItself},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}
}

// rules are those of the filter's chain. What one allows returns, for the other direction is to be judged,
// too; the last drops. The address of a packet that a rule is about is at peer.
func (f *Filter) rules(peer uint32) [][]expr.Any {
	var out [][]expr.Any
	for _, rule := range f.Rules {
		for _, from := range rule.peers(peer) {
			for _, to := range rule.ports() {
				out = append(out, slices.Concat(from, to, []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}))
			}
		}
	}
	return append(out, []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}})
}

// peers are matches of which one is enough.
func (a *Allow) peers(at uint32) (out [][]expr.Any) {
	if a.Anybody {
		return [][]expr.Any{nil}
	}
	for _, group := range a.Groups {
		out = append(out, []expr.Any{addressInto(reg0, at), &expr.Lookup{SourceRegister: reg0, SetName: groupSet(group)}})
	}
	for _, b := range a.Blocks {
		exprs := addressIs(at, expr.CmpOpEq, b.Range)
		for _, e := range b.Except {
			exprs = append(exprs, addressIs(at, expr.CmpOpNeq, e)...)
		}
		out = append(out, exprs)
	}
	return out
}

// ports are matches of which one is enough.
func (a *Allow) ports() (out [][]expr.Any) {
	if len(a.Ports) == 0 {
		return [][]expr.Any{nil}
	}
	for _, p := range a.Ports {
		exprs := []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocolNumbers[p.Protocol]}},
		}
		if p.First != 0 {
			exprs = append(exprs, portInto(1),
				&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: binaryutil.BigEndian.PutUint16(p.First)},
				&expr.Cmp{Op: expr.CmpOpLte, Register: 1, Data: binaryutil.BigEndian.PutUint16(p.Last)})
		}
		out = append(out, exprs)
	}
	return out
}
