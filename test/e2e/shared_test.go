package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const sharedSet = `
apiVersion: stead/v1
kind: StatefulSet
metadata: {name: net}
spec:
  replicas: 1
  nodeLoss: {policy: Replace, after: 10s}
  selector: {matchLabels: {app: net}}
  template:
    metadata: {labels: {app: net}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, hold, "0.0.0.0:80"]
        ports: [{containerPort: 80}]
        readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: nfs, resources: {requests: {storage: 1Mi}}}
`

// TestAMemberWithASharedVolumeIsReplacedOnAnotherHost: its host is cut off. It ends there
// by itself, and begins elsewhere with its name, address and volume; when the host is back
// both reach it.
func TestAMemberWithASharedVolumeIsReplacedOnAnotherHost(t *testing.T) {
	hosts := newHosts(t, 2)
	l, lost := hosts[0], hosts[1]
	dir := l.path("nfs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts, "--storage-class", "nfs="+dir, "--shared-class", "nfs", "--fenced-class", "nfs")
	for _, h := range hosts {
		l.stead("image", "load", l.toolArchive(), "--node", h.nodeName())
	}
	l.stead("node", "cordon", l.nodeName())
	l.apply("net", sharedSet, "--wait", "--timeout", "2m")
	l.stead("node", "uncordon", l.nodeName())
	was := l.mustMember("net-0")
	if was.Status.Node != lost.nodeName() {
		t.Fatalf("it is on %s", was.Status.Node)
	}
	mark := dir + "/default/net/data-0/data/mark"
	if err := os.WriteFile(mark, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.run("ip", "-n", l.Name+"-sw", "link", "set", "h1", "down")
	var now member
	l.eventually(2*time.Minute, "it is replaced", func() (err error) {
		if now, err = l.member("net-0"); err == nil && (!now.Status.Ready || now.Status.Token == was.Status.Token) {
			err = fmt.Errorf("%+v", now.Status)
		}
		return err
	})
	if now.Status.Node != l.nodeName() || now.Status.Address != was.Status.Address {
		t.Errorf("it is on %s at %s, want %s, %s", now.Status.Node, now.Status.Address, l.nodeName(), was.Status.Address)
	}
	if text, err := os.ReadFile(mark); err != nil || string(text) != "kept" {
		t.Errorf("its volume has %q, %v", text, err)
	}
	if line := lineWith(l.stead("volume", "ls"), "data-net-0"); !strings.Contains(line, l.nodeName()) {
		t.Errorf("volume ls says %q", line)
	}
	l.run("ip", "-n", l.Name+"-sw", "link", "set", "h1", "up")
	for _, h := range hosts {
		h.eventually(time.Minute, h.Name+" reaches it", func() error {
			out, err := h.inside(10*time.Second, "bash", "-c", "exec 3<>/dev/tcp/"+was.Status.Address+"/80")
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
	}
	if pids := lost.pidsOf("net-0"); len(pids) > 0 {
		t.Errorf("processes %v of it are left", pids)
	}
}
