package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const factsObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: tune}
data: {tune.conf: COLOUR}
---
apiVersion: v1
kind: Secret
metadata: {name: tls}
stringData: {crt: certificate, key: sesame}
`

const factsSet = `
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: facts}
spec:
  replicas: 1
  selector: {matchLabels: {app: facts}}
  template:
    metadata: {labels: {app: facts}, annotations: {note: "a b"}}
    spec:
      terminationGracePeriodSeconds: 2
      dnsPolicy: None
      dnsConfig: {nameservers: [192.0.2.53], searches: [example.com], options: [{name: ndots, value: "2"}]}
      hostAliases: [{ip: 192.0.2.9, hostnames: [old.example.com, old]}]
      containers:
      - name: facts
        image: stead.local/tool:1
        command: [/box, show]
        args: [--write, /own/mine, /all/tls/crt, /all/tls/key, /all/tune.conf, /all/name, /facts/labels, /facts/notes, /facts/mem, /one,
               /own/mine, /etc/hosts, /etc/resolv.conf]
        env:
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: MIB, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
        - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        - {name: ASKED, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
        - {name: DISK, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage}}}
        resources: {limits: {memory: 64Mi}, requests: {cpu: 50m}}
        volumeMounts:
        - {name: all, mountPath: /all}
        - {name: facts, mountPath: /facts}
        - {name: all, mountPath: /one, subPath: name}
        - {name: data, mountPath: /own, subPathExpr: members/$(NAME)}
      volumes:
      - name: all
        projected:
          defaultMode: 0440
          sources:
          - secret: {name: tls, items: [{key: crt, path: tls/crt}, {key: key, path: tls/key, mode: 0400}]}
          - configMap: {name: tune}
          - configMap: {name: absent, optional: true}
          - downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}
      - name: facts
        downwardAPI:
          items:
          - {path: labels, fieldRef: {fieldPath: metadata.labels}}
          - {path: notes, fieldRef: {fieldPath: metadata.annotations}}
          - {path: mem, resourceFieldRef: {containerName: facts, resource: limits.memory, divisor: 1Mi}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// TestAMemberReadsProjectedFilesAndFactsOfItself: in a container of containerd, and a changed
// source is shown without a restart.
func TestAMemberReadsProjectedFilesAndFactsOfItself(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("facts", strings.ReplaceAll(factsObjects, "COLOUR", "green")+factsSet, "--wait", "--timeout", patience)
	first := l.mustMember("facts-0").Status
	var s shown
	l.eventually(time.Minute, "the member shows itself", func() error {
		out, err := l.trySteadFor(time.Minute, "logs", "facts-0")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		_, text, _ := strings.Cut(out, "{")
		return json.NewDecoder(strings.NewReader("{" + text)).Decode(&s)
	})
	for name, want := range map[string]string{"MIB": "64", "CPUS": strconv.Itoa(runtime.NumCPU()), "ASKED": "50"} {
		if s.Env[name] != want {
			t.Errorf("%s=%q, want %q", name, s.Env[name], want)
		}
	}
	if n, err := strconv.ParseInt(s.Env["DISK"], 10, 64); err != nil || n < 1<<20 {
		t.Errorf("DISK=%q, want the size of the disk", s.Env["DISK"])
	}
	for path, want := range map[string][2]string{
		"/all/tls/crt": {"certificate", "-r--r-----"}, "/all/tls/key": {"sesame", "-r--------"}, "/all/tune.conf": {"green", "-r--r-----"},
		"/all/name": {"facts-0", "-r--r-----"}, "/one": {"facts-0", "-r--r-----"}, "/facts/mem": {"64", "-rw-r--r--"},
		"/facts/notes": {`note="a b"`, "-rw-r--r--"}, "/own/mine": {"written", "-rw-------"},
		"/etc/resolv.conf": {"nameserver 192.0.2.53\nsearch example.com\noptions ndots:2\n", "-r--r--r--"},
	} {
		if got := s.Files[path]; got.Content != want[0] || got.Mode != want[1] {
			t.Errorf("%s is %+v, want %q", path, got, want)
		}
	}
	for path, part := range map[string]string{
		"/etc/hosts": "192.0.2.9\told.example.com\told\n", "/facts/labels": `statefulset.kubernetes.io/pod-name="facts-0"`,
	} {
		if !strings.Contains(s.Files[path].Content, part) {
			t.Errorf("%s has no %q:\n%s", path, part, s.Files[path].Content)
		}
	}
	if own := l.findFile(l.path("agent"), "mine", "facts-0"); !strings.HasSuffix(own, filepath.Join("members", "facts-0", "mine")) {
		t.Errorf("subPathExpr led to %s", own)
	}

	l.apply("tune", strings.ReplaceAll(factsObjects, "COLOUR", "blue"))
	l.eventually(time.Minute, "the changed ConfigMap is shown", func() error {
		out, err := l.trySteadFor(time.Minute, "exec", "facts-0", "--", "/box", "command", "cat", "/all/tune.conf", "/all/tls/key", "/all/name")
		if err != nil || out != "bluesesamefacts-0" {
			return fmt.Errorf("%q, %v", out, err)
		}
		return nil
	})
	if now := l.mustMember("facts-0").Status; now.Token != first.Token || now.Restarts != first.Restarts {
		t.Errorf("it was started anew: %+v, first %+v", now, first)
	}
}
