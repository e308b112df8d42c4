package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// accessSet asks for what only an operator allows; %s is a directory of the host.
const accessSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: deep}
spec:
  replicas: 1
  selector: {matchLabels: {app: deep}}
  template:
    metadata: {labels: {app: deep}}
    spec:
      terminationGracePeriodSeconds: 5
      securityContext:
        sysctls: [{name: net.core.somaxconn, value: "777"}, {name: net.ipv4.tcp_fin_timeout, value: "17"}]
      containers:
      - {name: plain, image: "stead.local/tool:1", command: [/box, command, wait], volumeMounts: [{name: host, mountPath: /host}, {name: memory, mountPath: /memory}]}
      - {name: tight, image: "stead.local/tool:1", command: [/box, command, wait], securityContext: {allowPrivilegeEscalation: false}}
      - {name: wide, image: "stead.local/tool:1", command: [/box, command, wait], securityContext: {privileged: true}}
      - name: filtered
        image: stead.local/tool:1
        command: [/box, command, wait]
        securityContext: {seccompProfile: {type: Localhost, localhostProfile: log.json}}
      volumes:
      - {name: host, hostPath: {path: %s, type: Directory}}
      - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
`

// TestWhatAnOperatorAllowsIsWhatAContainerSees: refused without the flags; with them each field is
// seen from inside, and stays over a kill of the agent.
func TestWhatAnOperatorAllowsIsWhatAContainerSees(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	shared, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set := fmt.Sprintf(accessSet, shared+"/there")
	file := l.path("deep.yaml")
	if err := os.WriteFile(file, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	l.startServer()
	out, err := l.trySteadFor(time.Minute, "apply", "-f", file)
	for _, flag := range []string{"--allow-sysctl net.core.somaxconn", "--allow-privileged", "--allow-host-path " + shared + "/there"} {
		if err == nil || !strings.Contains(out, flag) {
			t.Errorf("without flags: %v, lacks %s:\n%s", err, flag, out)
		}
	}
	if err := l.server.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startServer("--allow-privileged", "--allow-host-path", shared, "--allow-sysctl", "net.core.*")
	l.startAgent("--seccomp-dir", l.path("seccomp"))
	l.stead("image", "load", l.toolArchive())
	l.stead("apply", "-f", file)

	m := l.waitCause("deep-0", "VolumeRefused")
	if !strings.Contains(m.Status.Message, shared+"/there") {
		t.Errorf("the member says %q", m.Status.Message)
	}
	if err := os.MkdirAll(shared+"/there", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shared+"/there/word", []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	m = l.waitCause("deep-0", "StartError")
	if !strings.Contains(m.Status.Message, l.path("seccomp", "log.json")) {
		t.Errorf("the member says %q", m.Status.Message)
	}
	if err := os.Mkdir(l.path("seccomp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path("seccomp", "log.json"), []byte(`{"defaultAction": "SCMP_ACT_LOG"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	m = l.waitReady("deep-0", nil)

	read := func(container, file string) string {
		t.Helper()
		return l.stead("exec", "deep-0", "-c", container, "--", "/box", "command", "cat", file)
	}
	look := func() {
		t.Helper()
		for _, c := range []struct{ container, file, want string }{
			{"plain", "/proc/self/status", "NoNewPrivs:\t0\nSeccomp:\t2\n"},
			{"tight", "/proc/self/status", "NoNewPrivs:\t1\nSeccomp:\t2\n"},
			{"wide", "/proc/self/status", "NoNewPrivs:\t0\nSeccomp:\t0\n"},
			{"filtered", "/proc/self/status", "NoNewPrivs:\t0\nSeccomp:\t2\n"},
			{"plain", "/proc/sys/net/core/somaxconn", "777"},
			{"wide", "/proc/sys/net/ipv4/tcp_fin_timeout", "17"},
			{"plain", "/host/word", "of the host"},
			{"plain", "/proc/self/mounts", "tmpfs /memory tmpfs rw,nosuid,nodev,relatime,size=1024k"},
		} {
			if got := read(c.container, c.file); !strings.Contains(got, c.want) {
				t.Errorf("%s in %s: lacks %q:\n%s", c.file, c.container, c.want, got)
			}
		}
	}
	look()
	if read("wide", "/proc/self/status") == read("plain", "/proc/self/status") {
		t.Error("the privileged container has no more capabilities than others")
	}

	t.Log("another agent finds it as it was; a server without the flags lets it run, and takes no more of it")
	if err := l.agent.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := l.server.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.startServer()
	l.startAgent("--seccomp-dir", l.path("seccomp"))
	look()
	if now := l.waitReady("deep-0", nil); now.Status.Token != m.Status.Token {
		t.Errorf("it has another life: %v, was %v", now.Status.Token, m.Status.Token)
	}
	if out, err := l.trySteadFor(time.Minute, "apply", "-f", file); err == nil || !strings.Contains(out, "--allow-privileged") {
		t.Errorf("without flags again: %v\n%s", err, out)
	}
	l.stead("delete", "set", "deep", "--wait", "--timeout", patience)
	if word, err := os.ReadFile(shared + "/there/word"); err != nil || string(word) != "of the host" {
		t.Errorf("what the host had went with the member: %q, %v", word, err)
	}
}
