package manifest

import (
	"slices"
	"strings"
	"testing"
)

const serviceSet = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n" +
	"  template:\n    metadata: {labels: {app: db}}\n    spec: {containers: [{name: db, image: db:1, ports: [{name: http, containerPort: 8080}]}]}\n"

// TestServicesOfCharts: what is accepted of a Service, with which words, and what is refused.
func TestServicesOfCharts(t *testing.T) {
	const outside = "LoadBalancer has no address outside: from there the Service is reached as one of type NodePort; use the address of any node, with the ports that 'stead get svc' shows; or start the servers with --load-balancer-cidr"
	for _, tt := range []struct {
		name, spec      string
		warnings, wrong []string
	}{
		{"headless, named target", "clusterIP: None, ports: [{port: 80, targetPort: http}]", nil, nil},
		{"headless, another number", "clusterIP: None, ports: [{port: 80, targetPort: 8080}]", nil, nil},
		{"headless, as kubectl shows it", "clusterIP: None, type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ipFamilyPolicy: SingleStack, ports: [{port: 80}]", nil, nil},
		{"an address", "ports: [{port: 80, targetPort: http}]", nil, nil},
		{"an address, another number", "ports: [{port: 80, targetPort: 8080}]", nil, nil},
		{"an address that is written", "clusterIP: 10.89.0.7, ports: [{port: 80}]", nil, nil},
		{"no address", "clusterIP: here, ports: [{port: 80}]", nil,
			[]string{"f:4:29: spec.clusterIP: \"here\" is not an IPv4 address; leave it out, or write None or an address of the range of services"}},
		{"no ports", "type: ClusterIP", nil, []string{"f:4:1: spec.ports: is missing; write a port, or clusterIP: None"}},
		{"affinity", "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}, internalTrafficPolicy: Local, ports: [{port: 80}]", nil, nil},
		{"mistakes of affinity", "sessionAffinity: Sticky, sessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}, internalTrafficPolicy: Node, ports: [{port: 80}]", nil,
			[]string{"f:4:29: spec.sessionAffinity: \"Sticky\" is unknown; write None or ClientIP",
				"f:4:54: spec.sessionAffinityConfig: must not be set while sessionAffinity is None; write sessionAffinity: ClientIP, or remove it",
				"f:4:89: spec.sessionAffinityConfig.clientIP.timeoutSeconds: 86401 is out of range; write 1 to 86400",
				"f:4:114: spec.internalTrafficPolicy: \"Node\" is unknown; write Cluster or Local"}},
		{"a load balancer", "type: LoadBalancer, externalTrafficPolicy: Local, loadBalancerSourceRanges: [10.0.0.0/8], allocateLoadBalancerNodePorts: false, ports: [{port: 8080}]",
			[]string{"f:4:29: spec.type: " + outside, "f:4:79: spec.loadBalancerSourceRanges: has no effect here; " + noBalancer}, nil},
		{"for clients outside, of other types", "externalTrafficPolicy: Local, loadBalancerSourceRanges: [10.0.0.0/8], healthCheckNodePort: 30080, ports: [{port: 80}]",
			[]string{"f:4:29: spec.externalTrafficPolicy: has no effect here; it counts for types NodePort and LoadBalancer, and for externalIPs",
				"f:4:59: spec.loadBalancerSourceRanges: has no effect here; it counts for type LoadBalancer only",
				"f:4:99: spec.healthCheckNodePort: has no effect here; it counts for type LoadBalancer with externalTrafficPolicy Local only"}, nil},
		{"the same, as its defaults", "externalTrafficPolicy: Cluster, loadBalancerSourceRanges: [], healthCheckNodePort: 0, ports: [{port: 80}]", nil, nil},
		{"only what is near", "type: NodePort, externalTrafficPolicy: Local, ports: [{port: 80}]", nil, nil},
		{"only what is near, by addresses outside", "externalIPs: [192.0.2.1], externalTrafficPolicy: Local, ports: [{port: 80}]", nil, nil},
		{"mistakes for clients outside", "type: LoadBalancer, externalTrafficPolicy: Node, ports: [{port: 80}]", nil,
			[]string{"f:4:49: spec.externalTrafficPolicy: \"Node\" is unknown; write Cluster or Local"}},
		{"mistakes of the health's port", "type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 80, ports: [{port: 80}]", nil,
			[]string{"f:4:79: spec.healthCheckNodePort: 80 is out of range; write 30000 to 32767"}},
		{"one port for both", "type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30080, ports: [{port: 80, nodePort: 30080}]", nil,
			[]string{"f:4:79: spec.healthCheckNodePort: 30080 is spec.ports[0].nodePort, too; write another, or leave it out"}},
		{"addresses outside", "type: NodePort, externalIPs: [192.0.2.1], ports: [{port: 80}]", nil, nil},
		{"addresses outside without one", "clusterIP: None, externalIPs: [192.0.2.1], loadBalancerIP: 192.0.2.1, ports: [{port: 80}]", []string{
			"f:4:46: spec.externalIPs: has no effect here; the Service has no address of its own, and leads no connections",
			"f:4:72: spec.loadBalancerIP: has no effect here; it counts for type LoadBalancer only"}, nil},
		{"mistakes of addresses outside", "externalIPs: [127.0.0.1, 192.0.2.1, 192.0.2.1], ports: [{port: 80}]", nil, []string{
			"f:4:43: spec.externalIPs[0]: \"127.0.0.1\" is not an IPv4 address that clients outside reach; write one of those that the operator gave, or leave it out",
			"f:4:65: spec.externalIPs[2]: \"192.0.2.1\" is given twice"}},
		{"node ports", "type: NodePort, externalTrafficPolicy: Cluster, ports: [{name: a, port: 80}, {name: b, port: 81, nodePort: 30080}, {name: c, port: 81, protocol: UDP, nodePort: 30080}]", nil, nil},
		{"mistakes of node ports", "type: NodePort, ports: [{name: a, port: 80, nodePort: 8080}, {name: b, port: 81, nodePort: 30080}, {name: c, port: 82, nodePort: 30080}]", nil,
			[]string{"f:4:73: spec.ports[0].nodePort: 8080 is out of range; write 30000 to 32767", "f:4:148: spec.ports[2].nodePort: \"30080/TCP\" is given twice"}},
		{"a node port of an address", "ports: [{port: 80, nodePort: 30080}]", nil,
			[]string{"f:4:48: spec.ports[0].nodePort: may not be used with type ClusterIP; write type: NodePort, or remove it"}},
		{"a headless load balancer", "type: LoadBalancer, clusterIP: None, ports: [{port: 80}]", nil, []string{"f:4:49: spec.clusterIP: None does not go with type LoadBalancer; write type: ClusterIP"}},
		{"an outside name", "type: ExternalName, externalName: db.example.org., ports: [{port: 80}]", []string{"f:4:8: spec.selector: has no effect here; " + ofAlias}, nil},
		{"an address as outside name", "type: ExternalName, externalName: 192.0.2.1", []string{"f:4:8: spec.selector: has no effect here; " + ofAlias,
			"f:4:49: spec.externalName: is taken for a name, as in Kubernetes, and no resolver answers a name of this form; write a name"}, nil},
		{"mistakes of outside names", "type: ExternalName, externalName: 'https://example.org', clusterIP: None, ports: [{port: 80, nodePort: 30080}]", nil,
			[]string{"f:4:49: spec.externalName: \"https://example.org\" is not a DNS name; write one of lower-case letters, digits, - and dots, without a scheme or a port",
				"f:4:86: spec.clusterIP: may not be set with type ExternalName; remove it, or write type: ClusterIP",
				"f:4:122: spec.ports[0].nodePort: may not be used with type ExternalName; write type: NodePort, or remove it"}},
		{"no outside name", "type: ExternalName", nil,
			[]string{"f:4:1: spec.externalName: is missing; write the name that the Service's name is to stand for"}},
		{"an outside name of another type", "externalName: example.org, ports: [{port: 80}]",
			[]string{"f:4:29: spec.externalName: has no effect here; it counts for type ExternalName only"}, nil},
		{"hints", "clusterIP: None, trafficDistribution: PreferClose, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}, internalTrafficPolicy: Local",
			[]string{"f:4:46: spec.trafficDistribution: has no effect here; " + noProxy, "f:4:80: spec.sessionAffinity: has no effect here; " + ownChoice,
				"f:4:163: spec.internalTrafficPolicy: has no effect here; " + ownChoice}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {selector: {app: db}, " + tt.spec + "}\n" + serviceSet
			_, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(text)}}, Options{})
			if tt.wrong != nil {
				warnings = nil
			}
			if got := shown(problems); !slices.Equal(got, tt.wrong) {
				t.Errorf("got the problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.wrong, "\n"))
			}
			if got := shown(warnings); !slices.Equal(got, tt.warnings) {
				t.Errorf("got the warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.warnings, "\n"))
			}
		})
	}
}

