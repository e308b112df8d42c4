package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const fieldsObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: words, namespace: prod}
data: {a: alpha, b: beta}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: blob, namespace: prod}
binaryData: {raw: /w==}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: prod}
data: {PASS: b3BlbiBzZXNhbWU=}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: fields, namespace: prod}
spec:
  replicas: 1
  selector: {matchLabels: {app: fields}}
  template:
    metadata: {labels: {app: fields}, annotations: {note: as written}}
    spec:
      terminationGracePeriodSeconds: 2
      setHostnameAsFQDN: true
      shareProcessNamespace: true
      nodeSelector: {kubernetes.io/hostname: NODE}
      tolerations: [{key: dedicated, operator: Exists}]
      securityContext: {runAsUser: 1234, runAsGroup: 1235, fsGroup: 1236, supplementalGroups: [1240, 1241]}
      containers:
      - name: main
        image: stead.local/tool:1
        imagePullPolicy: Never
        workingDir: /words
        command: [/box, show]
        args: [--write, "/outside,/ro/new,/scratch/one,/sub/two", b, /outside, /ro/new, /ro/one, /scratch/inner/two, /blob/raw,
          /picked/deep/b, /picked/a, /words/a, /keys/PASS, /none/config, /none/secret, /all/a, /facts/name, /facts/space,
          /proc/self/status, /proc/self/mountinfo, /proc/sys/kernel/hostname, /etc/hostname, /proc/1/cmdline]
        env:
        - {name: SPACE, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}}
        - {name: AT, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: NOTE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['note']"}}}
        - {name: NONE1, valueFrom: {configMapKeyRef: {name: words, key: none, optional: true}}}
        - {name: NONE2, valueFrom: {secretKeyRef: {name: absent, key: none, optional: true}}}
        envFrom:
        - {prefix: P_, configMapRef: {name: words}}
        - {secretRef: {name: keys}}
        - {configMapRef: {name: absent, optional: true}}
        - {secretRef: {name: absent, optional: true}}
        securityContext:
          readOnlyRootFilesystem: true
          allowPrivilegeEscalation: false
          capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}
        volumeMounts:
        - {name: words, mountPath: /words}
        - {name: picked, mountPath: /picked}
        - {name: blob, mountPath: /blob}
        - {name: keys, mountPath: /keys}
        - {name: no-config, mountPath: /none/config}
        - {name: no-secret, mountPath: /none/secret}
        - {name: all, mountPath: /all}
        - {name: facts, mountPath: /facts}
        - {name: memory, mountPath: /memory}
        - {name: scratch, mountPath: /scratch}
        - {name: scratch, mountPath: /sub, subPath: inner}
        - {name: scratch, mountPath: /ro, readOnly: true}
      - name: other
        image: stead.local/tool:1
        command: [/box, show]
        args: [/proc/self/status]
        securityContext: {runAsUser: 2000, runAsGroup: 2001, capabilities: {drop: [CHOWN]}}
      volumes:
      - {name: words, configMap: {name: words, defaultMode: 0640}}
      - {name: picked, configMap: {name: words, items: [{key: b, path: deep/b, mode: 0444}]}}
      - {name: blob, configMap: {name: blob}}
      - {name: keys, secret: {secretName: keys, defaultMode: 0440}}
      - {name: no-config, configMap: {name: absent, optional: true}}
      - {name: no-secret, secret: {secretName: absent, optional: true}}
      - name: all
        projected:
          sources:
          - secret: {name: absent, optional: true}
          - configMap: {name: absent, optional: true}
          - configMap: {name: words}
      - name: facts
        downwardAPI:
          defaultMode: 0640
          items:
          - {path: name, fieldRef: {fieldPath: metadata.name}}
          - {path: space, mode: 0444, fieldRef: {fieldPath: metadata.namespace}}
      - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
      - {name: scratch, emptyDir: {}}
