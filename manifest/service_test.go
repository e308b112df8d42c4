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
	const virtual = "f:4:1: spec.clusterIP: there are no virtual IPs: the name resolves to the addresses of the members; write clusterIP: None"
	const outside = " opens nothing to the outside: the name resolves to the addresses of the members; from elsewhere, members are reached by a hostPort of their containers, or by the routes of 'stead node routes'"
	for _, tt := range []struct {
		name, spec      string
		warnings, wrong []string
	}{
		{"headless, named target", "clusterIP: None, ports: [{port: 80, targetPort: http}]", nil, nil},
		{"headless, another number", "clusterIP: None, ports: [{port: 80, targetPort: 8080}]", nil, nil},
		{"headless, as kubectl shows it", "clusterIP: None, type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ipFamilyPolicy: SingleStack, ports: [{port: 80}]", nil, nil},
		{"the number of the name", "ports: [{port: 8080, targetPort: http}]", []string{virtual}, nil},
		{"named target", "ports: [{port: 80, targetPort: http}]", nil,
			[]string{"f:4:48: spec.ports[0].targetPort: http (8080 in set db) is not the port 80, and there is no proxy to translate; write port: 8080; or clusterIP: None, with which clients use 8080"}},
		{"another number", "ports: [{port: 80, targetPort: 8080}]", nil,
			[]string{"f:4:48: spec.ports[0].targetPort: 8080 is not the port 80, and there is no proxy to translate; write port: 8080; or clusterIP: None, with which clients use 8080"}},
		{"a load balancer", "type: LoadBalancer, externalTrafficPolicy: Local, loadBalancerSourceRanges: [10.0.0.0/8], allocateLoadBalancerNodePorts: false, ports: [{port: 8080}]",
			[]string{"f:4:29: spec.type: LoadBalancer" + outside,
				"f:4:49: spec.externalTrafficPolicy: has no effect here; " + noProxy, "f:4:79: spec.loadBalancerSourceRanges: has no effect here; " + noBalancer}, nil},
		{"a node port", "type: NodePort, externalTrafficPolicy: Cluster, ports: [{port: 8080, nodePort: 30080}]",
			[]string{"f:4:29: spec.type: NodePort" + outside,
				"f:4:98: spec.ports[0].nodePort: has no effect here; a hostPort of the container is reached at the address of the member's node"}, nil},
		{"a headless load balancer", "type: LoadBalancer, clusterIP: None", nil, []string{"f:4:49: spec.clusterIP: None does not go with type LoadBalancer; write type: ClusterIP"}},
		{"an outside name: one problem", "type: ExternalName, externalName: example.org", nil,
			[]string{"f:4:29: spec.type: ExternalName is not supported; remove the Service, and let members use the outside name itself"}},
		{"hints", "clusterIP: None, trafficDistribution: PreferClose, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}",
			[]string{"f:4:46: spec.trafficDistribution: has no effect here; " + noProxy, "f:4:80: spec.sessionAffinity: has no effect here; " + noProxy,
				"f:4:107: spec.sessionAffinityConfig: has no effect here; " + noProxy}, nil},
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

// TestANamedPortIsCheckedAcrossFiles: the set is in a later file than the Service; the problem
// is in its place among those of the Service's file, and other namespaces do not count.
func TestANamedPortIsCheckedAcrossFiles(t *testing.T) {
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: db, finalizers: [x]}\nspec:\n  selector: {app: db}\n  ports: [{port: 80, targetPort: http}]\n  external: x\n"
	_, problems, _ := Parse([]Source{{Name: "a", Content: []byte(service)}, {Name: "b", Content: []byte(serviceSet)},
		{Name: "c", Content: []byte(strings.Replace(serviceSet, "name: db}", "name: db, namespace: other}", 1))}}, Options{})
	var got []string
	for _, p := range problems {
		got = append(got, p.File+" "+p.Path)
	}
	if want := []string{"a metadata.finalizers", "a spec.ports[0].targetPort", "a spec.external"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func shown(list []Problem) (out []string) {
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}
