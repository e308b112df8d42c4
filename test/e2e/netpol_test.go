package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// policySets are members that say their names at port 8080, which has a name: web and asker have one on each of
// two hosts, and other is one elsewhere than in their namespace's policies.
func policySets() string {
	var out strings.Builder
	out.WriteString("apiVersion: v1\nkind: Service\nmetadata: {name: door}\nspec: {selector: {app: web}, ports: [{port: 80, targetPort: named}]}\n")
	for _, app := range []string{"web", "asker", "other"} {
		replicas := 2
		if app == "other" {
			replicas = 1
		}
		fmt.Fprintf(&out, `---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 2
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %[1]s}}}]}}
      containers:
      - name: main
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, serve, "0.0.0.0:8080"]
        ports: [{name: named, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: named}, periodSeconds: 1}
`, app, replicas)
	}
	return out.String()
}

const webPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  ingress:
  - from: [{podSelector: {matchLabels: {app: asker}}}]
    ports: [{port: named, protocol: TCP}]
  egress:
  - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}]
    ports: [{port: 53, protocol: UDP}, {port: 53}]
`

// TestNetworkPoliciesOnTwoHosts: members reach what policies allow and nothing else, wherever both run, by
// address and by Service; also while the agent is away. What a policy forbade is open when it is gone.
func TestNetworkPoliciesOnTwoHosts(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 2)
	l := hosts[0]
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts)
	for _, h := range hosts {
		l.stead("image", "load", l.toolArchive(), "--node", h.nodeName())
	}
	l.apply("sets", policySets(), "--wait", "--timeout", patience)
	at := map[string]string{}
	for _, m := range []string{"web-0", "web-1", "asker-0", "asker-1", "other-0"} {
		at[m] = l.mustMember(m).Status.Address
	}
	door := strings.TrimSpace(l.stead("get", "svc", "door", "-o", "jsonpath={.spec.clusterIP}"))
	dial := func(from, to string) (string, error) {
		return l.trySteadFor(time.Minute, "exec", from, "--", "/box", "command", "dial", to)
	}
	// reach expects that a member of from reaches a port, or in time that it does not, which takes 10 s each.
	reach := func(yes bool, to string, from ...string) {
		t.Helper()
		for _, m := range from {
			l.eventually(2*time.Minute, fmt.Sprintf("%s reaches %s: %t", m, to, yes), func() error {
				out, err := dial(m, to)
				if yes && err == nil || !yes && err != nil && strings.Contains(out, "i/o timeout") && !strings.Contains(out, "lookup") {
					return nil
				}
				return fmt.Errorf("it says %q, %v", out, err)
			})
		}
	}
	web0, web1 := at["web-0"]+":8080", at["web-1"]+":8080"
	reach(true, web0, "other-0", "web-1")
	reach(true, door+":80", "other-0")

	says(t, l.apply("policy", webPolicy), "networkpolicy", "created")
	says(t, l.stead("get", "netpol"), "POD-SELECTOR", "web", "app=web")
	reach(false, web0, "other-0", "web-1")
	reach(false, web1, "other-0")
	reach(true, web0, "asker-0", "asker-1")
	reach(true, web1, "asker-0", "asker-1")
	for range 8 { // to either
		reach(true, door+":80", "asker-0")
	}
	reach(false, door+":80", "other-0")
	reach(false, "asker-0.asker:8080", "web-0") // its name resolves
	reach(true, at["asker-1"]+":8080", "other-0", "asker-0")
	if m := l.mustMember("web-0"); !m.Status.Ready {
		t.Errorf("web-0 is not ready: the probes of its host do not reach it: %+v", m.Status)
	}

	// Without the agents everything stays as it is, and with the next ones, too.
	home := l.mustMember("web-0").Status.Node
	for _, h := range hosts {
		if err := h.agent.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hosts {
		out, err := h.inside(time.Minute, toolBinary, "command", "dial", web0)
		if own := h.nodeName() == home; (err == nil) != own {
			t.Errorf("while the agents are away, %s reaches web-0, which is on %s: %q, %v", h.nodeName(), home, out, err)
		}
	}
	connect(hosts)
	reach(false, web0, "other-0")
	reach(true, web0, "asker-0", "asker-1")

	// A new life has the policies of its set, at its node and elsewhere.
	before := l.mustMember("web-0")
	l.stead("restart", "web-0")
	web0 = l.waitReady("web-0", &before).Status.Address + ":8080"
	reach(false, web0, "other-0")
	reach(true, web0, "asker-0", "asker-1")

	// Blocks, and all but one address of them.
	blocks := func(cidr, except string) {
		t.Helper()
		l.apply("policy", strings.Replace(webPolicy, "from: [{podSelector: {matchLabels: {app: asker}}}]",
			"from: [{ipBlock: {cidr: "+cidr+", except: ["+except+"]}}]", 1))
	}
	blocks(at["other-0"]+"/32", "")
	reach(true, web0, "other-0")
	reach(false, web0, "asker-1")
	blocks("0.0.0.0/0", at["other-0"]+"/32")
	reach(false, web1, "other-0")
	reach(true, web1, "asker-0")

	says(t, l.stead("delete", "netpol", "web"), "set default/web")
	reach(true, web0, "other-0", "web-1")
	reach(true, at["asker-0"]+":8080", "web-0")
}
