package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostNetSet says at port 8080 of its hosts which of them it is; %s: in their network, or not.
const hostNetSet = `
apiVersion: v1
kind: Service
metadata: {name: led}
spec: {selector: {app: net}, ports: [{port: 80, targetPort: named}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: net}
spec:
  serviceName: net
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: net}}
  template:
    metadata: {labels: {app: net}}
    spec:
      %s
      dnsPolicy: ClusterFirstWithHostNet
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, serve, "0.0.0.0:8080"]
        ports: [{name: named, containerPort: 8080}]
        env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        livenessProbe: {tcpSocket: {port: named}, periodSeconds: 1}
      - name: web
        image: stead.local/tool:1
        command: [/box, command, web, ":8081"]
        readinessProbe: {httpGet: {path: /, port: 8081}, periodSeconds: 1}
`

// besideSet is a member in a network of its own.
const besideSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: beside}
spec:
  serviceName: beside
  selector: {matchLabels: {app: beside}}
  template:
    metadata: {labels: {app: beside}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "stead.local/tool:1", command: [/box, command, wait]}]
`

// TestMembersInTheNetworkOfTheirHosts: refused without the flag; with it they have their hosts' addresses, are found
// by name and led to, one on each host, and stay over a kill of the agent.
func TestMembersInTheNetworkOfTheirHosts(t *testing.T) {
	t.Parallel()
	hosts := newHosts(t, 2)
	l := hosts[0]
	file := l.path("net.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, hostNetSet, "hostNetwork: true"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.startServer("--listen", api)
	if out, err := l.trySteadFor(time.Minute, "apply", "-f", file); err == nil || !strings.Contains(out, "--allow-host-network") {
		t.Errorf("without the flag: %v\n%s", err, out)
	}
	end(t, l.server) // in order, so that the next one leads at once
	l.startServer("--listen", api, "--allow-host-network")
	letIn(hosts)
	connect(hosts)
	for _, h := range hosts {
		l.stead("image", "load", l.toolArchive(), "--node", h.nodeName())
	}
	l.apply("beside", besideSet)
	l.stead("apply", "-f", file)
	at := map[string]int{} // the host of each member
	before := []member{l.waitReady("net-0", nil), l.waitReady("net-1", nil)}
	for _, m := range before {
		host := 0
		if m.Status.Node == hosts[1].nodeName() {
			host = 1
		}
		at[m.Status.Name] = host
		if want := fmt.Sprintf("172.31.9.%d", host+1); m.Status.Address != want {
			t.Errorf("%s is at %s, want %s", m.Status.Name, m.Status.Address, want)
		}
	}
	if at["net-0"] == at["net-1"] {
		t.Errorf("both are on one host: %v", at)
	}
	l.waitReady("beside-0", nil)
	l.stead("scale", "net", "--replicas", "3")
	waitForAPort(hosts)
	l.stead("scale", "net", "--replicas", "2")
	look := func() {
		t.Helper()
		for member, host := range at {
			address, name := fmt.Sprintf("172.31.9.%d", host+1), member+".net.default.svc.cluster.local"
			for _, h := range hosts {
				h.waitDig(name, address)
			}
			environ := l.stead("exec", member, "-c", "main", "--", "/box", "command", "cat", "/proc/1/environ")
			says(t, environ, "IP="+address)
		}
		leadsToBoth(t, hosts)
	}
	look()

	t.Log("another agent finds them as they were")
	for _, h := range hosts {
		if err := h.agent.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	connect(hosts)
	look()
	for _, was := range before {
		if now := l.waitReady(was.Status.Name, nil); now.Status.Token != was.Status.Token || now.Status.Restarts != was.Status.Restarts {
			t.Errorf("%s has another life: %+v, was %+v", was.Status.Name, now.Status, was.Status)
		}
	}

	t.Log("out of it they have addresses of their own")
	l.apply("net", fmt.Sprintf(hostNetSet, "hostNetwork: false"))
	for _, was := range before {
		l.eventually(time.Minute, was.Status.Name+" has its own address", func() error {
			m, err := l.member(was.Status.Name)
			if err == nil && (!m.Status.Ready || strings.HasPrefix(m.Status.Address, "172.31.")) {
				err = fmt.Errorf("%+v", m.Status)
			}
			return err
		})
	}
	leadsToBoth(t, hosts)
	if out, err := l.inside(time.Minute, toolBinary, "command", "dial", "127.0.0.1:8080"); err == nil || !strings.Contains(out, "refused") {
		t.Errorf("port 8080 of the host: %v, %s", err, out)
	}
}

// leadsToBoth: the hosts, members in the network of these and one in its own are led to both members, here and there.
func leadsToBoth(t *testing.T, hosts []*Lab) {
	t.Helper()
	l := hosts[0]
	address := strings.TrimSpace(l.stead("get", "svc", "led", "-o", "jsonpath={.spec.clusterIP}"))
	type way struct {
		name string
		dial func() (string, error)
	}
	var ways []way
	for _, h := range hosts {
		ways = append(ways, way{h.nodeName(), func() (string, error) {
			return h.inside(time.Minute, toolBinary, "command", "dial", address+":80")
		}})
	}
	for _, member := range []string{"net-0", "net-1", "beside-0"} {
		ways = append(ways, way{member, func() (string, error) {
			return l.trySteadFor(time.Minute, "exec", member, "--", "/box", "command", "dial", "led.default.svc.cluster.local:80")
		}})
	}
	for _, way := range ways {
		found := map[string]bool{}
		l.eventually(time.Minute, way.name+" is led to both", func() error {
			out, err := way.dial()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			found[strings.TrimSpace(out)] = true
			if len(found) < len(hosts) {
				return fmt.Errorf("not yet: %v", found)
			}
			return nil
		})
	}
}
