package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	registryAddr = "127.0.0.1:5443"
	mirrorAddr   = "127.0.0.1:5444"
)

// privateSet is one member of an image of registry.test.
const privateSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: priv}
spec:
  replicas: 1
  selector: {matchLabels: {app: priv}}
  template:
    metadata: {labels: {app: priv}}
    spec:
      terminationGracePeriodSeconds: 1
      imagePullSecrets: [{name: key}]
      containers:
      - name: priv
        image: registry.test/team/tool:%s
        imagePullPolicy: IfNotPresent
        command: [/box, life]
        ports: [{name: probe, containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: probe}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
`

// pullSecret has the user's password, or another one.
func pullSecret(password string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ntype: kubernetes.io/dockerconfigjson\nstringData:\n  .dockerconfigjson: '" +
		`{"auths": {"registry.test/team": {"username": "` + registryUser + `", "password": "` + password + `"}}}` + "'\n"
}

// waitPull waits until the member's pull fails with these words, and returns all of them.
func (l *Lab) waitPull(name string, words ...string) {
	l.t.Helper()
	l.eventually(time.Minute, name+" says "+strings.Join(words, ", "), func() error {
		m, err := l.member(name)
		for _, word := range words {
			if err == nil && (m.Status.Cause != "ImagePull" || !strings.Contains(m.Status.Message, word)) {
				err = fmt.Errorf("no %q in %+v", word, m.Status)
			}
		}
		if strings.Contains(m.Status.Message, registryPassword) {
			l.t.Errorf("the message shows the password: %s", m.Status.Message)
		}
		return err
	})
}

func TestAPrivateImageIsPulledWithCAMirrorAndCredentials(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	registry := l.startRegistry("registry", registryAddr, true)
	archive := l.toolArchive()
	l.push(archive, registryAddr, "team/tool", "1")
	l.push(l.otherToolArchive(), registryAddr, "team/tool", "2")
	l.startServer()
	l.startAgent("--registry-dir", l.path("certs.d"))

	t.Log("an unknown CA, then no credentials, wrong ones, right ones")
	l.configureRegistry("server = \"https://" + registryAddr + "\"\n")
	if out := l.apply("priv", fmt.Sprintf(privateSet, "1")); !strings.Contains(out, "there is no Secret key, which imagePullSecrets names") {
		t.Errorf("apply says %q", out)
	}
	l.waitPull("priv-0", "registry.test is not trusted", "ca =", "there is no Secret key")
	trusted := "server = \"https://" + registryAddr + "\"\nca = \"" + l.certs.dir + "/ca.pem\"\n"
	l.configureRegistry(trusted)
	l.waitPull("priv-0", "registry.test refuses access", "imagePullSecrets")
	l.apply("key", pullSecret("hunter3"))
	l.waitPull("priv-0", "registry.test refuses the credentials")
	l.apply("key", pullSecret(registryPassword))
	first := l.waitReady("priv-0", nil)

	t.Log("the registry is gone: a present image starts again, in place and in a new life")
	end(t, registry)
	l.killMember("priv-0")
	second := l.waitReady("priv-0", &first)
	l.stead("restart", "priv-0")
	third := l.waitReady("priv-0", &second)

	t.Log("a mirror has what the registry does not give")
	l.apply("priv", fmt.Sprintf(privateSet, "2"))
	l.eventually(4*time.Minute, "the update waits for its image, and priv-0 is not stopped", func() error {
		m, err := l.member("priv-0")
		if err == nil && (m.Status.Token != third.Status.Token || !strings.Contains(m.Status.Blocked, "cannot be reached from this node")) {
			err = fmt.Errorf("%+v", m.Status)
		}
		return err
	})
	l.startRegistry("mirror", mirrorAddr, false)
	l.configureRegistry(trusted + "[host.\"https://" + mirrorAddr + "\"]\nca = \"" + l.certs.dir + "/ca.pem\"\n")
	l.waitReady("priv-0", &third)
	l.assertNoPassword()

	t.Log("an image that nothing needs is removed; one that was loaded stays")
	l.stead("image", "load", archive)
	_ = l.agent.signal(syscall.SIGKILL)
	l.startAgent("--registry-dir", l.path("certs.d"), "--image-gc-high-percent", "1", "--image-gc-low-percent", "0")
	l.eventually(6*time.Minute, "tool:1 is removed", func() error {
		if out := l.stead("image", "ls"); strings.Contains(out, "registry.test/team/tool:1 ") {
			return errors.New(out)
		}
		return nil
	})
	if out := l.stead("image", "ls"); !strings.Contains(out, "registry.test/team/tool:2 ") || !strings.Contains(out, "stead.local/tool:1 ") {
		t.Errorf("what is needed or was loaded is gone, too:\n%s", out)
	}
	l.waitReady("priv-0", nil)
}

// assertNoPassword looks for the password on the disk: in what agent, server and containerd keep and
// have logged.
func (l *Lab) assertNoPassword() {
	l.t.Helper()
	looked := 0
	look := func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // what goes meanwhile
		}
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(registryPassword)) {
			l.t.Errorf("%s has the password", path)
		}
		looked++
		return nil
	}
	logs, err := filepath.Glob(l.path("*.log"))
	for _, place := range append(logs, l.path("agent"), l.path("server"), l.path("ctd", "io.containerd.metadata.v1.bolt"), l.path("ctd-state")) {
		err = errors.Join(err, filepath.WalkDir(place, look))
	}
	if err != nil || looked < 10 {
		l.t.Errorf("%d files were looked at: %v", looked, err)
	}
}
