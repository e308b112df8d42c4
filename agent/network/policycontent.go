package network

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"

	"github.com/google/nftables/expr"
)

// The maps and the set of the table of policies. Beside them it has a set for each group.
const (
	mapIngress = "ingress" // member → the chain of its filter
	mapEgress  = "egress"
	setItself  = "itself" // member, twice: it always reaches itself
)

// policyContent is what the table of policies is to hold, apart from what never changes.
type policyContent struct {
	chains map[string][][]expr.Any // rules by the name of the chain, which follows from them
	sets   map[string]elements     // those above, and of each group
}

func newPolicyContent() policyContent {
	return policyContent{
		chains: map[string][][]expr.Any{},
		sets:   map[string]elements{mapIngress: {}, mapEgress: {}, setItself: {}},
	}
}

// policyContentOf is the whole content for these policies; groups that no member's rule names are left out.
func policyContentOf(p Policies) policyContent {
	c := newPolicyContent()
	names := map[*Filter]string{}
	for _, m := range p.Members {
		key := string(m.Address.AsSlice())
		for _, way := range []struct {
			filter *Filter
			in     string
			peer   uint32 // where its address is in a packet
		}{{m.Ingress, mapIngress, sourceAt}, {m.Egress, mapEgress, destinationAt}} {
			if way.filter == nil {
				continue
			}
			name := names[way.filter]
			if name == "" {
				name = way.filter.chainName()
				names[way.filter] = name
			}
			name = way.in + "-" + name
			if _, made := c.chains[name]; !made {
				c.chains[name] = way.filter.rules(way.peer)
				c.addGroups(way.filter, p.Groups)
			}
			c.sets[way.in][key] = name
			c.sets[setItself][key+key] = ""
		}
	}
	return c
}

func (c *policyContent) addGroups(f *Filter, groups map[string][]netip.Addr) {
	for _, rule := range f.Rules {
		for _, group := range rule.Groups {
			set := groupSet(group)
			if c.sets[set] != nil {
				continue
			}
			c.sets[set] = elements{}
			for _, a := range groups[group] {
				c.sets[set][string(a.AsSlice())] = ""
			}
		}
	}
}

// groupSet is the name of the set of a group: 15 characters, which every kernel takes.
func groupSet(group string) string { return fmt.Sprintf("g%x", hashOf(group)[:7]) }

// chainName is a hash of the filter: a chain never changes.
func (f *Filter) chainName() string { return fmt.Sprintf("%x", hashOf(f)[:10]) }

func hashOf(v any) []byte {
	doc, _ := json.Marshal(v) // names, numbers and prefixes always marshal
	sum := sha256.Sum256(doc)
	return sum[:]
}

// keep adds to c what have has of members that are not to be forgotten. Rules are not read from the kernel:
// their chains, and all groups, are kept as they are there.
func (c *policyContent) keep(have policyContent, forget func(addr netip.Addr) bool) {
	kept := false
	for _, way := range []string{mapIngress, mapEgress} {
		for key, chain := range have.sets[way] {
			addr, ok := netip.AddrFromSlice([]byte(key))
			if !ok || forget(addr) {
				continue
			}
			kept = true
			c.sets[way][key] = chain
			c.sets[setItself][key+key] = ""
			if _, there := c.chains[chain]; !there {
				c.chains[chain] = have.chains[chain]
			}
		}
	}
	if !kept {
		return
	}
	for name, list := range have.sets {
		if _, there := c.sets[name]; !there {
			c.sets[name] = list
		}
	}
}

// clone is c with maps of its own, but for those of groups.
func (c *policyContent) clone() policyContent {
	out := policyContent{chains: maps.Clone(c.chains), sets: maps.Clone(c.sets)}
	for _, name := range []string{mapIngress, mapEgress, setItself} {
		out.sets[name] = maps.Clone(out.sets[name])
	}
	return out
}
