package manifest

import (
	"slices"
	"strings"
	"testing"
)

// TestEndpoints: what is refused of Endpoints and EndpointSlices, as Kubernetes refuses it, and what is said.
func TestEndpoints(t *testing.T) {
	const slice = "apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, labels: {kubernetes.io/service-name: a}}, "
	const old = "apiVersion: v1, kind: Endpoints, metadata: {name: a}, "
	const one = "write the address of one machine, or of a member"
	for _, tt := range []struct {
		name, text      string
		warnings, wrong []string
	}{
		{"a slice", slice + "addressType: IPv4, endpoints: [{addresses: [192.0.2.1], conditions: {ready: false, serving: true, terminating: true}, hostname: a, nodeName: n.1}], ports: [{port: 80}]", nil, nil},
		{"Endpoints", old + "subsets: [{addresses: [{ip: 10.88.0.5, hostname: a, nodeName: n1}], notReadyAddresses: [{ip: 192.0.2.1}], ports: [{name: a, port: 80}, {name: b, port: 80}]}]", nil, nil},
		{"special addresses", slice + "addressType: IPv4, endpoints: [{addresses: [0.0.0.0, 127.0.0.1, 169.254.1.1, 224.0.0.1, 255.255.255.255, '::1']}]", nil, []string{
			"endpoints[0].addresses[0]: 0.0.0.0 is the unspecified address; " + one,
			"endpoints[0].addresses[1]: 127.0.0.1 is an address of loopback, which each host has for itself; " + one,
			"endpoints[0].addresses[2]: 169.254.1.1 is a link-local address, which means another machine on each link; " + one,
			"endpoints[0].addresses[3]: 224.0.0.1 is an address of many machines; " + one,
			"endpoints[0].addresses[4]: 255.255.255.255 is an address of many machines; " + one,
			"endpoints[0].addresses[5]: \"::1\" is not an IPv4 address; write one, as 192.0.2.7"}},
		{"also where they are not ready", old + "subsets: [{notReadyAddresses: [{ip: 127.0.0.1}]}]", nil, []string{
			"subsets[0].notReadyAddresses[0].ip: 127.0.0.1 is an address of loopback, which each host has for itself; " + one}},
		{"other mistakes", slice + "addressType: IPv4, endpoints: [{addresses: [], hostname: a.b, nodeName: N_1}], ports: [{port: 0}, {port: 80, protocol: ICMP}]", nil, []string{
			"endpoints[0].addresses: 0 is out of range; write 1 to 100",
			"endpoints[0].hostname: \"a.b\" is not a valid name; write at most 63 of a-z, 0-9 and -, with a letter or digit at both ends",
			"endpoints[0].nodeName: \"N_1\" is not a valid name; write at most 253 of a-z, 0-9, - and ., with a letter or digit at both ends",
			"ports[0].name: is missing", "ports[0].port: 0 is out of range; write 1 to 65535", "ports[1].name: is missing", "ports[1].protocol: \"ICMP\" is unknown; write TCP, UDP or SCTP"}},
		{"no addresses", old + "subsets: [{ports: [{port: 80}]}]", nil, []string{"subsets[0].addresses: is missing; write at least one, here or as notReadyAddresses"}},
		{"names as addresses", slice + "addressType: FQDN, endpoints: [{addresses: [example.org]}]", nil, []string{"addressType: FQDN is not supported; write a Service with type: ExternalName"}},
		{"IPv6", slice + "addressType: IPv6, endpoints: []", nil, []string{"addressType: IPv6 is not supported; write IPv4 and addresses of that kind"}},
		{"a slice of no Service", strings.Replace(slice, ", labels: {kubernetes.io/service-name: a}", "", 1) + "addressType: IPv4, endpoints: []",
			[]string{"metadata.labels: no Service leads to it; write the label kubernetes.io/service-name with the name of one"}, nil},
		{"words for others", slice + "addressType: IPv4, endpoints: [{addresses: [192.0.2.1], zone: a, targetRef: {kind: Pod, name: a}}]",
			[]string{"endpoints[0].zone: has no effect here; " + noProxy, "endpoints[0].targetRef: has no effect here; it is for people to read"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems, warnings := Parse([]Source{{Name: "f", Content: []byte("{" + tt.text + "}\n")}}, Options{})
			for what, list := range map[string][2][]string{"problems": {plain(problems), tt.wrong}, "warnings": {plain(warnings), tt.warnings}} {
				if !slices.Equal(list[0], list[1]) {
					t.Errorf("got the %s\n%s\nwant\n%s", what, strings.Join(list[0], "\n"), strings.Join(list[1], "\n"))
				}
			}
		})
	}
}

// plain are problems without their place, which they must have.
func plain(list []Problem) (out []string) {
	for _, p := range list {
		at := p.String()
		if p.Line == 0 {
			at = "nowhere: " + at
		} else {
			at = at[strings.Index(at, ": ")+2:]
		}
		out = append(out, at)
	}
	return out
}
