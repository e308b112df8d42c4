package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stead-project/stead/test/judge"
)

const showSet = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {colour: green, greeting.txt: "hello\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: tr0ub4dor-and-3}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: show}
spec:
  replicas: 1
  selector: {matchLabels: {app: show}}
  template:
    metadata: {labels: {app: show, tier: one}, annotations: {note: seen}}
    spec:
      securityContext: {runAsUser: 1234, runAsGroup: 1235, fsGroup: 1236}
      terminationGracePeriodSeconds: 2
      containers:
      - name: show
        image: stead.local/tool:1
        command: [/box, show]
        args: [--write, "/data/mine,/scratch/mine,/run/stead/mine", /data, /data/mine, /scratch/mine, /run/stead/mine,
               /conf/greeting.txt, /conf/colour, /keys/password, /run/stead/member.json, /run/stead/set.json,
               /run/stead/volume-new, /etc/hosts, /etc/resolv.conf, /etc/hostname]
        env:
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: TIER, valueFrom: {fieldRef: {fieldPath: "metadata.labels['tier']"}}}
        - {name: COLOUR, valueFrom: {configMapKeyRef: {name: conf, key: colour}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: keys, key: password}}}
        - {name: ABSENT, valueFrom: {secretKeyRef: {name: keys, key: none, optional: true}}}
        - {name: PEER, value: "$(NAME).show and $$(NAME)"}
        resources: {limits: {cpu: 500m, memory: 64Mi}}
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: scratch, mountPath: /scratch}
        - {name: conf, mountPath: /conf}
        - {name: keys, mountPath: /keys}
      volumes:
      - {name: scratch, emptyDir: {}}
      - {name: conf, configMap: {name: conf}}
      - {name: keys, secret: {secretName: keys, defaultMode: 0440}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// shown is what the tool's verb show prints.
type shown struct {
	Env      map[string]string
	UID, GID int
	Groups   []int
	Hostname string
	Files    map[string]struct{ Content, Mode, Error string }
}

func TestAMemberSeesItsConfigSecretsIdentityAndLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("show", showSet, "--wait", "--timeout", patience)
	m := l.mustMember("show-0").Status
	var s shown
	l.eventually(time.Minute, "the member shows itself", func() error {
		// What it says on standard error may come before or after.
		out, err := l.trySteadFor(time.Minute, "logs", "show-0")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		_, text, _ := strings.Cut(out, "{")
		return json.NewDecoder(strings.NewReader("{" + text)).Decode(&s)
	})
	for name, want := range map[string]string{
		"NAME": "show-0", "ADDRESS": m.Address, "TIER": "one", "COLOUR": "green", "PASSWORD": "tr0ub4dor-and-3",
		"PEER": "show-0.show and $(NAME)", "STEAD_MEMBER": "show-0", "STEAD_ORDINAL": "0",
		"STEAD_FQDN": "show-0.show.default.svc.cluster.local",
	} {
		if s.Env[name] != want {
			t.Errorf("%s=%q, want %q", name, s.Env[name], want)
		}
	}
	if _, set := s.Env["ABSENT"]; set {
		t.Error("an optional reference to a missing key is set")
	}
	if s.UID != 1234 || s.GID != 1235 || !strings.Contains(fmt.Sprint(s.Groups), "1236") || s.Hostname != "show-0" {
		t.Errorf("uid %d gid %d groups %v hostname %s", s.UID, s.GID, s.Groups, s.Hostname)
	}
	for path, want := range map[string]string{
		"/conf/greeting.txt": "hello\n", "/conf/colour": "green", "/keys/password": "tr0ub4dor-and-3",
		"/data/mine": "written", "/scratch/mine": "written", "/etc/hostname": "show-0\n",
		"/run/stead/volume-new": "data first\n",
	} {
		if s.Files[path].Content != want {
			t.Errorf("%s is %+v, want %q", path, s.Files[path], want)
		}
	}
	for path, part := range map[string]string{
		"/run/stead/member.json": `"fqdn":"show-0.show.default.svc.cluster.local"`, "/run/stead/set.json": `"replicas":1`,
		"/etc/hosts": m.Address, "/etc/resolv.conf": "nameserver " + gateway,
	} {
		if !strings.Contains(strings.ReplaceAll(s.Files[path].Content, `": `, `":`), part) {
			t.Errorf("%s has no %q:\n%s", path, part, s.Files[path].Content)
		}
	}
	if s.Files["/run/stead/mine"].Error == "" {
		t.Error("a member could write below /run/stead")
	}
	l.assertLimits("show-0", "67108864")
	l.assertSecretKept("tr0ub4dor-and-3")
}

