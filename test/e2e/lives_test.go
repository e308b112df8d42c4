package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stead-project/stead/agent/runtime/runtimetest"
	"github.com/stead-project/stead/test/judge"
)

const lifeSet = `
apiVersion: v1
kind: Service
metadata: {name: life}
spec:
  clusterIP: None
  selector: {app: life}
  ports: [{name: probe, port: 8080}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: life}
spec:
  serviceName: life
  replicas: 3
  selector: {matchLabels: {app: life}}
  template:
    metadata: {labels: {app: life}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: life
        image: stead.local/tool:1
        imagePullPolicy: Never
        command: [/box, life]
        ports: [{name: probe, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// toolArchive is an image that holds the test tool, as /box.
func (l *Lab) toolArchive() string {
	l.t.Helper()
	program, err := os.ReadFile(toolBinary)
	if err != nil {
		l.t.Fatal(err)
	}
	archive := l.path("tool.tar")
	image := runtimetest.Archive(l.t, "stead.local/tool:1", program, runtimetest.ImageConfig{})
	if err := os.WriteFile(archive, image, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return archive
}

// startWitness starts the program that writes down which lives are heard.
func (l *Lab) startWitness() (file string) {
	file = l.path("witness.log")
	l.start("witness", toolBinary, "witness", "--file", file)
	l.eventually(time.Minute, "the witness listens", func() error {
		_, err := os.Stat(file)
		return err
	})
	return file
}

// apply writes a manifest into the lab and applies it.
func (l *Lab) apply(name, manifest string, flags ...string) string {
	l.t.Helper()
	file := l.path(name + ".yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return l.stead(append([]string{"apply", "-f", file}, flags...)...)
}

// member is what tests read of a member.
type member struct {
	Status struct {
		Name     string `json:"name"`
		Token    string `json:"token"`
		Ready    bool   `json:"ready"`
		Address  string `json:"address"`
		Restarts int    `json:"restarts"`
		Cause    string `json:"cause"`
		Message  string `json:"message"`
		Blocked  string `json:"blocked"`
		Node     string `json:"node"`
		Phase    string `json:"phase"`
		Revision string `json:"revision"`
	} `json:"status"`
}

func (l *Lab) member(name string) (m member, err error) {
	out, err := l.trySteadFor(time.Minute, "get", "member", name, "-o", "json")
	if err != nil {
		return m, fmt.Errorf("%w: %s", err, out)
	}
	return m, json.Unmarshal([]byte(out), &m)
}

func (l *Lab) mustMember(name string) member {
	l.t.Helper()
	m, err := l.member(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return m
}

// waitReady waits until the member is ready and, with since, was restarted after it.
func (l *Lab) waitReady(name string, since *member) member {
	l.t.Helper()
	var m member
	l.eventually(time.Minute, name+" is ready", func() (err error) {
		if m, err = l.member(name); err != nil {
			return err
		}
		if !m.Status.Ready || (since != nil && m.Status.Token == since.Status.Token && m.Status.Restarts <= since.Status.Restarts) {
			return fmt.Errorf("%+v", m.Status)
		}
		return nil
	})
	return m
}

// killMember ends the member's processes with SIGKILL, found by the host's cgroups.
func (l *Lab) killMember(member string) {
	l.t.Helper()
	var pids []int
	l.eventually(time.Minute, member+" has a process", func() error { // there is none between two runs
		pids = l.pidsOf(member)
		if len(pids) == 0 {
			return errors.New("it has none")
		}
		return nil
	})
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			l.t.Fatal(err)
		}
	}
}

// pidsOf finds the processes whose cgroup names the lab's node and the member.
func (l *Lab) pidsOf(member string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		cgroup, err := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		if err == nil && strings.Contains(string(cgroup), "-"+l.nodeName()+"/default."+member+"/") && !zombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// zombie reports that a process has ended, and only nobody has taken note of it yet:
// that takes time when its shim was killed.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// assertOneLifeOnHosts is assertOneLife of what the witnesses of several hosts heard.
func (l *Lab) assertOneLifeOnHosts(heard []string, members ...string) {
	l.t.Helper()
	var lines []byte
	for _, file := range heard {
		text, err := os.ReadFile(file)
		if err != nil {
			l.t.Fatal(err)
		}
		lines = append(lines, text...)
	}
	all := l.path("heard.log")
	if err := os.WriteFile(all, lines, 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.assertOneLife(all, members...)
}

// assertOneLife fails the test when the witness heard two lives of one identity
// at once, or did not hear each of the members at all.
func (l *Lab) assertOneLife(file string, members ...string) {
	l.t.Helper()
	var wrong []string
	l.eventually(time.Minute, "the witness has heard all", func() error { // it writes after it is told
		lives, err := map[string]int(nil), error(nil)
		if wrong, lives, err = judge.Lives(file); err != nil {
			l.t.Fatal(err)
		}
		for _, m := range members {
			if lives["default/"+m] == 0 && len(wrong) == 0 {
				return fmt.Errorf("no life of %s was ever heard: %v", m, lives)
			}
		}
		return nil
	})
	for _, w := range wrong {
		judge.Broken(l.t, "two lives: %s", w)
	}
}

func TestMembersKeepNameAddressAndLifeThroughEveryCrash(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.startAll(l.toolArchive())
	heard := l.startWitness()
	l.apply("life", lifeSet, "--wait", "--timeout", patience)
	before := map[string]member{}
	for _, name := range []string{"life-0", "life-1", "life-2"} {
		before[name] = l.mustMember(name)
	}

	t.Log("a member's processes are killed: same life, same address")
	l.killMember("life-1")
	was := before["life-1"]
	after := l.waitReady("life-1", &was)
	if after.Status.Address != was.Status.Address || after.Status.Token != was.Status.Token {
		judge.Broken(t, "after a kill: %+v, before: %+v", after.Status, was.Status)
	}
	pids := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-2"))

	t.Log("agent, server and containerd are killed in turn: members live on")
	_ = l.agent.signal(syscall.SIGKILL)
	l.startAgent()
	_ = l.server.signal(syscall.SIGKILL)
	l.startServer()
	_ = l.containerd.signal(syscall.SIGKILL)
	l.startContainerd()
	for name, m := range before {
		now := l.waitReady(name, nil)
		if now.Status.Token != m.Status.Token || now.Status.Address != m.Status.Address {
			judge.Broken(t, "%s: %+v, before: %+v", name, now.Status, m.Status)
		}
	}
	if now := fmt.Sprint(l.pidsOf("life-0"), l.pidsOf("life-2")); now != pids {
		judge.Broken(t, "processes changed from %s to %s", pids, now)
	}

	t.Log("after all of it, scaling still works and names resolve")
	l.stead("scale", "life", "--replicas", "5", "--wait", "--timeout", patience)
	l.stead("scale", "life", "--replicas", "3", "--wait", "--timeout", patience)
	l.assertOneLife(heard, "life-0", "life-1", "life-2", "life-3", "life-4")
	l.stead("delete", "set", "life", "--wait", "--timeout", patience)
	if left := append(l.pidsOf("life-0"), l.pidsOf("life-1")...); len(left) > 0 {
		judge.Broken(t, "processes after delete: %v", left)
	}
	l.assertOneLife(heard)
}

func TestTheWitnessHearsADeliberateDoubleRun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	heard := l.startWitness()
	dir := l.path("double")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"1.10", "1.20"} {
		about := l.path("about-" + token)
		text := fmt.Sprintf(`{"namespace":"default","name":"x-0","token":%q}`, token)
		if err := os.WriteFile(about, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, lock := range []string{"", dir} {
			l.start("life-"+token+strconv.Itoa(len(lock)), toolBinary, "life", "--witness", "127.0.0.1:7777",
				"--member", about, "--lock", lock, "--listen", "")
		}
	}
	l.eventually(time.Minute, "both are heard", func() error {
		wrong, _, err := judge.Lives(heard)
		if err != nil {
			return err
		}
		all := strings.Join(wrong, "\n")
		if !strings.Contains(all, "was heard while") || !strings.Contains(all, "found the lock held") {
			return fmt.Errorf("heard: %q", all)
		}
		return nil
	})
}