`

// TestAMemberSeesEachFieldOfItsTemplate: what manifest/testdata/observed.txt says that this test
// observes is so in the container, as it sees it itself.
func TestAMemberSeesEachFieldOfItsTemplate(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.stead("node", "taint", l.nodeName(), "dedicated=fields:NoSchedule")
	l.apply("fields", strings.Replace(fieldsObjects, "NODE", l.nodeName(), 1), "--wait", "--timeout", patience)
	main, other := l.shownBy("main"), l.shownBy("other")

	for name, want := range map[string]string{
		"SPACE": "prod", "AT": l.nodeName(), "NOTE": "as written", "P_a": "alpha", "P_b": "beta", "PASS": "open sesame",
		"HOSTNAME": "fields-0.fields.prod.svc.cluster.local",
	} {
		if main.Env[name] != want {
			t.Errorf("%s=%q, want %q", name, main.Env[name], want)
		}
	}
	for _, name := range []string{"NONE1", "NONE2"} {
		if value, set := main.Env[name]; set {
			t.Errorf("%s=%q, want none: its key is not there, and optional", name, value)
		}
	}
	for path, want := range map[string][2]string{
		"b": {"beta", "-rw-r-----"}, "/words/a": {"alpha", "-rw-r-----"}, "/picked/deep/b": {"beta", "-r--r--r--"},
		"/blob/raw": {"\ufffd", "-rw-r--r--"}, "/keys/PASS": {"open sesame", "-r--r-----"}, "/all/a": {"alpha", "-rw-r--r--"},
		"/facts/name": {"fields-0", "-rw-r-----"}, "/facts/space": {"prod", "-r--r--r--"},
		"/ro/one": {"written", "-rw-------"}, "/scratch/inner/two": {"written", "-rw-------"},
	} {
		if got := main.Files[path]; got.Content != want[0] || got.Mode != want[1] {
			t.Errorf("%s is %+v, want %q", path, got, want)
		}
	}
	for _, path := range []string{"/proc/sys/kernel/hostname", "/etc/hostname"} {
		if got := strings.TrimSpace(main.Files[path].Content); got != "fields-0.fields.prod.svc.cluster.local" {
			t.Errorf("%s is %q with setHostnameAsFQDN", path, got)
		}
	}
	if got := main.Files["/proc/1/cmdline"].Content; got != "/stead-node\x00pause\x00" {
		t.Errorf("the first process is %q with shareProcessNamespace", got)
	}
	for _, path := range []string{"/outside", "/ro/new", "/picked/a"} {
		if main.Files[path].Error == "" {
			t.Errorf("%s is there: %+v", path, main.Files[path])
		}
	}
	for _, path := range []string{"/none/config", "/none/secret"} {
		if !strings.HasPrefix(main.Files[path].Mode, "d") {
			t.Errorf("%s is %+v, want an empty directory", path, main.Files[path])
		}
	}
	if mount := lineWith(main.Files["/proc/self/mountinfo"].Content, " /memory "); !strings.Contains(mount, "tmpfs") || !strings.Contains(mount, "size=1024k") {
		t.Errorf("/memory is %q, want a tmpfs of 1Mi", mount)
	}
	if main.UID != 1234 || main.GID != 1235 || other.UID != 2000 || other.GID != 2001 {
		t.Errorf("they run as %d:%d and %d:%d", main.UID, main.GID, other.UID, other.GID)
	}
	for _, s := range []shown{main, other} {
		if groups := fmt.Sprint(s.Groups); !strings.Contains(groups, "1236") || !strings.Contains(groups, "1240 1241") {
			t.Errorf("groups %s", groups)
		}
	}
	status := main.Files["/proc/self/status"].Content + "other:\n" + other.Files["/proc/self/status"].Content
	for _, want := range []string{"\nNoNewPrivs:\t1\n", "\nCapBnd:\t0000000000000400\n", "\nCapBnd:\t00000000a80425fa\n"} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
}

// shownBy is what the verb show of the tool says in a container of prod/fields-0.
func (l *Lab) shownBy(container string) (s shown) {
	l.t.Helper()
	l.eventually(time.Minute, container+" shows itself", func() error {
		// What it says on standard error may come before or after.
		out, err := l.trySteadFor(time.Minute, "logs", "fields-0", "-n", "prod", "-c", container)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		_, text, _ := strings.Cut(out, "{")
		return json.NewDecoder(strings.NewReader("{" + text)).Decode(&s)
	})
	return s
}