// assertLimits checks the memory limit that the kernel holds for the member.
func (l *Lab) assertLimits(member, bytes string) {
	l.t.Helper()
	pids := l.pidsOf(member)
	if len(pids) == 0 {
		l.t.Fatalf("no process of %s", member)
	}
	cgroups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pids[0]))
	if err != nil {
		l.t.Fatal(err)
	}
	for line := range strings.Lines(string(cgroups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, file := range []string{"/sys/fs/cgroup/memory" + part[2] + "/memory.limit_in_bytes", "/sys/fs/cgroup" + part[2] + "/memory.max"} {
			if got, err := os.ReadFile(file); err == nil && strings.Contains(file, member) {
				if strings.TrimSpace(string(got)) != bytes {
					l.t.Errorf("%s is %s, want %s", file, got, bytes)
				}
				return
			}
		}
	}
	l.t.Errorf("no memory limit found for %s in\n%s", member, cgroups)
}

// assertSecretKept looks for a secret's value wherever it must not be: in what the
// server keeps, in logs, and in what the command line shows.
func (l *Lab) assertSecretKept(value string) {
	l.t.Helper()
	for _, kind := range []string{"secrets", "sets", "members", "events", "configmaps"} {
		if out := l.stead("get", kind, "-o", "yaml"); strings.Contains(out, value) {
			judge.Broken(l.t, "get %s shows the secret", kind)
		}
	}
	out, err := l.try(time.Minute, "grep", "-rlaF", value, l.path("server"), l.path("server.log"), l.path("agent.log"), l.path("agent", "ledger"))
	if err == nil {
		judge.Broken(l.t, "the secret stands in clear in:\n%s", out)
	}
}

func TestGlibcAndMuslResolveMembersWithTheirOwnResolvConf(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	conf := l.findFile(l.path("run"), "resolv.conf", "life-0")
	want := l.mustMember("life-1").Status.Address
	musl := l.path("resolve")
	if out, err := l.try(time.Minute, "musl-gcc", "-static", "-o", musl, "testdata/resolve.c"); err != nil {
		t.Fatalf("musl-gcc: %v (scripts/setup installs musl-tools)\n%s", err, out)
	}
	for _, name := range []string{"life-1.life", "life-1.life.default", "life-1.life.default.svc.cluster.local"} {
		for _, resolver := range []string{"getent ahostsv4", musl} {
			script := "mount --bind " + conf + " /etc/resolv.conf && " + resolver + " " + name
			l.eventually(time.Minute, resolver+" resolves "+name, func() error {
				out, err := l.inside(time.Minute, "unshare", "-m", "sh", "-c", script)
				if err != nil || !strings.HasPrefix(out, want) {
					return fmt.Errorf("%v, %q; want %s", err, out, want)
				}
				return nil
			})
		}
	}
}

// findFile finds a file by name below dir, in a path that contains part.
func (l *Lab) findFile(dir, name, part string) string {
	l.t.Helper()
	out := l.run("find", dir, "-name", name, "-path", "*"+part+"*")
	files := strings.Fields(out)
	if len(files) == 0 {
		l.t.Fatalf("no %s of %s below %s", name, part, dir)
	}
	return files[0]
}
