package files

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// Hosts is the content of /etc/hosts; host is the host's own, for a life in its network.
func Hosts(l *records.Life, host []byte) []byte {
	out := []byte("# written by Stead\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	if l.Template.Spec.HostNetwork && len(host) > 0 {
		out = append([]byte("# written by Stead; what the host has:\n"), host...)
		out = append(bytes.TrimRight(out, "\n"), "\n# the member\n"...)
	}
	if l.Member.Address.IsValid() {
		out = append(out, address(l)+"\t"+l.FQDN()+"\t"+l.Member.ID.MemberName()+"\n"...)
	}
	if len(l.Template.Spec.HostAliases) > 0 {
		out = append(out, "\n# hostAliases\n"...)
	}
	for _, a := range l.Template.Spec.HostAliases {
		out = fmt.Appendf(out, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
	return out
}

// Resolver is what a resolv.conf says.
type Resolver struct{ Nameservers, Searches, Options []string }

// ParseResolver reads a resolv.conf as Kubernetes does: name servers and options accumulate, the
// last search line counts, and other lines do not.
func ParseResolver(text string) (r Resolver) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "nameserver":
			r.Nameservers = append(r.Nameservers, words[1:min(2, len(words))]...)
		case "search":
			r.Searches = nil
			for _, s := range words[1:] {
				r.Searches = append(r.Searches, cmp.Or(strings.TrimSuffix(s, "."), "."))
			}
		case "options":
			for _, o := range words[1:] {
				r.option(o)
			}
		}
	}
	return r
}

// option takes the place of one of the same name.
func (r *Resolver) option(text string) {
	name, _, _ := strings.Cut(text, ":")
	i := slices.IndexFunc(r.Options, func(o string) bool {
		had, _, _ := strings.Cut(o, ":")
		return had == name
	})
	if i < 0 {
		r.Options = append(r.Options, text)
		return
	}
	r.Options[i] = text
}

// reachable puts the node's DNS server in the place of name servers on the host's loopback: they
// cannot be reached from the member's network, and it asks them.
func (r Resolver) reachable(gateway string) Resolver {
	for i, s := range r.Nameservers {
		if a, err := netip.ParseAddr(s); err == nil && a.IsLoopback() {
			r.Nameservers[i] = gateway
		}
	}
	return r
}

// Resolv is the content of /etc/resolv.conf as Kubernetes writes it for the life's dnsPolicy and
// dnsConfig; host is the host's own, for the policy Default.
func Resolv(l *records.Life, n Node, host Resolver) []byte {
	var r Resolver
	switch l.Template.Spec.LooksUp() {
	case spec.DNSNone:
	case spec.DNSDefault:
		r = host
		if !l.Template.Spec.HostNetwork {
			r = host.reachable(n.Gateway)
		}
	default:
		svc := "svc." + l.Domain
		r = Resolver{[]string{n.Gateway}, []string{string(l.Member.ID.Namespace) + "." + svc, svc, l.Domain}, []string{"ndots:5"}}
	}
	if d := l.Template.Spec.DNSConfig; d != nil {
		r.Nameservers = append(r.Nameservers, d.Nameservers...)
		r.Searches = append(r.Searches, d.Searches...)
		for _, o := range d.Options {
			text := o.Name
			if o.Value != nil && *o.Value != "" {
				text += ":" + *o.Value
			}
			r.option(text)
		}
	}
	return r.text()
}

// text is the resolv.conf, within its limits; what is given twice counts once.
func (r Resolver) text() []byte {
	var out []byte
	servers := distinct(r.Nameservers)
	for _, s := range servers[:min(len(servers), spec.MaxNameservers)] {
		out = fmt.Appendf(out, "nameserver %s\n", s)
	}
	searches := distinct(r.Searches)
	searches = searches[:min(len(searches), spec.MaxSearches)]
	for len(strings.Join(searches, " ")) > spec.MaxSearchChars {
		searches = searches[:len(searches)-1]
	}
	if len(searches) > 0 {
		out = fmt.Appendf(out, "search %s\n", strings.Join(searches, " "))
	}
	if len(r.Options) > 0 {
		out = fmt.Appendf(out, "options %s\n", strings.Join(r.Options, " "))
	}
	return out
}

// distinct is list without what is given twice, in its order.
func distinct(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// hostResolver reads the host's resolv.conf for a life that uses it.
func hostResolver(l *records.Life, n Node) (Resolver, error) {
	if l.Template.Spec.LooksUp() != spec.DNSDefault {
		return Resolver{}, nil
	}
	text, err := os.ReadFile(cmp.Or(n.ResolvConf, "/etc/resolv.conf"))
	if err != nil {
		return Resolver{}, fmt.Errorf("dnsPolicy Default: %w", err)
	}
	return ParseResolver(string(text)), nil
}

// hostNames reads the host's /etc/hosts for a life in its network; a host may have none.
func hostNames(l *records.Life, n Node) ([]byte, error) {
	if !l.Template.Spec.HostNetwork {
		return nil, nil
	}
	text, err := os.ReadFile(cmp.Or(n.HostsFile, "/etc/hosts"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the host's names: %w", err)
	}
	return text, nil
}
