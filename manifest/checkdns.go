package manifest

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// nameChecks checks how a member looks up names.
type nameChecks struct{ *checks }

// ipAddress requires an IPv4 or IPv6 address.
func (c nameChecks) ipAddress(at, text string) {
	if c.required(at, text) {
		if a, err := netip.ParseAddr(text); err != nil || a.Zone() != "" {
			c.fail(at, scalar.Quote(text)+" is not an IP address", "write it as in 192.0.2.1")
		}
	}
}

func (c nameChecks) hostAliases(at string, aliases []spec.HostAlias) {
	for i, a := range aliases {
		p := index(at, i)
		c.ipAddress(p+".ip", a.IP)
		for j, name := range a.Hostnames {
			c.subdomain(index(p+".hostnames", j), name)
		}
	}
}

// dns checks dnsPolicy and dnsConfig as Kubernetes does, and warns of what its limits cut off.
func (c nameChecks) dns(at string, s *spec.MemberSpec) {
	c.choice(at+".dnsPolicy", s.DNSPolicy, []string{spec.DNSClusterFirst, spec.DNSDefault, spec.DNSNone, spec.DNSClusterFirstWithHostNet})
	d := s.DNSConfig
	if d == nil {
		d = &spec.DNSConfig{}
	}
	if s.DNSPolicy == spec.DNSNone && len(d.Nameservers) == 0 {
		c.fail(at+".dnsConfig.nameservers", "is missing", "dnsPolicy None needs at least one; write another dnsPolicy to use the node's DNS server")
	}
	if s.HostNetwork && s.DNSPolicy == spec.DNSClusterFirst {
		c.warn(at+".dnsPolicy", "beside hostNetwork ClusterFirst is Default, as in Kubernetes: the host's name servers know no member",
			"write ClusterFirstWithHostNet to look members up")
	}
	servers, searches := 0, 0 // that come before those of dnsConfig
	if s.LooksUp() == spec.DNSClusterFirst {
		servers, searches = 1, 3
	}
	c.nameservers(at+".dnsConfig.nameservers", d.Nameservers, servers)
	c.searches(at+".dnsConfig.searches", d.Searches, searches)
	for i, o := range d.Options {
		p := index(at+".dnsConfig.options", i)
		c.oneWord(p+".name", o.Name)
		c.required(p+".name", o.Name)
		if o.Value != nil {
			c.oneWord(p+".value", *o.Value)
		}
	}
}

// oneWord refuses what would be another word, or line, of a resolv.conf.
func (c nameChecks) oneWord(at, text string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		c.fail(at, scalar.Quote(text)+" has a space or control character", "write one word")
	}
}

func (c nameChecks) nameservers(at string, servers []string, before int) {
	for i, s := range servers {
		c.ipAddress(index(at, i), s)
	}
	switch {
	case len(servers) > spec.MaxNameservers:
		c.fail(at, fmt.Sprintf("has %d name servers, the maximum is %d", len(servers), spec.MaxNameservers), "")
	case before+len(servers) > spec.MaxNameservers:
		c.warn(at, fmt.Sprintf("%s has no effect: the node's DNS server is the first of at most %d", scalar.Quote(servers[len(servers)-1]), spec.MaxNameservers), "")
	}
}

func (c nameChecks) searches(at string, searches []string, before int) {
	for i, s := range searches {
		name := strings.ReplaceAll(strings.TrimSuffix(s, "."), "_", "x") // names of hosts may have underscores, and a dot at the end
		if s != "." {
			c.given(index(at, i), name, func(string) bool { return scalar.ValidSubdomain(name) }, "domain", "write it as in example.com")
		}
	}
	switch {
	case len(searches) > spec.MaxSearches:
		c.fail(at, fmt.Sprintf("has %d domains, the maximum is %d", len(searches), spec.MaxSearches), "")
	case before+len(searches) > spec.MaxSearches:
		c.warn(at, fmt.Sprintf("those after the first %d have no effect: %d of the cluster come before them, of at most %d",
			spec.MaxSearches-before, before, spec.MaxSearches), "")
	}
	if n := len(strings.Join(searches, " ")); n > spec.MaxSearchChars {
		c.fail(at, fmt.Sprintf("has %d characters, the maximum is %d", n, spec.MaxSearchChars), "")
	}
}