func shown(list []Problem) (out []string) {
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

// TestRangesOfClients: in the field or, as it was before there was one, in the annotation; kept as the field.
func TestRangesOfClients(t *testing.T) {
	const at = "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"
	for _, tt := range []struct {
		field, annotation string
		kept              []string
		said              []string
	}{
		{"[192.0.2.0/24, 198.51.100.7/32]", "", []string{"192.0.2.0/24", "198.51.100.7/32"}, nil},
		{"[]", "192.0.2.0/24, 198.51.100.7/32", []string{"192.0.2.0/24", " 198.51.100.7/32"}, nil},
		{"[192.0.2.0/24]", "198.51.100.7/32", []string{"192.0.2.0/24"}, nil},
		{"[]", " ", nil, nil},
		{"[192.0.2.0/24, 192.0.2.7]", "", nil, []string{`f:4:90: spec.loadBalancerSourceRanges[1]: "192.0.2.7" is not a range of addresses; write it as 192.0.2.0/24`}},
		{"[]", "everybody", nil, []string{`f:3:36: ` + at + `: "everybody" is not a range of addresses; write it as 192.0.2.0/24`}},
		{"['2001:db8::/32']", "", []string{"2001:db8::/32"},
			[]string{"f:4:76: spec.loadBalancerSourceRanges[0]: has no effect here; no client comes from it: Services have IPv4 addresses only"}},
	} {
		text := "apiVersion: v1\nkind: Service\nmetadata: {name: db, annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: '" + tt.annotation + "'}}\n" +
			"spec: {selector: {app: db}, type: LoadBalancer, loadBalancerSourceRanges: " + tt.field + ", ports: [{port: 80}]}\n" + serviceSet
		o, problems, warnings := Parse([]Source{{Name: "f", Content: []byte(text)}}, Options{LoadBalancers: true})
		if got := shown(append(problems, warnings...)); !slices.Equal(got, tt.said) {
			t.Errorf("%s, %s: got %q, want %q", tt.field, tt.annotation, got, tt.said)
		}
		if got := o.Services[0].Spec.LoadBalancerSourceRanges; len(problems) == 0 && !slices.Equal(got, tt.kept) {
			t.Errorf("%s, %s: kept %q, want %q", tt.field, tt.annotation, got, tt.kept)
		}
	}
}
