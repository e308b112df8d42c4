package spec

// The values of MemberSpec.DNSPolicy: Kubernetes'. DNSClusterFirstWithHostNet is the same as
// DNSClusterFirst, but for members in their host's network, of which the latter is DNSDefault.
const (
	DNSClusterFirst            = "ClusterFirst"
	DNSClusterFirstWithHostNet = "ClusterFirstWithHostNet"
	DNSDefault                 = "Default"
	DNSNone                    = "None"
)

// What is used of a resolv.conf: Kubernetes' numbers.
const (
	MaxNameservers = 3
	MaxSearches    = 32
	MaxSearchChars = 2048 // with the spaces between them
)

// HostAlias are further names of an address, in the member's /etc/hosts.
type HostAlias struct {
	// IP is an IPv4 or IPv6 address.
	IP        string   `json:"ip"`
	Hostnames []string `json:"hostnames,omitempty"`
}

// DNSConfig is added to what the DNSPolicy puts into the member's /etc/resolv.conf.
type DNSConfig struct {
	// Nameservers are at most 3 addresses. Of all, with that of the DNSPolicy before them, the
	// first 3 are used.
	Nameservers []string `json:"nameservers,omitempty"`
	// Searches are at most 32 domains. Of all, with those of the DNSPolicy before them, the first
	// 32 are used, and of these the first 2048 characters.
	Searches []string `json:"searches,omitempty"`
	// Options take the place of options of the same name.
	Options []DNSOption `json:"options,omitempty"`
}

// DNSOption is one option of a resolv.conf: name, or name:value.
type DNSOption struct {
	Name  string  `json:"name"`
	Value *string `json:"value,omitempty"`
}

// LooksUp is the policy by which names are looked up: the DNSPolicy, but of a member in its host's network
// DNSDefault for DNSClusterFirst, as in Kubernetes, and DNSClusterFirst for DNSClusterFirstWithHostNet.
func (s *MemberSpec) LooksUp() string {
	switch {
	case s.DNSPolicy == DNSClusterFirstWithHostNet:
		return DNSClusterFirst
	case s.HostNetwork && (s.DNSPolicy == DNSClusterFirst || s.DNSPolicy == ""):
		return DNSDefault
	}
	return s.DNSPolicy
}
