package e2e

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

const claimSet = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, show]
        args: [--write, /files/$(POD), /files/$(POD)]
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        volumeMounts: [{name: files, mountPath: /files}, {name: read, mountPath: /read}]
      volumes:
      - {name: files, persistentVolumeClaim: {claimName: shared}}
      - {name: read, persistentVolumeClaim: {claimName: shared, readOnly: true}}
`

// The volume of a PersistentVolumeClaim on a real host: two members share it, it stays when their set
// goes, comes back with what is in it, and goes when its claim is deleted and nobody uses it.
func TestMembersShareTheVolumeOfAClaim(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startServer()
	l.startAgent()
	l.stead("image", "load", l.toolArchive())
	data := l.path("agent/volumes/default/.claims/shared/data")
	there := func(name string) {
		t.Helper()
		l.eventually(2*time.Minute, name+" is in the volume", func() error { _, err := os.Stat(data + "/" + name); return err })
	}
	l.apply("web", claimSet, "--wait", "--timeout", patience)
	there("web-0")
	there("web-1")
	if err := os.WriteFile(data+"/precious", []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	mounted, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounted), data) {
		t.Errorf("it is mounted on the host itself: %v", err)
	}
	l.stead("delete", "set", "web", "--wait", "--timeout", patience)
	if got, err := os.ReadFile(data + "/precious"); err != nil || string(got) != "data" {
		judge.Broken(t, "after the set was deleted: %q, %v", got, err)
	}
	l.apply("web", claimSet, "--wait", "--timeout", patience)
	if out := l.stead("exec", "web-1", "--", "/box", "command", "cat", "/read/precious"); !strings.Contains(out, "data") {
		t.Errorf("web-1 reads %q", out)
	}

	if out := l.stead("delete", "pvc", "shared"); !strings.Contains(out, "waits until nothing uses its volume") {
		t.Errorf("delete says %q", out)
	}
	l.stead("restart", "web-1") // no life starts with it any more
	l.eventually(2*time.Minute, "web-1 waits for the claim", func() error { return l.steadSays("PersistentVolumeClaim shared is being deleted", "explain", "web") })
	if _, err := os.Stat(data + "/precious"); err != nil {
		judge.Broken(t, "it went while web-0 used it: %v", err)
	}
	l.claimGoes(data)
}

// claimGoes: once no member uses it, the volume of a claim that is being deleted moves from its directory to the trash.
func (l *Lab) claimGoes(data string) {
	l.t.Helper()
	l.stead("scale", "web", "--replicas", "0", "--wait", "--timeout", patience)
	l.eventually(2*time.Minute, "the volume is in the trash", func() error {
		if _, err := os.Stat(data); err == nil {
			return errors.New("it is still in its place")
		}
		return l.steadSays("Trashed", "volume", "ls")
	})
}

const readWriteManySet = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], storageClassName: nfs, resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 2
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [controller-revision-hash]}
      containers:
      - name: main
        image: stead.local/tool:1
        command: [/box, show]
        args: [--write, /files/$(POD), /files/$(POD)]
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        volumeMounts: [{name: files, mountPath: /files}]
      volumes: [{name: files, persistentVolumeClaim: {claimName: shared}}]
`

// TestMembersOnTwoHostsShareTheVolumeOfAClaim: ReadWriteMany on a class that the hosts share. Both write and
// read it at once; it goes when the claim is deleted and neither uses it.
func TestMembersOnTwoHostsShareTheVolumeOfAClaim(t *testing.T) {
	hosts := newHosts(t, 2)
	l := hosts[0]
	dir := l.path("nfs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l.startServer("--listen", api)
	letIn(hosts)
	connect(hosts, "--storage-class", "nfs="+dir, "--shared-class", "nfs")
	for _, h := range hosts {
		l.stead("image", "load", l.toolArchive(), "--node", h.nodeName())
	}
	l.apply("web", readWriteManySet, "--wait", "--timeout", patience)
	if a, b := l.mustMember("web-0").Status.Node, l.mustMember("web-1").Status.Node; a == b {
		t.Errorf("both are on %s", a)
	}
	for _, name := range []string{"web-0", "web-1"} {
		l.eventually(time.Minute, "both files are there for "+name, func() error {
			_, err := l.trySteadFor(time.Minute, "exec", name, "--", "/box", "command", "cat", "/files/web-0", "/files/web-1")
			return err
		})
	}
	data := dir + "/default/.claims/shared/data"
	if out := l.stead("delete", "pvc", "shared"); !strings.Contains(out, "waits until nothing uses its volume") {
		t.Errorf("delete says %q", out)
	}
	l.stead("scale", "web", "--replicas", "1", "--wait", "--timeout", patience)
	if _, err := os.Stat(data + "/web-1"); err != nil {
		judge.Broken(t, "it went while web-0 used it: %v", err)
	}
	l.claimGoes(data)
}
