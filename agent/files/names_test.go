package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const hostConf = "# of the host\ndomain old\nsearch first.example\nnameserver 127.0.0.53\nnameserver 192.0.2.53 # x\nnameserver\n" +
	"search corp.example. lan .\noptions edns0 ndots:1\noptions ndots:3 trust-ad\nsortlist 192.0.2.0\n"

// Kubernetes' rules: what the policy says comes first, dnsConfig is added, an option replaces one
// of the same name, and what is given twice counts once.
func TestResolvConfFollowsPolicyAndConfig(t *testing.T) {
	two, none := "2", ""
	config := &spec.DNSConfig{
		Nameservers: []string{"192.0.2.1", "169.254.1.1", "192.0.2.2", "192.0.2.3"}, Searches: []string{"svc.cluster.local", "more.example", "corp.example"},
		Options: []spec.DNSOption{{Name: "ndots", Value: &two}, {Name: "single-request"}, {Name: "rotate", Value: &none}},
	}
	const cluster = "search prod.svc.cluster.local svc.cluster.local cluster.local"
	path := filepath.Join(t.TempDir(), "resolv.conf")
	must(t, os.WriteFile(path, []byte(hostConf), 0o600))
	n := host
	n.ResolvConf = path
	for _, c := range []struct {
		policy string
		config *spec.DNSConfig
		want   string
	}{
		{"", nil, "nameserver 169.254.1.1\n" + cluster + "\noptions ndots:5\n"},
		{spec.DNSClusterFirst, &spec.DNSConfig{}, "nameserver 169.254.1.1\n" + cluster + "\noptions ndots:5\n"},
		{spec.DNSClusterFirst, config, "nameserver 169.254.1.1\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n" + cluster +
			" more.example corp.example\noptions ndots:2 single-request rotate\n"},
		{spec.DNSClusterFirstWithHostNet, nil, "nameserver 169.254.1.1\n" + cluster + "\noptions ndots:5\n"},
		{spec.DNSDefault, nil, "nameserver 169.254.1.1\nnameserver 192.0.2.53\nsearch corp.example lan .\noptions edns0 ndots:3 trust-ad\n"},
		{spec.DNSDefault, config, "nameserver 169.254.1.1\nnameserver 192.0.2.53\nnameserver 192.0.2.1\n" +
			"search corp.example lan . svc.cluster.local more.example\noptions edns0 ndots:2 trust-ad single-request rotate\n"},
		{spec.DNSNone, &spec.DNSConfig{Nameservers: []string{"192.0.2.1"}}, "nameserver 192.0.2.1\n"},
		{spec.DNSNone, config, "nameserver 192.0.2.1\nnameserver 169.254.1.1\nnameserver 192.0.2.2\n" +
			"search svc.cluster.local more.example corp.example\noptions ndots:2 single-request rotate\n"},
	} {
		l := life()
		l.Template.Spec.DNSPolicy, l.Template.Spec.DNSConfig = c.policy, c.config
		p := At(t.TempDir(), l.Member.ID)
		must(t, WriteMember(p, l, n))
		equal(t, fmt.Sprintf("%q %v", c.policy, c.config), read(t, p.Etc, "resolv.conf"), c.want)
	}
	l := life()
	l.Template.Spec.DNSPolicy, n.ResolvConf = spec.DNSDefault, path+"x"
	if err := WriteMember(At(t.TempDir(), l.Member.ID), l, n); err == nil || !strings.Contains(err.Error(), "dnsPolicy Default: ") {
		t.Errorf("without a resolv.conf of the host: got %v", err)
	}
}

