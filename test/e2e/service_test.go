package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// webSet are two members that say their names at port 8080 and are ready while they have a file; its
// Service has an address, where that is port 80.
const webSet = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: named}, {name: udp, protocol: UDP, port: 53, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: out}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: named, nodePort: 30080}]
---
apiVersion: v1
kind: Service
metadata: {name: near}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  loadBalancerSourceRanges: [172.31.9.98/32]
  selector: {app: web}
  ports: [{port: 80, targetPort: named, nodePort: 30081}]
---
apiVersion: v1
kind: Service
metadata: {name: one}
spec:
  selector: {app: web, statefulset.kubernetes.io/pod-name: web-1}
  ports: [{port: 80, targetPort: named}]
---
apiVersion: v1
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: web.default.svc.cluster.local}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: web
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, serve, "0.0.0.0:8080"]
        ports: [{name: named, containerPort: 8080}]
        readinessProbe: {exec: {command: [/box, command, cat, /tmp/ready]}, periodSeconds: 1, failureThreshold: 1}
        volumeMounts: [{name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp}]
`

// TestAServiceWithAnAddress: hosts and members reach its members by its address and its name, at another
// port, while they are ready, wherever they run; with none ready a connection is refused at once.
func TestAServiceWithAnAddress(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 2)
	l := hosts[0]
	l.startServer("--listen", api, "--load-balancer-cidr", "203.0.113.0/28")
	letIn(hosts)
	connect(hosts)
	for _, h := range hosts {
		l.stead("image", "load", l.toolArchive(), "--node", h.nodeName())
	}
	l.apply("web", webSet)
	for n := range hosts {
		l.eventually(2*time.Minute, fmt.Sprintf("web-%d runs", n), func() error {
			m, err := l.member(fmt.Sprint("web-", n))
			if err == nil && m.Status.Phase != "Running" {
				err = fmt.Errorf("it is %s", m.Status.Phase)
			}
			return err
		})
	}
	address := strings.TrimSpace(l.stead("get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}"))
	fqdn := "web.default.svc.cluster.local"
	says(t, l.stead("get", "svc", "alias"), "ExternalName", fqdn)
	says(t, l.stead("get", "svc"), "CLUSTER-IP", "ClusterIP", address, "80/TCP,53/UDP")
	l.waitDig(fqdn, address)
	srv, err := l.inside(time.Minute, "dig", "@"+gateway, "+short", "SRV", "_http._tcp."+fqdn)
	if err != nil || strings.TrimSpace(srv) != "0 100 80 "+fqdn+"." {
		t.Errorf("SRV says %q, %v", srv, err)
	}
	ptr, err := l.inside(time.Minute, "dig", "@"+gateway, "+short", "-x", address)
	if err != nil || strings.TrimSpace(ptr) != fqdn+"." {
		t.Errorf("PTR says %q, %v", ptr, err)
	}

	says(t, strings.ReplaceAll(l.stead("exec", "web-0", "--", "/box", "command", "cat", "/proc/1/environ"), "\x00", "\n"),
		"WEB_SERVICE_HOST="+address+"\n", "WEB_SERVICE_PORT_HTTP=80\n", "WEB_PORT_53_UDP=udp://"+address+":53\n")

	// Each way to ask for the service: from each host by address, from each member by address and name.
	ways := map[string]func() (string, error){}
	for _, h := range hosts {
		ways[h.nodeName()] = func() (string, error) {
			return h.inside(time.Minute, toolBinary, "command", "dial", address+":80")
		}
	}
	for _, member := range []string{"web-0", "web-1"} {
		for _, to := range []string{address, "web", fqdn, "alias"} {
			ways[member+" to "+to] = func() (string, error) {
				return l.trySteadFor(time.Minute, "exec", member, "--", "/box", "command", "dial", to+":80")
			}
		}
	}
	client := l.Name + "-cl" // a machine outside, which knows the addresses of the hosts alone
	l.run("ip", "netns", "add", client)
	t.Cleanup(func() { l.run("ip", "netns", "del", client) })
	for _, line := range []string{
		"link add up0 type veth peer name client netns " + l.Name + "-sw", "address add 172.31.9.98/24 dev up0", "link set up0 up",
	} {
		l.run("ip", append([]string{"-n", client}, strings.Fields(line)...)...)
	}
	l.run("ip", "-n", l.Name+"-sw", "link", "set", "client", "master", "br0", "up")
	for host := range hosts {
		ways[fmt.Sprint("outside to host ", host)] = func() (string, error) {
			return l.try(time.Minute, "nsenter", "--net=/run/netns/"+client, toolBinary, "command", "dial", fmt.Sprintf("172.31.9.%d:30080", host+1))
		}
	}
	balanced := strings.TrimSpace(l.stead("get", "svc", "out", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"))
	l.run("ip", "-n", client, "route", "add", "203.0.113.0/28", "via", "172.31.9.2") // to one of the hosts
	ways["outside by the address of the load balancer"] = func() (string, error) {
		return l.try(time.Minute, "nsenter", "--net=/run/netns/"+client, toolBinary, "command", "dial", balanced+":80")
	}
	// ask expects that each way leads to one of these members, and in time to each of them.
	ask := func(members ...string) {
		t.Helper()
		for way, dial := range ways {
			left := map[string]bool{}
			for _, m := range members {
				left[m] = true
			}
			began := time.Now()
			l.eventually(time.Minute, fmt.Sprintf("%s reaches %v", way, members), func() error {
				out, err := dial()
				if len(members) == 0 {
					if err == nil || !strings.Contains(out, "refused") {
						return fmt.Errorf("it says %q, %v; want it refused", out, err)
					}
					return nil
				}
				name := strings.TrimSpace(out)
				if err != nil || !strings.Contains(strings.Join(members, " "), name) || name == "" {
					return fmt.Errorf("it says %q, %v", out, err)
				}
				delete(left, name)
				if len(left) > 0 {
					return fmt.Errorf("not yet to %v, after %s", left, time.Since(began))
				}
				return nil
			})
		}
	}
	ready := func(member, verb string) { l.stead("exec", member, "--", "/box", "command", verb, "/tmp/ready") }
	ask()
	ready("web-0", "note")
	ask("web-0")
	ready("web-1", "note")
	ask("web-0", "web-1")
	leadsToOne(t, hosts)
	leadsToWhatIsNear(t, hosts, client, "web-0", "web-1")
	text := l.stead("describe", "svc", "web")
	for _, member := range []string{"web-0", "web-1"} {
		says(t, text, l.mustMember(member).Status.Address+":8080")
	}
	ready("web-0", "remove")
	ask("web-1")
	leadsToWhatIsNear(t, hosts, client, "web-1")

	// The address is kept by what is applied again, and leads nowhere when the Service is gone.
	l.apply("web", webSet)
	if now := strings.TrimSpace(l.stead("get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}")); now != address {
		t.Errorf("the address was %s, and is %s", address, now)
	}
	says(t, l.stead("get", "svc", "out"), "LoadBalancer", balanced, "80:30080/TCP")
	leadsToEndpoints(hosts)
	l.stead("delete", "svc", "web", "out", "near")
	ways = map[string]func() (string, error){hosts[0].nodeName(): ways[hosts[0].nodeName()], hosts[1].nodeName(): ways[hosts[1].nodeName()]}
	ask()
}

// leadsToOne: a Service that selects a member by its name leads to that one alone, though both are ready.
func leadsToOne(t *testing.T, hosts []*Lab) {
	t.Helper()
	l := hosts[0]
	says(t, l.stead("describe", "svc", "one"), l.mustMember("web-1").Status.Address+":8080")
	address := strings.TrimSpace(l.stead("get", "svc", "one", "-o", "jsonpath={.spec.clusterIP}"))
	for _, h := range hosts {
		l.eventually(time.Minute, h.nodeName()+" reaches web-1 by its own Service", func() error {
			_, err := h.inside(time.Minute, toolBinary, "command", "dial", address+":80")
			return err
		})
		for range 15 {
			if out, err := h.inside(time.Minute, toolBinary, "command", "dial", address+":80"); err != nil || strings.TrimSpace(out) != "web-1" {
				t.Fatalf("%s reaches %q, %v by the Service of web-1", h.nodeName(), out, err)
			}
		}
	}
}

// leadsToEndpoints: a Service without a selector leads to the addresses of its EndpointSlice, from each host and member,
// and nowhere when that is gone.
func leadsToEndpoints(hosts []*Lab) {
	l := hosts[0]
	at := l.mustMember("web-1").Status.Address
	l.apply("ext", fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: ext}\nspec: {ports: [{name: http, port: 81}]}\n---\n"+
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: ext-1, labels: {kubernetes.io/service-name: ext}}\n"+
		"addressType: IPv4\nendpoints: [{addresses: [%s]}]\nports: [{name: http, port: 8080}]\n", at))
	address := strings.TrimSpace(l.stead("get", "svc", "ext", "-o", "jsonpath={.spec.clusterIP}"))
	ways := map[string]func() (string, error){"web-0": func() (string, error) {
		return l.trySteadFor(time.Minute, "exec", "web-0", "--", "/box", "command", "dial", "ext:81")
	}}
	for _, h := range hosts {
		ways[h.nodeName()] = func() (string, error) { return h.inside(time.Minute, toolBinary, "command", "dial", address+":81") }
	}
	for _, want := range []string{"web-1", "refused"} {
		for way, dial := range ways {
			l.eventually(time.Minute, way+" gets "+want, func() error {
				if out, err := dial(); !strings.Contains(out, want) {
					return fmt.Errorf("it says %q, %v", out, err)
				}
				return nil
			})
		}
		if want == "web-1" {
			l.stead("delete", "endpointslice", "ext-1")
		}
	}
}