// TestNamesInTheNetworkOfTheHost: as the kubelet does: the host's own hosts and resolv.conf, with name servers on its
// loopback, unless the policy names the cluster.
func TestNamesInTheNetworkOfTheHost(t *testing.T) {
	dir := t.TempDir()
	n := host
	n.ResolvConf, n.HostsFile = filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "hosts")
	must(t, os.WriteFile(n.ResolvConf, []byte("nameserver 127.0.0.53\nsearch lan\n"), 0o600))
	for _, c := range []struct{ hosts, policy, wantHosts, wantConf string }{
		{"192.0.2.7\tbox\n\n", spec.DNSClusterFirst, "# written by Stead; what the host has:\n192.0.2.7\tbox\n# the member\n",
			"nameserver 127.0.0.53\nsearch lan\n"},
		{"", spec.DNSClusterFirstWithHostNet, "# written by Stead\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
			"nameserver 169.254.1.1\nsearch prod.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"},
	} {
		if c.hosts != "" {
			must(t, os.WriteFile(n.HostsFile, []byte(c.hosts), 0o600))
		} else {
			must(t, os.Remove(n.HostsFile))
		}
		l := life()
		l.Template.Spec.HostNetwork, l.Template.Spec.DNSPolicy, l.Member.Node = true, c.policy, "n1"
		p := At(t.TempDir(), l.Member.ID)
		must(t, WriteMember(p, l, n))
		equal(t, "hosts", read(t, p.Etc, "hosts"), c.wantHosts+"10.88.0.7\tdb-2.db-svc.prod.svc.cluster.local\tdb-2\n")
		equal(t, "resolv.conf", read(t, p.Etc, "resolv.conf"), c.wantConf)
		equal(t, "hostname", read(t, p.Etc, "hostname"), "n1\n")
	}
}

func TestResolvConfStaysWithinItsLimits(t *testing.T) {
	l := life()
	var many, long []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("s%d", i))
		long = append(long, fmt.Sprintf("%s%02d", strings.Repeat("x", 98), i))
	}
	for name, c := range map[string]struct {
		searches []string
		want     int
	}{"many": {many, spec.MaxSearches}, "long": {long, 3 + 19}} {
		l.Template.Spec.DNSConfig = &spec.DNSConfig{Searches: c.searches}
		lines := strings.Split(string(Resolv(l, host, Resolver{})), "\n")
		words := strings.Fields(lines[1])
		if got := len(words) - 1; got != c.want || words[3] != "cluster.local" && words[4] != c.searches[0] {
			t.Errorf("%s: got %d domains, want %d: %s", name, got, c.want, lines[1])
		}
	}
}

func TestHostAliasesAreLinesOfHosts(t *testing.T) {
	l := life()
	l.Template.Spec.HostAliases = []spec.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"old.example.com", "old"}}, {IP: "2001:db8::1", Hostnames: []string{"six"}}}
	equal(t, "hosts", string(Hosts(l, nil)), "# written by Stead\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"+
		"10.88.0.7\tdb-2.db-svc.prod.svc.cluster.local\tdb-2\n\n# hostAliases\n192.0.2.9\told.example.com\told\n2001:db8::1\tsix\n")
	l.Member = records.Member{ID: l.Member.ID}
	l.Template.Spec.HostAliases = nil
	equal(t, "hosts without an address", string(Hosts(l, nil)), "# written by Stead\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
}

// TestTheHostnameIsTheWholeNameWhereTheTemplateSaysSo: as the kubelet's GetNodenameForKernel.
func TestTheHostnameIsTheWholeNameWhereTheTemplateSaysSo(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		long *bool
		want string
	}{{nil, "db-0"}, {&no, "db-0"}, {&yes, "db-0.db.prod.svc.cluster.local"}} {
		l := &records.Life{Member: records.Member{ID: spec.Identity{Namespace: "prod", Set: "db"}}, Service: "db", Domain: "cluster.local"}
		l.Template.Spec.SetHostnameAsFQDN = c.long
		if got := string(Hostname(l)); got != c.want+"\n" {
			t.Errorf("/etc/hostname is %q, want %q", got, c.want)
		}
		made, err := Build(l, &spec.Container{Name: "db"}, host, book(), Parts{})
		if err != nil || made.Hostname != c.want {
			t.Errorf("the container has the hostname %q, want %q; %v", made.Hostname, c.want, err)
		}
	}
}
